/**
 * A model of the response cache for random histories. It drives the real proxy, admission, cache and store over connections within the
 * process. Operations in progress wait at gates (the upstream's head, pieces and end, the store's queries and replies). The seed decides
 * which continues next, which client disconnects, and what operators do meanwhile. Each response is judged when it arrives.
 */
import type { CacheStore } from '../../../daemon/core/ports.js';
import { MemoryResponseCache } from '../../../daemon/store/memory/response-cache.js';
import { SYSTEM_CALLER } from '../../../daemon/core/audit.js';
import { EVERYTHING } from '../../../daemon/core/authority.js';
import type { PurgeSelection } from '../../../daemon/core/cache/cache-manager.js';
import { TestClock } from '../clock.js';
import { seededRandom } from '../model.js';
import { type Asking, Call } from './call.js';
import { type Chooser, chooserOf, type Gate, Gates, Violation } from './gates.js';
import { Instance, loadedSettings } from './instance.js';
import { judge } from './judge.js';
import { type ModelProject, type ModelToken, Tables } from './tables.js';
import { type ReceivedRequest, DEFAULT_TTL_PATH, Upstream } from './upstream.js';

/** Where histories store their responses. */
export interface StoreSetup {
  /** One store for each instance; their entries are shared. */
  stores: CacheStore[];
  /** Whether entries age by the model's clock. */
  agesByClock: boolean;
  /** The delay until other instances know of a change. */
  tellsOthersWithinMs: number;
  /** Resolves when nothing is in progress. */
  idle(): Promise<void>;
  /** The number of write leases that it knows. */
  fills(): Promise<number>;
  close(): Promise<void>;
}

export interface HistoryOptions {
  seed: number;
  steps: number;
  instances: number;
  /** Whether the store is slow. */
  isGated: boolean;
  open?: (clock: TestClock, instances: number) => Promise<StoreSetup>;
}

export interface Totals {
  requests: number;
  hits: number;
  uses: number;
  refusals: number;
  left: number;
}

export async function runHistory(options: HistoryOptions): Promise<Totals> {
  const clock = new TestClock({ standsStill: true, startMs: Date.UTC(2030, 0, 1) });
  const place = await (options.open ?? inMemory)(clock, options.instances);
  const history = new History(options, clock, place);
  try {
    await history.run();
    return await history.end();
  } catch (error) {
    if (error instanceof Violation) error.message += ` (seed ${options.seed})`;
    throw error;
  } finally {
    await place.close();
  }
}

function inMemory(clock: TestClock, instances: number): Promise<StoreSetup> {
  const store = new MemoryResponseCache({ current: loadedSettings().reloadable }, clock);
  return Promise.resolve({
    stores: Array.from({ length: instances }, () => store),
    agesByClock: true,
    tellsOthersWithinMs: 0,
    idle: async () => {
      for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
    },
    fills: () => Promise.resolve(0), // Each belongs to an instance, which counts them.
    close: () => Promise.resolve(),
  });
}

/** A change that was acknowledged here. Another instance knows it once everything that was on its way there has arrived. */
interface News {
  by: Instance;
  atMs: number;
  /** The gates of other instances at that moment. */
  before: readonly Gate[] | null;
  isKnown: (elsewhere: boolean) => void;
}

interface Purge {
  selection: PurgeSelection;
  begunTick: number;
  here: Instance;
  isKnownElsewhere: boolean;
}

interface Write {
  project: ModelProject;
  key: string;
  target: string;
  version: number;
  here: Instance;
  isKnownElsewhere: boolean;
}

const isOfStore = ({ label }: Gate) => label.startsWith('instance-');

