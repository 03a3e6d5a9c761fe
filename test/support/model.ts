/**
 * A model of admission for random histories. It drives the real core on the real SQLite store, decides which of the pending database calls
 * continues next (so that every order can happen), kills an instance between any two of them, and compares what happened with what may
 * happen.
 * Several instances share the one database as they would share a server: except for its single writer, calls of all of them continue in any
 * order. Some are paused for longer than the others wait for them, and half of their messages to each other are lost.
 */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { Limiter } from '../../daemon/core/limiter.js';
import { MemoryLimits } from '../../daemon/store/memory/limits.js';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseError } from 'sequelize';
import type { Pass } from '../../daemon/core/account.js';
import { Admission } from '../../daemon/core/admission.js';
import { SYSTEM_CALLER } from '../../daemon/core/audit.js';
import { EVERYTHING } from '../../daemon/core/authority.js';
import { ClusterSync } from '../../daemon/core/cluster-sync.js';
import type { Log, Notification, Notifications } from '../../daemon/core/ports.js';
import { DATABASE_WAIT_MS } from '../../daemon/core/timing.js';
import { Refusal } from '../../daemon/core/refusal.js';
import { Registry } from '../../daemon/core/registry.js';
import { REGISTRY_OPTIONS } from './factories.js';
import { NO_POLICIES } from '../../daemon/api/vocabulary.js';
import { DEFAULT_TERMS } from '../../daemon/core/token.js';
import { SecretBox } from '../../daemon/store/secrets.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { SqlClusterStore } from '../../daemon/store/sql/instances.js';
import { SqlLedger } from '../../daemon/store/sql/ledger.js';
import { SqlRecords } from '../../daemon/store/sql/records.js';
import { SqliteWriter } from '../../daemon/store/sql/sqlite.js';
import { SqlTokenLookup } from '../../daemon/store/sql/tokens.js';
import { Migrator } from '../../migrations/migrator.js';
import { canary } from './canaries.js';
import { TestClock } from './clock.js';
import { watchFolder } from './leaks.js';

export type Random = () => number;

/** mulberry32: small, seeded, and random enough for this. */
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

/** Rewrites a statement before it is sent: how a test breaks the store on purpose. */
export type Sabotage = (sql: string) => string;

/** A database call that waits to be let through: before it is sent, or before its result is returned. */
interface Gate {
  sql: string;
  stage: 'before' | 'after';
  /** Continues only after many others, so that long operations meet short ones. */
  isSlow: boolean;
  pass(): void;
  fail(): void;
}

/** Messages between instances, half of which are lost. */
class LossyNotifications implements Notifications {
  readonly #all: ReadonlySet<LossyNotifications>;
  readonly #random: Random;
  #listener: (notification: Notification) => void = () => undefined;

  constructor(all: ReadonlySet<LossyNotifications>, random: Random) {
    this.#all = all;
    this.#random = random;
  }

  send(notification: Notification): void {
    for (const other of this.#all) if (other !== this && this.#random() < 0.5) other.#listener(notification);
  }

  onNotification(listener: (notification: Notification) => void): void {
    this.#listener = listener;
  }
}

interface InstanceOptions {
  path: string;
  nowMs: number;
  id: string;
  random: Random;
  sabotage: Sabotage;
  /** Null if it is the only instance. */
  notifications: Set<LossyNotifications> | null;
  /** Called when it marks another instance as expired. */
  onExpiry: () => void;
}

/** One run of a process: after `kill` nothing of it is left. */
class Instance {
  readonly database: SqliteDatabase;
  readonly clock: TestClock;
  readonly admission: Admission;
  readonly registry: Registry;
  readonly ledger: SqlLedger;
  readonly clusterSync: ClusterSync | null;
  readonly id: string;
  readonly passes: OpenPass[] = [];
  gates: Gate[] = [];
  /** Requests that have begun and not ended. */
  open = 0;
  /** Before it is enrolled it serves no request. */
  isServing = false;
  /** Whether its calls wait to be let through. */
  isGated = false;
  /** It is in a transaction, so the others cannot be. */
  isWriting = false;
  /** How long it has been paused; null if it is not. */
  frozenMs: number | null = null;
  #busy = 0;
  readonly #random: Random;
  readonly #notifications: LossyNotifications | null;
  readonly #allNotifications: Set<LossyNotifications> | null;

