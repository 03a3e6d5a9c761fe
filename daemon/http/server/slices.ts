import type { Clock } from '../../core/ports.js';

/**
 * When work is done: `urgent` is little work that those who watch over this instance wait for; `usual` comes after it; `late` is what a
 * client sent before it had the answer to what it sent before, and comes when nobody else needs the processor.
 */
export type Class = 'urgent' | 'usual' | 'late';

/** How long the work of one turn of the event loop may take. */
const SLICE_MS = 1;
const LATE_SLICE_MS = 0.5;
/** While others are served, late work rests for so many times as long as it took: it gets a fiftieth of the processor. */
const RESTS = 50;
const LONGEST_REST_MS = 500;
/** Others count as being served for so long. Without others nothing rests. */
const OTHERS_FOR_MS = 50;
// libuv accepts one connection in each turn of the event loop: while many come, most turns are to be short.
const MOST_PASSED_OVER = 10;

type Task = () => void;

/**
 * Work that can wait, done in the order it came and a millisecond at a time, so that the event loop reads what others send in between.
 * A client that has sent a thousand requests at once would otherwise be served a thousand times before anybody else.
 */
export class Slices {
  readonly #clock: Clock;
  readonly #queues: Record<Class, Queue> = { urgent: new Queue(), usual: new Queue(), late: new Queue() };
  #isScheduled = false;
  #isHurried = false;
  #passedOver = 0;
  #isResting = false;
  #othersAtMs = -Infinity;
  /** When late work was done last, or came when there was none. */
  #lateAtMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(task: Task, when: Class): void {
    if (when !== 'late') this.othersAreServed();
    else if (this.#queues.late.length === 0) this.#lateAtMs = this.#clock.monotonic();
    this.#queues[when].add(task);
    this.#schedule();
  }

  /** A request that waits for nothing is served now. */
  othersAreServed(): void {
    this.#othersAtMs = this.#clock.monotonic();
  }

  /** A connection was made. Others wait for this turn of the event loop to end: the next slice may be passed over. */
  hurry(): void {
    this.#isHurried = true;
  }

  #schedule(): void {
    const { urgent, usual, late } = this.#queues;
    if (this.#isScheduled || urgent.length + usual.length + (this.#isResting ? 0 : late.length) === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      try {
        if (!this.#isPassedOver()) this.#work();
      } finally {
        this.#schedule();
      }
    });
  }

  #isPassedOver(): boolean {
    const isPassedOver = this.#isHurried && this.#passedOver < MOST_PASSED_OVER;
    this.#isHurried = false;
    this.#passedOver = isPassedOver ? this.#passedOver + 1 : 0;
    return isPassedOver;
  }

  #work(): void {
    const { urgent, usual, late } = this.#queues;
    const begunAtMs = this.#clock.monotonic();
    const isOver = () => this.#clock.monotonic() >= begunAtMs + SLICE_MS;
    urgent.work(isOver);
    usual.work(isOver); // At least one, also while others ask for urgent work without end.
    if (this.#isResting || late.length === 0) return;
    const lateAtMs = this.#clock.monotonic();
    // It comes last, but it comes: some of it also while there is always something else to do.
    if (isOver() && lateAtMs < this.#lateAtMs + LONGEST_REST_MS) return;
    this.#lateAtMs = lateAtMs;
    late.work(() => this.#clock.monotonic() >= lateAtMs + LATE_SLICE_MS);
    const tookMs = this.#clock.monotonic() - lateAtMs;
    if (late.length > 0 && lateAtMs < this.#othersAtMs + OTHERS_FOR_MS)
      this.#rest(Math.min(RESTS * tookMs, LONGEST_REST_MS));
  }

  #rest(forMs: number): void {
    this.#isResting = true;
    this.#clock.after(forMs, () => {
      this.#isResting = false;
      this.#schedule();
    });
  }
}

class Queue {
  #tasks: Task[] = [];

  get length(): number {
    return this.#tasks.length;
  }

  add(task: Task): void {
    this.#tasks.push(task);
  }

  /** Does what is there, until it is over. What is added meanwhile comes the next time. */
  work(isOver: () => boolean): void {
    const tasks = this.#tasks;
    this.#tasks = [];
    let done = 0;
    try {
      for (const task of tasks) {
        done += 1;
        task();
        if (isOver()) break;
      }
    } finally {
      // As a rule nothing is left, or nothing was added.
      if (done < tasks.length) this.#tasks = tasks.slice(done).concat(this.#tasks);
    }
  }
}
