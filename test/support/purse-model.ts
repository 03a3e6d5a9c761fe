/**
 * A model of budgets for random histories. It drives the real settlement on the real SQLite store, with one database for several instances whose
 * clocks differ, decides which of their pending calls continues next, loses replies, kills instances between any two calls, changes budgets,
 * and compares the database with what may be there after every step.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NO_POLICIES } from '../../daemon/api/vocabulary.js';
import { usdOf } from '../../daemon/api/money.js';
import { type Amount, countedIn, type PurseCounts } from '../../daemon/core/budget/counts.js';
import { dayOf } from '../../daemon/core/budget/period.js';
import type { PurseBudget, Reservation } from '../../daemon/core/budget/purse.js';
import type { Ledger } from '../../daemon/core/ports.js';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import { Refusal } from '../../daemon/core/refusal.js';
import { Settlement } from '../../daemon/core/settlement.js';
import { SecretBox } from '../../daemon/store/secrets.js';
import type { Database } from '../../daemon/store/sql/database.js';
import { SqlClusterStore } from '../../daemon/store/sql/instances.js';
import { SqlLedger } from '../../daemon/store/sql/ledger.js';
import { SqlRecords } from '../../daemon/store/sql/records.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { PURSE, type PurseColumns } from '../../daemon/store/sql/tables.js';
import { Migrator } from '../../migrations/migrator.js';
import { TestClock } from './clock.js';
import { aNewProject, aNewToken } from './factories.js';
import { watchFolder } from './leaks.js';
import { type Random, seededRandom, type Sabotage, Violation } from './model.js';

export interface PurseHistory {
  seed: number;
  steps: number;
  instances: number;
  /** Instances are killed, or expire while they are paused. */
  kills: boolean;
  /** Calls fail, with or without having taken effect. */
  faults: boolean;
  /** Limits and periods are changed. */
  changes: boolean;
  /** Some requests cost more than was set aside for them, or were admitted without a budget. */
  lies: boolean;
  sabotage?: Sabotage;
}

/** What happened in a history. */
export interface PurseTotals {
  admitted: number;
  refused: number;
  kills: number;
  lateTicks: number;
}

// Soon it is midnight at the end of a month.
const START_MS = Date.UTC(2030, 0, 31, 23, 58);
const CLOCKS_DIFFER_MS = [0, -2_000, 3_000];
const PURSES = ['one', 'two', 'three'] as const;
type Id = (typeof PURSES)[number];
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const box = new SecretBox(Buffer.alloc(32, 7));

interface Gate {
  pass(): void;
  /** The call, or its reply, is lost. */
  fail(): void;
}

interface InFlight {
  reservation: Reservation;
  instance: Instance;
}

/** What was charged, as the test knows it. */
interface Truth {
  id: Id;
  atMs: number;
  nano: number;
  tokens: number;
  unpriced: number;
  /** What of it was set aside before. */
  covered: Amount;
}

class Instance {
  readonly id = randomUUID();
  readonly clock: TestClock;
  readonly settlement: Settlement;
  readonly known = new Map<Id, PurseBudget>();
  gates: Gate[] = [];
  isDead = false;
  /** How many calls are on their way. */
  busy = 0;
  readonly ledger: SqlLedger;

  constructor(ledger: SqlLedger, nowMs: number, onContention: (id: string) => void) {
    this.ledger = ledger;
    this.clock = new TestClock({ standsStill: true, startMs: nowMs });
    this.settlement = new Settlement({
      ledger: this.#gated(ledger),
      clock: this.clock,
      log: silent,
      instanceId: this.id,
      onContact: () => undefined,
      onContention,
      onSpent: () => undefined,
      onRejoin: () => undefined,
    });
  }

