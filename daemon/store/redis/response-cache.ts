/**
 * The cache that several instances share; cache-scripts.ts says how it lies in Redis, sealed-entry.ts what an entry is.
 *
 * **Removing** is asked for behind every successful write, mostly where nothing is kept. So removals are collected for 5 ms
 * and sent together, before the next look-up here that they concern: commands of one connection are executed in their order, and
 * no look-up sees what was removed before it. Until it is known that they arrived they are sent again.
 *
 * **After an outage** nobody knows which removals were lost, and a Redis that was restarted may be back with an older snapshot. So the
 * index is dropped before the connection is used again, and at a start when the run id of Redis is not the one it was made under.
 */
import { randomBytes } from 'node:crypto';
import type {
  CachePlace,
  CacheSelection,
  CacheSize,
  CacheStore,
  Clock,
  Fill,
  Found,
  Kept,
  LookUp,
  LookUpOptions,
} from '../../core/ports.js';
import { ARRIVE, COUNT, FORGET, KEEP, LOOK_UP, PAGE_THROUGH, REMOVE, SIZE } from './cache-scripts.js';
import { type Argument, type Arrival, type RedisConnection, RedisRefused, type Script } from './connection.js';
import { EntrySeal, type NamedPlace } from './sealed-entry.js';

const REMOVE_WITHIN_MS = 5;
/** More would not come over in the time a command has, and every three that do not look like an outage. */
export const MOST_ENTRY_BYTES = 16 * 1024 * 1024;

const NOTHING: LookUp = { found: null, fill: null };

export interface ResponseCacheOptions {
  connection: RedisConnection;
  clock: Clock;
  /** 32 bytes that serve nothing else. */
  key: Buffer;
}

export class RedisResponseCache implements CacheStore {
  readonly backend = 'redis';
  readonly #connection: RedisConnection;
  readonly #clock: Clock;
  readonly #seal: EntrySeal;
  /** What was changed and is to be removed, by `changeOf`: the same again and again as a rule, so that names are made of it late. */
  readonly #changes = new Map<string, readonly [projectId: string, resource: string]>();
  /** What else is to be removed: prefixes of members, of the index and of the fills. */
  readonly #removals = new Set<string>();
  readonly #instance = randomBytes(9).toString('base64url');
  #fills = 0;
  #cancelRemoving: (() => void) | null = null;
  /** Removals may be lost, so that the next connection begins with nothing. */
  #isInDoubt = false;

