/**
 * Random histories of a fleet: clients and operators work while processes are killed, paused, expired and restarted. A model of the tokens
 * says what may happen; it is compared with what reaches the provider, the responses, and the database at the end. It runs in real time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { WireTokenCreated } from '../../../daemon/api/contract.js';
import { eventually } from '../../support/eventually.js';
import type { DatabaseServer } from '../../support/database-servers.js';
import { Fleet, type Member } from '../../support/fleet.js';
import { type Random, seededRandom, Violation } from '../../support/model.js';
import { sabotaging, type SABOTAGES } from '../../support/sabotaged.js';
import { anyOf } from './concurrent-requests.js';

const CAPS = [1, 3, 20, 40, 0];
const CLIENTS = 8;
const OPERATORS = 2;
/** The time after which a running instance must know of a change, without Redis. */
const HEARD_WITHIN_MS = 1_000;

export interface HistoryOptions {
  seed: number;
  /** The time for which clients and operators work. */
  lastsMs: number;
  /** What happens to the processes. `stops`: they are paused for a while. `kills`: they are killed as well, and expire. */
  trouble: 'none' | 'stops' | 'kills';
}

export interface HistoryReport {
  requests: number;
  reached: number;
  changes: number;
  kills: number;
  stops: number;
  /** The longest time after the acknowledgement of a change at which a request still reached the provider in spite of it. */
  latestMs: number;
}

/** A token or a project. */
interface Changing {
  id: string;
  path: string;
  /** The last acknowledged state; null while a change is in progress, or after a change of unknown outcome. */
  isActive: boolean | null;
  /** Since when (monotonic). */
  sinceMs: number;
  changesBegun: number;
}

interface ModelToken extends Changing {
  wire: WireTokenCreated;
  cap: number;
}

interface Asked {
  token: ModelToken;
  member: Member;
  beganAtMs: number;
  /** Whether it reached the provider, or may have used a unit without reaching it. */
  mayHaveUsed: boolean;
}

interface Made {
  requestId: string;
  isAcknowledged: boolean;
}

const TROUBLES = ['none', 'stops', 'kills'] as const;
const LASTS_MS = 3_000;

/** Runs histories one after another on the same processes. @returns the sum of their reports. @throws {Violation} */
export async function runHistories(fleet: Fleet, firstSeed: number, count: number): Promise<HistoryReport> {
  const sum: HistoryReport = { requests: 0, reached: 0, changes: 0, kills: 0, stops: 0, latestMs: 0 };
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    const trouble = TROUBLES[seed % TROUBLES.length] ?? 'none';
    const report = await runHistory(fleet, { seed, lastsMs: LASTS_MS, trouble });
    for (const key of ['requests', 'reached', 'changes', 'kills', 'stops'] as const) sum[key] += report[key];
    sum.latestMs = Math.max(sum.latestMs, report.latestMs);
  }
  return sum;
}

/** The number of histories until a store that was broken on purpose is detected; null: not within `most`. */
export async function historiesToNotice(
  server: DatabaseServer,
  which: keyof typeof SABOTAGES,
  most: number,
): Promise<number | null> {
  const fleet = await Fleet.start(server, { count: 3, nodeOptions: sabotaging(which) });
  try {
    for (let n = 1; n <= most; n++) {
      try {
        await runHistories(fleet, n, 1);
      } catch (error) {
        if (error instanceof Violation) return n;
        throw error;
      }
    }
    return null;
  } finally {
    await fleet.stop();
  }
}

/** @throws {Violation} */
export async function runHistory(fleet: Fleet, options: HistoryOptions): Promise<HistoryReport> {
  const history = new History(fleet, options);
  await history.begin();
  await history.run();
  return history.end();
}

