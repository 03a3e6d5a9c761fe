import type { Socket } from 'node:net';
import type { Reloadable } from '../../../config/settings.js';
import type { Outcome } from '../../core/events.js';
import type { Clock } from '../../core/ports.js';
import { Refusal, tokenExpired } from '../../core/refusal.js';
import { FrameBoundary } from './boundaries.js';
import { endGently, LINGER_MS } from '../endings.js';
import { closeFrame } from './farewell.js';
import type { RequestRecord } from './record.js';
import type { Watch } from './watch.js';

// How long an upstream may be silent whose client has ended its side, and may be gone.
const HALF_CLOSED_MS = 10_000;
// A connection ends so much late at most if the clock on the wall is set forward.
const LOOK_AT_CLOCK_MS = 60_000;

/** What the two connections are one for. */
export interface Joining {
  readonly clock: Clock;
  readonly settings: Pick<Reloadable, 'websocketIdleTimeoutMs'>;
  readonly record: RequestRecord;
  readonly watch: Watch;
  /** Nothing is begun for it any more. */
  isClosed(): boolean;
  /** Its token has expired. */
  cut(refusal: Refusal): void;
  /** @param why for the client, if it is us who end it. */
  destroy(outcome: Outcome, why?: Refusal): void;
}

/** The connections of a client and of the upstream behind a 101. They are piped into each other; here they are counted, watched and ended. */
export class Joined {
  readonly #upgrade: Joining;
  readonly #socket: Socket;
  readonly #upstream: Socket;
  readonly #frames = new FrameBoundary();
  #cancelExpiry: () => void = () => undefined;

  constructor(upgrade: Joining, socket: Socket, upstream: Socket) {
    this.#upgrade = upgrade;
    this.#socket = socket;
    this.#upstream = upstream;
  }

  begin(): void {
    const upgrade = this.#upgrade;
    const socket = this.#socket;
    const upstream = this.#upstream;
    this.#endWithToken();
    upgrade.watch.expect(upgrade.settings.websocketIdleTimeoutMs, () => {
      upgrade.destroy('timeout', new Refusal('request_timeout', 'both sides were silent for too long'));
    });
    socket.on('data', this.#onClientPiece);
    upstream.on('data', this.#onUpstreamPiece);
    upstream.on('close', () => {
      endGently(socket, upgrade.clock);
    });
  }

  /**
   * A connection may go on for ever, and each of its messages is a request: it ends when its token expires. (An answer that
   * is streamed is one request, which was made in time: it goes on to its end.) The clock on the wall may be set while the
   * connection lasts, so it is asked again every so often.
   */
  #endWithToken(): void {
    const { clock, record } = this.#upgrade;
    if (!record.pass || this.#upgrade.isClosed()) return;
    const leftMs = record.pass.expiresAtMs - clock.now();
    if (leftMs <= 0) {
      this.#upgrade.cut(tokenExpired());
      return;
    }
    this.#cancelExpiry = clock.after(Math.min(leftMs, LOOK_AT_CLOCK_MS), () => {
      this.#endWithToken();
    });
  }

  readonly #onClientPiece = (piece: Buffer) => {
    this.#upgrade.record.bytesIn += piece.length;
    this.#upgrade.watch.touch();
  };

  readonly #onUpstreamPiece = (piece: Buffer) => {
    const { record, watch } = this.#upgrade;
    record.bytesOut += piece.length;
    this.#frames.read(piece);
    watch.touch();
    record.realtime?.piece(piece);
  };

  /** The client has said all it had to say. The upstream has heard so, and may finish. */
  awaitUpstreamsEnd(): void {
    const { watch, settings } = this.#upgrade;
    watch.expect(Math.min(HALF_CLOSED_MS, settings.websocketIdleTimeoutMs), () => {
      this.#upgrade.destroy('ok');
    });
  }

  /** Whether the client can be told why its connection ends. */
  get isBetweenFrames(): boolean {
    return this.#frames.isReached;
  }

  /** The upstream is gone; the client is told why, and given a moment to read it. */
  sayWhy(why: Refusal): void {
    const socket = this.#socket;
    const upstream = this.#upstream;
    upstream.unpipe(socket);
    socket.unpipe().off('data', this.#onClientPiece);
    socket.once(
      'close',
      // From now on, not from when it has gone out: a client that takes nothing would hold it for ever.
      this.#upgrade.clock.after(LINGER_MS, () => socket.destroy()),
    );
    socket.resume().end(closeFrame(why));
  }

  end(): void {
    this.#cancelExpiry();
    this.#upstream.destroy();
  }
}
