/**
 * Where events wait for the bus, so that no request ever does.
 *
 * A request's turn costs a push. What has come together is sent as a batch, one at a time and in order; while a bus takes none,
 * events gather up to a bound. **Beyond it the newest are dropped**, and counted: what waits was there first, and is what led
 * up to the outage. Bodies, where they are captured, have a bound of their own, for an event with them can be a thousand times
 * as large as one without.
 */
import { bodyCharacters, type Happening } from './events.js';
import { inTime } from './in-time.js';
import type { Clock, Log } from './ports.js';

const GATHER_MS = 20;
const LARGEST_BATCH = 500;
const MOST_BODY_CHARACTERS = 64_000_000;
const TELL_EVERY_MS = 60_000;

export interface EventBufferOptions {
  /** How many events may wait, those that are being sent included. */
  size: number;
  clock: Clock;
  log: Log;
  /** Sends all of these. Takes as long as it must, and never rejects; whoever closes the buffer ends it, too. */
  send: (batch: readonly Happening[]) => Promise<void>;
}

export class EventBuffer {
  readonly #options: EventBufferOptions;
  /** So many are sent without waiting for more. */
  readonly #plenty: number;
  #waiting: Happening[] = [];
  #underWay: readonly Happening[] = [];
  #bodyCharacters = 0;
  #dropped = 0;
  #toldAtMs = -Infinity;
  #cancelGathering: (() => void) | null = null;
  #onEmpty: (() => void) | null = null;
  #isClosed = false;

  constructor(options: EventBufferOptions) {
    this.#options = options;
    this.#plenty = Math.min(LARGEST_BATCH, Math.ceil(options.size / 2));
  }

  /** How many wait or are being sent. */
  get size(): number {
    return this.#waiting.length + this.#underWay.length;
  }

  /** How many there was no room for. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Never waits, never throws. */
  push(happening: Happening): void {
    const characters = bodyCharacters(happening);
    if (this.#isClosed || this.size >= this.#options.size || !this.#hasRoomFor(characters)) {
      this.#drop(1);
      return;
    }
    this.#bodyCharacters += characters;
    this.#waiting.push(happening);
    if (this.#underWay.length > 0) return;
    if (this.#waiting.length === this.#plenty) this.#sendIn(0);
    else if (this.#cancelGathering === null) this.#sendIn(GATHER_MS);
  }

  /** Sends what waits, and resolves when all is sent or `withinMs` are over; what is left then is dropped. Takes no more. */
  async close(withinMs: number): Promise<void> {
    this.#isClosed = true;
    if (this.size > 0) {
      const empty = new Promise<void>((resolve) => (this.#onEmpty = resolve));
      if (this.#underWay.length === 0) void this.#sendBatch();
      await inTime(this.#options.clock, withinMs, empty, () => undefined);
    }
    const left = this.size;
    this.#cancelGathering?.();
    this.#waiting = [];
    if (left > 0) this.#drop(left);
  }

  #hasRoomFor(characters: number): boolean {
    return characters === 0 || this.#bodyCharacters + characters <= MOST_BODY_CHARACTERS;
  }

  #sendIn(ms: number): void {
    this.#cancelGathering?.();
    this.#cancelGathering = this.#options.clock.after(ms, () => {
      void this.#sendBatch();
    });
  }

  async #sendBatch(): Promise<void> {
    this.#cancelGathering?.();
    this.#cancelGathering = null;
    const batch = this.#waiting.splice(0, LARGEST_BATCH);
    this.#underWay = batch;
    await this.#options.send(batch);
    this.#underWay = [];
    for (const happening of batch) this.#bodyCharacters -= bodyCharacters(happening);
    if (this.#waiting.length === 0) this.#onEmpty?.();
    else if (this.#isClosed || this.#waiting.length >= this.#plenty) void this.#sendBatch();
    else this.#sendIn(GATHER_MS);
  }

  #drop(count: number): void {
    this.#dropped += count;
    const { clock, log } = this.#options;
    const nowMs = clock.monotonic();
    if (nowMs - this.#toldAtMs < TELL_EVERY_MS) return;
    this.#toldAtMs = nowMs;
    log.warn('events are dropped: the bus does not take them', { droppedSoFar: this.#dropped });
  }
}