class History {
  readonly #fleet: Fleet;
  readonly #options: HistoryOptions;
  readonly #random: Random;
  readonly #tokens: ModelToken[] = [];
  #project: Changing = { id: '', path: '', isActive: true, sinceMs: 0, changesBegun: 0 };
  readonly #asked = new Map<string, Asked>();
  readonly #made: Made[] = [];
  /** Each 429 of a capped token, while no instance had died. */
  readonly #limits: { token: ModelToken; atMs: number }[] = [];
  /** When an instance last started to run, for the first time or again. */
  readonly #runsSinceMs = new Map<Member, number>();
  readonly #background: Promise<unknown>[] = [];
  readonly #report: HistoryReport = { requests: 0, reached: 0, changes: 0, kills: 0, stops: 0, latestMs: 0 };
  #isOver = false;
  #violation: Violation | null = null;

  constructor(fleet: Fleet, options: HistoryOptions) {
    this.#fleet = fleet;
    this.#options = options;
    this.#random = seededRandom(options.seed);
  }

  async begin(): Promise<void> {
    const fleet = this.#fleet;
    const { id } = await fleet.createProject();
    this.#project = { id, path: `/manage/projects/${id}`, isActive: true, sinceMs: now(), changesBegun: 0 };
    for (const cap of CAPS) this.#know(await fleet.createToken(id, cap), cap);
    fleet.thinkMs = () => this.#random() * 20;
    fleet.onReached = (url) => {
      this.#onReached(url);
    };
  }

