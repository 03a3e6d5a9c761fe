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
import { MAX_NANO } from '../../api/money.js';
import type { Clock, PurseReport, PurseTickRow } from '../ports.js';
import { unavailable } from '../refusal.js';
import { currentStart, haveSameTerms, type PurseRow, spendingIn } from './counts.js';
import { dayOf, startOf } from './period.js';
import {
  type Amount,
  type DayCharges,
  Lease,
  neededOf,
  Purse,
  type PurseBudget,
  type PurseKeeper,
  type PurseTerms,
  type PurseWaiter,
  type Reservation,
} from './purse.js';

/** `granted`: try again. `exhausted`: the amount does not fit. `reserved`: it fits after other requests have ended. */
export type MoreResult = 'granted' | 'exhausted' | 'reserved';

// Other instances see the request within half a second, and return at once what they do not need.
const MAX_CONTENTION_MS = 1_500;
const RETRY_AFTER_MS = 100;
const YIELD_MS = 2.5 * RETRY_AFTER_MS; // The others ask again in this time.
/** So a client that retries in a loop causes 4 ticks per second. */
const REFUSED_FOR_MS = 250;
/** After this time an idle lease is returned, if other instances share the database. */
const IDLE_AFTER_MS = 1_000;
/** After this time any idle lease is returned, so that it is not shown as reserved for long. */
const AT_REST_AFTER_MS = 10_000;
/** With each tick this number of purses, and at least this share of them, is checked for removal from memory. */
const EXAMINED_PER_TICK = 100;
const EXAMINED_SHARE = 1 / 32;
const FORGOTTEN_AFTER_MS = 5_000;

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
export class Purses implements PurseKeeper {
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
      purse = new Purse(id, this);
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
  more(asked: Purse, amount: Amount, budget: PurseBudget, nowMs: number): Promise<MoreResult> {
    const purse = this.#current(asked);
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
      (purse.waiters ??= []).push({ needed, budget, isAsked: false, resolve, reject });
      if (purse.cancelRetry !== null) return;
      const yieldsForMs = purse.yieldsUntilMs - this.#monotonic;
      if (yieldsForMs > 0) this.#requestAfter(purse, yieldsForMs);
      else this.tend(purse, true);
    });
  }

  /**
   * Charges a request that has ended, exactly once, with or without a budget. The charge belongs to the day and month of its admission.
   *
   * @param charge `nano` null: its cost is unknown.
   * @param reservation of the request. What the charge leaves of it is free again. A charge that exceeds it is counted in full.
   */
  charge(
    asked: Purse,
    admittedAtMs: number,
    charge: { nano: number | null; tokens: number },
    reservation: Reservation | null,
  ): void {
    let { nano, tokens } = charge;
    const unpriced = nano === null ? 1 : 0;
    nano ??= 0;
    // Once its lease is lost, a purse may be forgotten before its requests have ended.
    const purse = this.#current(reservation?.purse ?? asked);
    if (reservation) {
      const { lease } = reservation;
      const ofLease = { nano: Math.min(nano, reservation.nano), tokens: Math.min(tokens, reservation.tokens) };
      if (lease.isLost) {
        // All of the reservation counts as spent already.
        nano -= ofLease.nano;
        tokens -= ofLease.tokens;
      } else this.#settle(reservation, ofLease);
    }
    addTo(purse, dayOf(reservation?.atMs ?? admittedAtMs), nano, tokens, unpriced);
    if (purse.hasCharges) this.tend(purse, false);
  }

  /** The request has spent nothing: the whole reservation is free again. */
  release(reservation: Reservation): void {
    if (!reservation.lease.isLost) this.#settle(reservation, { nano: 0, tokens: 0 });
  }

  #settle({ purse, lease, nano, tokens }: Reservation, spent: Amount): void {
    lease.holders -= 1;
    lease.heldNano -= nano;
    lease.heldTokens -= tokens;
    lease.spentNano += spent.nano;
    lease.spentTokens += spent.tokens;
    lease.freeNano += nano - spent.nano;
    lease.freeTokens += tokens - spent.tokens;
    purse.refused = null;
    if (lease !== purse.lease) this.tend(purse, false);
  }

  tend(purse: Purse, isUrgent: boolean): void {
    this.#pending.add(purse);
    if (isUrgent) this.isUrgent = true;
    this.#options.schedule(isUrgent);
  }

  /** Another instance waits for a lease of this purse: returns what is free and settles what was charged, at once. */
  giveBack(id: string): void {
    const purse = this.#byId.get(id);
    if (!purse?.leases().some((lease) => !lease.hasNothing)) return;
    purse.yieldsUntilMs = this.#monotonic + YIELD_MS;
    purse.givesBack = true;
    this.tend(purse, true);
  }

  /** Returns the free part of the leases of purses without recent requests. */
  giveBackIdle(idleMs = IDLE_AFTER_MS): void {
    const sinceMs = this.#options.clock.now() - idleMs;
    for (const purse of this.#holding) {
      if (purse.usedAtMs >= sinceMs || purse.isTaking || purse.waiters !== null) continue;
      if (purse.lease === null || (purse.lease.freeNano === 0 && purse.lease.freeTokens === 0)) continue;
      purse.givesBack = true;
      this.tend(purse, false);
    }
  }

  /** At shutdown: the next ticks return all leases. */
  giveAllBack(): void {
    this.#cancelRest?.();
    this.#cancelRest = null;
    for (const purse of this.#holding) {
      purse.givesBack = true;
      this.tend(purse, false);
    }
  }

  // ---- ticks

  /** The rows of the next tick, in the order of IDs. The order is the same on all instances, so their transactions cannot deadlock. */
  collect(most: number): PurseTickRow[] {
    const pending = [...this.#pending];
    // Requests do not wait until all charges are written.
    if (pending.length > most) pending.sort((a, b) => Number(b.waiters !== null) - Number(a.waiters !== null));
    const purses = pending.slice(0, most);
    purses.sort((a, b) => (a.id < b.id ? -1 : 1));
    for (const purse of purses) this.#pending.delete(purse);
    this.isUrgent = [...this.#pending].some(
      ({ waiters, wantsMore, givesBack }) => waiters !== null || wantsMore || givesBack,
    );
    this.#collected = purses.map((purse) => ({ purse, row: this.#rowOf(purse) }));
    return this.#collected.map(({ row }) => row);
  }

  #rowOf(purse: Purse): PurseTickRow {
    const nowMs = this.#monotonic;
    const hasDrawn = purse.measurePace((nowMs - purse.collectedAtMs) / this.#options.tickEveryMs);
    purse.collectedAtMs = nowMs;
    const charges = chargesOf(purse);
    const take = this.#takeOf(purse, hasDrawn);
    const returns: (Amount & { fromMs: number })[] = [];
    for (const lease of purse.leases()) {
      const isLeft = purse.givesBack || lease !== purse.lease;
      const free = isLeft ? { nano: lease.freeNano, tokens: lease.freeTokens } : { nano: 0, tokens: 0 };
      lease.settlingNano = lease.spentNano;
      lease.settlingTokens = lease.spentTokens;
      const nano = lease.spentNano + free.nano;
      const tokens = lease.spentTokens + free.tokens;
      lease.freeNano -= free.nano;
      lease.freeTokens -= free.tokens;
      lease.spentNano = lease.spentTokens = 0;
      if (nano > 0 || tokens > 0) returns.push({ fromMs: lease.fromMs, nano, tokens });
    }
    purse.givesBack = false;
    purse.wantsMore = false;
    purse.isTaking = take !== null;
    const isReported = take !== null || returns.length > 0 || (charges.length > 0 && hasLimit(purse.counts));
    return { purseId: purse.id, charges, returns, take, isReported };
  }

  /** The lease to request, for waiting requests and ahead for the next ones. Closes a lease of another period or budget. */
  #takeOf(purse: Purse, hasDrawn: boolean): PurseTickRow['take'] {
    const { waiters, target } = purse;
    const terms = waiters?.at(-1)?.budget ?? purse.lease?.terms;
    if (!terms || purse.givesBack) return null;
    const { lease } = purse;
    if (lease && (this.#options.clock.now() >= lease.endsMs || !haveSameTerms(lease.terms, terms))) purse.closeLease();
    const free = { nano: purse.lease?.freeNano ?? 0, tokens: purse.lease?.freeTokens ?? 0 };
    const sum = { nano: 0, tokens: 0 };
    const smallest = { nano: Infinity, tokens: Infinity };
    for (const waiter of waiters ?? []) {
      const { needed, budget } = waiter;
      waiter.isAsked = true;
      sum.nano += needed.nano;
      sum.tokens += needed.tokens;
      const least = budget.mode === 'soft' ? neededOf({ nano: 0, tokens: 0 }, budget) : needed;
      smallest.nano = Math.min(smallest.nano, least.nano);
      smallest.tokens = Math.min(smallest.tokens, least.tokens);
    }
    const beyond = (amount: Amount) => ({
      nano: Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, amount.nano - free.nano)),
      tokens: Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, amount.tokens - free.tokens)),
    });
    const ahead = purse.lease?.isShort === true ? { nano: 0, tokens: 0 } : beyond(target ?? { nano: 0, tokens: 0 });
    const isLow = (unit: keyof Amount) => ahead[unit] > 0 && free[unit] < (target?.[unit] ?? 0) / 2;
    if (!waiters && !((hasDrawn || purse.wantsMore) && (isLow('nano') || isLow('tokens')))) return null;
    const { limitNano, limitTokens, period } = terms;
    return {
      terms: { limitNano, limitTokens, period },
      want: beyond(sum),
      least: waiters ? beyond(smallest) : { nano: 0, tokens: 0 },
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
        const known = purse.leases();
        const leased = held.get(purse.id) ?? { nano: 0, tokens: 0 };
        const lost = new Lease(known[0]?.fromMs ?? 0, row.take.terms);
        lost.freeNano = Math.max(0, leased.nano - known.reduce((sum, { nano }) => sum + nano, 0));
        lost.freeTokens = Math.max(0, leased.tokens - known.reduce((sum, { tokens }) => sum + tokens, 0));
        (purse.former ??= []).push(lost);
        this.tend(purse, purse.waiters !== null);
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
      if (!isCommitted)
        for (const each of purse.settling ?? []) addTo(purse, each.dayMs, each.nano, each.tokens, each.unpriced);
      purse.settling = null;
      purse.isTaking = false;
      for (const lease of purse.leases()) {
        const nano = lease.spentNano + (isCommitted ? 0 : lease.settlingNano);
        const tokens = lease.spentTokens + (isCommitted ? 0 : lease.settlingTokens);
        subtract(purse, nano, tokens);
        lease.isLost = true;
      }
      purse.lease = purse.former = null;
      purse.givesBack = purse.wantsMore = false;
      this.#holding.delete(purse);
      if (purse.hasCharges) this.#pending.add(purse);
      wakeAll(purse);
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
      purse.settling = null;
      purse.isTaking = false;
      for (const lease of purse.leases()) lease.settlingNano = lease.settlingTokens = 0;
    }
    return collected;
  }

  #receive(purse: Purse, { take, charges }: PurseTickRow, { counts, grant, isHeldElsewhere }: PurseReport): void {
    purse.counts = counts;
    if (charges.length > 0 && hasLimit(counts)) this.#tellSpent(purse.id, counts, charges);
    if (take === null) return;
    if (grant) {
      const isFull = grant.nano >= take.want.nano && grant.tokens >= take.want.tokens;
      const isSame = purse.lease?.fromMs === grant.fromMs && haveSameTerms(purse.lease.terms, take.terms);
      if (!isSame) {
        purse.closeLease();
        purse.lease = new Lease(grant.fromMs, take.terms);
      }
      const lease = purse.lease;
      if (lease) {
        lease.freeNano += grant.nano;
        lease.freeTokens += grant.tokens;
        lease.isShort = !isFull;
      }
    }
    if (purse.waiters) this.#answer(purse, take.terms, isHeldElsewhere);
  }

  #tellSpent(id: string, counts: PurseRow, charges: PurseTickRow['charges']): void {
    const { period } = counts;
    const fromMs = currentStart(counts, period, startOf(period, this.#options.clock.now()));
    const { nano, tokens } = spendingIn(counts, period, fromMs);
    const before = { nano, tokens };
    for (const each of charges) {
      if (startOf(period, each.dayMs) !== fromMs) continue;
      before.nano -= each.nano;
      before.tokens -= each.tokens;
    }
    this.#options.onSpent(id, before, { nano, tokens });
  }

  /** Resolves waiting requests. Requests continue to wait while other instances may still return what they need. @param terms that the tick asked under. */
  #answer(purse: Purse, terms: PurseTerms, isHeldElsewhere: boolean): void {
    const { counts, lease } = purse;
    const waiters = purse.waiters ?? [];
    const left = { nano: lease?.freeNano ?? 0, tokens: lease?.freeTokens ?? 0 };
    const waiting: PurseWaiter[] = [];
    const later: PurseWaiter[] = [];
    const nowMs = this.#options.clock.now();
    for (const waiter of waiters) {
      const { needed, budget } = waiter;
      const isUsable = lease !== null && haveSameTerms(lease.terms, budget);
      if (isUsable && fits(needed, left, budget.mode === 'soft' && lease.isShort)) {
        left.nano = Math.max(0, left.nano - needed.nano);
        left.tokens = Math.max(0, left.tokens - needed.tokens);
        waiter.resolve('granted');
      } else if (isKnownToExceed(purse, needed, budget, nowMs)) waiter.resolve('exhausted');
      // It began to wait during the tick, and the database has granted all that the tick requested.
      else if (!waiter.isAsked && lease?.isShort === false) later.push(waiter);
      // The tick has asked for others, which do not know of a change yet.
      else if (counts && haveSameTerms(counts, budget) && !haveSameTerms(terms, budget)) later.push(waiter);
      else if (isHeldElsewhere || !counts || !haveSameTerms(counts, budget)) waiting.push(waiter);
      else {
        purse.refused = { ...needed, untilMs: this.#monotonic + REFUSED_FOR_MS };
        waiter.resolve('reserved');
      }
    }
    purse.waiters = waiting.length > 0 ? waiting : null;
    if (waiting.length > 0) this.#contend(purse);
    else purse.contendingSinceMs = null;
    if (later.length === 0) return;
    purse.waiters = [...(purse.waiters ?? []), ...later];
    this.tend(purse, true);
  }

  /** Asks other instances to return leases, and tries again after a short pause, for a limited time. Meanwhile this instance learns of changed budgets. */
  #contend(purse: Purse): void {
    const nowMs = this.#monotonic;
    const { counts } = purse;
    purse.contendingSinceMs ??= nowMs;
    const isOver = nowMs - purse.contendingSinceMs >= MAX_CONTENTION_MS;
    const [kept, ended]: [PurseWaiter[], PurseWaiter[]] = [[], []];
    for (const waiter of purse.waiters ?? []) {
      const isStale = counts !== null && !haveSameTerms(counts, waiter.budget);
      (isOver || isStale ? ended : kept).push(waiter);
    }
    purse.waiters = kept.length > 0 ? kept : null;
    if (isOver) {
      purse.contendingSinceMs = null;
      for (const { resolve } of ended) resolve('reserved');
      return;
    }
    // These requests know an old version of the budget.
    if (ended.length > 0) {
      this.#options.clock.after(RETRY_AFTER_MS, () => {
        for (const { resolve } of ended) resolve('granted');
      });
    }
    if (kept.length === 0) return;
    this.#options.onContention(purse.id);
    this.#requestAfter(purse, RETRY_AFTER_MS);
  }

  /** Requests a lease after a pause, if requests are still waiting then. */
  #requestAfter(purse: Purse, ms: number): void {
    purse.cancelRetry?.();
    purse.cancelRetry = this.#options.clock.after(ms, () => {
      purse.cancelRetry = null;
      if (purse.waiters) this.tend(purse, true);
      else purse.contendingSinceMs = null;
    });
  }

  /** After a tick: removes leases that are over. */
  #tidy(purse: Purse): void {
    if (purse.lease?.isOver === true && purse.waiters === null) purse.lease = null;
    if (purse.former) {
      const left = purse.former.filter((lease) => !lease.isOver);
      purse.former = left.length > 0 ? left : null;
      if (left.some((lease) => !lease.hasNothing)) this.tend(purse, false);
    }
    if (purse.lease || purse.former) {
      this.#holding.add(purse);
      this.#restLater();
    } else this.#holding.delete(purse);
    // It returned what other instances wait for, so it pauses before it requests more.
    if (purse.waiters !== null && purse.cancelRetry === null && !this.#pending.has(purse)) {
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

  #current(purse: Purse): Purse {
    return purse.isForgotten ? this.of(purse.id) : purse;
  }

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
      if (purse.isBusy || this.#pending.has(purse) || purse.collectedAtMs > beforeMs) continue;
      purse.isForgotten = true;
      this.#byId.delete(purse.id);
    }
  }

  get #monotonic(): number {
    return this.#options.clock.monotonic();
  }
}

