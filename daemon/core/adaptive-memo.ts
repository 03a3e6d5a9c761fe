import { withTimeout } from './timing.js';
import type { Clock } from './ports.js';
import { SingleRun } from './single-run.js';

/** A value is reused for this many times as long as its computation took. */
const REUSE_FACTOR = 20;
/** Also after a computation during which the process did not run. */
const MAX_REUSE_MS = 300_000;
const MAX_WAIT_MS = 50;

/**
 * Memo for a value that is requested often and may be expensive to compute (stale-while-revalidate). The more expensive it was, the
 * longer it is reused, so that computing takes at most 1/20 of the time. Concurrent callers share one computation.
 */
export class AdaptiveMemo<T> {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #mayReuse: (value: T) => boolean;
  readonly #maxWaitMs: number;
  #last: { value: T; usableUntilMs: number } | null = null;
  readonly #computing = new SingleRun<T>();

  /**
   * @param mayReuse whether a value may be reused at all.
   * @param maxWaitMs how long a caller waits for a new value while there is a stale one.
   */
  constructor(
    clock: Pick<Clock, 'monotonic' | 'after'>,
    mayReuse: (value: T) => boolean = () => true,
    maxWaitMs = MAX_WAIT_MS,
  ) {
    this.#maxWaitMs = maxWaitMs;
    this.#clock = clock;
    this.#mayReuse = mayReuse;
  }

  /** @param compute computes the value. An error discards the stale value. */
  async current(compute: () => Promise<T>): Promise<T> {
    const last = this.#last;
    if (last && this.#clock.monotonic() < last.usableUntilMs) return last.value;
    const computation = this.#computing.run(() => this.#compute(compute));
    if (!last) return computation;
    // A caller that times out gets the stale value, whether or not the computation fails later.
    return withTimeout(this.#clock, this.#maxWaitMs, computation, () => last.value);
  }

  async #compute(compute: () => Promise<T>): Promise<T> {
    const beganAtMs = this.#clock.monotonic();
    try {
      const value = await compute();
      const endedAtMs = this.#clock.monotonic();
      const usableUntilMs = endedAtMs + Math.min(MAX_REUSE_MS, REUSE_FACTOR * (endedAtMs - beganAtMs));
      this.#last = this.#mayReuse(value) ? { value, usableUntilMs } : null;
      return value;
    } catch (error) {
      this.#last = null;
      throw error;
    }
  }
}

/** Such memos by key. Beyond `max` keys, the one that was not asked for longest is forgotten. */
export class AdaptiveMemos<T> {
  readonly #newMemo: () => AdaptiveMemo<T>;
  readonly #max: number;
  /** In the order in which they were last asked for. */
  readonly #memos = new Map<string, AdaptiveMemo<T>>();

  /** @param mayReuse whether a value may be reused at all. */
  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, max: number, mayReuse: (value: T) => boolean) {
    this.#newMemo = () => new AdaptiveMemo(clock, mayReuse);
    this.#max = max;
  }

  current(key: string, compute: () => Promise<T>): Promise<T> {
    const memo = this.#memos.get(key) ?? this.#newMemo();
    this.#memos.delete(key);
    this.#memos.set(key, memo);
    const [oldest] = this.#memos.keys();
    if (this.#memos.size > this.#max && oldest !== undefined) this.#memos.delete(oldest);
    return memo.current(compute);
  }
}