  constructor({ path, nowMs, id, random, sabotage, notifications, onExpiry }: InstanceOptions) {
    const isShared = notifications !== null;
    this.id = id;
    this.#random = random;
    this.#allNotifications = notifications;
    this.#notifications = notifications && new LossyNotifications(notifications, random);
    if (this.#notifications) notifications?.add(this.#notifications);
    this.database = new SqliteDatabase(path);
    this.#gateCalls(sabotage, onExpiry);
    this.clock = new TestClock({ standsStill: true, startMs: nowMs });
    this.ledger = new SqlLedger(this.database, { isShared });
    const { clock, ledger } = this;
    const common = { clock, log: silent, instanceId: id, staleLimitMs: STALE_LIMIT_MS };
    this.admission = new Admission({
      ...common,
      limiter: new Limiter(new MemoryLimits({ clock: common.clock, shares: null })),
      lookup: new SqlTokenLookup(this.database, box),
      ledger,
      isShared,
      onContention: (id) => this.#notifications?.send({ kind: 'wanted', id }),
    });
    const records = new SqlRecords(this.database, box);
    this.clusterSync = isShared
      ? new ClusterSync({
          limitShares: null,
          ...common,
          store: new SqlClusterStore(this.database),
          admission: this.admission,
          records,
          notifications: this.#notifications,
          onChange: () => undefined,
          onLostTrack: () => undefined,
          onRecords: () => undefined,
        })
      : null;
    this.registry = new Registry(records, this.admission, this.clock, REGISTRY_OPTIONS);
  }

  async begin(): Promise<void> {
    for (;;) {
      try {
        await this.ledger.enrol(this.id, this.clock.now());
        await this.clusterSync?.begin();
        this.isServing = true;
        return;
      } catch {
        // A call failed: once more.
      }
    }
  }

  get isBusy(): boolean {
    return this.#busy > 0;
  }

  /** Whether it knows, from a query it made since then (by its clock), of all earlier changes. */
  hasHeardSince(monotonicMs: number): boolean {
    return this.clusterSync === null || this.clusterSync.upToDateAtMs > monotonicMs;
  }

  /** The process dies: nothing of it continues, and the kernel closes its files, which rolls back an open transaction. */
  async kill(): Promise<void> {
    this.gates = [];
    await this.close();
  }

  async close(): Promise<void> {
    if (this.#notifications) this.#allNotifications?.delete(this.#notifications);
    await this.database.writer.close();
    await Promise.all(Object.values(this.database.readers).map((reader) => reader.close()));
  }

  #gateCalls(sabotage: Sabotage, onExpiry: () => void): void {
    const { readers, writer } = this.database;
    const gated =
      (shipped: (sql: string, ...rest: unknown[]) => Promise<unknown>) =>
      async (sql: string, ...rest: unknown[]) => {
        const text = sabotage(sql);
        await this.#gate(text, 'before');
        if (text.startsWith('BEGIN')) this.isWriting = true;
        if (text.includes('SET expired_at = $nowMs')) onExpiry();
        try {
          return await this.#counted(() => shipped(text, ...rest));
        } finally {
          if (/^(?:COMMIT|ROLLBACK)/.test(text)) this.isWriting = false;
          await this.#gate(text, 'after');
        }
      };
    for (const reader of Object.values(readers)) {
      Object.assign(reader, { all: gated(reader.all.bind(reader) as () => Promise<unknown>) });
    }
    Object.assign(writer, {
      run: gated(writer.run.bind(writer) as () => Promise<unknown>),
      all: gated(writer.all.bind(writer) as () => Promise<unknown>),
      close: async () => {
        await this.#counted(() => SqliteWriter.prototype.close.call(writer));
        this.isWriting = false;
      },
    });
  }

  #gate(sql: string, stage: Gate['stage']): Promise<void> {
    if (!this.isGated) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const gate: Gate = {
        sql,
        stage,
        isSlow: this.#random() < 0.15,
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

/** The error of a driver when its connection breaks, as Sequelize wraps it. */
class ConnectionLost extends DatabaseError {
  constructor() {
    super(Object.assign(new Error('SQLITE_IOERR: the connection is gone'), { sql: '' }));
  }
}

/** What the model knows of one token. */
interface ModelToken extends Changing {
  id: string;
  secret: string;
  cap: number;
  expiresAtMs: number;
  forwarded: number;
}

/** What the model knows of anything that can be activated and deactivated. */
class Changing {
  /** The last acknowledged state; null while a change is in progress, or after a change of unknown outcome. */
  isActive: boolean | null = true;
  /** Counts changes begun, so that a request can tell whether one happened meanwhile. */
  changesBegun = 0;
  /** When the last change was acknowledged, by the clock of each instance that did not make it. */
  acknowledgedAtMs = new Map<Instance, number>();
  /** The instance that makes the change in progress. */
  changedBy: Instance | null = null;
}

/** A forwarded request, with the number of changes that were acknowledged before it. */
interface OpenPass {
  pass: Pass;
  afterChanges: number;
}

/** An event that must never happen. */
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
  /** The number of instances at a time; a single one has the database for itself. */
  instances?: number;
  sabotage?: Sabotage;
}

const STALE_LIMIT_MS = 60_000;

// In memory if possible: unlike a power failure, a killed process loses nothing that was written.
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
    await new Migrator(database, '0.1.0').up();
    await database.close();
    // Everything is in the one file that is copied.
    const writer = new SqliteWriter(path);
    await writer.run('PRAGMA journal_mode = DELETE');
    await writer.close();
    await database.close();
    return path;
  })();
  return template;
}

