/**
 * # Settling
 *
 * Uses and hits are counted in memory and written in *ticks*: one transaction for all tokens, every
 * 250 ms while there is something to write, at once when a request waits for units of its cap. A tick
 * settles uses, takes units and gives units back.
 *
 * A tick happens once or not at all. Its transaction advances the instance's stored number from seq-1
 * to seq. When it ends in an error nobody knows whether the database committed it, so nothing is
 * guessed: the stored number is read, and as long as it still says seq-1 *the same* tick is sent again. Should a
 * commit that was thought lost arrive late, the repetition finds the number advanced and changes nothing.
 * What a tick took whose report was lost is read off the lease: nobody else changes that.
 *
 * A kill loses what was counted since the last tick: at most 250 ms of an unlimited token's count. Uses
 * of a capped token are covered by its lease, which counts as used once the instance is known to be dead.
 *
 * **Several instances.** When a cap has no units left to take although others hold some, these are asked to give back what they
 * have not drawn, and the requests wait. Nobody holds on to units that nobody draws. An instance that was silent for so long that
 * the others took it for dead finds that out at its next tick: what it had leased, drawn or not, has been counted as used, so it
 * forgets that, and begins anew with nothing in its hands.
 */
import { type Account, leaseTarget } from './account.js';
import { Histogram } from './histogram.js';
import {
  type Clock,
  InstanceBuried,
  type Ledger,
  type Log,
  type TakeReport,
  type Tick,
  type TickRow,
} from './ports.js';
import { unavailable } from './refusal.js';
import { SingleRun } from './single-run.js';

const TICK_EVERY_MS = 250;
const MOST_ROWS = 500; // A tick's transaction stays short enough for management changes to go in between.
const EXHAUSTED_FOR_MS = 1_000; // A client in a retry loop costs the database one question a second.
const LONGEST_RETRY_MS = 2_000;
// Others hear of it within half a second, and give back in the same turn.
const LONGEST_CONTENTION_MS = 1_500;
const ASK_AGAIN_MS = 100;
const IDLE_MS = 1_000;
const SILENT_FOR_MS = 10_000;
// Of a full lease: what is left then lasts while the tick is under way, and a tick is for as many uses as possible.
const REFILL_BELOW = 1 / 4;
const DURATIONS_MS = [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000];

export interface SettlementOptions {
  ledger: Ledger;
  clock: Clock;
  log: Log;
  instanceId: string;
  /** Called after every successful word from the database. */
  onContact: () => void;
  /** Called when units are asked for that other instances hold. */
  onContention: (tokenId: string) => void;
}

interface RunningTick extends Tick {
  accounts: readonly Account[];
}

export class Settlement {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #instanceId: string;
  readonly #onContact: () => void;
  readonly #onContention: (tokenId: string) => void;

