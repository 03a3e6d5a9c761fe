import type { Pass } from '../../core/account.js';
import type { Admission } from '../../core/admission.js';
import type { Refusal } from '../../core/refusal.js';
import type { Visit } from '../../core/visit.js';
import type { Forwarding, Receiver } from './forward.js';
import { asSent, keepableOf } from './kept.js';
import { Watch, type Watches } from './watch.js';

export interface FillingOptions {
  admission: Pick<Admission, 'accompany' | 'finish'>;
  watches: Watches;
  /** Of the upstream, once nobody else minds. */
  requestTimeoutMs: number;
}

/**
 * Takes an upstream's answer for the cache and for the client that asked for it. The client may leave: what others wait for,
 * or what is half kept, goes on without it.
 */
export class Filling implements Receiver {
  readonly #visit: Visit;
  readonly #pass: Pass;
  readonly #options: FillingOptions;
  #client: Receiver | null;
  /** What is kept goes out in place of what the upstream says. */
  #isConfirmation = false;
  #forwarding: Forwarding | null = null;
  readonly #watch: Watch;
  #companion: Pass | null = null;
  #isOver = false;

  constructor(client: Receiver, visit: Visit, pass: Pass, options: FillingOptions) {
    this.#visit = visit;
    this.#pass = pass;
    this.#options = options;
    this.#client = client;
    this.#watch = new Watch(options.watches);
  }

  /** Whether the upstream only confirmed what it said before. */
  get isConfirmation(): boolean {
    return this.#isConfirmation;
  }

  begun(forwarding: Forwarding): void {
    this.#forwarding = forwarding;
  }

  head(status: number, rawHeaders: readonly Buffer[]): void {
    const { head, headers } = keepableOf(status, rawHeaders, this.#options.watches.clock.now());
    const confirmed = this.#visit.answered(head, headers);
    if (confirmed) {
      this.#isConfirmation = true;
      this.#client?.head(confirmed.status, asSent(confirmed));
      this.#client?.data(confirmed.body);
    } else {
      this.#client?.head(status, rawHeaders);
    }
    this.#goOn();
  }

  data(piece: Buffer): boolean {
    if (this.#isConfirmation) return true;
    this.#visit.piece(piece);
    const isTaken = this.#client?.data(piece) ?? true;
    this.#goOn();
    // Who waits for the whole answer is not held up by who takes it slowly.
    return isTaken || this.#visit.isAwaited;
  }

  end(): void {
    // First kept: who has its answer may ask again at once.
    this.#visit.whole();
    this.#client?.end();
    this.#end();
  }

  fail(refusal: Refusal): void {
    this.#visit.failed();
    this.#client?.fail(refusal);
    this.#end();
  }

  /** The client has left. @returns whether the answer is of use to others. */
  leave(): boolean {
    this.#client = null;
    if (this.#isOver || !this.#visit.isWanted) return false;
    const { admission, requestTimeoutMs } = this.#options;
    // Revoking the token ends this too.
    this.#companion = admission.accompany(this.#pass);
    this.#companion.onEnded = () => {
      this.#abort();
    };
    this.#watch.expect(requestTimeoutMs, () => {
      this.#abort();
    });
    this.#forwarding?.resume(); // It may have been held up by the client.
    return true;
  }

  /** While the client is there it minds how long things take, and whether its token is good. */
  #goOn(): void {
    if (this.#client !== null || this.#isOver) return;
    if (this.#visit.isWanted) this.#watch.touch();
    else this.#abort();
  }

  #abort(): void {
    this.#forwarding?.abort();
    this.#visit.quit();
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#watch.end();
    if (this.#companion) this.#options.admission.finish(this.#companion);
    this.#companion = null;
  }
}