/** What happened in a history; `forwarded` without the reads. */
export interface Totals {
  forwarded: number;
  reads: number;
  kills: number;
}

let histories = 0;
export async function runHistory(options: HistoryOptions): Promise<Totals> {
  const path = join(folder, `history-${++histories}.db`);
  copyFileSync(await migratedTemplate(), path);
  const world = new World(path, options);
  await world.begin();
  await world.run();
  return world.end();
}

/** An acknowledged revocation or deactivation, for requests that were in flight then. */
interface Ending {
  /** The number of acknowledged changes up to this one. */
  number: number;
  ends: (pass: Pass) => boolean;
  /** By the clock of each instance. */
  atMs: Map<Instance, number>;
}

class World {
  readonly #path: string;
  readonly #options: HistoryOptions;
  readonly #random: Random;
  readonly #sabotage: Sabotage;
  readonly #notifications: Set<LossyNotifications> | null;
  readonly #observer: SqliteDatabase;
  #nowMs = Date.UTC(2030, 0, 1);
  #instances: Instance[] = [];
  #lives = 0;
  #projectId = '';
  readonly #project = new Changing();
  readonly #tokens: ModelToken[] = [];
  #endings: Ending[] = [];
  #acknowledged = 0;
  #kills = 0;
  #expiries = 0;
  #faults = 0;
  #reads = 0;
  #violation: Violation | null = null;

  constructor(path: string, options: HistoryOptions) {
    this.#path = path;
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.#sabotage = options.sabotage ?? ((sql) => sql);
    this.#notifications = (options.instances ?? 1) > 1 ? new Set() : null;
    this.#observer = new SqliteDatabase(path);
  }

  async begin(): Promise<void> {
    const first = this.#newInstance();
    await first.begin();
    const project = await first.registry.createProject(
      { name: 'model', upstreamKey: canary('upstream') },
      SYSTEM_CALLER,
    );
    this.#projectId = project.id;
    for (const cap of [1, 3, 20, 40, 0]) {
      const lifetimeMs = this.#chance(0.3) ? 60_000 : 86_400_000;
      const draft = { ...DEFAULT_TERMS, ...NO_POLICIES, projectId: project.id, lifetimeMs, maxRequests: cap };
      const { token, secret } = await first.registry.issueToken(draft, SYSTEM_CALLER);
      const { id, expiresAtMs } = token;
      this.#tokens.push(Object.assign(new Changing(), { id, secret, cap, expiresAtMs, forwarded: 0 }));
    }
    this.#acknowledged = 1 + this.#tokens.length;
    while (this.#instances.length < (this.#options.instances ?? 1)) await this.#newInstance().begin();
    for (const instance of this.#instances) instance.isGated = true;
  }

  async run(): Promise<void> {
    for (let step = 0; step < this.#options.steps; step++) {
      await this.#step();
      await this.#idle();
      this.#checkInFlight();
      this.#throwViolation();
    }
  }

  /** Resolves when nothing can continue without a gate being opened or a clock being moved. */
  async #idle(): Promise<void> {
    for (let quiet = 0; quiet < 2;) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.#instances.some(({ isBusy }) => isBusy) ? 0 : quiet + 1;
    }
  }

