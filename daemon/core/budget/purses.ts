/**
 * # Purses
 *
 * What tokens and projects spend, and what this instance has leased of their budgets. The ticks of settlement (settlement.ts) write charges and
 * take leases, exactly once, as for uses and units of caps.
 *
 * **Reserve, then charge.** Before a request is forwarded, it reserves an amount of the lease (`Purse.tryReserve`), and requests more if the lease
 * is too small (`more`). When it has ended, it is charged (`charge`): what it spent leaves the lease, and the rest of its reservation is free
 * again. A charge above the reservation, or without one, is counted as well, without a lease.
 *
 * **Periods.** A charge belongs to the UTC day and month of its admission. A lease belongs to one period and to the limits under which it was
 * taken. When the period ends or the budget changes, the free part of the lease is returned, and reservations are settled as before.
 *
 * **Loss.** What a killed process had leased counts as spent. Charges without a reservation are lost with the process: those of the last 250 ms.
 */
import type { Clock, PurseReport, PurseTickRow } from '../ports.js';
import { unavailable } from '../refusal.js';
import {
  add,
  type Amount,
  beyond,
  countedIn,
  currentStart,
  haveSameTerms,
  isNothing,
  type LeasedAmount,
  leastOf,
  nothing,
  type PurseCounts,
  type PurseTerms,
  subtract,
  UNITS,
} from './counts.js';
import { dayOf, startOf } from './period.js';
import {
  Lease,
  type MoreResult,
  neededOf,
  NONE,
  Purse,
  type PurseBudget,
  type PurseWaiter,
  type Reservation,
} from './purse.js';

// Units of caps are leased in the same way (settlement.ts). Other instances see the request within half a second, and return at once what they do not need.
export const MAX_CONTENTION_MS = 1_500;
export const RETRY_AFTER_MS = 100;
export const YIELD_MS = 2.5 * RETRY_AFTER_MS; // The others ask again in this time.
/** So a client that retries in a loop causes 4 ticks per second. */
const REFUSED_FOR_MS = 250;
/** After this time an idle lease is returned, if other instances share the database. */
export const IDLE_AFTER_MS = 1_000;
/** After this time any idle lease is returned, so that it is not shown as reserved for long. */
const AT_REST_AFTER_MS = 10_000;
/** With each tick this number of purses, and at least this share of them, is checked for removal from memory. */
const EXAMINED_PER_TICK = 100;
const EXAMINED_SHARE = 1 / 32;
const FORGOTTEN_AFTER_MS = 5_000;
const MOST: Amount = { nano: Number.MAX_SAFE_INTEGER, tokens: Number.MAX_SAFE_INTEGER };

export interface PursesOptions {
  clock: Clock;
  /** Length of the interval of ticks, in ms. */
  tickEveryMs: number;
  /** Runs a tick soon, or at once. */
  schedule: (isUrgent: boolean) => void;
  /** Called when requests need what other instances have leased. */
  onContention: (id: string) => void;
  /**
   * Called when the database has counted charges to a budget of this instance, with the sums before and after them. The intervals of all
   * instances follow each other without a gap, so exactly one of them contains a threshold.
   */
  onSpent: (id: string, before: Amount, after: Amount) => void;
}

/** All purses that this instance knows. */
export class Purses {
  readonly #options: PursesOptions;
  readonly #byId = new Map<string, Purse>();
  /** Purses that the next ticks include. */
  readonly #pending = new Set<Purse>();
  /** Purses with leases. */
  readonly #holding = new Set<Purse>();
  #collected: { purse: Purse; row: PurseTickRow }[] = [];
  #hand: Iterator<Purse> = this.#byId.values();
  #cancelRest: (() => void) | null = null;
  /** Whether a request waits for the next tick. */
  isUrgent = false;

  constructor(options: PursesOptions) {
    this.#options = options;
  }