class History {
  readonly #options: HistoryOptions;
  readonly #clock: TestClock;
  readonly #place: StoreSetup;
  readonly #chooser: Chooser;
  readonly #random: () => number;
  readonly #gates: Gates;
  readonly #tables = new Tables();
  readonly #upstream: Upstream;
  readonly #instances: Instance[];
  readonly #calls = new Map<string, Call>();
  readonly #targets: readonly string[];
  readonly #etags: string[] = [];
  readonly #purges: Purge[] = [];
  readonly #writes: Write[] = [];
  /** Requests that are among them. */
  readonly #announced = new Set<string>();
  #news: News[] = [];
  #tick = 0;
  /** Uses of each token before this step. */
  #askedBefore = new Map<ModelToken, number>();
  #violation: Error | null = null;
  #busy = 0;
  readonly #judged = new Map<Call, 'hit' | 'use' | 'refusal'>();

  constructor(options: HistoryOptions, clock: TestClock, place: StoreSetup) {
    this.#options = options;
    this.#clock = clock;
    this.#place = place;
    this.#random = seededRandom(options.seed);
    this.#chooser = chooserOf(this.#random);
    this.#gates = new Gates(this.#random);
    this.#upstream = new Upstream({
      gates: this.#gates,
      chooser: this.#chooser,
      tick: () => this.#tick,
      nowMs: () => clock.now(),
      asked: (ask) => {
        this.#asked(ask);
      },
      nameOf: (key) => this.#tables.nameOf(key),
    });
    this.#instances = place.stores.map(
      (store, index) =>
        new Instance({
          ...{ index, store, isGated: options.isGated, gates: this.#gates },
          ...{ tables: this.#tables, upstream: this.#upstream, clock },
        }),
    );
    this.#targets = this.#chooser.one([
      ['/v1/files/f'],
      [DEFAULT_TTL_PATH, '/v1/vary/a'],
      ['/v1/vary/a'],
      ['/v1/files/f', '/v1/files/f?q=1', '/v1/vary/a'],
    ]);
    const sharesKeys = this.#chooser.chance(0.3);
    for (let i = 0; i < 2; i++) {
      const project = this.#tables.addProject(sharesKeys ? 'shared' : `own-${i}`);
      for (const [cap, lifetimeMs] of [
        [0, 86_400_000],
        [0, 90_000],
        [this.#chooser.one([2, 5, 20, 40]), 86_400_000],
      ] as const) {
        this.#tables.addToken(project, cap, clock.now() + lifetimeMs);
      }
    }
  }

  async run(): Promise<void> {
    for (let step = 0; step < this.#options.steps; step++) {
      this.#begin();
      this.#step();
      await this.#settle();
    }
  }

  #begin(): void {
    this.#tick += 1;
    this.#askedBefore = new Map(this.#tables.tokens.map((token) => [token, token.asked]));
  }

  async #settle(): Promise<void> {
    await this.#place.idle();
    if (this.#violation) throw this.#violation;
    this.#tellOthers();
  }

  #step(): void {
    const { chance, one } = this.#chooser;
    const ready = this.#gates.waiting.filter(({ isSlow }) => !isSlow || chance(0.05));
    if (ready.length > 0 && chance(0.72)) {
      one(ready).pass();
      return;
    }
    const dice = this.#random();
    if (dice < 0.75) this.#callSeveral();
    else if (dice < 0.8) this.#leave();
    else if (dice < 0.83) void this.#purge();
    else if (dice < 0.88) this.#changeToken();
    else if (dice < 0.91) this.#changeProject();
    else if (dice < 0.925) this.#changeKey();
    else
      this.#clock.advance(this.#isStoreAsked() ? 5 : one([5, 5, 300, 300, 2_000, 2_000, 6_000, 6_000, 31_000, 61_000]));
  }

  /** Little time passes then, because a store that does not reply soon counts as unavailable. */
  #isStoreAsked(): boolean {
    return this.#gates.waiting.some(isOfStore);
  }

  // ---- clients

  #callSeveral(): void {
    const { chance, one } = this.#chooser;
    const asking = this.#anyAsking();
    for (let n = one([1, 1, 2, 4]); n > 0; n--) this.#call(chance(0.7) ? asking : this.#anyAsking());
  }

  #call(asking: Asking): void {
    const token = this.#anyToken();
    const instance = this.#chooser.one(this.#instances);
    const { project } = token;
    const known = {
      tick: this.#tick,
      nowMs: this.#clock.now(),
      version: this.#knownVersion(project, asking.target, instance),
      purgedTick: this.#purgedTick(project, asking, instance),
      tokenChanges: token.changes,
      projectChanges: project.changes,
      wasFine: this.#isFine(token),
    };
    const id = `r${this.#calls.size}`;
    const call = new Call(id, instance, token, asking, known, (news) => {
      this.#judge(news);
    });
    this.#calls.set(id, call);
  }

  #anyToken(): ModelToken {
    const { tokens } = this.#tables;
    // Mostly of one project, so that events coincide.
    const [project] = this.#tables.projects;
    return this.#chooser.one(this.#chooser.chance(0.7) ? tokens.filter((token) => token.project === project) : tokens);
  }

  #anyAsking(): Asking {
    const { chance, one } = this.#chooser;
    const [usual = ''] = this.#targets;
    const asking: Asking = {
      method: 'GET',
      target: chance(0.8) ? usual : one(this.#targets),
      lang: chance(0.9) ? 'en' : 'de',
      flavour: chance(0.75) ? 'mint' : 'lime',
      body: '',
      cacheControl: '',
      ifNoneMatch: '',
      hasRange: false,
    };
    const dice = this.#random();
    if (dice < 0.06) return { ...asking, method: one(['PUT', 'DELETE']) };
    if (dice < 0.18)
      return {
        ...asking,
        method: 'POST',
        body: one(['{"a":1}', '{"a":2}']),
        cacheControl: one(['public', 'public', '']),
      };
    if (dice < 0.23) return { ...asking, method: 'HEAD' };
    if (dice < 0.33)
      return { ...asking, cacheControl: one(['no-cache', 'no-store', 'only-if-cached', 'max-age=3', 'public']) };
    if (dice < 0.42 && this.#etags.length > 0) return { ...asking, ifNoneMatch: one(this.#etags.slice(-3)) };
    if (dice < 0.43) return { ...asking, hasRange: true };
    return asking;
  }

  #leave(): void {
    const open = [...this.#calls.values()].filter(({ isOver }) => !isOver);
    if (open.length > 0) this.#chooser.one(open).leave();
  }

  #asked(ask: ReceivedRequest): void {
    const call = this.#calls.get(ask.requestId);
    if (!call) {
      this.#violate(`the upstream received an unknown request ${ask.requestId}`);
      return;
    }
    const { token } = call;
    if (call.isAsked) this.#violate(`${call.id} was sent upstream twice`);
    call.isAsked = true;
    if (!this.#isFine(token)) this.#violate(`${call.id} was forwarded with a token that would be refused`);
    if (!call.keys.has(ask.key)) this.#violate(`${call.id} was forwarded with another project's key`);
    token.asked += 1;
  }

  #isFine(token: ModelToken): boolean {
    const { isActive, project, expiresAtMs, cap, asked } = token;
    return isActive && project.isActive && this.#clock.now() < expiresAtMs && (cap === 0 || asked < cap);
  }

  #judge(call: Call): void {
    const { asking, status, answer, token } = call;
    if (status !== null && status < 400 && asking.method !== 'GET' && asking.method !== 'HEAD') this.#wrote(call);
    if (!answer || this.#judged.has(call)) return;
    try {
      const verdict = judge(call, answer, {
        said: this.#upstream.said,
        projectOf: (requestId) => this.#calls.get(requestId)?.token.project,
        nowMs: this.#clock.now(),
        askedBefore: this.#askedBefore.get(token) ?? 0,
        agesByClock: this.#place.agesByClock,
        instances: this.#instances.length,
      });
      this.#judged.set(call, verdict);
      const etag = answer.header('etag');
      if (etag !== undefined) this.#etags.push(etag);
    } catch (error) {
      this.#violation ??= error as Error;
    }
  }

  // ---- what requests that begin from now on must know of

  #knownVersion(project: ModelProject, target: string, instance: Instance): number {
    let version = 0;
    for (const write of this.#writes) {
      if (write.project !== project || write.key !== project.key || write.target !== target) continue;
      if (write.here === instance || write.isKnownElsewhere) version = Math.max(version, write.version);
    }
    return version;
  }

  #purgedTick(project: ModelProject, { method, target }: Asking, instance: Instance): number {
    let tick = 0;
    const resource = method === 'HEAD' ? 'GET' : method;
    for (const { selection, begunTick, here, isKnownElsewhere } of this.#purges) {
      const isMeant =
        selection.kind === 'all' ||
        (selection.kind === 'project'
          ? selection.projectId === project.id
          : selection.method === resource && selection.url === target);
      if (isMeant && (here === instance || isKnownElsewhere)) tick = Math.max(tick, begunTick);
    }
    return tick;
  }

  #wrote({ id, asking, instance, token: { project } }: Call): void {
    const { target } = asking;
    const said = this.#upstream.said.find(({ ask }) => ask.requestId === id);
    if (!said || (asking.method !== 'PUT' && asking.method !== 'DELETE') || this.#announced.has(id)) return;
    this.#announced.add(id);
    const { version, ask } = said;
    const write = { project, key: ask.key, target, version, here: instance, isKnownElsewhere: false };
    this.#writes.push(write);
    this.#announce(instance, () => (write.isKnownElsewhere = true));
  }

  #announce(by: Instance, isKnown: () => void): void {
    this.#news.push({ by, atMs: this.#clock.now(), before: null, isKnown });
  }

  /** Other instances know a change when they were notified, and when earlier queries to the store have returned. */
  #tellOthers(): void {
    const waits = (news: News): boolean => {
      if (this.#clock.now() < news.atMs + this.#place.tellsOthersWithinMs) return true;
      news.before ??= this.#gates.waiting.filter(isOfStore);
      if (this.#gates.stillWaiting(news.before)) return true;
      news.isKnown(true);
      return false;
    };
    this.#news = this.#news.filter(waits);
  }

  // ---- operators

  async #purge(): Promise<void> {
    const project = this.#chooser.one(this.#tables.projects);
    const instance = this.#chooser.one(this.#instances);
    const selection = this.#chooser.one<PurgeSelection>([
      { kind: 'all' },
      { kind: 'project', projectId: project.id },
      { kind: 'resource', method: this.#chooser.one(['GET', 'POST']), url: this.#chooser.one(this.#targets) },
    ]);
    const begunTick = this.#tick;
    this.#busy += 1;
    try {
      await instance.upkeep.purge(selection, SYSTEM_CALLER, EVERYTHING);
      const purge = { selection, begunTick, here: instance, isKnownElsewhere: false };
      this.#purges.push(purge);
      this.#announce(instance, () => (purge.isKnownElsewhere = true));
    } catch (error) {
      this.#violation ??= error as Error;
    }
    this.#busy -= 1;
  }

  #changeToken(): void {
    // Usually active again soon, because repeated refusals show nothing new.
    const revoked = this.#tables.tokens.find(({ isActive }) => !isActive);
    const token = revoked && this.#chooser.chance(0.85) ? revoked : this.#anyToken();
    token.isActive = !token.isActive;
    token.changes += 1;
    const kind = token.isActive ? 'token.reactivated' : 'token.revoked';
    const seq = ++this.#tables.changeSeq;
    for (const { admission } of this.#instances) {
      admission.apply({ kind, projectId: token.project.id, tokenId: token.id, seq });
    }
  }

  #changeProject(): void {
    const project = this.#tables.projects.find(({ isActive }) => !isActive) ?? this.#chooser.one(this.#tables.projects);
    project.isActive = !project.isActive;
    project.changes += 1;
    const kind = project.isActive ? 'project.activated' : 'project.deactivated';
    const seq = ++this.#tables.changeSeq;
    for (const { admission } of this.#instances) admission.apply({ kind, projectId: project.id, tokenId: null, seq });
  }

  /** One of two, so that a former key can be set again. */
  #changeKey(): void {
    const project = this.#chooser.one(this.#tables.projects);
    project.key = project.keys[project.key === project.keys[0] ? 1 : 0];
    for (const call of this.#calls.values()) {
      if (!call.isOver && call.token.project === project) call.keys.add(project.key);
    }
    const seq = ++this.#tables.changeSeq;
    for (const { admission } of this.#instances) {
      admission.apply({ kind: 'project.updated', projectId: project.id, tokenId: null, seq });
    }
    this.#instances[0]?.upkeep.dropProject(project.id);
  }

  // ---- the end

  async end(): Promise<Totals> {
    for (let round = 0; this.#isUnderWay(); round++) {
      if (round > 3_000) throw new Violation('requests hang');
      this.#begin();
      const [gate] = this.#gates.waiting;
      // A request that waits must wait for something.
      if (!gate) throw new Violation('a request waits for nothing');
      gate.pass();
      await this.#settle();
    }
    this.#begin();
    for (const { admission } of this.#instances) void admission.retire();
    this.#clock.advance(5_000);
    await this.#settle();
    this.#checkCounts();
    await this.#checkEmpty();
    return this.#totals();
  }

  #isUnderWay(): boolean {
    const isOpen = [...this.#calls.values()].some(({ isOver }) => !isOver);
    return isOpen || this.#gates.waiting.length > 0 || this.#busy > 0;
  }

  #checkCounts(): void {
    const ended = this.#instances.flatMap((instance) => instance.ended);
    const records = new Map(ended.map((record) => [record.requestId, record]));
    if (ended.length !== this.#calls.size || records.size !== ended.length) {
      throw new Violation(`${ended.length} records of ${this.#calls.size} requests`);
    }
    const hits = new Map<ModelToken, number>();
    for (const call of this.#calls.values()) {
      const isHit = records.get(call.id)?.cache === 'hit';
      if (isHit && call.isAsked) throw new Violation(`${call.id} is recorded as a hit and was sent upstream`);
      const verdict = this.#judged.get(call);
      if (verdict !== undefined && isHit !== (verdict === 'hit'))
        throw new Violation(`${call.id}: recorded differently`);
      if (isHit) hits.set(call.token, (hits.get(call.token) ?? 0) + 1);
    }
    for (const token of this.#tables.tokens) {
      if (token.uses !== token.asked) throw new Violation(`${token.uses} uses settled of ${token.asked}`);
      const counted = hits.get(token) ?? 0;
      if (token.hits !== counted) throw new Violation(`${token.hits} hits settled of ${counted}`);
      if (token.cap > 0 && token.asked > token.cap) throw new Violation('a cap was exceeded');
    }
  }

  async #checkEmpty(): Promise<void> {
    for (const { admission, cache, store } of this.#instances) {
      if (admission.size.inFlight > 0) throw new Violation('a request stays in flight');
      if (cache.memory.bytes !== 0)
        throw new Violation(`${cache.memory.bytes} bytes of finished responses are still held`);
      if (store.fills.size > 0) throw new Violation('a response was neither stored nor dropped');
    }
    if (this.#clock.pending > 0) throw new Violation(`${this.#clock.pending} timers are left`);
    const fills = await this.#place.fills();
    if (fills > 0) throw new Violation(`${fills} write leases are left in the store`);
    const [store] = this.#place.stores;
    if (!store) return;
    const { entries } = await store.size();
    const count = await store.count({ kind: 'all' });
    const purged = await store.purge({ kind: 'all' });
    if (count !== purged || purged > entries)
      throw new Violation(`${entries} entries, ${count} counted, ${purged} purged`);
    const left = await store.size();
    if (left.entries !== 0 || left.bytes !== 0)
      throw new Violation(`${left.entries} entries are left, ${left.bytes} bytes`);
  }

  #totals(): Totals {
    const totals = { requests: this.#calls.size, hits: 0, uses: 0, refusals: 0, left: 0 };
    for (const call of this.#calls.values()) {
      const verdict = this.#judged.get(call);
      if (verdict === 'hit') totals.hits += 1;
      else if (call.isAsked) totals.uses += 1;
      else if (verdict === 'refusal') totals.refusals += 1;
      else totals.left += 1;
    }
    return totals;
  }

  #violate(what: string): void {
    this.#violation ??= new Violation(what);
  }
}
