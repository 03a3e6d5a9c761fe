/**
 * # Neighbours
 *
 * What an instance that shares its database with others does all the time.
 *
 * **Listens.** Twice a second one short question tells whether anything was changed elsewhere, or units are wanted that are held
 * here. Another instance that can reach us otherwise says so at once (`Pokes`); such a word need not arrive, and is
 * believed only in so far as it makes us forget sooner. Each change is applied once: those made here were applied when they were
 * committed, and their numbers are passed over.
 *
 * **Knows how far it is.** All that was changed before the last good answer's question is known. When that is longer ago than
 * `staleLimitMs` nothing that is remembered is believed any more; when it is so long ago that changes may have been forgotten by all,
 * everything is read again.
 *
 * **Lives.** It says so every ten seconds, if it has nothing else to say, and ends those who have not for half a minute.
 */
import type { Admission } from './admission.js';
import {
  type Clock,
  type CommittedChange,
  type Log,
  type Neighbourhood,
  type Poke,
  type Pokes,
  type RecordStore,
} from './ports.js';
import { SingleRun } from './single-run.js';

const ASK_EVERY_MS = 500;
const LOOK_EVERY_MS = 10_000;
const AT_A_TIME = 500;
const FORGET_EVERY_MS = 600_000;
const KEPT_FOR_MS = 3_600_000;
/** Well before what it missed may be gone, whatever the clocks of the others say. */
const LOST_TRACK_AFTER_MS = KEPT_FOR_MS / 2;

export interface NeighboursOptions {
  neighbourhood: Neighbourhood;
  admission: Pick<Admission, 'apply' | 'caughtUp' | 'distrust' | 'lostTrack' | 'yieldUnits' | 'yieldIdle' | 'showLife'>;
  records: Pick<RecordStore, 'onCommitted'>;
  /** Null where only the database connects the instances. */
  pokes: Pokes | null;
  clock: Clock;
  log: Log;
  instanceId: string;
  staleLimitMs: number;
  /** Told of each change that another instance made, once, when what is remembered of it is forgotten. */
  onChange: (change: CommittedChange) => void;
  /** Told when it cannot be said any more what was changed. */
  onLostTrack: () => void;
  /** Told when there are records of other instances. */
  onRecords: () => void;
}

