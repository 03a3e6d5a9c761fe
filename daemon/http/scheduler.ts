import type { Clock } from '../core/ports.js';

/** Work at the end of a turn of the event loop, once everything that arrived in it was read. */
export interface TurnTask {
  /** Must neither wait nor throw. */
  atEndOfTurn(): void;
}

/** A request that has ended. */
export interface Completed {
  /** Hands its record to usage, events, the audit log and metrics. Must neither wait nor throw. */
  publish(): void;
}

/**
 * Priorities: `urgent` is for short work that monitoring waits for; `usual` comes after it; `late` is for requests that a client sent
 * before its previous response, and runs when no other work needs the processor.
 */
export type Priority = 'urgent' | 'usual' | 'late';

// Time limits for the work of one turn of the event loop: so short that no client notices the pause.
const SLICE_MS = 1;
const LATE_SLICE_MS = 0.5;
/** Of turn tasks and completed requests, however long other work took. */
const MAX_SLICE_MS = 10;
/** While other requests are served, late work pauses for this many times its own duration: it gets a fiftieth of the processor. */
const LATE_PAUSE_FACTOR = 50;
const MAX_LATE_PAUSE_MS = 500;
/** How long another request counts as being served. Without other requests nothing pauses. */
const OTHERS_WINDOW_MS = 50;
// libuv accepts one connection in each turn of the event loop: while many arrive, most turns should be short.
const MAX_SKIPPED_TURNS = 10;

type Task = () => void;

/**
 * Work that is done at the end of a turn of the event loop, after everything that has arrived was read, and in slices, so that input of
 * other clients is read in between.
 *
 * - **Turn tasks and completed requests.** Doing the same for many requests in a row is cheaper than doing it for each one in between other
 *   work: its code and data stay in the processor's caches, and a process that waits for what is written is woken once, not once for each
 *   write. Publishing each request as it ended took a ninth of the time of a request. If other work takes longer than a slice, such as a
 *   flood of refusals, the slice is as long, so that this work gets half of the time.
 * - **Tasks with a priority.** Otherwise a client that sends a thousand requests at once would be served a thousand times before any other
 *   client.
 */
