/**
 * A model of admission for random histories. It drives the shipped core on the shipped SQLite store, decides which of
 * the database calls under way goes on next (so that every order of them can happen), kills the instance between
 * any two of them, and holds what happened against what may happen.
 */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseError } from 'sequelize';
import type { Pass } from '../../daemon/core/account.js';
import { Admission } from '../../daemon/core/admission.js';
import type { Caller } from '../../daemon/core/audit.js';
import type { Log } from '../../daemon/core/ports.js';
import { Refusal } from '../../daemon/core/refusal.js';
import { Registry } from '../../daemon/core/registry.js';
import { SecretBox } from '../../daemon/store/secrets.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { SqlLedger } from '../../daemon/store/sql/ledger.js';
import { SqlRecords } from '../../daemon/store/sql/records.js';
import { SqliteWriter } from '../../daemon/store/sql/sqlite.js';
import { SqlTokenLookup } from '../../daemon/store/sql/tokens.js';
import { Migrator } from '../../migrations/migrator.js';
import { canary } from './canaries.js';
import { TestClock } from './clock.js';
import { watchFolder } from './leaks.js';

export type Random = () => number;

/** mulberry32: small, seeded, good enough to wander. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const box = new SecretBox(Buffer.alloc(32, 7));
const operator: Caller = { actor: 'system', requestId: null, clientIp: null, reason: null };

/** Rewrites a statement before it is sent: how a test breaks the store on purpose. */
export type Sabotage = (sql: string) => string;

/** A database call that waits to be let through: before it is sent, or before its answer is given back. */
interface Gate {
  sql: string;
  stage: 'before' | 'after';
  /** Goes on only when much else has: what takes long meets what is short. */
  isSlow: boolean;
  pass(): void;
  fail(): void;
}

/** One life of a process: everything of it is gone after `kill`. */
class Instance {
  readonly database: SqliteDatabase;
  readonly clock: TestClock;
  readonly admission: Admission;
  readonly registry: Registry;
  readonly ledger: SqlLedger;
  readonly id: string;
  readonly passes: Pass[] = [];
  gates: Gate[] = [];
  #busy = 0;
  isGated = false;

  constructor(
    path: string,
    nowMs: number,
    id: string,
    private readonly random: Random,
    sabotage: Sabotage,
  ) {
    this.id = id;
    this.database = new SqliteDatabase(path);
    this.#gateCalls(sabotage);
    this.clock = new TestClock({ standsStill: true, startMs: nowMs });
    this.ledger = new SqlLedger(this.database);
    this.admission = new Admission({
      lookup: new SqlTokenLookup(this.database, box),
      ledger: this.ledger,
      clock: this.clock,
      log: silent,
      instanceId: id,
      staleLimitMs: 60_000,
    });
    this.registry = new Registry(new SqlRecords(this.database, box), this.admission, this.clock);
  }

  /** Resolves when nothing moves any more without a gate being opened or the clock being moved. */
  async idle(): Promise<void> {
    do await new Promise((resolve) => setImmediate(resolve));
    while (this.#busy > 0);
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#busy > 0) await this.idle();
  }

  /** The process dies: nothing of it ever goes on, and the kernel closes its files, which takes back an open transaction. */
  async kill(): Promise<void> {
    this.gates = [];
    await this.close();
  }

  async close(): Promise<void> {
    await this.database.writer.close();
    const { connections } = this.database.sequelize.connectionManager as unknown as {
      connections: Record<string, { close(done: () => void): void }>;
    };
    await Promise.all(
      Object.values(connections).map(
        (connection) =>
          new Promise<void>((resolve) => {
            connection.close(resolve);
          }),
      ),
    );
  }

  #gateCalls(sabotage: Sabotage): void {
    const { sequelize, writer } = this.database;
    const gated =
      (shipped: (sql: string, ...rest: unknown[]) => Promise<unknown>) =>
      async (sql: string, ...rest: unknown[]) => {
        const text = sabotage(sql);
        await this.#gate(text, 'before');
        const answer = await this.#counted(() => shipped(text, ...rest));
        await this.#gate(text, 'after');
        return answer;
      };
    Object.assign(sequelize, { query: gated(sequelize.query.bind(sequelize) as () => Promise<unknown>) });
    Object.assign(writer, {
      run: gated(writer.run.bind(writer) as () => Promise<unknown>),
      all: gated(writer.all.bind(writer) as () => Promise<unknown>),
      close: () => this.#counted(() => SqliteWriter.prototype.close.call(writer)),
    });
    const manager = sequelize.connectionManager as unknown as { getConnection(options: unknown): Promise<unknown> };
    const getConnection = manager.getConnection.bind(manager);
    Object.assign(manager, { getConnection: (options: unknown) => this.#counted(() => getConnection(options)) });
  }

  #gate(sql: string, stage: Gate['stage']): Promise<void> {
    if (!this.isGated) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const gate: Gate = {
        sql,
        stage,
        isSlow: this.random() < 0.15,
        pass: () => {
          this.gates.splice(this.gates.indexOf(gate), 1);
          resolve();
        },
        fail: () => {
          this.gates.splice(this.gates.indexOf(gate), 1);
          reject(new ConnectionLost());
        },
      };
      this.gates.push(gate);
    });
  }

  async #counted<T>(work: () => Promise<T>): Promise<T> {
    this.#busy += 1;
    try {
      return await work();
    } finally {
      this.#busy -= 1;
    }
  }
}

