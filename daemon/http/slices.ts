import type { Clock } from '../core/ports.js';

const SLICE_MS = 4;
// libuv accepts one connection in each turn of the event loop: while many come, most turns are to be short.
const MOST_PASSED_OVER = 10;

/**
 * Work that can wait, done in the order it came and a few milliseconds at a time, so that the event loop reads what others send in between.
 * A client that has sent a thousand requests at once would otherwise be served a thousand times before anybody else.
 */
export class Slices {
  readonly #urgent: (() => void)[] = [];
  #tasks: (() => void)[] = [];
  #next = 0;
  #isScheduled = false;
  #isHurried = false;
  #passedOver = 0;

  constructor(private readonly clock: Clock) {}

  add(task: () => void): void {
    this.#tasks.push(task);
    this.#schedule();
  }

  /** Before all others: for what is little work, and waited for by those who watch over this instance. */
  addUrgent(task: () => void): void {
    this.#urgent.push(task);
    this.#schedule();
  }

  /** Others wait for this turn of the event loop to end: the next slice may be passed over. */
  hurry(): void {
    this.#isHurried = true;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.#isPassedOver()) this.#schedule();
      else this.#work();
    });
  }

  #isPassedOver(): boolean {
    const isPassedOver = this.#isHurried && this.#passedOver < MOST_PASSED_OVER;
    this.#isHurried = false;
    this.#passedOver = isPassedOver ? this.#passedOver + 1 : 0;
    return isPassedOver;
  }

  #work(): void {
    const until = this.clock.monotonic() + SLICE_MS;
    // Not what is added meanwhile: that comes in its turn.
    let left = this.#urgent.length + this.#tasks.length;
    try {
      while (left > 0) {
        left -= 1;
        this.#take()?.();
        if (this.clock.monotonic() >= until) break;
      }
    } finally {
      this.#tasks = this.#tasks.slice(this.#next);
      this.#next = 0;
      if (this.#urgent.length + this.#tasks.length > 0) this.#schedule();
    }
  }

  #take(): (() => void) | undefined {
    return this.#urgent.shift() ?? this.#tasks[this.#next++];
  }
}
