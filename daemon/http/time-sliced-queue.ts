import type { Clock } from '../core/ports.js';

/**
 * Priorities: `urgent` is for short work that monitoring waits for; `usual` comes after it; `late` is for requests that a client sent
 * before its previous response, and runs when no other work needs the processor.
 */
export type Priority = 'urgent' | 'usual' | 'late';

/** Time limit for the work of one turn of the event loop. */
const SLICE_MS = 1;
const LATE_SLICE_MS = 0.5;
/** While other requests are served, late work pauses for this many times its own duration: it gets a fiftieth of the processor. */
const LATE_PAUSE_FACTOR = 50;
const MAX_LATE_PAUSE_MS = 500;
/** How long another request counts as being served. Without other requests nothing pauses. */
const OTHERS_WINDOW_MS = 50;
// libuv accepts one connection in each turn of the event loop: while many arrive, most turns should be short.
const MAX_SKIPPED_TURNS = 10;

type Task = () => void;

/**
 * Queue of work that can wait, run in order and for about a millisecond per turn of the event loop, so that input of other clients is
 * read in between. Otherwise a client that sends a thousand requests at once would be served a thousand times before any other client.
 */
export class TimeSlicedQueue {
  readonly #clock: Clock;
  readonly #queues: Record<Priority, Queue> = { urgent: new Queue(), usual: new Queue(), late: new Queue() };
  #isScheduled = false;
  #hasNewConnection = false;
  #skippedTurns = 0;
  #isLatePaused = false;
  #othersAtMs = -Infinity;
  /** When late work last ran, or was added to an empty queue. */
  #lateAtMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(task: Task, when: Priority): void {
    if (when !== 'late') this.noteOtherWork();
    else if (this.#queues.late.length === 0) this.#lateAtMs = this.#clock.monotonic();
    this.#queues[when].add(task);
    this.#schedule();
  }

  /** Called when a request is served that does not go through this queue. */
  noteOtherWork(): void {
    this.#othersAtMs = this.#clock.monotonic();
  }

  /** Called for a new connection. Further connections wait for the end of this turn of the event loop, so the next slice may be skipped. */
  noteConnection(): void {
    this.#hasNewConnection = true;
  }

  #schedule(): void {
    const { urgent, usual, late } = this.#queues;
    if (this.#isScheduled || urgent.length + usual.length + (this.#isLatePaused ? 0 : late.length) === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      try {
        if (!this.#skipsTurn()) this.#work();
      } finally {
        this.#schedule();
      }
    });
  }

  #skipsTurn(): boolean {
    const isPassedOver = this.#hasNewConnection && this.#skippedTurns < MAX_SKIPPED_TURNS;
    this.#hasNewConnection = false;
    this.#skippedTurns = isPassedOver ? this.#skippedTurns + 1 : 0;
    return isPassedOver;
  }

  #work(): void {
    const { urgent, usual, late } = this.#queues;
    const begunAtMs = this.#clock.monotonic();
    const isOver = () => this.#clock.monotonic() >= begunAtMs + SLICE_MS;
    urgent.work(isOver);
    usual.work(isOver); // Runs at least one task, even if urgent work never ends.
    if (this.#isLatePaused || late.length === 0) return;
    const lateAtMs = this.#clock.monotonic();
    // Late work has the lowest priority, but some of it runs even if there is always other work.
    if (isOver() && lateAtMs < this.#lateAtMs + MAX_LATE_PAUSE_MS) return;
    this.#lateAtMs = lateAtMs;
    late.work(() => this.#clock.monotonic() >= lateAtMs + LATE_SLICE_MS);
    const tookMs = this.#clock.monotonic() - lateAtMs;
    if (late.length > 0 && lateAtMs < this.#othersAtMs + OTHERS_WINDOW_MS)
      this.#pauseLate(Math.min(LATE_PAUSE_FACTOR * tookMs, MAX_LATE_PAUSE_MS));
  }

  #pauseLate(forMs: number): void {
    this.#isLatePaused = true;
    this.#clock.after(forMs, () => {
      this.#isLatePaused = false;
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

  /** Runs the current tasks until `isOver` returns true. Tasks added meanwhile run the next time. */
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
      // Usually no task is left, or none was added.
      if (done < tasks.length) this.#tasks = tasks.slice(done).concat(this.#tasks);
    }
  }
}