/** What a driver throws when its connection breaks, as Sequelize wraps it. */
class ConnectionLost extends DatabaseError {
  constructor() {
    super(Object.assign(new Error('SQLITE_IOERR: the connection is gone'), { sql: '' }));
  }
}

/** What the model holds to be true of one token. */
interface ModelToken {
  id: string;
  secret: string;
  cap: number;
  expiresAtMs: number;
  forwarded: number;
  /** As last acknowledged; null while a change of it is under way, or after one of unknown outcome. */
  isActive: boolean | null;
  /** Counts changes begun, so that a request can tell whether one came in between. */
  changesBegun: number;
}

/** Something happened that must never happen. */
export class Violation extends Error {
  override name = 'Violation';
}

export interface HistoryOptions {
  seed: number;
  steps: number;
  /** Whether the instance may be killed. */
  kills: boolean;
  /** Whether database calls may fail, with or without having taken effect. */
  faults: boolean;
  sabotage?: Sabotage;
}

// In memory where there is such a place: a killed process, unlike a power cut, loses nothing that was written.
const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'llmp-model-'));
watchFolder(folder);
process.once('exit', () => {
  rmSync(folder, { recursive: true, force: true });
});

let template: Promise<string> | null = null;

/** A migrated database with one project, to be copied for each history. */
function migratedTemplate(): Promise<string> {
  template ??= (async () => {
    const path = join(folder, 'template.db');
    const database = new SqliteDatabase(path);
    await new Migrator(database.sequelize, '0.1.0').up();
    await database.select('PRAGMA journal_mode = DELETE'); // Everything in the one file that is copied.
    await database.close();
    return path;
  })();
  return template;
}

let histories = 0;
export async function runHistory(options: HistoryOptions): Promise<{ forwarded: number; kills: number }> {
  const path = join(folder, `history-${++histories}.db`);
  copyFileSync(await migratedTemplate(), path);
  const world = new World(path, options);
  await world.begin();
  await world.run();
  return world.end();
}

class World {
  readonly #path: string;
  readonly #options: HistoryOptions;
  readonly #random: Random;
  readonly #sabotage: Sabotage;
  #instance: Instance;
  #instances = 0;
  #projectId = '';
  #projectIsActive: boolean | null = true;
  #projectChangesBegun = 0;
  readonly #tokens: ModelToken[] = [];
  #acknowledged = 0;
  #kills = 0;
  #faults = 0;
  #violation: Violation | null = null;
  /** Requests that have begun and not ended. */
  #open = 0;

  constructor(path: string, options: HistoryOptions) {
    this.#path = path;
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.#sabotage = options.sabotage ?? ((sql) => sql);
    this.#instance = this.#newInstance(Date.UTC(2030, 0, 1));
  }