  /** Look it up for each request: idle purses are removed from memory. */
  of(id: string): Purse {
    let purse = this.#byId.get(id);
    if (!purse) {
      purse = new Purse(id, this.#tend);
      this.#byId.set(id, purse);
    }
    return purse;
  }

  /** Undefined if this instance has no purse of this ID in memory. */
  known(id: string): Purse | undefined {
    return this.#byId.get(id);
  }

  /** Number of purses in memory, and of those to be written. */
  get size(): { purses: number; pending: number } {
    return { purses: this.#byId.size, pending: this.#pending.size };
  }

  /**
   * Requests a larger lease from the database, with a tick at once. Call it after `tryReserve` returned null. After `granted`, look up the budget
   * again, because it may have changed, and try again, because another request may have been faster. The caller limits the attempts.
   *
   * @returns `exhausted` if the amount does not fit even if all reservations are released; `reserved` if it fits after other requests have
   *   ended.
   * @throws {Refusal} (rejects with) `unavailable`
   */
  more(id: string, amount: Amount, budget: PurseBudget, nowMs: number): Promise<MoreResult> {
    const purse = this.of(id);
    const needed = neededOf(amount, budget);
    if (isKnownToExceed(purse, needed, budget, nowMs)) return Promise.resolve('exhausted');
    const { refused } = purse;
    if (
      refused &&
      this.#monotonic < refused.untilMs &&
      needed.nano >= refused.nano &&
      needed.tokens >= refused.tokens
    ) {
      return Promise.resolve('reserved');
    }
    return new Promise((resolve, reject) => {
      purse.waiters.push({ needed, budget, isAsked: false, resolve, reject });
      if (purse.cancelRetry !== null) return;
      const yieldsForMs = purse.yieldsUntilMs - this.#monotonic;
      if (yieldsForMs > 0) this.#requestAfter(purse, yieldsForMs);
      else this.#tend(purse, true);
    });
  }

  /**
   * Charges a request that has ended, exactly once, with or without a budget. The charge belongs to the day and month of its admission.
   *
   * @param id of the token or project.
   * @param nano null: its cost is unknown.
   * @param reservation of the request. What the charge leaves of it is free again. A charge that exceeds it is counted in full.
   */
  charge(
    id: string,
    admittedAtMs: number,
    { nano, tokens }: { nano: number | null; tokens: number },
    reservation: Reservation | null,
  ): void {
    const dayMs = dayOf(reservation?.atMs ?? admittedAtMs);
    const charge = { dayMs, nano: nano ?? 0, tokens, unpriced: nano === null ? 1 : 0 };
    const isHeld = reservation?.lease.isLost === false;
    if (isHeld) this.#settle(reservation, leastOf(charge, reservation));
    // All of a lost reservation counts as spent already.
    else if (reservation) Object.assign(charge, beyond(charge, reservation));
    if (isNothing(charge) && charge.unpriced === 0) return;
    // Once its lease is lost, a purse may be forgotten before its requests have ended.
    const purse = isHeld ? reservation.purse : this.of(id);
    purse.charge(charge);
    this.#tend(purse, false);
  }

  /** The request has spent nothing: the whole reservation is free again. */
  release(reservation: Reservation): void {
    if (!reservation.lease.isLost) this.#settle(reservation, nothing());
  }

  #settle(reservation: Reservation, spent: Amount): void {
    const { purse, lease } = reservation;
    add(lease.spent, spent);
    add(lease.free, reservation);
    subtract(lease.free, spent);
    purse.refused = null;
    if (lease !== purse.lease) this.#tend(purse, false);
  }

  /** Includes a purse in the next tick. */
  readonly #tend = (purse: Purse, isUrgent: boolean): void => {
    this.#pending.add(purse);
    if (isUrgent) this.isUrgent = true;
    this.#options.schedule(isUrgent);
  };

  /** Another instance waits for a lease of this purse: returns what is free and settles what was charged, at once. */
  giveBack(id: string): void {
    const purse = this.#byId.get(id);
    if (!purse?.leases.some(mayShrink)) return;
    purse.yieldsUntilMs = this.#monotonic + YIELD_MS;
    purse.givesBack = true;
    this.#tend(purse, true);
  }

  /** Returns the free part of the leases of purses without recent requests. */
  giveBackIdle(idleMs = IDLE_AFTER_MS): void {
    const sinceMs = this.#options.clock.now() - idleMs;
    for (const purse of this.#holding) {
      if (purse.usedAtMs >= sinceMs || purse.isTaking || purse.waiters.length > 0) continue;
      if (purse.lease === null || isNothing(purse.lease.free)) continue;
      purse.givesBack = true;
      this.#tend(purse, false);
    }
  }

  /** At shutdown: the next ticks return all leases. */
  giveAllBack(): void {
    this.#cancelRest?.();
    this.#cancelRest = null;
    for (const purse of this.#holding) {
      purse.givesBack = true;
      this.#tend(purse, false);
    }
  }

  // ---- ticks