  #know(wire: WireTokenCreated, cap: number): void {
    const { id } = wire;
    const path = `/manage/tokens/${id}`;
    this.#tokens.push({ id, path, isActive: true, sinceMs: now(), changesBegun: 0, wire, cap });
  }

  async run(): Promise<void> {
    const { lastsMs } = this.#options;
    const clients = Array.from({ length: CLIENTS }, () => this.#untilOver(() => this.#request(this.#anyMember()), 20));
    const operators = Array.from({ length: OPERATORS }, () =>
      this.#untilOver(() => (this.#chance(0.4) ? this.#issue() : this.#change()), 200),
    );
    const trouble = this.#options.trouble === 'none' ? [] : [this.#untilOver(() => this.#trouble(), 300)];
    const ending = sleep(lastsMs).then(() => (this.#isOver = true));
    await Promise.all([...trouble, ending]);
    for (const member of this.#fleet.members) this.#resume(member);
    await Promise.all([...clients, ...operators, ...this.#background]);
  }

  async #untilOver(action: () => Promise<unknown> | undefined, pauseMs: number): Promise<void> {
    while (!this.#isOver) {
      await action();
      await sleep(this.#random() * pauseMs);
    }
  }

  /** Null for a moment, while the only instance restarts. */
  #anyMember(): Member | null {
    const { up } = this.#fleet;
    return up.length === 0 ? null : anyOf(up, this.#random);
  }

  // ---- requests

  async #request(member: Member | null): Promise<void> {
    if (!member) return;
    // Mostly the newest token, so that events coincide.
    const token = this.#chance(0.6) ? this.#tokens.at(-1) : anyOf(this.#tokens, this.#random);
    if (!token) return;
    const name = `n=${this.#asked.size}`;
    const asked: Asked = { token, member, beganAtMs: now(), mayHaveUsed: false };
    this.#asked.set(`/v1/of/${token.id}?${name}`, asked);
    this.#report.requests += 1;
    const before = this.#stateVersion(token, member);
    const status = await member.call(token.wire, `?${name}`);
    const isUnchanged = before === this.#stateVersion(token, member);
    if (status === 429) {
      if (this.#report.kills === 0) this.#limits.push({ token, atMs: now() });
      if (token.cap === 0) this.#violate('429 for a token without a cap');
    } else if (status === 401 || status === 403) {
      asked.mayHaveUsed = true;
      const isUsable = token.isActive === true && this.#project.isActive === true;
      const knownSinceMs = Math.max(token.sinceMs, this.#project.sinceMs, this.#runsSinceMs.get(member) ?? 0);
      if (isUnchanged && isUsable && asked.beganAtMs > knownSinceMs + HEARD_WITHIN_MS)
        this.#violate(
          `${status} for a token that has been usable for ${Math.round(asked.beganAtMs - knownSinceMs)} ms`,
        );
    } else if (status === 503) {
      if (token.cap === 0 && this.#options.trouble === 'none') this.#violate('503 without any fault');
    } else if (status !== 200 && (status !== null || this.#options.trouble !== 'kills')) {
      this.#violate(`a request ended with ${status}`);
    }
  }

  /** Changes whenever something happens that affects how a request must end. */
  #stateVersion(token: ModelToken, member: Member): string {
    return [token.changesBegun, this.#project.changesBegun, this.#runsSinceMs.get(member), member.isUp].join();
  }

  #onReached(url: string): void {
    const asked = this.#asked.get(url);
    if (!asked) return; // It belongs to another history.
    const { token, member } = asked;
    asked.mayHaveUsed = true;
    this.#report.reached += 1;
    const { cap, id } = token;
    if (cap > 0 && this.#fleet.reached(id) > cap) this.#violate(`use ${this.#fleet.reached(id)} of a cap of ${cap}`);
    for (const each of [token, this.#project]) {
      if (each.isActive !== false) continue;
      const runsSinceMs = this.#runsSinceMs.get(member) ?? 0;
      const lateMs = now() - Math.max(each.sinceMs, runsSinceMs);
      this.#report.latestMs = Math.max(this.#report.latestMs, Math.round(lateMs));
      if (lateMs > HEARD_WITHIN_MS)
        this.#violate(`a request began ${Math.round(lateMs)} ms after it was no longer allowed`);
    }
  }

  // ---- changes

  async #issue(): Promise<void> {
    const cap = anyOf(CAPS, this.#random);
    const draft = { project_id: this.#project.id, ...(cap > 0 && { max_requests: cap }) };
    const member = this.#anyMember();
    // The project may be inactive.
    const answer = await member?.manage('POST', '/manage/tokens', draft).catch(() => null);
    if (answer?.status === 201) this.#know(answer.body as WireTokenCreated, cap);
  }

  async #change(): Promise<void> {
    const changing = this.#chance(0.15) ? this.#project : anyOf(this.#tokens, this.#random);
    const member = this.#anyMember();
    // The outcome of its last change stays unknown, because a connection broke.
    if (!member || changing.isActive === null) return;
    const target = !changing.isActive;
    changing.isActive = null;
    changing.changesBegun += 1;
    const made = { requestId: `history-${this.#options.seed}-${this.#made.length}`, isAcknowledged: false };
    this.#made.push(made);
    this.#report.changes += 1;
    const answer = await member.manage('PATCH', changing.path, { is_active: target }, made.requestId).catch(() => null);
    if (answer?.status === 200) {
      made.isAcknowledged = true;
      changing.isActive = target;
      changing.sinceMs = now();
    } else if (answer !== null && answer.status !== 503) {
      this.#violate(`a change got ${answer.status}`);
    } else if (this.#options.trouble === 'none') {
      this.#violate('a change failed without any fault');
    }
  }

  // ---- trouble

  async #trouble(): Promise<void> {
    const [victim, other] = [...this.#fleet.up].sort(() => this.#random() - 0.5);
    if (!victim) return;
    const isAlone = this.#fleet.members.length === 1;
    if (this.#options.trouble === 'kills' && (isAlone || this.#chance(0.5))) {
      await this.#kill(victim, this.#chance(0.5));
      return;
    }
    victim.freeze();
    this.#report.stops += 1;
    // Requests to a paused instance wait until it continues.
    for (let n = 0; n < 3; n++) this.#background.push(this.#request(victim));
    await sleep(this.#random() * 1_200);
    // While it is paused, an instance that starts marks it as expired.
    if (this.#options.trouble === 'kills' && other && this.#chance(0.5)) await this.#kill(other, true);
    this.#resume(victim);
  }

  async #kill(victim: Member, isBuried: boolean): Promise<void> {
    this.#report.kills += 1;
    await victim.kill();
    if (isBuried) await this.#fleet.silence();
    await victim.begin();
    this.#runsSinceMs.set(victim, now());
  }

  #resume(member: Member): void {
    if (!member.isFrozen) return;
    this.#runsSinceMs.set(member, now());
    member.resume();
  }

  // ---- the end

  async end(): Promise<HistoryReport> {
    const fleet = this.#fleet;
    await fleet.expireSilent(anyOf(fleet.members, this.#random));
    for (const token of this.#tokens) await this.#checkToken(token);
    await this.#checkState('projects', this.#project);
    await this.#checkRecords();
    this.#checkLimits();
    fleet.onReached = null;
    if (this.#violation) throw this.#violation;
    return this.#report;
  }

  async #checkToken(token: ModelToken): Promise<void> {
    const { id, cap } = token;
    const reached = this.#fleet.reached(id);
    const nobodyDied = this.#report.kills === 0;
    // A kill may lose counts of an unlimited token.
    const least = cap > 0 || nobodyDied ? reached : 0;
    const isSettled = async () => {
      const { requestCount, leased } = await this.#fleet.counted(id);
      return leased === 0 && requestCount >= least;
    };
    if (!this.#violation) await eventually('all is settled', isSettled, 8_000).catch(() => undefined);
    const { requestCount, reserved, leased } = await this.#fleet.counted(id);
    const said = `${reached} reached the provider, ${requestCount} counted, ${reserved} reserved, ${leased} leased of a cap of ${cap}`;
    if (leased > 0 || requestCount < least) this.#violate(said);
    if (cap > 0 && (requestCount > cap || reserved !== requestCount + leased)) this.#violate(said);
    const mayHaveUsed = [...this.#asked.values()].filter((asked) => asked.token === token && asked.mayHaveUsed).length;
    if (nobodyDied && requestCount > mayHaveUsed) this.#violate(`${said}, and no instance had died`);
    await this.#checkState('tokens', token);
  }

  async #checkState(table: 'tokens' | 'projects', { id, isActive }: Changing): Promise<void> {
    const [row] = await this.#fleet.select<{ is_active: number | boolean }>(
      `SELECT is_active FROM ${table} WHERE id = $id`,
      { id },
    );
    if (isActive !== null && Boolean(row?.is_active) !== isActive) this.#violate('an acknowledged change was lost');
  }

  async #checkRecords(): Promise<void> {
    const rows = await this.#fleet.select<{ request_id: string; changed: number | null }>(
      `SELECT a.request_id, c.seq AS changed FROM audit a LEFT JOIN changes c ON c.seq = a.seq
       WHERE a.project_id = $projectId AND a.outcome = 'success'`,
      { projectId: this.#project.id },
    );
    for (const { requestId, isAcknowledged } of this.#made) {
      const records = rows.filter(({ request_id: id }) => id === requestId);
      const isRight = isAcknowledged ? records.length === 1 : records.length <= 1;
      if (!isRight)
        this.#violate(`${records.length} records of a change that was ${isAcknowledged ? '' : 'not '}acknowledged`);
      if (records.some(({ changed }) => changed === null))
        this.#violate('a record of a change that other instances do not hear of');
    }
  }

  /** A request that was refused while all instances lived must have had as many uses before it as the cap. */
  #checkLimits(): void {
    for (const { token, atMs } of this.#limits) {
      const before = [...this.#asked.values()].filter(
        (asked) => asked.token === token && asked.beganAtMs < atMs && asked.mayHaveUsed,
      );
      if (before.length < token.cap) this.#violate(`429 after ${before.length} uses of a cap of ${token.cap}`);
    }
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }

  #violate(what: string): void {
    this.#violation ??= new Violation(`${what} (seed ${this.#options.seed}, ${this.#options.trouble})`);
  }
}

const now = () => performance.now();
