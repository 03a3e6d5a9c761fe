import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Reloadable } from '../../../config/settings.js';
import { ClientMessages } from '../../core/content/client-messages.js';
import { ProviderMessages } from '../../core/content/provider-messages.js';
import type { Outcome } from '../../core/events.js';
import { GatheredBytes } from '../../core/gathered-bytes.js';
import { HeldMemory, type MemoryLimit } from '../../core/memory-limit.js';
import type { Clock } from '../../core/ports.js';
import { Refusal, tokenExpired } from '../../core/refusal.js';
import { endAndLinger, LINGER_MS } from '../connection-ends.js';
import { Outlet } from '../outlet.js';
import { asRefusal } from '../problems.js';
import { wordingFor, type WordingSettings } from '../wording.js';
import type { RequestRecord } from './request-record.js';
import { closingNotice } from './termination-notice.js';
import type { IdleTimer } from './timeouts.js';
import { FrameReader } from './websocket-frames.js';
import { isOfResponses, reportsErrors, type WebSocketUses } from './websocket-uses.js';

// Idle timeout of the upstream after the client has closed its side, and may be gone.
const HALF_CLOSED_TIMEOUT_MS = 10_000;
// Limits how late a connection ends if the wall clock is set forward.
const MAX_EXPIRY_CHECK_MS = 60_000;

/**
 * What happens to a part of a frame of the client: it is forwarded after what is held, or (control frames) before it; it is held until its
 * message is complete; or it is dropped, because the connection ends.
 */
type Verdict = 'pass' | 'overtake' | 'hold' | 'drop';

/** The upgrade that owns a tunnel. */
export interface TunnelOwner {
  readonly req: IncomingMessage;
  readonly clock: Clock;
  readonly settings: WordingSettings & Pick<Reloadable, 'websocketIdleTimeoutMs'>;
  readonly maxMessageBytes: number;
  readonly record: RequestRecord;
  readonly uses: WebSocketUses;
  readonly idleTimer: IdleTimer;
  readonly memory: MemoryLimit;
  /** Whether it has ended; nothing may be started for it then. */
  isClosed(): boolean;
  /** Called when its token has expired. */
  cut(refusal: Refusal): void;
  /** @param why reason for the client, if this proxy ends the connection. */
  destroy(outcome: Outcome, why?: Refusal): void;
  /** Ends the connection because the client has sent what is refused. */
  destroyFor(refusal: Refusal): void;
}

/**
 * The connections of a client and the upstream after a 101. This class passes on what arrives, no faster than it is read, counts bytes,
 * watches for idleness and expiry, and ends both.
 *
 * A message of the client that may ask for a response is held until it is complete. It is forwarded once it has a unit of the token.
 */
export class WebSocketTunnel {
  readonly #owner: TunnelOwner;
  readonly #socket: Socket;
  readonly #upstream: Socket;
  readonly #messages: ClientMessages;
  readonly #fromClient: FrameReader;
  readonly #fromUpstream: FrameReader;
  readonly #toClient: Outlet;
  readonly #toUpstream: Outlet;
  readonly #held: readonly HeldMemory[];
  /** Frames of the client's current message, as far as they are held. */
  readonly #message = new GatheredBytes();
  readonly #messageMemory: HeldMemory;
  readonly #mustHaveTypes: boolean;
  /** Whether the client's message waits for a unit. */
  #isWaiting = false;
  #isUpstreamBusy = false;
  #isClientBusy = false;
  /** What will be read from the provider again, and is counted already. */
  #countedBytes = 0;
  /** Responses that the provider has begun by itself and whose units are awaited. */
  #unpaid = 0;
  /** The last message of the client was refused. Those before it still get their responses. */
  #refusal: Refusal | null = null;
  /** Whether the responses that are under way are not waited for. */
  #endsAtOnce = false;
  #cancelExpiry: () => void = () => undefined;