export class Scheduler {
  readonly #clock: Clock;
  readonly #completed = new Queue<Completed>((request) => {
    request.publish();
  });
  readonly #turn = new Queue<TurnTask>((task) => {
    task.atEndOfTurn();
  });
  readonly #tasks: Record<Priority, Queue<Task>> = { urgent: taskQueue(), usual: taskQueue(), late: taskQueue() };
  /** Also during the work of a turn, so that what it adds does not schedule another one. */
  #isScheduled = false;
  /** When the work of the next turn was scheduled (monotonic). */
  #scheduledAtMs = 0;
  #hasNewConnection = false;
  #skippedTurns = 0;
  #isLatePaused = false;
  #othersAtMs = -Infinity;
  /** When late work last ran, or was added to an empty queue. */
  #lateAtMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  atEndOfTurn(task: TurnTask): void {
    this.#turn.add(task);
    if (!this.#isScheduled) this.#schedule();
  }

  publish(request: Completed): void {
    this.#completed.add(request);
    if (!this.#isScheduled) this.#schedule();
  }

  /** Publishes all completed requests now, for callers that cannot wait, such as a shutdown. */
  publishAll(): void {
    this.#completed.work(() => false);
  }

  /** Runs the task in order of its priority, about a millisecond of such work per turn. */
  add(task: Task, when: Priority): void {
    if (when !== 'late') this.noteOtherWork();
    else if (this.#tasks.late.length === 0) this.#lateAtMs = this.#clock.monotonic();
    this.#tasks[when].add(task);
    this.#scheduleRest();
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
    this.#isScheduled = true;
    this.#scheduledAtMs = this.#clock.monotonic();
    setImmediate(this.#workTurn);
  }

  #scheduleRest(): void {
    if (!this.#isScheduled && this.#completed.length + this.#turn.length + this.#dueTasks > 0) this.#schedule();
  }

  get #dueTasks(): number {
    const { urgent, usual, late } = this.#tasks;
    return urgent.length + usual.length + (this.#isLatePaused ? 0 : late.length);
  }

  readonly #workTurn = (): void => {
    try {
      this.#workBatch(this.#completed);
      this.#workBatch(this.#turn);
      if (this.#dueTasks > 0 && !this.#skipsTurn()) this.#workTasks();
    } finally {
      this.#isScheduled = false;
      this.#scheduleRest();
    }
  };

  #workBatch(queue: Pick<Queue<unknown>, 'length' | 'work'>): void {
    if (queue.length === 0) return;
    const nowMs = this.#clock.monotonic();
    const otherWorkMs = Math.min(MAX_SLICE_MS, nowMs - this.#scheduledAtMs);
    const untilMs = nowMs + Math.max(SLICE_MS, otherWorkMs);
    queue.work(() => this.#clock.monotonic() >= untilMs);
  }

  #skipsTurn(): boolean {
    const isPassedOver = this.#hasNewConnection && this.#skippedTurns < MAX_SKIPPED_TURNS;
    this.#hasNewConnection = false;
    this.#skippedTurns = isPassedOver ? this.#skippedTurns + 1 : 0;
    return isPassedOver;
  }

  #workTasks(): void {
    const { urgent, usual, late } = this.#tasks;
    const begunAtMs = this.#clock.monotonic();
    const isOver = () => this.#clock.monotonic() >= begunAtMs + SLICE_MS;
    // What they add runs the next time: `usual` runs at least one task, even if urgent work never ends.
    urgent.work(isOver, urgent.length);
    usual.work(isOver, usual.length);
    if (this.#isLatePaused || late.length === 0) return;
    const lateAtMs = this.#clock.monotonic();
    // Late work has the lowest priority, but some of it runs even if there is always other work.
    if (isOver() && lateAtMs < this.#lateAtMs + MAX_LATE_PAUSE_MS) return;
    this.#lateAtMs = lateAtMs;
    late.work(() => this.#clock.monotonic() >= lateAtMs + LATE_SLICE_MS, late.length);
    const tookMs = this.#clock.monotonic() - lateAtMs;
    if (late.length > 0 && lateAtMs < this.#othersAtMs + OTHERS_WINDOW_MS)
      this.#pauseLate(Math.min(LATE_PAUSE_FACTOR * tookMs, MAX_LATE_PAUSE_MS));
  }

  #pauseLate(forMs: number): void {
    this.#isLatePaused = true;
    this.#clock.after(forMs, () => {
      this.#isLatePaused = false;
      this.#scheduleRest();
    });
  }
}

class Queue<T> {
  readonly #run: (item: T) => void;
  #items: T[] = [];
  /** Index of the first item that is not done yet. */
  #nextIndex = 0;

  constructor(run: (item: T) => void) {
    this.#run = run;
  }

  get length(): number {
    return this.#items.length - this.#nextIndex;
  }

  add(item: T): void {
    this.#items.push(item);
  }

  /** Works on the items in order, at least on one, until `isOver` returns true. @param most default: also on what is added meanwhile. */
  work(isOver: () => boolean, most = Infinity): void {
    const run = this.#run;
    try {
      for (let done = 0; done < most && this.#nextIndex < this.#items.length; done += 1) {
        const item = this.#items[this.#nextIndex] as T;
        this.#nextIndex += 1;
        run(item);
        if (isOver()) break;
      }
    } finally {
      // Frees what is done even if more keeps arriving.
      if (2 * this.#nextIndex >= this.#items.length) {
        this.#items = this.#items.slice(this.#nextIndex);
        this.#nextIndex = 0;
      }
    }
  }
}

const taskQueue = () =>
  new Queue<Task>((task) => {
    task();
  });