export class Neighbours {
  readonly #options: NeighboursOptions;
  /** The number of the last record that all before it are known of. */
  #place = 0;
  /** Numbers behind the place that were applied already. */
  readonly #applied = new Set<number>();
  #askedAtMs = { monotonic: 0, wall: 0 };
  #lookedAtMs = -Infinity;
  #forgotAtMs = -Infinity;
  readonly #asking = new SingleRun(() => {
    this.#askLater();
  });
  /** Beside the asking, which nothing may hold up. */
  readonly #living = new SingleRun();
  #isDue = false;
  #isClosed = false;
  #failures = 0;
  #cancelAsking: (() => void) | null = null;
  #cancelDistrust: (() => void) | null = null;

  constructor(options: NeighboursOptions) {
    this.#options = options;
    options.records.onCommitted((_records, changes) => {
      for (const change of changes) {
        this.#applied.add(change.seq);
        options.pokes?.send({ kind: 'changed', change });
      }
    });
    options.pokes?.onPoke((poke) => {
      this.#hear(poke);
    });
  }

  /** Since when (monotonic) it is not known whether anything was changed elsewhere. */
  get upToDateAtMs(): number {
    return this.#askedAtMs.monotonic;
  }

  /** The instance is enrolled, and remembers nothing yet. @throws {StoreUnavailable} */
  async begin(): Promise<void> {
    const { neighbourhood, instanceId, clock } = this.#options;
    const asked = this.#now();
    const { seq } = await neighbourhood.standing(instanceId, clock.now());
    this.#place = seq;
    this.#caughtUp(asked);
    await this.#tellAndBury(false);
    this.#askLater();
  }

  /** Asks how things stand, now. What calls this meanwhile is heard as well. */
  ask(): Promise<void> {
    this.#isDue = true;
    return this.#asking.run(() => this.#askWhileDue());
  }

  /** At shutdown. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelAsking?.();
    this.#cancelDistrust?.();
    await this.#asking.current;
    await this.#living.current;
  }

  #askLater(): void {
    this.#cancelAsking?.();
    if (this.#isClosed) return;
    this.#cancelAsking = this.#options.clock.after(ASK_EVERY_MS, () => void this.ask());
  }

  async #askWhileDue(): Promise<void> {
    while (this.#isDue && !this.#isClosed) {
      this.#isDue = false;
      try {
        await this.#catchUp();
        void this.#living.run(() => this.#live(this.#failures > 0));
        if (this.#failures > 0) this.#options.log.info('changes of other instances are heard of again');
        this.#failures = 0;
      } catch (error) {
        if (this.#failures++ === 0) {
          this.#options.log.warn('changes of other instances cannot be heard of now', { error });
        }
        return;
      }
    }
  }

  async #catchUp(): Promise<void> {
    const { neighbourhood, admission, clock, instanceId, onLostTrack, onRecords } = this.#options;
    const asked = this.#now();
    const { seq, wanted } = await neighbourhood.standing(instanceId, clock.now());
    if (this.#isLostSince(asked) || seq < this.#place) {
      // Or the database was put back to an earlier day, and numbers begin anew from there.
      this.#options.log.warn('changes of other instances may have been missed: reading everything again');
      this.#applied.clear();
      onLostTrack();
      await admission.lostTrack();
      this.#place = seq;
    }
    if (seq > this.#place) {
      await this.#applyUpTo(seq);
      onRecords();
    }
    this.#caughtUp(asked);
    admission.yieldUnits(wanted);
    admission.yieldIdle();
  }

  async #applyUpTo(seq: number): Promise<void> {
    for (;;) {
      const changes = await this.#options.neighbourhood.changesAfter(this.#place, AT_A_TIME);
      for (const change of changes) {
        this.#apply(change);
        this.#place = change.seq;
      }
      if (changes.length < AT_A_TIME) break;
    }
    this.#place = Math.max(this.#place, seq);
    for (const number of this.#applied) if (number <= this.#place) this.#applied.delete(number);
  }

  #apply(change: CommittedChange): void {
    if (change.seq <= this.#place || this.#applied.has(change.seq)) return;
    const { admission, clock, onChange } = this.#options;
    // Theirs is another clock; that it is behind ours is no delay.
    const agoMs = Math.max(0, clock.now() - change.timeMs);
    admission.apply(change, clock.monotonic() - agoMs);
    onChange(change);
  }

  #hear(poke: Poke): void {
    switch (poke.kind) {
      case 'changed':
        this.#apply(poke.change);
        if (poke.change.seq > this.#place) this.#applied.add(poke.change.seq);
        break;
      case 'wanted':
        this.#options.admission.yieldUnits([poke.tokenId]);
        break;
      case 'arrived':
        if (this.#cancelAsking) void this.ask();
    }
  }

  async #live(wasAway: boolean): Promise<void> {
    try {
      await this.#tellAndBury(wasAway);
    } catch (error) {
      this.#options.log.warn('whether other instances live cannot be told now', { error });
    }
  }

  /** @param wasAway whether the database has only just come back. */
  async #tellAndBury(wasAway: boolean): Promise<void> {
    const { neighbourhood, admission, clock, log, instanceId } = this.#options;
    const nowMs = clock.monotonic();
    if (nowMs - this.#lookedAtMs < LOOK_EVERY_MS) return;
    await admission.showLife();
    this.#lookedAtMs = nowMs;
    // Others may have been without the database for as long: they are given until the next look to say that they live.
    if (wasAway) return;
    const buried = await neighbourhood.buryDead(instanceId, clock.now());
    if (buried > 0)
      log.warn('instances that were silent are taken for dead; what they held counts as used', { buried });
    if (nowMs - this.#forgotAtMs < FORGET_EVERY_MS) return;
    await neighbourhood.forgetChangesBefore(clock.now() - KEPT_FOR_MS);
    this.#forgotAtMs = nowMs;
  }

  #now(): { monotonic: number; wall: number } {
    const { clock } = this.#options;
    return { monotonic: clock.monotonic(), wall: clock.now() };
  }

  /** By either clock: one of them stands still while a machine sleeps. */
  #isLostSince(now: { monotonic: number; wall: number }): boolean {
    const { monotonic, wall } = this.#askedAtMs;
    return Math.max(now.monotonic - monotonic, now.wall - wall) > LOST_TRACK_AFTER_MS;
  }

  #caughtUp(asked: { monotonic: number; wall: number }): void {
    const { admission, clock, staleLimitMs } = this.#options;
    this.#askedAtMs = asked;
    admission.caughtUp(asked.monotonic);
    this.#cancelDistrust?.();
    if (this.#isClosed) return;
    this.#cancelDistrust = clock.after(asked.monotonic + staleLimitMs - clock.monotonic(), () => {
      this.#distrust();
    });
  }

  /** Over and over: what was read meanwhile may be out of date as well. */
  #distrust(): void {
    const { admission, clock, staleLimitMs } = this.#options;
    admission.distrust();
    this.#cancelDistrust = clock.after(Math.min(staleLimitMs, ASK_EVERY_MS), () => {
      this.#distrust();
    });
  }
}