  constructor({ connection, clock, key }: ResponseCacheOptions) {
    this.#connection = connection;
    this.#clock = clock;
    this.#seal = new EntrySeal(key);
    connection.onArrival((arrival) => this.#arrive(arrival));
  }

  async lookUp(place: CachePlace, options: LookUpOptions): Promise<LookUp> {
    if (!this.#connection.isUp) return NOTHING;
    this.#removeBefore(place);
    const named = this.#seal.place(place);
    const fill = options.fills ? `${named.resource}:${this.#newFill()}:` : '';
    try {
      return await this.#look(named, options.reads, fill);
    } catch {
      // It may have begun all the same, or will when Redis comes to it.
      if (fill !== '') this.#endFill(fill);
      return NOTHING;
    }
  }

  /** No other look-up's, here or on another instance: random once, then counted, which costs nothing. */
  #newFill(): string {
    this.#fills += 1;
    return `${this.#instance}-${this.#fills.toString(36)}`;
  }

  invalidate(projectId: string, resource: string): void {
    if (this.#removeSoon()) this.#changes.set(changeOf(projectId, resource), [projectId, resource]);
  }

  async purge(selection: CacheSelection): Promise<number> {
    await this.size(); // Those that ended are no answers any more.
    if (selection.kind === 'resource') {
      return Number(await this.#ask(REMOVE, [this.#seal.resource(selection.resource)]));
    }
    const project = selection.kind === 'project' ? this.#seal.project(selection.projectId) : '';
    await this.#pageThrough('fills', project, true);
    return this.#pageThrough('index', project, true);
  }

  async count(selection: CacheSelection): Promise<number> {
    await this.size();
    if (selection.kind === 'resource') return Number(await this.#ask(COUNT, [this.#seal.resource(selection.resource)]));
    return this.#pageThrough(
      'index',
      selection.kind === 'project' ? this.#seal.project(selection.projectId) : '',
      false,
    );
  }

  async size(): Promise<CacheSize> {
    void this.#sendRemovals();
    for (;;) {
      const [entries, bytes, isMore] = (await this.#ask(SIZE, [])) as [number, number, number];
      if (isMore === 0) return { entries, bytes: Math.max(0, bytes) };
    }
  }

  /** At shutdown, before the connection is closed. */
  async close(): Promise<void> {
    await this.#sendRemovals();
    this.#cancelRemoving?.();
  }

  async #look(named: NamedPlace, reads: boolean, fill: string): Promise<LookUp> {
    const name = named.member.slice(named.resource.length + 1);
    const args = [named.member, name, reads ? 1 : 0, fill, MOST_ENTRY_BYTES];
    const [payload, leftMs, began] = (await this.#ask(LOOK_UP, args)) as [Buffer | null, number, number];
    const found = payload && this.#read(named, payload, leftMs);
    if (payload && !found) {
      this.#removals.add(named.member);
      await this.#sendRemovals();
      if (began === 0 && fill !== '') return this.#look(named, false, fill);
    }
    return { found, fill: began === 1 ? this.#fill(fill) : null };
  }

  #read(named: NamedPlace, payload: Buffer, leftMs: number): Found | null {
    const opened = this.#seal.open(named, payload);
    // One with more time than it was given is not as we left it.
    if (!opened || leftMs > opened.keepMs) return null;
    return { content: opened.content, freshMs: opened.freshMs, heldMs: opened.keepMs - leftMs };
  }

  #fill(fill: string): Fill {
    let isOver = false;
    const drop = () => {
      if (!isOver) this.#endFill(fill);
      isOver = true;
    };
    return {
      drop,
      keep: async (entries) => {
        if (isOver) return false;
        for (const { place } of entries) this.#removeBefore(place);
        const args: Argument[] = [fill];
        for (const { place, kept } of entries) args.push(...this.#sealed(place, kept));
        if (args.some((it) => Buffer.isBuffer(it) && it.length > MOST_ENTRY_BYTES)) {
          drop();
          return false;
        }
        try {
          const isKept = (await this.#ask(KEEP, args)) === 1;
          isOver = true;
          return isKept;
        } catch {
          drop();
          return false;
        }
      },
    };
  }

  #sealed(place: CachePlace, kept: Kept): Argument[] {
    const named = this.#seal.place(place);
    const { payload, keepMs } = this.#seal.seal(named, kept);
    return [named.member, kept.content.kind === 'vary' ? 'v' : '', keepMs, payload];
  }

  async #pageThrough(set: 'index' | 'fills', project: string, removes: boolean): Promise<number> {
    let total = 0;
    let last: string | Buffer = '';
    do {
      const args = [set, project, removes ? 1 : 0, last];
      const [found, next] = (await this.#ask(PAGE_THROUGH, args)) as [number, Buffer];
      total += found;
      last = next;
    } while (last.length > 0);
    return total;
  }

  // ---- removing

  /** @returns whether there is somebody to tell. */
  #removeSoon(): boolean {
    if (this.#connection.isAway) {
      this.#isInDoubt = true;
      return false;
    }
    this.#cancelRemoving ??= this.#clock.after(REMOVE_WITHIN_MS, () => {
      this.#cancelRemoving = null;
      void this.#sendRemovals();
    });
    return true;
  }

  #endFill(fill: string): void {
    if (this.#removeSoon()) this.#removals.add(fill.slice(0, -1));
  }

  /** Has a change of this resource, if there was one, arrive before what is sent next. */
  #removeBefore({ projectId, resource }: CachePlace): void {
    if (this.#changes.size > 0 && this.#changes.has(changeOf(projectId, resource))) void this.#sendRemovals();
  }

  /** Never rejects. Sent at once: what is sent from now on comes behind it. */
  async #sendRemovals(): Promise<void> {
    const changed = [...this.#changes.values()].map((change) => this.#seal.resourceOf(...change));
    const prefixes = [...this.#removals, ...changed];
    this.#removals.clear();
    this.#changes.clear();
    if (prefixes.length === 0) return;
    try {
      await this.#connection.run(REMOVE, prefixes);
    } catch (error) {
      if (error instanceof RedisRefused) await this.#forget();
      else if (this.#removeSoon()) for (const prefix of prefixes) this.#removals.add(prefix);
    }
  }

  /** Where Redis can do nothing with what stands at our keys, nothing must stand there. */
  async #ask(script: Script, args: readonly Argument[]): Promise<unknown> {
    try {
      return await this.#connection.run(script, args);
    } catch (error) {
      if (error instanceof RedisRefused && SPOILT.has(error.code)) await this.#forget();
      throw error;
    }
  }

  async #forget(): Promise<void> {
    try {
      await this.#connection.run(FORGET, []);
    } catch (error) {
      this.#connection.abandon(error as Error);
    }
  }

  async #arrive({ run, runId }: Arrival): Promise<void> {
    // Those are done with all the rest; those that come meanwhile are sent behind it.
    if (this.#isInDoubt) {
      this.#removals.clear();
      this.#changes.clear();
    }
    await run(ARRIVE, [runId ?? '', this.#isInDoubt ? 1 : 0]);
    this.#isInDoubt = true; // Until the connection after this one: whatever ends this one.
  }
}

const changeOf = (projectId: string, resource: string) => `${projectId}\n${resource}`;

/** How Redis answers to a command for another type than stands at the key, or for another value. */
const SPOILT = new Set(['WRONGTYPE', 'ERR']);
