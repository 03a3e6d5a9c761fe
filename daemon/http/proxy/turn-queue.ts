import type { Clock } from '../../core/ports.js';

/** Work at the end of a turn of the event loop, once everything that arrived in it was read. */
export interface TurnTask {
  /** Must neither wait nor throw. */
  atEndOfTurn(): void;
}

/** However long other work took. */
const MAX_SLICE_MS = 10;

export type TurnTasks = Pick<TurnQueue<TurnTask>, 'add'>;

/**
 * Queue of work that is done together at the end of a turn of the event loop, after everything that has arrived was read.
 *
 * Doing the same for many requests in a row is cheaper than doing it for each one in between other work: its code and data stay in the
 * processor's caches, and a process that waits for what is written is woken once, not once for each write. Work goes on in the following
 * turns after each slice, so that it delays nothing else. If other work takes longer than a slice, such as a flood of refusals, the slice is
 * as long, so that this work gets half of the time.
 */
export class TurnQueue<T> {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #sliceMs: number;
  readonly #run: (item: T) => void;
  #items: T[] = [];
  /** Index of the first item that is not done yet. */
  #nextIndex = 0;
  /** Also while a slice is at work, so that what it adds does not schedule another one. */
  #isScheduled = false;
  /** When the next slice was scheduled (monotonic). */
  #scheduledAtMs = 0;

  /** @param sliceMs time limit for the work of one turn. @param run must neither wait nor throw. */
  constructor(clock: Pick<Clock, 'monotonic'>, sliceMs: number, run: (item: T) => void) {
    this.#clock = clock;
    this.#sliceMs = sliceMs;
    this.#run = run;
  }

  add(item: T): void {
    this.#items.push(item);
    if (!this.#isScheduled) this.#schedule();
  }

  #schedule(): void {
    this.#isScheduled = true;
    this.#scheduledAtMs = this.#clock.monotonic();
    setImmediate(this.#runSlice);
  }

  /** Does everything now, for callers that cannot wait, such as a shutdown. */
  flush(): void {
    this.#runUntil(Infinity);
  }

  readonly #runSlice = (): void => {
    const nowMs = this.#clock.monotonic();
    const otherWorkMs = Math.min(MAX_SLICE_MS, nowMs - this.#scheduledAtMs);
    try {
      this.#runUntil(nowMs + Math.max(this.#sliceMs, otherWorkMs));
    } finally {
      this.#isScheduled = false;
      if (this.#nextIndex < this.#items.length) this.#schedule();
    }
  };

  #runUntil(untilMs: number): void {
    const run = this.#run;
    while (this.#nextIndex < this.#items.length) {
      const item = this.#items[this.#nextIndex] as T;
      this.#nextIndex += 1;
      run(item);
      if (this.#clock.monotonic() >= untilMs) break;
    }
    // Frees what is done even if more keeps arriving.
    if (2 * this.#nextIndex < this.#items.length) return;
    this.#items = this.#items.slice(this.#nextIndex);
    this.#nextIndex = 0;
  }
}
