import type { Socket } from 'node:net';
import { HeldMemory, type MemoryLimit } from '../../core/memory-limit.js';
import { Outlet } from '../outlet.js';
import type { Reloadable } from '../../../config/settings.js';
import type { Outcome } from '../../core/events.js';
import type { Clock } from '../../core/ports.js';
import { Refusal, tokenExpired } from '../../core/refusal.js';
import { FrameBoundary } from './boundaries.js';
import { endAndLinger, LINGER_MS } from '../connection-ends.js';
import { closeFrame } from './termination-notice.js';
import type { RequestRecord } from './request-record.js';
import type { IdleTimer } from './timeouts/idle-timers.js';

// Idle timeout of the upstream after the client has closed its side, and may be gone.
const HALF_CLOSED_TIMEOUT_MS = 10_000;
// Limits how late a connection ends if the wall clock is set forward.
const MAX_EXPIRY_CHECK_MS = 60_000;

/** The upgrade that owns a tunnel. */
export interface TunnelOwner {
  readonly clock: Clock;
  readonly settings: Pick<Reloadable, 'websocketIdleTimeoutMs'>;
  readonly record: RequestRecord;
  readonly idleTimer: IdleTimer;
  readonly memory: MemoryLimit;
  /** Whether it has ended; nothing may be started for it then. */
  isClosed(): boolean;
  /** Called when its token has expired. */
  cut(refusal: Refusal): void;
  /** @param why reason for the client, if this proxy ends the connection. */
  destroy(outcome: Outcome, why?: Refusal): void;
}

/**
 * The connections of a client and the upstream after a 101. This class passes on what arrives, no faster than it is read, counts bytes,
 * watches for idleness and expiry, and ends both.
 */
export class WebSocketTunnel {
  readonly #owner: TunnelOwner;
  readonly #socket: Socket;
  readonly #upstream: Socket;
  readonly #frames = new FrameBoundary();
  readonly #toClient: Outlet;
  readonly #toUpstream: Outlet;
  readonly #held: readonly HeldMemory[];
  #cancelExpiry: () => void = () => undefined;

  constructor(upgrade: TunnelOwner, socket: Socket, upstream: Socket) {
    this.#owner = upgrade;
    this.#socket = socket;
    this.#upstream = upstream;
    const held = () =>
      new HeldMemory(upgrade.memory, () => {
        upgrade.destroy('client_closed');
      });
    const [ofClient, ofUpstream] = (this.#held = [held(), held()]);
    this.#toClient = outletTo(socket, upstream, ofClient as HeldMemory);
    this.#toUpstream = outletTo(upstream, socket, ofUpstream as HeldMemory);
  }

  begin(): void {
    const upgrade = this.#owner;
    const socket = this.#socket;
    const upstream = this.#upstream;
    this.#scheduleExpiry();
    upgrade.idleTimer.start(upgrade.settings.websocketIdleTimeoutMs, () => {
      upgrade.destroy('timeout', new Refusal('request_timeout', 'the connection was idle for too long'));
    });
    // http-proxy has piped them, and a pipe would queue single bytes as single objects.
    socket.unpipe(upstream);
    upstream.unpipe(socket);
    socket.on('data', this.#onClientChunk).resume();
    upstream.on('data', this.#onUpstreamChunk).resume();
    socket.on('end', () => {
      this.#toUpstream.flush();
      upstream.end();
    });
    upstream.on('end', () => {
      this.#toClient.flush();
      socket.end();
    });
    upstream.on('close', () => {
      this.#toClient.flush();
      endAndLinger(socket, upgrade.clock);
    });
  }

  /**
   * Ends the connection when its token expires, since each message on it is a request and it could stay open forever. (A streamed
   * response is one request, made while the token was valid, so it runs to its end.) The wall clock may be set in the meantime, so it is
   * read again periodically.
   */
  #scheduleExpiry(): void {
    const { clock, record } = this.#owner;
    if (!record.pass || this.#owner.isClosed()) return;
    const leftMs = record.pass.expiresAtMs - clock.now();
    if (leftMs <= 0) {
      this.#owner.cut(tokenExpired());
      return;
    }
    this.#cancelExpiry = clock.after(Math.min(leftMs, MAX_EXPIRY_CHECK_MS), () => {
      this.#scheduleExpiry();
    });
  }

  readonly #onClientChunk = (chunk: Buffer) => {
    this.#owner.record.bytesIn += chunk.length;
    this.#owner.idleTimer.touch();
    if (!this.#toUpstream.send(chunk)) this.#socket.pause();
  };

  readonly #onUpstreamChunk = (chunk: Buffer) => {
    const { record, idleTimer: watch } = this.#owner;
    record.bytesOut += chunk.length;
    this.#frames.read(chunk);
    watch.touch();
    record.realtime?.chunk(chunk);
    if (!this.#toClient.send(chunk)) this.#upstream.pause();
  };

  /** The client has closed its side. The upstream has been notified of that, and may finish. */
  clientEnded(): void {
    const { idleTimer: watch, settings } = this.#owner;
    watch.start(Math.min(HALF_CLOSED_TIMEOUT_MS, settings.websocketIdleTimeoutMs), () => {
      this.#owner.destroy('ok');
    });
  }

  /** Whether a close frame with a reason may be sent to the client. */
  get isBetweenFrames(): boolean {
    return this.#frames.isReached;
  }

  /** The upstream connection is closed. Sends the client the reason, and gives it a moment to read it. */
  sendCutReason(why: Refusal): void {
    const socket = this.#socket;
    const upstream = this.#upstream;
    upstream.off('data', this.#onUpstreamChunk);
    socket.off('data', this.#onClientChunk);
    this.#toClient.flush();
    socket.once(
      'close',
      // The time starts now, not when the frame is sent: a client that does not read would keep the connection open forever.
      this.#owner.clock.after(LINGER_MS, () => socket.destroy()),
    );
    socket.resume().end(closeFrame(why));
  }

  end(): void {
    this.#cancelExpiry();
    this.#upstream.destroy();
    for (const each of this.#held) each.release();
  }
}

/** @param source is read again once everything was written to `target`. */
const outletTo = (target: Socket, source: Socket, memory: HeldMemory) =>
  new Outlet({
    write: (bytes, written) => target.write(bytes, written),
    onReady: () => source.resume(),
    memory,
  });
