/**
 * # Cluster synchronisation
 *
 * Keeps an instance that shares its database with others up to date.
 *
 * **Polling.** Twice a second one short query checks for changes made by other instances, and for units held here that others need.
 * Instances with Redis also publish `Notifications`, which arrive sooner. A notification may be lost, and can only cause cached
 * state to be dropped earlier. Each change is applied once: changes made here were applied on commit, and their numbers are skipped.
 *
 * **Staleness.** All changes made before the last successful poll began are known. If that is longer ago than `staleLimitMs`, no
 * cached token state is used any more. If it is so long ago that change records may have been deleted, all state is read again.
 *
 * **Heartbeats.** An idle instance writes one every ten seconds. Instances without one for half a minute are expired.
 */
import type { Accounts } from './accounts.js';
import type { Admission } from './admission.js';
import type { LimitShares } from './limit-shares.js';
import {
  type Clock,
  type CommittedChange,
  type Log,
  type ClusterStore,
  type Notification,
  type Notifications,
  type RecordStore,
} from './ports.js';
import { SingleRun } from './single-run.js';

const POLL_EVERY_MS = 500;
const HEARTBEAT_EVERY_MS = 10_000;
const CHANGES_PER_READ = 500;
const DELETE_CHANGES_EVERY_MS = 600_000;
const CHANGE_RETENTION_MS = 3_600_000;
/** Well before missed change records may be deleted, even if the clocks of other instances are wrong. */
const LOST_TRACK_AFTER_MS = CHANGE_RETENTION_MS / 2;

export interface ClusterSyncOptions {
  store: ClusterStore;
  admission: Pick<Admission, 'apply' | 'resynchronize' | 'giveBackUnits' | 'giveBackIdleUnits' | 'heartbeat'> & {
    accounts: Pick<Accounts, 'caughtUp' | 'forgetAll'>;
  };
  records: Pick<RecordStore, 'onCommitted'>;
  /** Null if the instances share only the database. */
  notifications: Notifications | null;
  clock: Clock;
  log: Log;
  instanceId: string;
  staleLimitMs: number;
  /** The parts of the limits of tokens and projects; null if they are counted elsewhere. */
  limitShares: Pick<LimitShares, 'observe'> | null;
  /** Called once for each change made by another instance, after the cached state it affects was dropped. */
  onChange: (change: CommittedChange) => void;
  /** Called when changes may have been missed. */
  onLostTrack: () => void;
  /** Called when there are new records of other instances. */
  onRecords: () => void;
}