  /** The calls that may continue: the database has one writer. */
  get #gates(): Gate[] {
    const awake = this.#instances.filter(({ frozenMs }) => frozenMs === null);
    return awake.flatMap((instance) => {
      const isOtherWriting = this.#instances.some((other) => other !== instance && other.isWriting);
      return instance.gates.filter(({ sql, stage }) => !(isOtherWriting && stage === 'before' && /^BEGIN/.test(sql)));
    });
  }

  async #step(): Promise<void> {
    if (this.#options.kills && this.#chance(0.02)) return this.#kill();
    if (this.#options.kills && this.#notifications && this.#chance(0.01)) this.#freeze();
    const ready = this.#gates.filter(({ isSlow }) => !isSlow || this.#chance(0.04));
    const gate = ready[Math.floor(this.#random() * ready.length)];
    if (gate && this.#chance(0.75)) {
      // A transaction that cannot even be rolled back is a closed connection, which needs no model.
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
    else this.#advance([50, 250, 1_000, this.#notifications ? 3_000 : 20_000][Math.floor(this.#random() * 4)] ?? 0);
  }

  #advance(ms: number): void {
    this.#nowMs += ms;
    for (const instance of this.#instances) {
      if (instance.frozenMs === null) {
        instance.clock.advance(ms);
        continue;
      }
      instance.frozenMs += ms;
      // Long enough to be marked as expired by instances that check every ten seconds.
      if (instance.frozenMs > 45_000) this.#thaw(instance);
    }
  }

  /** Pauses a process. One within a transaction would block all writers, which no server allows. */
  #freeze(): void {
    const [instance] = this.#serving().filter(({ isWriting }) => !isWriting);
    if (!instance || this.#serving().length < 2) return;
    instance.frozenMs = 0;
  }

  #thaw(instance: Instance): void {
    const { frozenMs } = instance;
    instance.frozenMs = null;
    instance.clock.advance(frozenMs ?? 0);
  }

  /** In any order. */
  #serving(): Instance[] {
    const serving = this.#instances.filter(({ isServing, frozenMs }) => isServing && frozenMs === null);
    const turn = Math.floor(this.#random() * serving.length);
    return [...serving.slice(turn), ...serving.slice(0, turn)];
  }

  async #request(): Promise<void> {
    const token = this.#anyToken();
    const [instance] = this.#serving();
    if (!instance) return;
    const { admission, clock } = instance;
    const begun = token.changesBegun + this.#project.changesBegun;
    const wasFine = token.isActive === true && this.#project.isActive === true && this.#knows(instance, token);
    instance.open += 1;
    const beganMs = clock.monotonic();
    let pass: Pass | null = null;
    const isRead = this.#chance(0.3);
    try {
      pass = await admission.admit(token.secret);
      const waiting = admission.draw(pass, isRead);
      if (waiting) await waiting;
      if (pass.ended) throw pass.ended;
      if (isRead) this.#reads += 1;
      else token.forwarded += 1;
      this.#forwarded(token, instance, isRead);
      instance.passes.push({ pass, afterChanges: this.#acknowledged });
    } catch (error) {
      if (pass) admission.finish(pass);
      const undisturbed = wasFine && begun === token.changesBegun + this.#project.changesBegun;
      const waitedMs = clock.monotonic() - beganMs;
      this.#refused(token, error, undisturbed && clock.now() < token.expiresAtMs, waitedMs);
    }
    instance.open -= 1;
  }

  /** Whether the instance must know the last changes of the token and its project. */
  #knows(instance: Instance, token: ModelToken): boolean {
    return [token, this.#project].every((each) => {
      const atMs = each.acknowledgedAtMs.get(instance);
      return atMs === undefined || instance.hasHeardSince(atMs);
    });
  }

  /** Whether the instance may still not know it. */
  #mayNotKnow(instance: Instance, { acknowledgedAtMs }: Changing): boolean {
    const atMs = acknowledgedAtMs.get(instance);
    const isRecent = atMs !== undefined && instance.clock.monotonic() < atMs + STALE_LIMIT_MS;
    return isRecent && !instance.hasHeardSince(atMs);
  }

  /** Of a read, with `COUNT_READS=false`, the same must hold, except that it is no use. */
  #forwarded(token: ModelToken, instance: Instance, isRead: boolean): void {
    if (token.cap > 0 && token.forwarded > token.cap) this.#violate(`use ${token.forwarded} of a cap of ${token.cap}`);
    if (isRead && token.forwarded === token.cap && token.cap > 0) this.#violate('a read with a used-up cap');
    if (token.isActive === false && !this.#mayNotKnow(instance, token)) {
      this.#violate('a request of a revoked token was forwarded');
    }
    if (this.#project.isActive === false && !this.#mayNotKnow(instance, this.#project)) {
      this.#violate('a request of an inactive project was forwarded');
    }
    if (instance.clock.now() >= token.expiresAtMs) this.#violate('a request of an expired token was forwarded');
  }

  #refused(token: ModelToken, error: unknown, shouldHavePassed: boolean, waitedMs: number): void {
    // Units that a dead instance held, or that a lost reply took, count as used. No others may.
    const isUndisturbed = this.#kills === 0 && this.#expiries === 0 && this.#faults === 0;
    if (!(error instanceof Refusal)) {
      this.#violate(`not a refusal: ${String(error)}`);
    } else if (error.kind === 'unavailable') {
      // Other instances hold the remaining units, and their calls take long here.
      const isContended = this.#notifications !== null && token.cap > 0;
      // Time jumps here while the database is asked.
      const isLate = waitedMs >= DATABASE_WAIT_MS;
      if (!this.#options.faults && !isContended && !isLate)
        this.#violate('unavailable although the database never failed');
    } else if (error.kind === 'request_limit_reached') {
      if (isUndisturbed && token.forwarded < token.cap) this.#violate('refused below the cap');
    } else if (shouldHavePassed) {
      this.#violate(`a usable token was refused as ${error.kind}`);
    }
  }

  #finishOne(): void {
    const [instance] = this.#serving();
    const last = instance?.passes.pop();
    if (last) instance?.admission.finish(last.pass);
  }

  #changeToken(): Promise<void> {
    const token = this.#anyToken();
    const ends = (pass: Pass) => pass.tokenId === token.id;
    return this.#change(token, ends, ({ registry }, isActive) =>
      isActive
        ? registry.reactivateToken(token.id, SYSTEM_CALLER, EVERYTHING)
        : registry.revokeToken(token.id, SYSTEM_CALLER, EVERYTHING),
    );
  }

  #changeProject(): Promise<void> {
    return this.#change(
      this.#project,
      () => true,
      ({ registry }, isActive) => registry.updateProject(this.#projectId, { isActive }, SYSTEM_CALLER, EVERYTHING),
    );
  }

  async #change(
    changing: Changing,
    ends: Ending['ends'],
    make: (instance: Instance, isActive: boolean) => Promise<unknown>,
  ): Promise<void> {
    const [instance] = this.#serving();
    if (!instance || changing.isActive === null) return;
    const target = !changing.isActive;
    changing.isActive = null;
    changing.changesBegun += 1;
    changing.changedBy = instance;
    try {
      await make(instance, target);
    } catch {
      return; // Unknown: it stays null.
    }
    this.#acknowledge(changing, target, instance);
    if (target) return;
    const atMs = new Map(this.#instances.map((each) => [each, each.clock.monotonic()]));
    this.#endings.push({ number: this.#acknowledged, ends, atMs });
    const survivor = instance.passes.some(({ pass }) => ends(pass) && pass.ended === null);
    if (survivor)
      this.#violate('a request in flight outlived the revocation of its token or the deactivation of its project');
  }

  /** @param by the instance that knows it already. */
  #acknowledge(changing: Changing, isActive: boolean, by: Instance | null): void {
    this.#acknowledged += 1;
    changing.isActive = isActive;
    changing.changedBy = null;
    const others = this.#instances.filter((each) => each !== by);
    changing.acknowledgedAtMs = new Map(others.map((each) => [each, each.clock.monotonic()]));
  }

  /** An instance that knows of a revocation has ended the requests that were in flight then. */
  #checkInFlight(): void {
    for (const { number, ends, atMs } of this.#endings) {
      for (const instance of this.#instances) {
        const since = atMs.get(instance);
        if (since === undefined || !instance.hasHeardSince(since)) continue;
        const survivor = instance.passes.some(
          ({ pass, afterChanges }) => ends(pass) && afterChanges < number && pass.ended === null,
        );
        if (survivor) this.#violate('a request in flight outlived a revocation that its instance knows of');
      }
    }
  }

  async #kill(): Promise<void> {
    const victim = this.#instances[Math.floor(this.#random() * this.#instances.length)];
    if (!victim) return;
    this.#kills += 1;
    await victim.kill();
    this.#instances = this.#instances.filter((instance) => instance !== victim);
    // An acknowledged change must still hold. Any other change may or may not have been made.
    for (const [changing, table, id] of [
      [this.#project, 'projects', this.#projectId] as const,
      ...this.#tokens.map((token) => [token, 'tokens', token.id] as const),
    ]) {
      const [row] = await this.#observer.select<{ is_active: number }>(
        `SELECT is_active FROM ${table} WHERE id = $id`,
        {
          id,
        },
      );
      const isActive = Boolean(row?.is_active);
      if (changing.isActive === null) {
        if (changing.changedBy !== victim) continue;
        this.#acknowledge(changing, isActive, null);
        this.#acknowledged -= 1; // The change was not acknowledged.
      } else if (changing.isActive !== isActive) {
        this.#violate('an acknowledged change was lost');
      }
    }
    const born = this.#newInstance();
    born.isGated = true;
    void born.begin();
  }

  /** Lets everything run to its end, then compares the database with the model. */
  async end(): Promise<Totals> {
    for (const instance of this.#instances) if (instance.frozenMs !== null) this.#thaw(instance);
    await this.#settled();
    // By then the dead instances have expired.
    for (let passed = 0; this.#notifications && this.#kills > 0 && passed < 60; passed++) {
      this.#advance(1_000);
      await this.#settled();
    }
    for (const instance of this.#instances) instance.isGated = false;
    for (const instance of this.#instances) {
      for (const { pass } of instance.passes) instance.admission.finish(pass);
      await instance.clusterSync?.close();
      await instance.admission.retire();
    }
    await this.#checkDatabase();
    for (const instance of this.#instances) await instance.close();
    await this.#observer.close();
    this.#throwViolation();
    const forwarded = this.#tokens.reduce((sum, token) => sum + token.forwarded, 0);
    return { forwarded, reads: this.#reads, kills: this.#kills };
  }

  async #settled(): Promise<void> {
    await this.#idle();
    for (let round = 0; ; round++) {
      if (round > 5_000) throw new Violation(`requests hang (seed ${this.#options.seed})`);
      const [gate] = this.#gates;
      if (!gate && this.#instances.every(({ open, isServing }) => open === 0 && isServing)) break;
      if (gate) gate.pass();
      else this.#advance(250);
      await this.#idle();
      this.#checkInFlight();
    }
    this.#throwViolation();
  }

  async #checkDatabase(): Promise<void> {
    const database = this.#observer;
    const isUndisturbed = this.#kills === 0 && this.#expiries === 0 && this.#faults === 0;
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
        this.#violate(`reserved is ${row?.reserved} when ${counted} are used and no instance lives`);
    }
    const [found] = await database.select<Record<'changes' | 'records' | 'last' | 'seq' | 'audits' | 'leases', number>>(
      `SELECT (SELECT COUNT(*) FROM changes) AS changes, (SELECT COUNT(*) FROM audit) AS records,
         (SELECT COALESCE(MAX(seq), 0) FROM audit) AS last,
         (SELECT seq FROM change_seq) AS seq, (SELECT COUNT(*) FROM audit WHERE outcome = 'success') AS audits,
         (SELECT COUNT(*) FROM leases) AS leases`,
    );
    if (!found || found.records !== found.last || found.last !== found.seq) this.#violate('the records have gaps');
    if (found?.changes !== found?.audits) this.#violate('a change without its audit record, or the reverse');
    if ((found?.changes ?? 0) < this.#acknowledged) this.#violate('an acknowledged change left no trace');
    if (found?.leases !== 0) this.#violate('a lease outlived its instance');
  }

  #newInstance(): Instance {
    const instance = new Instance({
      path: this.#path,
      nowMs: this.#nowMs,
      id: `instance-${++this.#lives}`,
      random: this.#random,
      sabotage: this.#sabotage,
      notifications: this.#notifications,
      onExpiry: () => {
        this.#expiries += 1;
      },
    });
    this.#instances.push(instance);
    return instance;
  }

  #anyToken(): ModelToken {
    // Mostly one of them, so that events coincide.
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