  constructor(upgrade: TunnelOwner, socket: Socket, upstream: Socket) {
    this.#owner = upgrade;
    this.#socket = socket;
    this.#upstream = upstream;
    this.#mustHaveTypes = isOfResponses(upgrade.req.url ?? '');
    this.#messages = new ClientMessages(() => (this.#mustHaveTypes ? upgrade.uses.newReader() : null));
    this.#fromClient = new FrameReader(true, this.#messages);
    const messages = new ProviderMessages((message) => {
      const unit = upgrade.uses.message(message);
      if (unit) this.#waitForUnasked(unit);
    });
    this.#fromUpstream = new FrameReader(false, messages);
    const held = () =>
      new HeldMemory(upgrade.memory, () => {
        upgrade.destroy('client_closed');
      });
    const [ofClient, ofUpstream, ofMessage] = [held(), held(), held()];
    this.#held = [ofClient, ofUpstream, ofMessage];
    this.#messageMemory = ofMessage;
    this.#toClient = outletTo(socket, ofClient, () => {
      this.#isClientBusy = false;
      this.#readOnUpstream();
    });
    this.#toUpstream = outletTo(upstream, ofUpstream, () => {
      this.#isUpstreamBusy = false;
      this.#readOn();
    });
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
      upgrade.uses.hasProviderEnded ||= !socket.readableEnded;
      this.#toClient.flush();
      socket.end();
    });
    upstream.on('close', () => {
      // Nothing that the client still sends can be forwarded, so it draws no units.
      socket.off('data', this.#onClientChunk);
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
    // Else a client could keep a connection on which all that it sends is dropped.
    if (!this.#refusal) this.#owner.idleTimer.touch();
    this.#owner.uses.clientSpoke();
    this.#take(chunk);
  };

  /** Forwards what the client has sent, but holds the frames of a message that may ask for a response until it is complete. */
  #take(bytes: Buffer): void {
    const frames = this.#fromClient;
    let from = 0; // What precedes it was forwarded, held or dropped.
    let at = 0;
    // Nothing may follow a close frame.
    while (at < bytes.length && !(frames.isClosed && frames.isBetweenFrames)) {
      const begin = at;
      at = frames.read(bytes, begin);
      if (frames.isMalformed) {
        this.#endsAtOnce = true;
        this.#refuseMessage(new Refusal('malformed_request', 'malformed WebSocket frame'));
        return;
      }
      const verdict = this.#verdictOn(at - begin);
      const isWithoutHeld = verdict === 'pass' && this.#message.length === 0;
      if (isWithoutHeld || verdict === 'overtake') continue; // It is forwarded with what precedes and follows it.
      this.#forward(bytes.subarray(from, begin));
      from = at;
      const part = bytes.subarray(begin, at);
      if (verdict === 'drop') continue;
      this.#message.add(verdict === 'pass' ? part : toHold(part));
      if (verdict === 'pass') {
        this.#forwardMessage();
      } else if (verdict === 'hold') {
        this.#messageMemory.hold(this.#message.memory);
      } else {
        this.#waitFor(verdict, toHold(bytes.subarray(at)));
        return;
      }
    }
    this.#forward(bytes.subarray(from, at));
  }

  /** @param length of the part of a frame that was just read. @returns a promise if its message is complete and waits for a unit. */
  #verdictOn(length: number): Verdict | Promise<void> {
    const frames = this.#fromClient;
    // While the connection ends, one could be taken for the rest of a frame that was dropped.
    if (frames.isControl && !this.#endsAtOnce) return 'overtake';
    // Until the header of a message is complete, `#messages` is about the message before. A part of it that is forwarded already could
    // become the beginning of another frame: control frames of the client overtake what is held.
    const asksForNothing = !this.#messages.wantsPayload && !this.#mustHaveTypes && !frames.isInHeader;
    if (!asksForNothing) this.#checkSize(length);
    const waiting = frames.hasEndedMessage && !asksForNothing ? this.#allow(this.#message.length + length) : undefined;
    if (this.#refusal !== null) return 'drop';
    return waiting ?? (frames.hasEndedMessage || asksForNothing ? 'pass' : 'hold');
  }

  /** @param more bytes of the client's message, in addition to what is held of it. */
  #checkSize(more: number): void {
    if (this.#message.length + more <= this.#owner.maxMessageBytes) return;
    this.#refuseMessage(new Refusal('body_too_large', 'the message is too large'));
  }

  /** Asks for a unit if the client's message, which is complete, asks for a response. @param bytes size of the message. @returns a promise only if it has to wait. */
  #allow(bytes: number): undefined | Promise<void> {
    if (this.#refusal) return undefined;
    const { requests, hasType, isWarmUp, model, read } = this.#messages;
    if (requests > 1 || (this.#mustHaveTypes && !hasType)) {
      this.#refuseMessage(new Refusal('invalid_request', 'a message must be one JSON object with a type'));
      return undefined;
    }
    try {
      if (requests > 0) return this.#owner.uses.ask({ model, isRead: isWarmUp, read, bytes });
      if (this.#mustHaveTypes) this.#owner.uses.check(read);
      return undefined;
    } catch (error) {
      this.#refuse(error);
      return undefined;
    }
  }

  #waitFor(unit: Promise<void>, rest: Buffer): void {
    this.#isWaiting = true;
    this.#socket.pause();
    this.#messageMemory.hold(this.#message.memory + rest.length);
    void unit
      .then(
        () => {
          this.#forwardMessage();
        },
        (error: unknown) => {
          this.#refuse(error);
        },
      )
      .then(() => {
        this.#isWaiting = false;
        if (this.#owner.isClosed() || this.#upstream.destroyed) return;
        this.#take(rest);
        this.#readOn();
      });
  }

  /**
   * A response that nobody asked for is already running, so all that is left is to allow no more. Until it is known whether there is a
   * unit for it, nothing more is read: it could be the beginning of another one.
   */
  #waitForUnasked(unit: Promise<void>): void {
    this.#unpaid += 1;
    void unit
      .catch((error: unknown) => {
        this.#endsAtOnce = true;
        this.#refuse(error);
      })
      .then(() => {
        this.#unpaid -= 1;
        this.#readOnUpstream();
      });
  }

  #forwardMessage(): void {
    this.#forward(this.#message.take());
    this.#messageMemory.release();
  }

  #forward(bytes: Buffer): void {
    if (bytes.length === 0 || this.#owner.isClosed() || this.#toUpstream.send(bytes)) return;
    this.#isUpstreamBusy = true;
    this.#socket.pause();
  }

  #readOn(): void {
    if (!this.#isWaiting && !this.#isUpstreamBusy) this.#socket.resume();
  }

  #readOnUpstream(): void {
    if (!this.#isClientBusy && this.#unpaid === 0) this.#upstream.resume();
  }

  /** For a message that asks for nothing, or cannot be read. */
  #refuseMessage(refusal: Refusal): void {
    if (!this.#refusal) this.#refuse(this.#owner.uses.refuse(refusal));
  }

  /** From now on the client's messages are dropped. The connection ends once the responses that are under way have ended. */
  #refuse(error: unknown): void {
    if (this.#owner.isClosed()) return;
    this.#refusal ??= asRefusal(error);
    this.#message.take();
    this.#messageMemory.release();
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (this.#refusal && this.#isDone) this.#owner.destroyFor(this.#refusal);
  }

  get #isDone(): boolean {
    if (this.#refusal === null || !(this.#endsAtOnce || this.#owner.uses.isIdle)) return false;
    return this.#fromUpstream.isBetweenMessages || this.#fromUpstream.isMalformed;
  }

  readonly #onUpstreamChunk = (chunk: Buffer) => {
    const { record, idleTimer } = this.#owner;
    const frames = this.#fromUpstream;
    // Before it is read: that may end a response, whose record has the bytes so far.
    record.bytesOut += chunk.length - this.#countedBytes;
    this.#countedBytes = 0;
    idleTimer.touch();
    for (let at = 0; at < chunk.length && !frames.isMalformed;) {
      at = frames.read(chunk, at);
      if (!this.#isDone && this.#unpaid === 0) continue;
      this.#toTheClient(chunk.subarray(0, at));
      this.#endIfDone();
      if (this.#unpaid > 0 && !this.#owner.isClosed()) this.#readLater(chunk.subarray(at));
      return;
    }
    this.#toTheClient(chunk);
  };

  #toTheClient(bytes: Buffer): void {
    if (this.#toClient.send(bytes)) return;
    this.#isClientBusy = true;
    this.#upstream.pause();
  }

  #readLater(rest: Buffer): void {
    this.#upstream.pause();
    if (rest.length === 0) return;
    this.#countedBytes = rest.length;
    this.#upstream.unshift(rest);
  }

  /** The client has closed its side. The upstream has been notified of that, and may finish. */
  clientEnded(): void {
    const { idleTimer: watch, settings } = this.#owner;
    watch.start(Math.min(HALF_CLOSED_TIMEOUT_MS, settings.websocketIdleTimeoutMs), () => {
      this.#owner.destroy('ok');
    });
  }

  /** Whether a close frame with a reason may be sent to the client. */
  get isBetweenFrames(): boolean {
    return this.#fromUpstream.isBetweenFrames && !this.#fromUpstream.isClosed;
  }

  /** The upstream connection is closed. Sends the client the reason, and gives it a moment to read it. */
  sendReason(why: Refusal, isForMessage: boolean): void {
    const { req, record, settings } = this.#owner;
    const mayReport = reportsErrors(req.url ?? '') && this.#fromUpstream.isBetweenMessages;
    const error = mayReport ? { requestId: record.requestId, wording: wordingFor(why, req, settings) } : null;
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
    socket.resume().end(closingNotice(why, { isForMessage, error }));
  }

  end(): void {
    this.#cancelExpiry();
    this.#upstream.destroy();
    for (const each of this.#held) each.release();
  }
}

/** @param onReady called when everything was written, after it was busy. */
const outletTo = (target: Socket, memory: HeldMemory, onReady: () => void) =>
  new Outlet({ write: (bytes, written) => target.write(bytes, written), onReady, memory });

/** @param part of what was read at once. @returns the same bytes. A small part does not keep the memory of the whole. */
function toHold(part: Buffer): Buffer {
  if (2 * part.length >= part.buffer.byteLength) return part;
  const copy = Buffer.allocUnsafeSlow(part.length);
  part.copy(copy);
  return copy;
}