export class ClusterSync {
  readonly #options: ClusterSyncOptions;
  /** Record number up to which all changes are known. */
  #appliedUpTo = 0;
  /** Numbers after that position that were already applied. */
  readonly #applied = new Set<number>();
  #polledAtMs = { monotonic: 0, wall: 0 };
  #heartbeatAtMs = -Infinity;
  #changesDeletedAtMs = -Infinity;
  readonly #polling = new SingleRun(() => {
    this.#schedulePoll();
  });
  /** Runs in parallel with polling, which it must not delay. */
  readonly #heartbeats = new SingleRun();
  #isPollDue = false;
  #isClosed = false;
  #failures = 0;
  #cancelPoll: (() => void) | null = null;
  #cancelInvalidation: (() => void) | null = null;

  constructor(options: ClusterSyncOptions) {
    this.#options = options;
    options.records.onCommitted((_records, changes) => {
      for (const change of changes) {
        this.#applied.add(change.seq);
        options.notifications?.send({ kind: 'changed', change });
      }
    });
    options.notifications?.onNotification((notification) => {
      this.#receive(notification);
    });
  }

  /** Changes made elsewhere before this time (monotonic) are known. */
  get upToDateAtMs(): number {
    return this.#polledAtMs.monotonic;
  }

  /** Call after the instance is enrolled, before it caches any state. @throws {StoreUnavailable} */
  async begin(): Promise<void> {
    const { store, instanceId, clock } = this.#options;
    const begun = this.#now();
    const { seq, peers } = await store.poll(instanceId, clock.now());
    this.#options.limitShares?.observe(peers, begun.monotonic, begun.wall);
    this.#appliedUpTo = seq;
    this.#caughtUp(begun);
    await this.#heartbeatAndExpire(false);
    this.#schedulePoll();
  }

  /** Polls now. A call during a poll causes another one. */
  poll(): Promise<void> {
    this.#isPollDue = true;
    return this.#polling.run(() => this.#pollWhileDue());
  }

  /** At shutdown. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelPoll?.();
    this.#cancelInvalidation?.();
    await this.#polling.current;
    await this.#heartbeats.current;
  }

  #schedulePoll(): void {
    this.#cancelPoll?.();
    if (this.#isClosed) return;
    this.#cancelPoll = this.#options.clock.after(POLL_EVERY_MS, () => void this.poll());
  }

  async #pollWhileDue(): Promise<void> {
    while (this.#isPollDue && !this.#isClosed) {
      this.#isPollDue = false;
      try {
        await this.#catchUp();
        void this.#heartbeats.run(() => this.#heartbeat(this.#failures > 0));
        if (this.#failures > 0) this.#options.log.info('changes made by other instances are visible again');
        this.#failures = 0;
      } catch (error) {
        if (this.#failures++ === 0) {
          this.#options.log.warn('cannot read changes made by other instances, retrying', { error });
        }
        return;
      }
    }
  }

  async #catchUp(): Promise<void> {
    const { store, admission, clock, instanceId, limitShares, onLostTrack, onRecords } = this.#options;
    const begun = this.#now();
    const { seq, wanted, peers } = await store.poll(instanceId, clock.now());
    limitShares?.observe(peers, begun.monotonic, begun.wall);
    if (this.#hasLostTrack(begun) || seq < this.#appliedUpTo) {
      // A smaller number means that the database was restored from a backup.
      this.#options.log.warn('changes made by other instances may have been missed: reading all state again');
      this.#applied.clear();
      onLostTrack();
      await admission.resynchronize();
      this.#appliedUpTo = seq;
    }
    if (seq > this.#appliedUpTo) {
      await this.#applyUpTo(seq);
      onRecords();
    }
    this.#caughtUp(begun);
    admission.giveBackUnits(wanted);
    admission.giveBackIdleUnits();
  }

  async #applyUpTo(seq: number): Promise<void> {
    for (;;) {
      const changes = await this.#options.store.changesAfter(this.#appliedUpTo, CHANGES_PER_READ);
      for (const change of changes) {
        this.#apply(change);
        this.#appliedUpTo = change.seq;
      }
      if (changes.length < CHANGES_PER_READ) break;
    }
    this.#appliedUpTo = Math.max(this.#appliedUpTo, seq);
    for (const number of this.#applied) if (number <= this.#appliedUpTo) this.#applied.delete(number);
  }

  #apply(change: CommittedChange): void {
    if (change.seq <= this.#appliedUpTo || this.#applied.has(change.seq)) return;
    const { admission, clock, onChange } = this.#options;
    // The time is from another clock; if that runs ahead of ours, the delay counts as 0.
    const delayMs = Math.max(0, clock.now() - change.timeMs);
    admission.apply(change, clock.monotonic() - delayMs);
    onChange(change);
  }

  #receive(notification: Notification): void {
    switch (notification.kind) {
      case 'changed':
        this.#apply(notification.change);
        if (notification.change.seq > this.#appliedUpTo) this.#applied.add(notification.change.seq);
        break;
      case 'wanted':
        this.#options.admission.giveBackUnits([notification.id]);
        break;
      case 'arrived':
        if (this.#cancelPoll) void this.poll();
    }
  }

  async #heartbeat(wasUnavailable: boolean): Promise<void> {
    try {
      await this.#heartbeatAndExpire(wasUnavailable);
    } catch (error) {
      this.#options.log.warn('cannot send a heartbeat or check for expired instances, retrying', { error });
    }
  }

  /** @param wasUnavailable whether the database has just become available again. */
  async #heartbeatAndExpire(wasUnavailable: boolean): Promise<void> {
    const { store, admission, clock, log, instanceId } = this.#options;
    const nowMs = clock.monotonic();
    if (nowMs - this.#heartbeatAtMs < HEARTBEAT_EVERY_MS) return;
    await admission.heartbeat();
    this.#heartbeatAtMs = nowMs;
    // Other instances may have been cut off for as long: they have until the next check to send a heartbeat.
    if (wasUnavailable) return;
    const expired = await store.expireDead(instanceId, clock.now());
    if (expired > 0) log.warn('expired instances without a heartbeat; the units they held count as used', { expired });
    if (nowMs - this.#changesDeletedAtMs < DELETE_CHANGES_EVERY_MS) return;
    await store.deleteChangesBefore(clock.now() - CHANGE_RETENTION_MS);
    this.#changesDeletedAtMs = nowMs;
  }

  #now(): { monotonic: number; wall: number } {
    const { clock } = this.#options;
    return { monotonic: clock.monotonic(), wall: clock.now() };
  }

  /** Checks both clocks: the monotonic one may stop while a machine sleeps. */
  #hasLostTrack(now: { monotonic: number; wall: number }): boolean {
    const { monotonic, wall } = this.#polledAtMs;
    return Math.max(now.monotonic - monotonic, now.wall - wall) > LOST_TRACK_AFTER_MS;
  }

  #caughtUp(begun: { monotonic: number; wall: number }): void {
    const { admission, clock, staleLimitMs } = this.#options;
    this.#polledAtMs = begun;
    admission.accounts.caughtUp(begun.monotonic);
    this.#cancelInvalidation?.();
    if (this.#isClosed) return;
    this.#cancelInvalidation = clock.after(begun.monotonic + staleLimitMs - clock.monotonic(), () => {
      this.#invalidate();
    });
  }

  /** Repeats until the next successful poll: state read meanwhile may be out of date as well. */
  #invalidate(): void {
    const { admission, clock, staleLimitMs } = this.#options;
    admission.accounts.forgetAll();
    this.#cancelInvalidation = clock.after(Math.min(staleLimitMs, POLL_EVERY_MS), () => {
      this.#invalidate();
    });
  }
}