const hasLimit = (counts: PurseRow | null) => counts !== null && (counts.limitNano ?? counts.limitTokens) !== null;

/** Whether the counts already show that an amount does not fit. Within a period counts only grow. */
function isKnownToExceed({ counts }: Purse, needed: Amount, budget: PurseBudget, nowMs: number): boolean {
  if (!counts || !haveSameTerms(counts, budget)) return false;
  const { limitNano, limitTokens, period, mode } = budget;
  const spent = spendingIn(counts, period, currentStart(counts, period, startOf(period, nowMs)));
  // In mode `soft` a request reserves less than its estimate if less is left.
  const least = mode === 'soft' ? neededOf({ nano: 0, tokens: 0 }, budget) : needed;
  const isBeyond = (limit: number | null, sum: number) => limit !== null && sum > limit;
  return isBeyond(limitNano, spent.nano + least.nano) || isBeyond(limitTokens, spent.tokens + least.tokens);
}

/** @param takesLess whether a part of the amount is enough. */
function fits(needed: Amount, left: Amount, takesLess: boolean): boolean {
  const isEnough = (unit: keyof Amount) => left[unit] >= needed[unit] || (takesLess && left[unit] > 0);
  return isEnough('nano') && isEnough('tokens');
}

function addTo(purse: Purse, dayMs: number, nano: number, tokens: number, unpriced: number): void {
  const charges = chargesOn(purse, dayMs);
  charges.nano = Math.min(MAX_NANO, charges.nano + nano);
  charges.tokens = Math.min(Number.MAX_SAFE_INTEGER, charges.tokens + tokens);
  charges.unpriced += unpriced;
}