  async begin(): Promise<void> {
    const instance = this.#instance;
    await instance.ledger.enrol(instance.id, instance.clock.now());
    const project = await instance.registry.createProject({ name: 'model', upstreamKey: canary('upstream') }, operator);
    this.#projectId = project.id;
    for (const cap of [1, 3, 20, 40, 0]) {
      const lifetimeMs = this.#chance(0.3) ? 60_000 : 86_400_000;
      const draft = { projectId: project.id, lifetimeMs, maxRequests: cap, name: null };
      const { token, secret } = await instance.registry.issueToken(draft, operator);
      this.#tokens.push({
        id: token.id,
        secret,
        cap,
        expiresAtMs: token.expiresAtMs,
        forwarded: 0,
        isActive: true,
        changesBegun: 0,
      });
    }
    this.#acknowledged = 1 + this.#tokens.length;
    instance.isGated = true;
  }

  async run(): Promise<void> {
    for (let step = 0; step < this.#options.steps; step++) {
      await this.#step();
      await this.#instance.idle();
      this.#throwViolation();
    }
  }

  async #step(): Promise<void> {
    const { gates } = this.#instance;
    if (this.#options.kills && this.#chance(0.02)) return this.#kill();
    const ready = gates.filter(({ isSlow }) => !isSlow || this.#chance(0.04));
    const gate = ready[Math.floor(this.#random() * ready.length)];
    if (gate && this.#chance(0.75)) {
      // A transaction that cannot even be taken back is a connection that closes: nothing to model about it.
      if (this.#options.faults && this.#chance(0.03) && !gate.sql.startsWith('ROLLBACK')) {
        this.#faults += 1;
        gate.fail();
      } else {
        gate.pass();
      }
      return;
    }
    const dice = this.#random();
    if (dice < 0.6) for (let n = 1 + Math.floor(this.#random() * 6); n > 0; n--) void this.#request();
    else if (dice < 0.7) this.#finishOne();
    else if (dice < 0.8) void this.#changeToken();
    else if (dice < 0.84) void this.#changeProject();
    else this.#instance.clock.advance([50, 250, 1_000, 20_000][Math.floor(this.#random() * 4)] ?? 0);
  }

  async #request(): Promise<void> {
    const token = this.#anyToken();
    const instance = this.#instance;
    const { admission, clock } = instance;
    const begun = token.changesBegun + this.#projectChangesBegun;
    const wasFine = token.isActive === true && this.#projectIsActive === true;
    this.#open += 1;
    let pass: Pass | null = null;
    try {
      pass = await admission.admit(token.secret);
      const waiting = admission.draw(pass);
      if (waiting) await waiting;
      if (pass.ended) throw pass.ended;
      this.#forwarded(token, clock.now());
      instance.passes.push(pass);
    } catch (error) {
      if (pass) admission.finish(pass);
      const undisturbed = wasFine && begun === token.changesBegun + this.#projectChangesBegun;
      this.#refused(token, error, undisturbed && clock.now() < token.expiresAtMs);
    }
    this.#open -= 1;
  }

  #forwarded(token: ModelToken, nowMs: number): void {
    token.forwarded += 1;
    if (token.cap > 0 && token.forwarded > token.cap) this.#violate(`use ${token.forwarded} of a cap of ${token.cap}`);
    if (token.isActive === false) this.#violate('a request of a revoked token was forwarded');
    if (this.#projectIsActive === false) this.#violate('a request of an inactive project was forwarded');
    if (nowMs >= token.expiresAtMs) this.#violate('a request of an expired token was forwarded');
  }

  #refused(token: ModelToken, error: unknown, shouldHavePassed: boolean): void {
    if (!(error instanceof Refusal)) {
      this.#violate(`not a refusal: ${String(error)}`);
    } else if (error.kind === 'unavailable') {
      if (!this.#options.faults) this.#violate('unavailable, though the database never failed');
    } else if (error.kind === 'request_limit_reached') {
      // Units that a killed instance held, or a lost reply took along, count as used. Nothing else may.
      const isUndisturbed = this.#kills === 0 && this.#faults === 0;
      if (isUndisturbed && token.forwarded < token.cap) this.#violate('refused below the cap');
    } else if (shouldHavePassed) {
      this.#violate(`a usable token was refused as ${error.kind}`);
    }
  }

  #finishOne(): void {
    const pass = this.#instance.passes.pop();
    if (pass) this.#instance.admission.finish(pass);
  }

  async #changeToken(): Promise<void> {
    const token = this.#anyToken();
    if (token.isActive === null) return;
    const { registry, passes } = this.#instance;
    const target = !token.isActive;
    token.isActive = null;
    token.changesBegun += 1;
    try {
      await (target ? registry.reactivateToken(token.id, operator) : registry.revokeToken(token.id, operator));
    } catch {
      return; // Unknown: it stays null.
    }
    this.#acknowledged += 1;
    token.isActive = target;
    const survivor = passes.some((pass) => pass.tokenId === token.id && pass.ended === null);
    if (!target && survivor) this.#violate('a request in flight outlived the revocation of its token');
  }

  async #changeProject(): Promise<void> {
    if (this.#projectIsActive === null) return;
    const target = !this.#projectIsActive;
    const { registry, passes } = this.#instance;
    this.#projectIsActive = null;
    this.#projectChangesBegun += 1;
    try {
      await registry.updateProject(this.#projectId, { isActive: target }, operator);
    } catch {
      return;
    }
    this.#acknowledged += 1;
    this.#projectIsActive = target;
    if (!target && passes.some((pass) => pass.ended === null)) {
      this.#violate('a request in flight outlived the deactivation of its project');
    }
  }

  async #kill(): Promise<void> {
    this.#kills += 1;
    this.#open = 0;
    const nowMs = this.#instance.clock.now();
    await this.#instance.kill();
    this.#instance = this.#newInstance(nowMs);
    const { ledger, id, clock, registry } = this.#instance;
    await ledger.enrol(id, clock.now());
    // What was acknowledged must still hold; what was not may have gone either way.
    const project = await registry.project(this.#projectId);
    if (this.#projectIsActive !== null && project.isActive !== this.#projectIsActive) {
      this.#violate('an acknowledged change of the project was lost');
    }
    this.#projectIsActive = project.isActive;
    for (const token of this.#tokens) {
      const found = await registry.token(token.id);
      if (token.isActive !== null && found.isActive !== token.isActive) {
        this.#violate('an acknowledged change of a token was lost');
      }
      token.isActive = found.isActive;
      if (token.cap > 0 && found.requestCount < token.forwarded) {
        this.#violate(`after a kill ${found.requestCount} uses are counted of ${token.forwarded}`);
      }
    }
    this.#instance.isGated = true;
  }

  /** Lets everything run to its end, then holds the database against the model. */
  async end(): Promise<{ forwarded: number; kills: number }> {
    const instance = this.#instance;
    for (let round = 0; this.#open > 0 || instance.gates.length > 0; round++) {
      if (round > 5_000) throw new Violation('requests hang');
      const [gate] = instance.gates;
      if (gate) gate.pass();
      else instance.clock.advance(250);
      await instance.idle();
    }
    this.#throwViolation();
    instance.isGated = false;
    for (const pass of instance.passes) instance.admission.finish(pass);
    await instance.admission.retire();
    await this.#checkDatabase(instance.database);
    await instance.close();
    this.#throwViolation();
    return { forwarded: this.#tokens.reduce((sum, token) => sum + token.forwarded, 0), kills: this.#kills };
  }

  async #checkDatabase(database: SqliteDatabase): Promise<void> {
    const isUndisturbed = this.#kills === 0 && this.#faults === 0;
    for (const token of this.#tokens) {
      const [row] = await database.select<{ request_count: number; reserved: number }>(
        'SELECT request_count, reserved FROM tokens WHERE id = $id',
        { id: token.id },
      );
      const counted = row?.request_count ?? -1;
      // Only a kill may lose counts of an unlimited token, and only a kill or a lost reply may waste units of a cap.
      const mustBeExact = token.cap === 0 ? this.#kills === 0 : isUndisturbed;
      if (mustBeExact && counted !== token.forwarded) this.#violate(`${counted} counted, ${token.forwarded} forwarded`);
      if (token.cap === 0) continue;
      if (counted < token.forwarded) this.#violate(`only ${counted} of ${token.forwarded} uses are counted`);
      if (counted > token.cap) this.#violate(`${counted} counted of a cap of ${token.cap}`);
      if (row?.reserved !== counted)
        this.#violate(`reserved is ${row?.reserved} when ${counted} are used and nobody lives`);
    }
    const [found] = await database.select<Record<'changes' | 'records' | 'last' | 'seq' | 'audits' | 'leases', number>>(
      `SELECT (SELECT COUNT(*) FROM changes) AS changes, (SELECT COUNT(*) FROM audit) AS records,
         (SELECT COALESCE(MAX(seq), 0) FROM audit) AS last,
         (SELECT seq FROM change_seq) AS seq, (SELECT COUNT(*) FROM audit WHERE outcome = 'success') AS audits,
         (SELECT COUNT(*) FROM leases) AS leases`,
    );
    if (!found || found.records !== found.last || found.last !== found.seq) this.#violate('the records have gaps');
    if (found?.changes !== found?.audits) this.#violate('a change without its audit record, or the other way round');
    if ((found?.changes ?? 0) < this.#acknowledged) this.#violate('an acknowledged change left no trace');
    if (found?.leases !== 0) this.#violate('a lease outlived its instance');
  }

  #newInstance(nowMs: number): Instance {
    return new Instance(this.#path, nowMs, `instance-${++this.#instances}`, this.#random, this.#sabotage);
  }

  #anyToken(): ModelToken {
    // Mostly one of them, so that what happens meets.
    const index = this.#chance(0.6) ? this.#options.seed : Math.floor(this.#random() * 1_000);
    const token = this.#tokens[index % this.#tokens.length];
    if (!token) throw new Error('no tokens');
    return token;
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }

  #throwViolation(): void {
    if (this.#violation) throw this.#violation;
  }

  #violate(what: string): void {
    this.#violation ??= new Violation(`${what} (seed ${this.#options.seed})`);
  }
}