  #gated(ledger: SqlLedger): Ledger {
    const through = async <T>(call: () => Promise<T>): Promise<T> => {
      await this.#gate();
      this.busy += 1;
      const result = await call().finally(() => (this.busy -= 1));
      await this.#gate();
      return result;
    };
    return {
      enrol: (...args) => ledger.enrol(...args),
      commit: (tick) => through(() => ledger.commit(tick)),
      lastSeq: (id) => through(() => ledger.lastSeq(id)),
      held: (...args) => through(() => ledger.held(...args)),
      heldOfPurses: (...args) => through(() => ledger.heldOfPurses(...args)),
      rejoin: (...args) => through(() => ledger.rejoin(...args)),
      retire: (id) => ledger.retire(id),
    };
  }

  isGated = true;

  #gate(): Promise<void> {
    if (!this.isGated) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const end = (done: () => void) => () => {
        this.gates.splice(this.gates.indexOf(gate), 1);
        done();
      };
      const gate: Gate = {
        pass: end(resolve),
        fail: end(() => {
          reject(new StoreUnavailable('the connection is gone'));
        }),
      };
      this.gates.push(gate);
    });
  }
}

// In memory if possible: unlike a power failure, a killed process loses nothing that was written.
const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'llmp-purses-'));
watchFolder(folder);
process.once('exit', () => {
  rmSync(folder, { recursive: true, force: true });
});

let database: Promise<SqliteDatabase> | null = null;

/** One database for all histories; each has its own rows. */
function opened(): Promise<SqliteDatabase> {
  database ??= (async () => {
    const made = new SqliteDatabase(join(folder, 'purses.db'));
    await new Migrator(made, '0.1.0').up();
    return made;
  })();
  return database;
}

export const QUIET = { steps: 160, instances: 1, kills: false, faults: false, changes: false, lies: false };

/** By what happens in them. */
export const PURSE_HISTORIES: Readonly<Record<string, Omit<PurseHistory, 'seed'>>> = {
  'of one instance': QUIET,
  'with charges beyond what was set aside, or without that': { ...QUIET, lies: true },
  'with changes of limits and periods': { ...QUIET, changes: true },
  'of three instances with different clocks': { ...QUIET, instances: 3, lies: true },
  'of two instances, with changes and lost replies': {
    ...QUIET,
    instances: 2,
    changes: true,
    faults: true,
    lies: true,
  },
  'of three instances that are killed': { ...QUIET, instances: 3, kills: true, changes: true, lies: true },
  'of two instances that are killed, with lost replies': { ...QUIET, instances: 2, kills: true, faults: true },
};

/** @returns the number of requests that were admitted in all of them. */
export async function runPurseHistories(
  history: Omit<PurseHistory, 'seed'>,
  firstSeed: number,
  count: number,
): Promise<number> {
  let admitted = 0;
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    admitted += (await runPurseHistory({ ...history, seed })).admitted;
  }
  return admitted;
}

export async function runPurseHistory(history: PurseHistory): Promise<PurseTotals> {
  const world = new World(await opened(), history);
  return world.run();
}

/** As far as it is used here. */
function sabotaged(database: Database, sabotage: Sabotage): Database {
  const broken: Pick<Database, 'dialect' | 'select' | 'prioritySelect' | 'transact'> = {
    dialect: database.dialect,
    select: (sql, ...rest) => database.select(sql, ...rest),
    prioritySelect: (sql, ...rest) => database.prioritySelect(sql, ...rest),
    transact: (work) =>
      database.transact((tx) =>
        work({
          dialect: tx.dialect,
          select: (sql, ...rest) => tx.select(sabotage(sql), ...rest),
          execute: (sql, ...rest) => tx.execute(sabotage(sql), ...rest),
        }),
      ),
  };
  return broken as Database;
}

class World {
  readonly #database: Database;
  readonly #history: PurseHistory;
  readonly #random: Random;
  readonly #records: SqlRecords;
  readonly #budgets = new Map<Id, PurseBudget>();
  readonly #ids = new Map<Id, string>();
  #instances: Instance[] = [];
  #elapsedMs = 0;
  #inFlight: InFlight[] = [];
  readonly #truths: Truth[] = [];
  /** By purse: what its limit may be exceeded by, and since when. */
  readonly #allowed = new Map<Id, { beyond: Amount; least: Amount; epoch: string }>();
  readonly #totals: PurseTotals = { admitted: 0, refused: 0, kills: 0, lateTicks: 0 };
  #forfeits = 0;
  #faults = 0;

