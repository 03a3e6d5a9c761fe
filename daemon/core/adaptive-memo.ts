import { withTimeout } from './timing.js';
import type { Clock } from './ports.js';
import { SingleRun } from './single-run.js';

/** A value is reused for this many times as long as its computation took. */
const REUSE_FACTOR = 20;
/** Also after a computation during which the process did not run. */
const MAX_REUSE_MS = 300_000;
/** How long a caller waits for a new value while there is a stale one. */
const MAX_WAIT_MS = 50;

interface Remembered<T> {
  last: { value: T; usableUntilMs: number } | null;
  readonly computing: SingleRun<T>;
}

/**
 * Memo for values that are requested often and may be expensive to compute (stale-while-revalidate), by key. The more expensive one was,
 * the longer it is reused, so that computing takes at most 1/20 of the time. Concurrent callers share one computation.
 */
export class AdaptiveMemo<T> {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #max: number;
  readonly #mayReuse: (value: T) => boolean;
  /** In the order in which they were last asked for. */
  readonly #remembered = new Map<string, Remembered<T>>();

  /**
   * @param max beyond so many keys, the one that was not asked for longest is forgotten.
   * @param mayReuse whether a value may be reused at all.
   */
  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, max: number, mayReuse: (value: T) => boolean) {
    this.#clock = clock;
    this.#max = max;
    this.#mayReuse = mayReuse;
  }

  /** @param compute computes the value. An error discards the stale value. */
  async current(key: string, compute: () => Promise<T>): Promise<T> {
    const remembered = this.#rememberedFor(key);
    const { last, computing } = remembered;
    if (last && this.#clock.monotonic() < last.usableUntilMs) return last.value;
    const computation = computing.run(() => this.#compute(remembered, compute));
    if (!last) return computation;
    // A caller that times out gets the stale value, whether or not the computation fails later.
    return withTimeout(this.#clock, MAX_WAIT_MS, computation, () => last.value);
  }

  #rememberedFor(key: string): Remembered<T> {
    const remembered = this.#remembered.get(key) ?? { last: null, computing: new SingleRun<T>() };
    this.#remembered.delete(key);
    this.#remembered.set(key, remembered);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > this.#max && oldest !== undefined) this.#remembered.delete(oldest);
    return remembered;
  }

  async #compute(remembered: Remembered<T>, compute: () => Promise<T>): Promise<T> {
    const beganAtMs = this.#clock.monotonic();
    try {
      const value = await compute();
      const endedAtMs = this.#clock.monotonic();
      const usableUntilMs = endedAtMs + Math.min(MAX_REUSE_MS, REUSE_FACTOR * (endedAtMs - beganAtMs));
      remembered.last = this.#mayReuse(value) ? { value, usableUntilMs } : null;
      return value;
    } catch (error) {
      remembered.last = null;
      throw error;
    }
  }
}