  /** The rows of the next tick, in the order of IDs. The order is the same on all instances, so their transactions cannot deadlock. */
  collect(most: number): PurseTickRow[] {
    const pending = [...this.#pending];
    // Requests do not wait until all charges are written.
    if (pending.length > most) pending.sort((a, b) => Number(b.waiters.length > 0) - Number(a.waiters.length > 0));
    const purses = pending.slice(0, most);
    purses.sort((a, b) => (a.id < b.id ? -1 : 1));
    for (const purse of purses) this.#pending.delete(purse);
    this.isUrgent = [...this.#pending].some(
      ({ waiters, wantsMore, givesBack }) => waiters.length > 0 || wantsMore || givesBack,
    );
    this.#collected = purses.map((purse) => ({ purse, row: this.#rowOf(purse) }));
    return this.#collected.map(({ row }) => row);
  }

  #rowOf(purse: Purse): PurseTickRow {
    const nowMs = this.#monotonic;
    const hasDrawn = purse.measurePace((nowMs - purse.collectedAtMs) / this.#options.tickEveryMs);
    purse.collectedAtMs = nowMs;
    const charges = purse.collectCharges();
    const take = this.#takeOf(purse, hasDrawn);
    const returns: LeasedAmount[] = [];
    for (const lease of purse.leases) {
      const left = lease.settle(lease === purse.lease && !purse.givesBack);
      if (!isNothing(left)) returns.push({ fromMs: lease.fromMs, ...left });
    }
    purse.givesBack = false;
    purse.wantsMore = false;
    purse.isTaking = take !== null;
    const isLimited = purse.counts === null ? purse.needsCounts : hasLimit(purse.counts);
    const isReported = take !== null || returns.length > 0 || (charges.length > 0 && isLimited);
    return { purseId: purse.id, charges, returns, take, isReported };
  }

  /** The lease to request, for waiting requests and ahead for the next ones. Closes a lease of another period or budget. */
  #takeOf(purse: Purse, hasDrawn: boolean): PurseTickRow['take'] {
    const { waiters, target, lease } = purse;
    const terms = waiters.at(-1)?.budget ?? lease?.terms;
    if (!terms || purse.givesBack) return null;
    if (lease && (this.#options.clock.now() >= lease.endsMs || !haveSameTerms(lease.terms, terms))) purse.closeLease();
    const free = purse.lease?.free ?? nothing();
    const beyondFree = (amount: Amount) => leastOf(MOST, beyond(amount, free));
    const ahead = purse.lease?.isShort === true ? nothing() : beyondFree(target);
    const isLow = UNITS.some((unit) => ahead[unit] > 0 && free[unit] < target[unit] / 2);
    if (waiters.length === 0 && !(hasDrawn && isLow)) return null;
    const sum = nothing();
    let smallest = waiters.length > 0 ? MOST : nothing();
    for (const waiter of waiters) {
      waiter.isAsked = true;
      add(sum, waiter.needed);
      smallest = leastOf(smallest, leastFor(waiter.needed, waiter.budget));
    }
    const { limitNano, limitTokens, period } = terms;
    return {
      terms: { limitNano, limitTokens, period },
      want: beyondFree(sum),
      least: beyondFree(smallest),
      ahead,
    };
  }

  /** The tick was committed. */
  conclude(reports: ReadonlyMap<string, PurseReport>): void {
    for (const { purse, row } of this.#endTick()) {
      const report = reports.get(row.purseId);
      if (report) this.#receive(purse, row, report);
      else if (row.take) failAll(purse, new Error('its counts are missing in the database'));
      this.#tidy(purse);
    }
    this.#forgetSome();
  }

  /** The IDs of the purses for which the collected tick requests a lease. */
  get taking(): string[] {
    return this.#collected.filter(({ row }) => row.take !== null).map(({ row }) => row.purseId);
  }

  /**
   * The tick was committed, but its result was lost. What it granted is returned, and requested again.
   *
   * @param held what the database has leased to this instance for the purses in `taking`.
   */
  concludeUnreported(held: ReadonlyMap<string, Amount>): void {
    for (const { purse, row } of this.#endTick()) {
      if (row.take) {
        const lost = new Lease(purse.leases[0]?.fromMs ?? 0, row.take.terms);
        const leased = { ...(held.get(purse.id) ?? nothing()) };
        for (const { whole } of purse.leases) subtract(leased, whole);
        lost.grow(beyond(leased, nothing()));
        purse.former = [...purse.former, lost];
        this.#tend(purse, purse.waiters.length > 0);
      }
      this.#tidy(purse);
    }
  }

  /**
   * The database has counted all leases as spent, used or not. So charges from them must not be written again.
   *
   * @param isCommitted whether the collected tick was.
   */
  forfeit(isCommitted: boolean): void {
    const collected = this.#collected.map(({ purse }) => purse);
    const purses = new Set([...collected, ...this.#holding, ...this.#pending]);
    for (const purse of purses) {
      if (!isCommitted) for (const charge of purse.settling) purse.charge(charge);
      purse.settling = NONE;
      purse.isTaking = false;
      for (const lease of purse.leases) {
        purse.takeBack(lease.spent);
        if (!isCommitted) purse.takeBack(lease.settling);
        lease.isLost = true;
      }
      purse.lease = null;
      purse.former = NONE;
      purse.givesBack = purse.wantsMore = false;
      this.#holding.delete(purse);
      if (purse.charges.length > 0) this.#pending.add(purse);
      endWait(purse, ({ resolve }) => {
        resolve('granted');
      });
    }
    this.#collected = [];
  }

  /** The database is unavailable: requests do not wait for it. */
  fail(error: unknown): void {
    for (const purse of [...this.#collected.map((each) => each.purse), ...this.#pending]) failAll(purse, error);
  }

  #endTick(): { purse: Purse; row: PurseTickRow }[] {
    const collected = this.#collected;
    this.#collected = [];
    for (const { purse } of collected) {
      purse.settling = NONE;
      purse.isTaking = false;
      for (const lease of purse.leases) lease.settling = nothing();
    }
    return collected;
  }

  #receive(purse: Purse, { take, charges }: PurseTickRow, { counts, grant, isHeldElsewhere }: PurseReport): void {
    purse.counts = counts;
    if (charges.length > 0 && hasLimit(counts)) this.#tellSpent(purse.id, counts, charges);
    if (take === null) return;
    if (grant) {
      const isFull = grant.nano >= take.want.nano && grant.tokens >= take.want.tokens;
      let { lease } = purse;
      if (lease?.fromMs !== grant.fromMs || !haveSameTerms(lease.terms, take.terms)) {
        purse.closeLease();
        lease = purse.lease = new Lease(grant.fromMs, take.terms);
      }
      lease.grow(grant);
      lease.isShort = !isFull;
    }
    if (purse.waiters.length > 0) this.#answer(purse, counts, take.terms, isHeldElsewhere);
  }

  #tellSpent(id: string, counts: PurseCounts, charges: PurseTickRow['charges']): void {
    const { period } = counts;
    const fromMs = currentStart(counts, period, this.#options.clock.now());
    const { nano, tokens } = countedIn(counts, period, fromMs);
    const before = { nano, tokens };
    for (const charge of charges) if (startOf(period, charge.dayMs) === fromMs) subtract(before, charge);
    this.#options.onSpent(id, before, { nano, tokens });
  }

  /** Answers waiting requests. @param terms that the tick asked under. */
  #answer(purse: Purse, counts: PurseCounts, terms: PurseTerms, isHeldElsewhere: boolean): void {
    const { lease, waiters } = purse;
    const left = { ...(lease?.free ?? nothing()) };
    /** They wait for what other instances hold, for this instance to learn of a changed budget, or for the next tick. */
    const [contending, stale, later]: [PurseWaiter[], PurseWaiter[], PurseWaiter[]] = [[], [], []];
    const nowMs = this.#options.clock.now();
    for (const waiter of waiters) {
      const { needed, budget } = waiter;
      const isUsable = lease !== null && haveSameTerms(lease.terms, budget);
      if (isUsable && fits(needed, left, budget.mode !== 'hard' && lease.isShort)) {
        subtract(left, leastOf(needed, left));
        waiter.resolve('granted');
      } else if (isKnownToExceed(purse, needed, budget, nowMs)) waiter.resolve('exhausted');
      // It began to wait during the tick, and the database has granted all that the tick requested.
      else if (!waiter.isAsked && lease?.isShort === false) later.push(waiter);
      else if (!haveSameTerms(counts, budget)) stale.push(waiter);
      // The tick has asked for others, which do not know of a change yet.
      else if (!haveSameTerms(terms, budget)) later.push(waiter);
      else if (isHeldElsewhere) contending.push(waiter);
      else {
        purse.refused = { ...needed, untilMs: this.#monotonic + REFUSED_FOR_MS };
        waiter.resolve('reserved');
      }
    }
    purse.waiters = [...this.#contend(purse, contending), ...later];
    if (later.length > 0) this.#tend(purse, true);
    if (stale.length === 0) return;
    this.#options.clock.after(RETRY_AFTER_MS, () => {
      for (const { resolve } of stale) resolve('granted');
    });
  }

  /** Asks other instances to return leases, and tries again after a short pause, for a limited time. @returns the requests that continue to wait. */
  #contend(purse: Purse, waiters: PurseWaiter[]): PurseWaiter[] {
    const nowMs = this.#monotonic;
    purse.contendingSinceMs = waiters.length > 0 ? (purse.contendingSinceMs ?? nowMs) : null;
    if (purse.contendingSinceMs === null) return [];
    if (nowMs - purse.contendingSinceMs >= MAX_CONTENTION_MS) {
      purse.contendingSinceMs = null;
      for (const { resolve } of waiters) resolve('reserved');
      return [];
    }
    this.#options.onContention(purse.id);
    this.#requestAfter(purse, RETRY_AFTER_MS);
    return waiters;
  }

  /** Requests a lease after a pause, if requests are still waiting then. */
  #requestAfter(purse: Purse, ms: number): void {
    purse.cancelRetry?.();
    purse.cancelRetry = this.#options.clock.after(ms, () => {
      purse.cancelRetry = null;
      if (purse.waiters.length > 0) this.#tend(purse, true);
      else purse.contendingSinceMs = null;
    });
  }

  /** After a tick: removes leases that are over. */
  #tidy(purse: Purse): void {
    if (purse.lease && isNothing(purse.lease.whole) && purse.waiters.length === 0) purse.lease = null;
    if (purse.former.length > 0) {
      purse.former = purse.former.filter(({ whole }) => !isNothing(whole));
      if (purse.former.some(mayShrink)) this.#tend(purse, false);
    }
    if (purse.leases.length > 0) {
      this.#holding.add(purse);
      this.#restLater();
    } else this.#holding.delete(purse);
    // It returned what other instances wait for, so it pauses before it requests more.
    if (purse.waiters.length > 0 && purse.cancelRetry === null && !this.#pending.has(purse)) {
      this.#requestAfter(purse, Math.max(0, purse.yieldsUntilMs - this.#monotonic));
    }
  }

  /** While leases are held, checks periodically whether they are still needed. */
  #restLater(): void {
    this.#cancelRest ??= this.#options.clock.after(AT_REST_AFTER_MS, () => {
      this.#cancelRest = null;
      this.giveBackIdle(AT_REST_AFTER_MS);
      if (this.#holding.size > 0) this.#restLater();
    });
  }

  // ---- memory

  /** Removes idle, empty purses from memory: a few with each tick, so that no tick takes long. */
  #forgetSome(): void {
    const beforeMs = this.#monotonic - FORGOTTEN_AFTER_MS;
    const most = Math.max(EXAMINED_PER_TICK, this.#byId.size * EXAMINED_SHARE);
    for (let examined = 0; examined < most; examined++) {
      const next = this.#hand.next();
      if (next.done) {
        this.#hand = this.#byId.values();
        return;
      }
      const purse = next.value;
      const isBusy = this.#pending.has(purse) || this.#holding.has(purse) || purse.cancelRetry !== null;
      if (isBusy || purse.collectedAtMs > beforeMs) continue;
      this.#byId.delete(purse.id);
    }
  }

  get #monotonic(): number {
    return this.#options.clock.monotonic();
  }
}