  constructor(database: Database, history: PurseHistory) {
    this.#database = history.sabotage ? sabotaged(database, history.sabotage) : database;
    this.#history = history;
    this.#random = seededRandom(history.seed);
    this.#records = new SqlRecords(this.#database, box);
  }

  async run(): Promise<PurseTotals> {
    try {
      await this.#begin();
      for (let step = 0; step < this.#history.steps; step++) {
        await this.#step();
        await this.#idle();
        await this.#check();
      }
      await this.#end();
    } finally {
      // Others must not find what this one left, if it has failed.
      await this.#database.transact(async (tx) => {
        await tx.execute('DELETE FROM instances');
        await tx.execute('DELETE FROM purse_leases');
      });
    }
    return this.#totals;
  }

  async #begin(): Promise<void> {
    const project = aNewProject({ id: randomUUID(), name: randomUUID(), createdAtMs: START_MS });
    await this.#records.change(async (tx) => {
      await tx.insertProject(project);
      for (const name of PURSES) {
        const id = randomUUID();
        this.#ids.set(name, id);
        const token = { id, projectId: project.id, digest: randomUUID(), createdAtMs: START_MS };
        await tx.insertToken(aNewToken(token));
      }
    });
    const budgets: Record<Id, PurseBudget> = {
      one: { limitNano: 1_000_000, limitTokens: null, period: 'none', mode: 'hard' },
      two: { limitNano: 500_000, limitTokens: 3_000, period: 'day', mode: 'hard' },
      three: { limitNano: null, limitTokens: 2_000, period: 'month', mode: 'soft' },
    };
    for (const name of PURSES) {
      this.#allowed.set(name, { beyond: { nano: 0, tokens: 0 }, least: { nano: 0, tokens: 0 }, epoch: '' });
      await this.#change(name, budgets[name]);
    }
    while (this.#instances.length < this.#history.instances) await this.#newInstance();
    for (const instance of this.#instances) for (const name of PURSES) this.#learn(instance, name);
  }

  async #newInstance(): Promise<Instance> {
    const isShared = this.#history.instances > 1 || this.#history.kills;
    const ledger = new SqlLedger(this.#database, { isShared });
    const at = this.#instances.length % CLOCKS_DIFFER_MS.length;
    const nowMs = START_MS + this.#elapsedMs + (CLOCKS_DIFFER_MS[at] ?? 0);
    const instance: Instance = new Instance(ledger, nowMs, (id) => {
      // Half of the messages are lost.
      for (const other of this.#alive)
        if (other !== instance && this.#chance(0.5)) other.settlement.purses.giveBack(id);
    });
    await ledger.enrol(instance.id, nowMs);
    for (const name of PURSES) this.#learn(instance, name);
    this.#instances.push(instance);
    return instance;
  }

  get #alive(): Instance[] {
    return this.#instances.filter(({ isDead }) => !isDead);
  }

  #idOf = (name: Id) => this.#ids.get(name) ?? '';
  #chance = (probability: number) => this.#random() < probability;
  #upTo = (most: number) => Math.floor(this.#random() * (most + 1));
  #anyOf = <T>(all: readonly T[]): T | undefined => all[Math.floor(this.#random() * all.length)];

  #learn(instance: Instance, name: Id): void {
    const budget = this.#budgets.get(name);
    if (budget) instance.known.set(name, budget);
  }

  async #step(): Promise<void> {
    const instance = this.#anyOf(this.#alive);
    const name = this.#anyOf(PURSES);
    if (!instance || !name) return;
    const gate = this.#anyOf(this.#alive.flatMap(({ gates }) => gates));
    if (gate && this.#chance(0.5)) {
      if (this.#history.faults && this.#chance(0.06)) {
        this.#faults += 1;
        gate.fail();
      } else gate.pass();
      return;
    }
    const dice = this.#random();
    if (dice < 0.45) for (let n = this.#upTo(3); n >= 0; n--) void this.#request(instance, name);
    else if (dice < 0.7) this.#settleOne();
    else if (dice < 0.73 && this.#history.lies) this.#chargeFreely(instance, name);
    else if (dice < 0.76 && this.#history.changes) await this.#changeAny(name);
    else if (dice < 0.8) for (const each of PURSES) this.#learn(instance, each);
    else if (dice < 0.82 && this.#history.kills) await this.#kill(instance);
    else if (dice < 0.86) await this.#poll(instance);
    else this.#advance([20, 250, 1_000, 11_000, 400_000][this.#upTo(this.#chance(0.2) ? 4 : 2)] ?? 0);
  }

  #advance(ms: number): void {
    this.#elapsedMs += ms;
    for (const { clock } of this.#alive) clock.advance(ms);
  }

  async #request(instance: Instance, name: Id): Promise<void> {
    const { purses } = instance.settlement;
    const amount = { nano: 1_000 + this.#upTo(60_000), tokens: 1 + this.#upTo(400) };
    for (let tries = 0; tries < 6; tries++) {
      const budget = instance.known.get(name);
      if (!budget || instance.isDead) return;
      const purse = purses.of(this.#idOf(name));
      const nowMs = instance.clock.now();
      const reservation = purse.tryReserve(amount, budget, nowMs);
      if (reservation) {
        this.#totals.admitted += 1;
        this.#inFlight.push({ reservation, instance });
        return;
      }
      try {
        const result = await purses.more(purse.id, amount, budget, nowMs);
        if (result === 'granted') continue;
        this.#totals.refused += 1;
        return;
      } catch (error) {
        if (error instanceof Refusal && error.kind === 'unavailable' && this.#history.faults) return;
        throw error;
      }
    }
  }

  #settleOne(): void {
    const at = Math.floor(this.#random() * this.#inFlight.length);
    const [ended] = this.#inFlight.splice(at, 1);
    if (!ended) return;
    const { reservation, instance } = ended;
    if (instance.isDead) return;
    const { purses } = instance.settlement;
    const name = PURSES.find((each) => this.#idOf(each) === reservation.purse.id);
    if (!name) return;
    if (this.#chance(0.1)) {
      purses.release(reservation);
      return;
    }
    const isLie = this.#history.lies && this.#chance(0.1);
    const [nano, tokens] = [reservation.nano || 20_000, reservation.tokens || 100].map((most) =>
      isLie ? most + this.#upTo(most) : this.#upTo(most),
    ) as [number, number];
    const isPriced = !this.#chance(0.1);
    const admittedAtMs = reservation.atMs;
    purses.charge(reservation.purse.id, admittedAtMs, { nano: isPriced ? nano : null, tokens }, reservation);
    const charged = isPriced ? nano : 0;
    this.#account(name, reservation.atMs, charged, tokens, isPriced ? 0 : 1, reservation, !reservation.lease.isLost);
  }

  #chargeFreely(instance: Instance, name: Id): void {
    const { purses } = instance.settlement;
    const nano = this.#upTo(20_000);
    // Of a request that was admitted long ago.
    const atMs = instance.clock.now() - (this.#chance(0.3) ? this.#upTo(1_200_000) : 0);
    purses.charge(this.#idOf(name), atMs, { nano, tokens: 7 }, null);
    this.#account(name, atMs, nano, 7, 0, { nano: 0, tokens: 0 }, true);
  }

  #account(name: Id, atMs: number, nano: number, tokens: number, unpriced: number, set: Amount, isSure: boolean): void {
    const covered = { nano: Math.min(nano, set.nano), tokens: Math.min(tokens, set.tokens) };
    const allowed = this.#allowed.get(name);
    if (allowed) {
      allowed.beyond.nano += nano - covered.nano;
      allowed.beyond.tokens += tokens - covered.tokens;
    }
    if (isSure) this.#truths.push({ id: name, atMs, nano, tokens, unpriced, covered });
    else this.#forfeits += 1;
  }

  async #changeAny(name: Id): Promise<void> {
    const before = this.#budgets.get(name);
    if (!before) return;
    const period = this.#chance(0.5) ? before.period : (this.#anyOf(['none', 'day', 'month'] as const) ?? 'none');
    const scale = (limit: number | null) => limit && Math.max(1, Math.floor(limit * (0.4 + 1.2 * this.#random())));
    await this.#change(name, {
      ...before,
      period,
      limitNano: scale(before.limitNano),
      limitTokens: scale(before.limitTokens),
    });
    const row = await this.#row(name);
    const allowed = this.#allowed.get(name);
    // What was spent and leased before stays; nothing new is leased beyond the new limit.
    if (allowed) {
      allowed.least = totalOf(row);
      allowed.epoch = epochOf(row);
    }
  }

  async #change(name: Id, budget: PurseBudget): Promise<void> {
    this.#budgets.set(name, budget);
    const { limitNano, limitTokens, period, mode } = budget;
    const set = {
      period,
      mode,
      ...(limitNano !== null && { usd: usdOf(limitNano) }),
      ...(limitTokens !== null && { tokens: limitTokens }),
    };
    await this.#records.change((tx) =>
      tx.restrictToken(this.#idOf(name), { ...NO_POLICIES, budget: set }, START_MS + this.#elapsedMs),
    );
  }

  /** It is killed between two calls, perhaps with a tick that is committed later. Its supervisor removes it, or the others wait for it. */
  async #kill(instance: Instance): Promise<void> {
    this.#totals.kills += 1;
    instance.isDead = true;
    const late = this.#chance(0.3) ? instance.gates[0] : undefined;
    this.#inFlight = this.#inFlight.filter((each) => each.instance !== instance);
    if (late) {
      this.#totals.lateTicks += 1;
      late.pass();
      if (this.#chance(0.5)) await this.#idle();
    }
    const before = await this.#lives();
    const held = await this.#heldBy(instance);
    await instance.ledger.retire(instance.id);
    await this.#idle();
    if (!late) {
      const after = await this.#lives();
      if (after.nano !== before.nano + held.nano || after.tokens !== before.tokens + held.tokens) {
        this.#violate('a killed instance forfeited something else than what it had leased');
      }
    }
    await this.#newInstance();
  }

  async #poll(instance: Instance): Promise<void> {
    await this.#giveWanted(instance);
    instance.settlement.giveBackIdleUnits();
  }

  async #giveWanted(instance: Instance): Promise<void> {
    const cluster = new SqlClusterStore(this.#database);
    const { wanted } = await cluster.poll(instance.id, instance.clock.now());
    for (const id of wanted) instance.settlement.purses.giveBack(id);
  }

  async #idle(): Promise<void> {
    do {
      for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate);
    } while (this.#instances.some(({ busy }) => busy > 0));
  }

  async #row(name: Id): Promise<PurseCounts> {
    const [row] = await this.#database.select<PurseColumns>(`SELECT ${PURSE.list} FROM purses WHERE id = $id`, {
      id: this.#idOf(name),
    });
    if (!row) throw new Violation('no purse');
    return PURSE.of(row);
  }

  async #lives(): Promise<Amount> {
    const rows = await Promise.all(PURSES.map((name) => this.#row(name)));
    return {
      nano: rows.reduce((sum, { lifeNano }) => sum + lifeNano, 0),
      tokens: rows.reduce((sum, { lifeTokens }) => sum + lifeTokens, 0),
    };
  }

  async #heldBy({ id }: Instance): Promise<Amount> {
    const [held] = await this.#database.select<{ nano: number; tokens: number }>(
      'SELECT COALESCE(SUM(nano), 0) AS nano, COALESCE(SUM(tokens), 0) AS tokens FROM purse_leases WHERE instance_id = $id',
      { id },
    );
    return held ?? { nano: 0, tokens: 0 };
  }

  /** After every step. */
  async #check(): Promise<void> {
    for (const name of PURSES) {
      const row = await this.#row(name);
      const leases = await this.#database.select<{ from_ms: number; nano: number; tokens: number }>(
        'SELECT from_ms, nano, tokens FROM purse_leases WHERE purse_id = $id',
        { id: this.#idOf(name) },
      );
      const current = leases.filter(({ from_ms: fromMs }) => fromMs === row.leasedFromMs);
      const sum = (unit: 'nano' | 'tokens') => current.reduce((total, lease) => total + lease[unit], 0);
      if (sum('nano') !== row.leasedNano || sum('tokens') !== row.leasedTokens) {
        this.#violate(`${name} has leased ${row.leasedNano}, but its leases are ${sum('nano')}`);
      }
      if (leases.some(({ nano, tokens }) => nano < 0 || tokens < 0)) this.#violate('a lease is negative');
      const allowed = this.#allowed.get(name);
      if (!allowed) continue;
      if (allowed.epoch !== epochOf(row)) {
        allowed.epoch = epochOf(row);
        allowed.least = { nano: 0, tokens: 0 };
      }
      const total = totalOf(row);
      for (const [unit, limit] of [
        ['nano', row.limitNano],
        ['tokens', row.limitTokens],
      ] as const) {
        if (limit === null) continue;
        const most = Math.max(limit, allowed.least[unit]) + allowed.beyond[unit];
        if (total[unit] > most) this.#violate(`${name}: ${total[unit]} ${unit} are settled or leased, of ${most}`);
      }
    }
  }

  async #end(): Promise<void> {
    // What one request returns may admit another that has waited for it.
    do {
      while (this.#inFlight.length > 0) this.#settleOne();
      await this.#settled();
    } while (this.#inFlight.length > 0);
    for (const instance of this.#alive) for (const name of PURSES) this.#learn(instance, name);
    await this.#leaveRemnants();
    await this.#checkRemnants();
    while (this.#inFlight.length > 0) this.#settleOne();
    await this.#settled();
    for (const instance of this.#alive) {
      instance.isGated = false;
      await instance.settlement.retire([]);
    }
    await this.#check();
    await this.#checkCounts();
  }

  /** The other instances keep what they have leased ahead. */
  async #leaveRemnants(): Promise<void> {
    let waiting = 0;
    for (const instance of this.#alive.slice(1)) {
      for (const name of PURSES) {
        waiting += 1;
        void this.#request(instance, name).finally(() => (waiting -= 1));
      }
    }
    do {
      await this.#drain();
      for (const { reservation, instance } of this.#inFlight.splice(0)) instance.settlement.purses.release(reservation);
      this.#advance(250);
      await this.#drain();
    } while (waiting > 0 || this.#inFlight.length > 0);
  }

  /** Nothing is under way: what is left must be available to any instance at once, whichever holds remnants of it. */
  async #checkRemnants(): Promise<void> {
    const [instance] = this.#alive;
    for (const name of PURSES) {
      const budget = this.#budgets.get(name);
      if (!instance || !budget) continue;
      const row = await this.#row(name);
      const nowMs = instance.clock.now();
      const spent = spentNow(row, budget, nowMs);
      const fit = {
        nano: budget.limitNano === null ? 0 : budget.limitNano - spent.nano,
        tokens: budget.limitTokens === null ? 0 : budget.limitTokens - spent.tokens,
      };
      const isLimited = (unit: 'nano' | 'tokens') => (unit === 'nano' ? budget.limitNano : budget.limitTokens) !== null;
      if ((isLimited('nano') && fit.nano <= 0) || (isLimited('tokens') && fit.tokens <= 0)) continue;
      let reservation = null as Reservation | null;
      for (let tries = 0; tries < 10 && !reservation; tries++) {
        const { purses } = instance.settlement;
        reservation = purses.of(this.#idOf(name)).tryReserve(fit, budget, instance.clock.now());
        if (reservation) break;
        const asked = purses.more(this.#idOf(name), fit, budget, instance.clock.now()).catch(() => null);
        const answer = { isThere: false };
        void asked.then(() => (answer.isThere = true));
        for (let waited = 0; !answer.isThere && waited < 60; waited++) {
          this.#advance(100);
          for (const each of this.#alive) await this.#giveWanted(each);
          await this.#drain();
        }
        await asked;
        this.#advance(250);
        await this.#drain();
      }
      if (!reservation) this.#violate(`${name}: what is left, ${fit.nano} and ${fit.tokens} tokens, cannot be had`);
      else this.#inFlight.push({ reservation, instance });
    }
  }

  async #drain(): Promise<void> {
    await this.#idle();
    for (;;) {
      const [gate] = this.#alive.flatMap(({ gates }) => gates);
      if (!gate) return;
      gate.pass();
      await this.#idle();
    }
  }

  async #settled(): Promise<void> {
    for (let round = 0; round < 12; round++) {
      await this.#drain();
      this.#advance(250);
    }
    await this.#drain();
    await this.#check();
  }

  async #checkCounts(): Promise<void> {
    const [left] = await this.#database.select<{ n: number }>('SELECT COUNT(*) AS n FROM purse_leases');
    if (left?.n !== 0) this.#violate(`${left?.n} leases outlived their instances`);
    const isUndisturbed = this.#totals.kills === 0 && this.#faults === 0 && this.#forfeits === 0;
    for (const name of PURSES) {
      const row = await this.#row(name);
      if (row.leasedNano !== 0 || row.leasedTokens !== 0) this.#violate('something is leased, and no instance lives');
      const mine = this.#truths.filter(({ id }) => id === name);
      const of = (truths: Truth[]) => ({
        nano: truths.reduce((sum, { nano }) => sum + nano, 0),
        tokens: truths.reduce((sum, { tokens }) => sum + tokens, 0),
        unpriced: truths.reduce((sum, { unpriced }) => sum + unpriced, 0),
      });
      const life = { nano: row.lifeNano, tokens: row.lifeTokens, unpriced: row.lifeUnpriced };
      if (!isUndisturbed) {
        // What was set aside before it was spent is never lost.
        const covered = mine.reduce((sum, truth) => sum + truth.covered.nano, 0);
        if (life.nano < covered) this.#violate(`only ${life.nano} of ${covered} are counted`);
        if (this.#totals.kills > 0) continue;
      }
      const same = (counted: Amount & { unpriced: number }, truths: Truth[], what: string) => {
        const want = of(truths);
        const isMore = counted.nano > want.nano || counted.tokens > want.tokens || counted.unpriced > want.unpriced;
        const isLess = counted.nano < want.nano || counted.tokens < want.tokens || counted.unpriced < want.unpriced;
        if (isLess || isMore)
          this.#violate(`${what} of ${name}: ${JSON.stringify(counted)}, not ${JSON.stringify(want)}`);
      };
      same(life, mine, 'life');
      const day = { nano: row.dayNano, tokens: row.dayTokens, unpriced: row.dayUnpriced };
      same(
        day,
        mine.filter(({ atMs }) => dayOf(atMs) === row.dayFromMs),
        'day',
      );
      const month = { nano: row.monthNano, tokens: row.monthTokens, unpriced: row.monthUnpriced };
      same(
        month,
        mine.filter(({ atMs }) => atMs >= row.monthFromMs),
        'month',
      );
    }
  }

  #violate(what: string): never {
    throw new Violation(`${what} (seed ${this.#history.seed})`);
  }
}

const epochOf = ({ period, leasedFromMs }: PurseCounts) => `${period} ${leasedFromMs}`;

/** What is settled and leased in the period of the leases. */
function totalOf(row: PurseCounts): Amount {
  const { nano, tokens } = countedIn(row, row.period, row.leasedFromMs);
  return { nano: nano + row.leasedNano, tokens: tokens + row.leasedTokens };
}

function spentNow(row: PurseCounts, { period }: PurseBudget, nowMs: number): Amount {
  const day = dayOf(nowMs);
  if (period === 'none') return { nano: row.lifeNano, tokens: row.lifeTokens };
  if (period === 'day')
    return row.dayFromMs >= day ? { nano: row.dayNano, tokens: row.dayTokens } : { nano: 0, tokens: 0 };
  const date = new Date(nowMs);
  const month = Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
  return row.monthFromMs >= month ? { nano: row.monthNano, tokens: row.monthTokens } : { nano: 0, tokens: 0 };
}
