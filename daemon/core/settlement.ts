/**
 * # Settlement
 *
 * Uses and hits are counted in memory and written to the database in *ticks*: one transaction for all tokens, every 250 ms while
 * there is something to write, and at once when a request waits for units of its cap. A tick settles uses, takes units into leases,
 * and gives units back.
 *
 * **Exactly once.** A tick's transaction advances the instance's stored number from seq-1 to seq. After an error it is unknown whether
 * the tick was committed. So the stored number is read, and only while it is still seq-1, *the same* tick is sent again. If the
 * first commit arrives late after all, the repetition finds the number advanced and changes nothing. If the result of a committed
 * tick was lost, the units it took are read from the lease row, which only this instance changes.
 *
 * **Loss.** A killed process loses counts since the last tick: at most 250 ms of the uses of unlimited tokens. Uses of a capped token
 * are covered by its lease, which counts as used once the instance has expired.
 *
 * **Money.** The purses of tokens and projects are written and leased with the same ticks (budget/purses.ts).
 *
 * **Several instances.** When a cap has no free units but other instances hold undrawn ones, they are asked to give these back, and
 * requests wait. An instance that did so takes units again a little later than those who waited for them: reads, which need a unit but
 * spend none, would otherwise keep the last ones. Idle units are given back in any case. An instance that sent no heartbeat for too long and was expired by the
 * others learns this from its next tick. Its leases, drawn or not, were counted as used, so it discards them and starts again
 * without units.
 */
import { type Account, leaseTarget } from './account.js';
import type { Amount } from './budget/counts.js';
import {
  IDLE_AFTER_MS,
  MAX_CONTENTION_MS,
  Purses,
  type PursesOptions,
  RETRY_AFTER_MS,
  YIELD_MS,
} from './budget/purses.js';
import { Histogram } from './histogram.js';
import {
  type Clock,
  InstanceExpired,
  type Ledger,
  type Log,
  type LeaseGrant,
  type Tick,
  type TickReport,
  type TickRow,
} from './ports.js';
import { unavailable } from './refusal.js';
import { SingleRun } from './single-run.js';

const TICK_EVERY_MS = 250;
const MAX_ROWS_PER_TICK = 500; // Keeps a tick's transaction short, so that management changes do not wait long.
const EXHAUSTED_FOR_MS = 1_000; // A client that retries in a loop costs one query per second.
const MAX_RETRY_MS = 2_000;
const HEARTBEAT_AFTER_MS = 10_000;
// Share of a full lease. The rest lasts while the tick is in progress, and each tick settles as many uses as possible.
const REFILL_BELOW = 1 / 4;
const DURATIONS_MS = [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000];

export interface SettlementOptions {
  ledger: Ledger;
  clock: Clock;
  log: Log;
  instanceId: string;
  /** Called after every successful tick. */
  onContact: () => void;
  /** Called when requests need units of a token, or a budget of a token or project, that other instances have leased. */
  onContention: (id: string) => void;
  /** @see PursesOptions.onSpent */
  onSpent: PursesOptions['onSpent'];
  /** Called when the others have taken this instance for dead, and it joins them again. */
  onRejoin: () => void;
}

interface RunningTick extends Tick {
  accounts: readonly Account[];
}

/** The report of a tick that was committed, but whose result was lost. */
interface Unreported {
  units: TickReport['units'];
  purses: null;
}

const NOTHING_HELD: ReadonlyMap<string, Amount> = new Map();

export class Settlement {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #instanceId: string;
  readonly #onContact: () => void;
  readonly #onContention: (id: string) => void;
  readonly #onRejoin: () => void;

  /** What tokens and projects spend. The same ticks settle it. */
  readonly purses: Purses;