const hasLimit = ({ limitNano, limitTokens }: PurseCounts) => (limitNano ?? limitTokens) !== null;

/** The least with which a request passes: it reserves what is left if that is less than its estimate, but not if that is less than its bound. */
const leastFor = (needed: Amount, { mode }: PurseBudget): Amount =>
  mode === 'hard' ? needed : leastOf(needed, { nano: 1, tokens: 1 });

/** Whether the counts already show that an amount does not fit. Within a period counts only grow. */
function isKnownToExceed({ counts }: Purse, needed: Amount, budget: PurseBudget, nowMs: number): boolean {
  if (!counts || !haveSameTerms(counts, budget)) return false;
  const { limitNano, limitTokens, period } = budget;
  const sum = countedIn(counts, period, currentStart(counts, period, nowMs));
  add(sum, leastFor(needed, budget));
  return sum.nano > (limitNano ?? Infinity) || sum.tokens > (limitTokens ?? Infinity);
}

/** Whether the next tick can return or settle some of it. */
const mayShrink = ({ free, spent }: Lease) => !isNothing(free) || !isNothing(spent);

/** @param takesLess whether a part of the amount is enough. */
function fits(needed: Amount, left: Amount, takesLess: boolean): boolean {
  const isEnough = (unit: keyof Amount) => left[unit] >= needed[unit] || (takesLess && left[unit] > 0);
  return isEnough('nano') && isEnough('tokens');
}

function endWait(purse: Purse, end: (waiter: PurseWaiter) => void): void {
  const { waiters } = purse;
  purse.waiters = [];
  purse.contendingSinceMs = null;
  waiters.forEach(end);
}

function failAll(purse: Purse, error: unknown): void {
  endWait(purse, ({ reject }) => {
    reject(unavailable(error));
  });
}