  /** Accounts with something for the next tick. */
  #due = new Set<Account>();
  /** Accounts with units in hand, and some that had. */
  readonly #holding = new Set<Account>();
  /** When a tick was last committed (monotonic). */
  #heardAtMs = -Infinity;
  /** The database takes this instance for dead, or did when last heard of. */
  #isBuried = false;
  #seq = 0;
  #inDoubt: RunningTick | null = null;
  readonly #ticks = new SingleRun(() => {
    if (this.#hasWork) this.#schedule();
  });
  #isUrgent = false;
  #cancelTimer: (() => void) | null = null;
  /** Of ticks in a row. */
  #failures = 0;
  #ticksBegun = 0;
  /** Of the ticks that the database took, in ms. */
  readonly durations = new Histogram(DURATIONS_MS);
  /** Ticks that it did not take, since the start. */
  failed = 0;

  constructor(options: SettlementOptions) {
    this.#ledger = options.ledger;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#instanceId = options.instanceId;
    this.#onContact = options.onContact;
    this.#onContention = options.onContention;
  }

  /** Counts one use of an account whose lease, if it has one, was drawn from. */
  countUse(account: Account): void {
    account.uses += 1;
    account.lastUsedAtMs = this.#clock.now();
    this.#due.add(account);
    if (account.isCapped) this.#refillAhead(account);
    this.#schedule();
  }

  countHit(account: Account): void {
    account.hits += 1;
    account.lastUsedAtMs = this.#clock.now();
    this.#due.add(account);
    this.#schedule();
  }

  /** Resolves when it is worth looking for a unit again; rejects with `unavailable` when the database is away. */
  unitsFor(account: Account): Promise<void> {
    return new Promise((resolve, reject) => {
      account.waiters.push({ resolve, reject });
      if (account.cancelAsking === null) this.#askFor(account);
    });
  }

  giveBack(account: Account): void {
    if (account.units === 0) return;
    account.givesBack = true;
    this.#due.add(account);
    this.#schedule();
  }

  /** Another instance waits for units of this account: gives back what is not drawn, and settles what is, at once. */
  yieldUnits(account: Account): void {
    if (!this.#holding.has(account) && !this.#due.has(account)) return;
    this.giveBack(account);
    this.#isUrgent = true;
    this.#schedule();
  }

  /** Gives back what nobody has drawn from for a while. */
  yieldIdle(): void {
    const idleSinceMs = this.#clock.now() - IDLE_MS;
    for (const account of this.#holding) {
      if (account.units === 0) this.#holding.delete(account);
      else if (account.lastUsedAtMs < idleSinceMs && account.taking === 0) this.giveBack(account);
    }
  }

  /** Lets the database hear of this instance, and this one of its burial, if it has not for a while. */
  async showLife(): Promise<void> {
    if (this.#clock.monotonic() - this.#heardAtMs < SILENT_FOR_MS) return;
    await this.#run();
    if (this.#isBuried) await this.#run();
  }

  /** Writes what is counted so far. A database that is away is logged, not thrown: the counts wait for it. */
  async settle(): Promise<void> {
    await this.#ticks.current;
    // What is counted meanwhile is not waited for: under load that would never end.
    let ticks = Math.ceil(this.#due.size / MOST_ROWS) + (this.#inDoubt || this.#isBuried ? 1 : 0);
    while (ticks > 0 && this.#hasWork) {
      const failures = this.#failures;
      const wasBuried = this.#isBuried;
      await this.#run();
      if (this.#failures > failures) return;
      // To find out, and to begin anew, writes nothing.
      if (!wasBuried && !this.#isBuried) ticks -= 1;
    }
  }

  /**
   * Runs `read`, a read of the database, so that what it gives plus `account.uses` and `hits` is the
   * whole count: no tick is under way meanwhile. Gives up after a few tries under load; then the counts
   * may lack the last tick.
   */
  async between<T>(read: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      await this.settle();
      const begun = this.#ticksBegun;
      const result = await read();
      if (begun === this.#ticksBegun || attempt === 3) return result;
    }
  }

  /** At shutdown: settles everything, gives all units back and ends the instance. */
  async retire(accounts: Iterable<Account>): Promise<void> {
    for (const account of accounts) this.giveBack(account);
    await this.settle();
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#hasWork) {
      this.#log.error('some uses could not be settled; what was leased counts as used at the next start');
      return;
    }
    await this.#ledger.retire(this.#instanceId).catch((error: unknown) => {
      this.#log.error('the database did not hear that this instance ends; what was leased counts as used', { error });
    });
  }

  get #hasWork(): boolean {
    return this.#due.size > 0 || this.#inDoubt !== null || this.#isBuried;
  }

  #refillAhead(account: Account): void {
    const target = leaseTarget(account.left, account.pace);
    // Single units are never fetched ahead: near the cap an unused one might be the last.
    if (target > 1 && account.left > 0 && account.units < target * REFILL_BELOW && account.taking === 0) {
      this.#askFor(account);
    }
  }

  #askFor(account: Account): void {
    account.wantsUnits = true;
    this.#due.add(account);
    this.#isUrgent = true;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#ticks.current) return; // It looks again when it is done.
    const isUrgent = this.#isUrgent && this.#failures === 0;
    if (isUrgent) {
      void this.#run();
    } else if (this.#cancelTimer === null) {
      const waitMs = Math.min(LONGEST_RETRY_MS, TICK_EVERY_MS * 2 ** Math.min(this.#failures, 4));
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
      if (this.#isBuried) await this.#beginAnew();
      else await this.#commit();
      this.#heard();
      this.durations.observe(this.#clock.monotonic() - begunAtMs);
    } catch (error) {
      if (error instanceof InstanceBuried) {
        this.#isBuried = true; // What follows this tick is to begin anew.
        return;
      }
      this.#failures += 1;
      this.failed += 1;
      if (this.#failures === 1) this.#log.warn('the database does not take the counts; keeping them', { error });
      for (const account of [...(this.#inDoubt?.accounts ?? []), ...this.#due]) account.fail(unavailable(error));
    }
  }

  async #commit(): Promise<void> {
    const isRepetition = this.#inDoubt !== null;
    const tick = (this.#inDoubt ??= this.#collect());
    this.#conclude(tick, await (isRepetition ? this.#commitOnce(tick) : this.#ledger.commit(tick)));
  }

  /** Sends a tick of unknown outcome again, unless the database has it already: only its own number tells. */
  async #commitOnce(tick: RunningTick): Promise<Map<string, TakeReport>> {
    const isCommitted = (await this.#ledger.lastSeq(this.#instanceId)) >= tick.seq;
    return isCommitted ? this.#readOff(tick) : this.#ledger.commit(tick);
  }

  /** What a tick brought whose report was lost, as far as that can be known. */
  async #readOff(tick: RunningTick): Promise<Map<string, TakeReport>> {
    const took = tick.accounts.filter((_, index) => (tick.rows[index]?.take ?? 0) > 0);
    if (took.length === 0) return new Map();
    const held = await this.#ledger.held(
      this.#instanceId,
      took.map(({ tokenId }) => tokenId),
    );
    const reports = new Map<string, TakeReport>();
    for (const account of took) {
      // The rest of it is in hand, or was drawn since.
      const granted = (held.get(account.tokenId) ?? 0) - account.units - account.uses;
      // That none was granted may have either reason; whoever waits asks again.
      if (granted > 0) reports.set(account.tokenId, { granted, left: account.left - granted, isHeldElsewhere: false });
    }
    return reports;
  }

  /** Behind its burial, which counted as used all that was leased, drawn or not: what of that is still counted here is not to be written. */
  async #beginAnew(): Promise<void> {
    const tick = this.#inDoubt;
    const seq = await this.#ledger.rejoin(this.#instanceId, this.#clock.now());
    this.#log.warn('this instance was taken for dead; the units of caps that it held count as used');
    const isCommitted = tick !== null && seq >= tick.seq;
    this.#isBuried = false;
    this.#inDoubt = null;
    this.#seq = seq;
    const accounts = new Set([...(tick?.accounts ?? []), ...this.#holding, ...this.#due]);
    this.#holding.clear();
    for (const account of accounts) {
      if (!isCommitted) {
        account.uses += account.settlingUses;
        account.hits += account.settlingHits;
      }
      if (account.isCapped) account.uses = 0;
      account.units = account.taking = account.settlingUses = account.settlingHits = 0;
      account.givesBack = false;
      this.#due.add(account);
      account.wake();
    }
  }

  #heard(): void {
    if (this.#failures > 0) this.#log.info('the database takes the counts again');
    this.#failures = 0;
    this.#heardAtMs = this.#clock.monotonic();
    this.#onContact();
  }

  #collect(): RunningTick {
    const accounts = [...this.#due].slice(0, MOST_ROWS);
    // In one order everywhere, so that two instances' transactions cannot lock each other out.
    accounts.sort((a, b) => (a.tokenId < b.tokenId ? -1 : 1));
    for (const account of accounts) this.#due.delete(account);
    this.#isUrgent = [...this.#due].some((account) => account.wantsUnits);
    return {
      instanceId: this.#instanceId,
      seq: this.#seq + 1,
      nowMs: this.#clock.now(),
      accounts,
      rows: accounts.map((account) => rowOf(account, this.#clock.monotonic())),
    };
  }

  #conclude(tick: RunningTick, report: Map<string, TakeReport>): void {
    this.#seq = tick.seq;
    this.#inDoubt = null;
    for (const [index, account] of tick.accounts.entries()) {
      const { take = 0, giveBack = 0 } = tick.rows[index] ?? {};
      account.settlingUses = 0;
      account.settlingHits = 0;
      account.taking = 0;
      account.left += giveBack;
      if (take > 0) this.#receive(account, report.get(account.tokenId));
      if (account.contendsSinceMs === null) account.wake();
    }
  }

  #receive(account: Account, report: TakeReport | undefined): void {
    if (report?.isHeldElsewhere) {
      account.left = report.left;
      this.#contend(account);
      return;
    }
    account.contendsSinceMs = null;
    if (report === undefined) return;
    account.units += report.granted;
    account.left = Math.max(0, report.left);
    if (report.granted > 0) this.#holding.add(account);
    else account.exhaustedUntilMs = this.#clock.monotonic() + EXHAUSTED_FOR_MS;
  }

  /** Others have been asked for what they hold: asks again soon, for as long as somebody waits and may. */
  #contend(account: Account): void {
    const nowMs = this.#clock.monotonic();
    account.contendsSinceMs ??= nowMs;
    if (nowMs - account.contendsSinceMs >= LONGEST_CONTENTION_MS) {
      account.fail(unavailable(new Error('other instances hold the units that are left')));
      return;
    }
    this.#onContention(account.tokenId);
    account.cancelAsking = this.#clock.after(ASK_AGAIN_MS, () => {
      account.cancelAsking = null;
      if (account.waiters.length > 0) this.#askFor(account);
      else account.contendsSinceMs = null;
    });
  }
}

/** Moves what an account has for the tick out of it. */
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
