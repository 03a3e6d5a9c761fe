import type { Clock } from '../../core/ports.js';
import type { Turns } from '../body.js';
import { Patience } from './patience.js';
import { Watch, type Watches } from './watch.js';

export interface TurnLimits {
  requestTimeoutMs: number;
  clientBodyTimeoutMs: number;
}

/** Whose turn it is in an exchange, and for how long yet. */
export class Turn implements Turns {
  readonly #limits: TurnLimits;
  readonly #on: { clientSilent: () => void; upstreamSilent: () => void };
  readonly #watch: Watch;
  readonly #clock: Clock;
  #patience: Patience | null = null;
  #isClients = false;
  /** Of the client's body. */
  receivedBytes = 0;

  constructor(watches: Watches, limits: TurnLimits, on: { clientSilent: () => void; upstreamSilent: () => void }) {
    this.#limits = limits;
    this.#on = on;
    this.#watch = new Watch(watches);
    this.#clock = watches.clock;
  }

  /** The client has a body to send, and so long for it. */
  beginBody(): void {
    this.#patience = new Patience(this.#limits.clientBodyTimeoutMs, this.#clock);
  }

  waitForClient(): void {
    this.#isClients = true;
    this.#watch.expect(this.#patience?.begin() ?? 0, this.#onSilence);
  }

  received(bytes: number): void {
    this.receivedBytes += bytes;
    this.#patience?.received(bytes);
  }

  waitForUpstream(nowMs?: number): void {
    this.#isClients = false;
    this.#watch.expect(this.#limits.requestTimeoutMs, this.#onSilence, nowMs);
  }

  /** @param onEnough when it has taken as long as an upstream may. */
  waitForAnother(onEnough: () => void): void {
    this.#watch.expect(this.#limits.requestTimeoutMs, onEnough);
  }

  waitForNobody(): void {
    this.#watch.rest();
  }

  /** Whoever is waited for has given a sign. */
  touch(): void {
    this.#watch.touch();
  }

  end(): void {
    this.#watch.end();
  }

  readonly #onSilence = () => {
    if (this.#isClients) this.#on.clientSilent();
    else this.#on.upstreamSilent();
  };
}