  /** Accounts to include in the next ticks. */
  #pending = new Set<Account>();
  /** Accounts that hold units, and some that no longer do. */
  readonly #holding = new Set<Account>();
  /** When a tick was last committed (monotonic). */
  #committedAtMs = -Infinity;
  /** Other instances have expired this one, as last seen. */
  #isExpired = false;
  #seq = 0;
  #inDoubt: RunningTick | null = null;
  readonly #ticks = new SingleRun(() => {
    if (this.#hasWork) this.#schedule();
  });
  #isUrgent = false;
  #cancelTimer: (() => void) | null = null;
  /** Consecutive failed ticks. */
  #failures = 0;
  #ticksBegun = 0;
  /** Durations of successful ticks, in ms. */
  readonly durations = new Histogram(DURATIONS_MS);
  /** Failed ticks since the start. */
  failed = 0;

  constructor(options: SettlementOptions) {
    this.#ledger = options.ledger;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#instanceId = options.instanceId;
    this.#onContact = options.onContact;
    this.#onContention = options.onContention;
    this.#onRejoin = options.onRejoin;
    this.purses = new Purses({
      ...options,
      tickEveryMs: TICK_EVERY_MS,
      schedule: (isUrgent) => {
        this.#isUrgent ||= isUrgent;
        this.#schedule();
      },
    });
  }

  /** Counts one use. For a capped account the caller has already drawn the unit. */
  countUse(account: Account): void {
    account.uses += 1;
    account.lastUsedAtMs = this.#clock.now();
    this.#pending.add(account);
    if (account.isCapped) this.#refillAhead(account);
    this.#schedule();
  }

  countHit(account: Account): void {
    account.hits += 1;
    account.lastUsedAtMs = this.#clock.now();
    this.#pending.add(account);
    this.#schedule();
  }

  /** Only the time of a read is written: it is no use. */
  noteRead(account: Account): void {
    account.lastUsedAtMs = this.#clock.now();
    this.#pending.add(account);
    this.#schedule();
  }

  /** Resolves when a unit may be available; rejects with `unavailable` when the database is. */
  unitsFor(account: Account): Promise<void> {
    return new Promise((resolve, reject) => {
      account.waiters.push({ resolve, reject });
      if (account.cancelRetry !== null) return;
      const yieldsForMs = account.yieldsUntilMs - this.#clock.monotonic();
      if (yieldsForMs > 0) this.#requestAfter(account, yieldsForMs);
      else this.#requestUnits(account);
    });
  }

  giveBack(account: Account): void {
    if (account.units === 0) return;
    account.givesBack = true;
    this.#pending.add(account);
    this.#schedule();
  }

  /** Another instance waits for units of this account: gives back undrawn units and settles drawn ones, at once. */
  giveBackUnits(account: Account): void {
    if (!this.#holding.has(account) && !this.#pending.has(account)) return;
    if (account.units > 0) account.yieldsUntilMs = this.#clock.monotonic() + YIELD_MS;
    this.giveBack(account);
    this.#isUrgent = true;
    this.#schedule();
  }

  /** Returns units of accounts without recent uses, and idle leases of budgets. */
  giveBackIdleUnits(): void {
    this.purses.giveBackIdle();
    const idleSinceMs = this.#clock.now() - IDLE_AFTER_MS;
    for (const account of this.#holding) {
      if (account.units === 0) this.#holding.delete(account);
      else if (account.lastUsedAtMs < idleSinceMs && account.taking === 0) this.giveBack(account);
    }
  }

  /** Runs a tick if there was none for a while: it tells the others that this instance is alive, or reveals that it was expired. */
  async heartbeat(): Promise<void> {
    if (this.#clock.monotonic() - this.#committedAtMs < HEARTBEAT_AFTER_MS) return;
    await this.#run();
    if (this.#isExpired) await this.#run();
  }

  /** Writes everything counted so far. If the database is unavailable, this is logged, not thrown; the counts stay in memory. */
  async settle(): Promise<void> {
    await this.#ticks.current;
    // Does not wait for uses counted meanwhile: under load this would never end.
    const pending = this.#pending.size + this.purses.size.pending;
    let ticks = Math.ceil(pending / MAX_ROWS_PER_TICK) + (this.#inDoubt || this.#isExpired ? 1 : 0);
    while (ticks > 0 && this.#hasWork) {
      const failures = this.#failures;
      const wasExpired = this.#isExpired;
      await this.#run();
      if (this.#failures > failures) return;
      // A tick that detects the expiry, and one that rejoins, write no counts.
      if (!wasExpired && !this.#isExpired) ticks -= 1;
    }
  }

  /**
   * Runs `read`, a database query, while no tick is in progress, so that its result plus `account.uses` and `account.hits` is the
   * complete count. Under load it gives up after three attempts; then the result may lack the last tick.
   */
  async readBetweenTicks<T>(read: () => Promise<T>, settle: () => Promise<void> = () => this.settle()): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      await settle();
      const begun = this.#ticksBegun;
      const result = await read();
      if (begun === this.#ticksBegun || attempt === 3) return result;
    }
  }

  /** As `readBetweenTicks`, but writes nothing: clients cause no ticks. */
  readBesideTicks<T>(read: () => Promise<T>): Promise<T> {
    return this.readBetweenTicks(read, async () => {
      await this.#ticks.current;
    });
  }

  /** At shutdown: settles everything, gives all units back and removes the instance. */
  async retire(accounts: Iterable<Account>): Promise<void> {
    for (const account of accounts) this.giveBack(account);
    this.purses.giveAllBack();
    await this.settle();
    if (this.#failures === 0) {
      // What a tick in progress has taken, for requests that have ended meanwhile.
      this.purses.giveAllBack();
      await this.settle();
    }
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#hasWork) {
      this.#log.error(
        'cannot write all request counts to the database; leased units count as used after the next start',
      );
      return;
    }
    await this.#ledger.retire(this.#instanceId).catch((error: unknown) => {
      this.#log.error('cannot deregister this instance from the database; leased units count as used', { error });
    });
  }

  get #hasWork(): boolean {
    return this.#pending.size > 0 || this.purses.size.pending > 0 || this.#inDoubt !== null || this.#isExpired;
  }

  #refillAhead(account: Account): void {
    const target = leaseTarget(account.left, account.pace);
    // Single units are never leased in advance: near the cap an unused one might be the last.
    if (target > 1 && account.left > 0 && account.units < target * REFILL_BELOW && account.taking === 0) {
      this.#requestUnits(account);
    }
  }

  #requestUnits(account: Account): void {
    account.wantsUnits = true;
    this.#pending.add(account);
    this.#isUrgent = true;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#ticks.current) return; // The running tick schedules the next one.
    const isUrgent = this.#isUrgent && this.#failures === 0;
    if (isUrgent) {
      void this.#run();
    } else if (this.#cancelTimer === null) {
      const waitMs = Math.min(MAX_RETRY_MS, TICK_EVERY_MS * 2 ** Math.min(this.#failures, 4));
      this.#cancelTimer = this.#clock.after(waitMs, () => void this.#run());
    }
  }

  #run(): Promise<void> {
    return this.#ticks.run(() => this.#tick());
  }

  async #tick(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#ticksBegun += 1;
    const begunAtMs = this.#clock.monotonic();
    try {
      if (this.#isExpired) await this.#rejoin();
      else await this.#commit();
      this.#succeeded();
      this.durations.observe(this.#clock.monotonic() - begunAtMs);
    } catch (error) {
      if (error instanceof InstanceExpired) {
        this.#isExpired = true; // The next tick rejoins.
        return;
      }
      this.#failures += 1;
      this.failed += 1;
      if (this.#failures === 1)
        this.#log.warn('cannot write request counts to the database; keeping them in memory', { error });
      for (const account of [...(this.#inDoubt?.accounts ?? []), ...this.#pending]) account.fail(unavailable(error));
      this.purses.fail(error);
    }
  }

  async #commit(): Promise<void> {
    const isRepetition = this.#inDoubt !== null;
    const tick = (this.#inDoubt ??= this.#collect());
    if (isRepetition) await this.#commitOnce(tick);
    else this.#conclude(tick, await this.#ledger.commit(tick));
  }

  /** Sends a tick of unknown outcome again, unless the stored number shows that it was committed. */
  async #commitOnce(tick: RunningTick): Promise<void> {
    const isCommitted = (await this.#ledger.lastSeq(this.#instanceId)) >= tick.seq;
    if (!isCommitted) {
      this.#conclude(tick, await this.#ledger.commit(tick));
      return;
    }
    const units = await this.#readGranted(tick);
    const { taking } = this.purses;
    const held = taking.length > 0 ? await this.#ledger.heldOfPurses(this.#instanceId, taking) : NOTHING_HELD;
    this.#conclude(tick, { units, purses: null }, held);
  }

  /** Units granted by a committed tick whose result was lost, as far as they can be derived. */
  async #readGranted(tick: RunningTick): Promise<Map<string, LeaseGrant>> {
    const took = tick.accounts.filter((_, index) => (tick.rows[index]?.take ?? 0) > 0);
    if (took.length === 0) return new Map();
    const held = await this.#ledger.held(
      this.#instanceId,
      took.map(({ tokenId }) => tokenId),
    );
    const reports = new Map<string, LeaseGrant>();
    for (const account of took) {
      // The lease row includes units held before the tick, and those drawn since.
      const granted = (held.get(account.tokenId) ?? 0) - account.units - account.withheld - account.uses;
      // If none was granted, the reason is unknown (cap reached, or held elsewhere); waiting requests ask again.
      if (granted > 0) reports.set(account.tokenId, { granted, left: account.left - granted, isHeldElsewhere: false });
    }
    return reports;
  }

  /** Rejoins after the expiry, which counted all leased units as used, drawn or not: uses of leases counted here must not be written again. */
  async #rejoin(): Promise<void> {
    const tick = this.#inDoubt;
    const seq = await this.#ledger.rejoin(this.#instanceId, this.#clock.now());
    this.#onRejoin();
    this.#log.warn('this instance was expired by the others after missing heartbeats; the units it held count as used');
    const isCommitted = tick !== null && seq >= tick.seq;
    this.#isExpired = false;
    this.#inDoubt = null;
    this.#seq = seq;
    this.purses.forfeit(isCommitted);
    const accounts = new Set([...(tick?.accounts ?? []), ...this.#holding, ...this.#pending]);
    this.#holding.clear();
    for (const account of accounts) {
      if (!isCommitted) {
        account.uses += account.settlingUses;
        account.hits += account.settlingHits;
      }
      if (account.isCapped) account.uses = 0;
      account.units = account.withheld = account.taking = account.settlingUses = account.settlingHits = 0;
      account.losses += 1;
      account.givesBack = false;
      this.#pending.add(account);
      account.wake();
    }
  }

  #succeeded(): void {
    if (this.#failures > 0) this.#log.info('request counts are written to the database again');
    this.#failures = 0;
    this.#committedAtMs = this.#clock.monotonic();
    this.#onContact();
  }

  #collect(): RunningTick {
    const reserved = Math.min(this.purses.size.pending, MAX_ROWS_PER_TICK / 2);
    const accounts = [...this.#pending].slice(0, MAX_ROWS_PER_TICK - reserved);
    // Same order on all instances, so that their transactions cannot deadlock.
    accounts.sort((a, b) => (a.tokenId < b.tokenId ? -1 : 1));
    for (const account of accounts) this.#pending.delete(account);
    const purses = this.purses.collect(MAX_ROWS_PER_TICK - accounts.length);
    this.#isUrgent = this.purses.isUrgent || [...this.#pending].some((account) => account.wantsUnits);
    return {
      instanceId: this.#instanceId,
      seq: this.#seq + 1,
      nowMs: this.#clock.now(),
      accounts,
      rows: accounts.map((account) => rowOf(account, this.#clock.monotonic())),
      purses,
    };
  }

  /** @param held what is leased of purses, if what the tick granted is unknown. */
  #conclude(tick: RunningTick, { units, purses }: TickReport | Unreported, held = NOTHING_HELD): void {
    this.#seq = tick.seq;
    this.#inDoubt = null;
    if (purses) this.purses.conclude(purses);
    else this.purses.concludeUnreported(held);
    for (const [index, account] of tick.accounts.entries()) {
      const { take = 0, giveBack = 0 } = tick.rows[index] ?? {};
      account.settlingUses = 0;
      account.settlingHits = 0;
      account.taking = 0;
      account.left += giveBack;
      if (take > 0) this.#receive(account, units.get(account.tokenId));
      if (account.contendingSinceMs === null) account.wake();
    }
  }

  #receive(account: Account, report: LeaseGrant | undefined): void {
    if (report?.isHeldElsewhere) {
      account.left = report.left;
      this.#contend(account);
      return;
    }
    account.contendingSinceMs = null;
    if (report === undefined) return;
    account.units += report.granted;
    account.left = Math.max(0, report.left);
    if (report.granted > 0) this.#holding.add(account);
    else account.exhaustedUntilMs = this.#clock.monotonic() + EXHAUSTED_FOR_MS;
  }

  /** Asks other instances for units, and tries again after a short pause while requests wait, up to `MAX_CONTENTION_MS`. */
  #contend(account: Account): void {
    const nowMs = this.#clock.monotonic();
    account.contendingSinceMs ??= nowMs;
    if (nowMs - account.contendingSinceMs >= MAX_CONTENTION_MS) {
      account.fail(unavailable(new Error('other instances hold the units that are left')));
      return;
    }
    this.#onContention(account.tokenId);
    this.#requestAfter(account, RETRY_AFTER_MS);
  }

  /** Requests units after a pause, if requests still wait for them then. */
  #requestAfter(account: Account, ms: number): void {
    account.cancelRetry?.();
    account.cancelRetry = this.#clock.after(ms, () => {
      account.cancelRetry = null;
      if (account.waiters.length > 0) this.#requestUnits(account);
      else account.contendingSinceMs = null;
    });
  }
}

/** Moves an account's pending counts and requests into a row of the tick. */
function rowOf(account: Account, nowMs: number): TickRow {
  account.pace = (account.uses / Math.max(1, nowMs - account.collectedAtMs)) * TICK_EVERY_MS;
  account.collectedAtMs = nowMs;
  const giveBack = account.givesBack ? account.units : 0;
  const take =
    account.wantsUnits && giveBack === 0 ? Math.max(0, leaseTarget(account.left, account.pace) - account.units) : 0;
  const row = {
    tokenId: account.tokenId,
    uses: account.uses,
    hits: account.hits,
    lastUsedAtMs: account.lastUsedAtMs,
    leased: account.isCapped,
    take,
    giveBack,
  };
  account.settlingUses = account.uses;
  account.settlingHits = account.hits;
  account.uses = 0;
  account.hits = 0;
  account.units -= giveBack;
  account.taking = take;
  account.wantsUnits = false;
  account.givesBack = false;
  return row;
}