/** The charges of a day. Those of the newest day are in `charged`. */
function chargesOn(purse: Purse, dayMs: number): DayCharges {
  const { charged } = purse;
  if (charged.dayMs === dayMs) return charged;
  if (isEmpty(charged)) {
    charged.dayMs = dayMs;
    return charged;
  }
  const elsewhere = (purse.chargedElsewhere ??= []);
  if (dayMs < charged.dayMs) {
    let found = elsewhere.find((each) => each.dayMs === dayMs);
    if (!found) elsewhere.push((found = { dayMs, nano: 0, tokens: 0, unpriced: 0 }));
    return found;
  }
  elsewhere.push({ ...charged });
  Object.assign(charged, { dayMs, nano: 0, tokens: 0, unpriced: 0 });
  return charged;
}

const isEmpty = ({ nano, tokens, unpriced }: DayCharges) => nano === 0 && tokens === 0 && unpriced === 0;

/** Moves what was charged into a tick. */
function chargesOf(purse: Purse): readonly DayCharges[] {
  const { charged, chargedElsewhere } = purse;
  const charges = [...(chargedElsewhere ?? []), ...(isEmpty(charged) ? [] : [{ ...charged }])];
  charged.nano = charged.tokens = charged.unpriced = 0;
  purse.chargedElsewhere = null;
  purse.settling = charges.length > 0 ? charges : null;
  return charges;
}

/** Charges from a lost lease already count as spent. The newest charges are most likely from it. */
function subtract(purse: Purse, nano: number, tokens: number): void {
  const left = { nano, tokens };
  for (const charges of [purse.charged, ...(purse.chargedElsewhere ?? [])]) {
    for (const unit of ['nano', 'tokens'] as const) {
      const part = Math.min(left[unit], charges[unit]);
      charges[unit] -= part;
      left[unit] -= part;
    }
  }
}

function wakeAll(purse: Purse): void {
  const waiters = purse.waiters ?? [];
  purse.waiters = null;
  purse.contendingSinceMs = null;
  for (const { resolve } of waiters) resolve('granted');
}

function failAll(purse: Purse, error: unknown): void {
  const waiters = purse.waiters ?? [];
  purse.waiters = null;
  purse.contendingSinceMs = null;
  for (const { reject } of waiters) reject(unavailable(error));
}
