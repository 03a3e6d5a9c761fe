/**
 * Response cache that instances share through Redis. cache-scripts.ts describes the keys in Redis, entry-cipher.ts the format of an
 * entry.
 *
 * **Invalidation** follows every successful write, usually of a resource that is not cached. So invalidations are collected for 5
 * ms and sent together, but before the next look-up of the same resource. Redis executes the commands of one connection in order,
 * so no look-up sees an entry that was invalidated before it. Invalidations are sent again until Redis has confirmed them.
 *
 * **After an outage** it is not known which invalidations were lost, and a restarted Redis may have loaded an older snapshot. So
 * the index is cleared before a new connection is used, and at startup if the run ID of Redis is not the one that the index was
 * built under.
 */
import { randomBytes } from 'node:crypto';
import type {
  CacheKey,
  CacheSelection,
  CacheSize,
  CacheStore,
  Clock,
  WriteLease,
  FoundEntry,
  CacheEntry,
  CacheLookup,
  CacheLookupOptions,
} from '../../core/ports.js';
import { PREPARE, COUNT, CLEAR, STORE, LOOK_UP, PAGE_THROUGH, REMOVE, SIZE } from './cache-scripts.js';
import { type Argument, type NewConnection, type RedisConnection, RedisErrorReply, type Script } from './connection.js';
import { EntryCipher, type HashedKey } from './entry-cipher.js';

const REMOVE_WITHIN_MS = 5;
/** A larger entry cannot be transferred within the command timeout, and three such timeouts look like an outage. */
export const MAX_ENTRY_BYTES = 16 * 1024 * 1024;

const MISS: CacheLookup = { found: null, writeLease: null };

export interface ResponseCacheOptions {
  connection: RedisConnection;
  clock: Clock;
  /** 32 bytes, used for nothing else. */
  key: Buffer;
}

export class RedisResponseCache implements CacheStore {
  readonly backend = 'redis';
  readonly #connection: RedisConnection;
  readonly #clock: Clock;
  readonly #cipher: EntryCipher;
  /**
   * Changed resources whose entries must be removed, by `changeKey`. The same ones repeat often, so key names are derived only when
   * they are sent.
   */
  readonly #changes = new Map<string, readonly [projectId: string, resource: string]>();
  /** Other members to remove: prefixes of index members and of write leases. */
  readonly #removals = new Set<string>();
  readonly #instance = randomBytes(9).toString('base64url');
  #leases = 0;
  #cancelRemoving: (() => void) | null = null;
  /** Removals may have been lost, so the next connection starts with an empty cache. */
  #mayHaveLostRemovals = false;

  constructor({ connection, clock, key }: ResponseCacheOptions) {
    this.#connection = connection;
    this.#clock = clock;
    this.#cipher = new EntryCipher(key);
    connection.onConnect((connected) => this.#prepare(connected));
  }

  async lookUp(key: CacheKey, options: CacheLookupOptions): Promise<CacheLookup> {
    if (!this.#connection.isReady) return MISS;
    this.#flushRemovalsFor(key);
    const hashedKey = this.#cipher.hashedKeyOf(key);
    const leaseId = options.mayStore ? `${hashedKey.resource}:${this.#newLeaseId()}:` : '';
    try {
      return await this.#lookUp(hashedKey, options.mayRead, leaseId);
    } catch {
      // The lease may have begun nevertheless, or begins when Redis executes the command.
      if (leaseId !== '') this.#endLease(leaseId);
      return MISS;
    }
  }

  /** Unique among all instances: a random prefix, drawn once, and a counter. */
  #newLeaseId(): string {
    this.#leases += 1;
    return `${this.#instance}-${this.#leases.toString(36)}`;
  }

  invalidate(projectId: string, resource: string): undefined {
    if (this.#scheduleRemovals()) this.#changes.set(changeKey(projectId, resource), [projectId, resource]);
  }

  async purge(selection: CacheSelection): Promise<number> {
    await this.size(); // Expired entries do not count.
    if (selection.kind === 'resource') {
      return Number(await this.#run(REMOVE, [this.#cipher.resource(selection.resource)]));
    }
    await this.#pageThrough('fills', selection, true);
    return this.#pageThrough('index', selection, true);
  }

  async count(selection: CacheSelection): Promise<number> {
    await this.size();
    if (selection.kind === 'resource')
      return Number(await this.#run(COUNT, [this.#cipher.resource(selection.resource)]));
    return this.#pageThrough('index', selection, false);
  }

  async size(): Promise<CacheSize> {
    void this.#sendRemovals();
    for (;;) {
      const [entries, bytes, isMore] = (await this.#run(SIZE, [])) as [number, number, number];
      if (isMore === 0) return { entries, bytes: Math.max(0, bytes) };
    }
  }

  /** Call at shutdown, before the connection is closed. */
  async close(): Promise<void> {
    await this.#sendRemovals();
    this.#cancelRemoving?.();
  }

  async #lookUp(hashedKey: HashedKey, reads: boolean, leaseId: string): Promise<CacheLookup> {
    const name = hashedKey.member.slice(hashedKey.resource.length + 1);
    const args = [hashedKey.member, name, reads ? 1 : 0, leaseId, MAX_ENTRY_BYTES];
    const [payload, leftMs, began] = (await this.#run(LOOK_UP, args)) as [Buffer | null, number, number];
    const found = payload && this.#unseal(hashedKey, payload, leftMs);
    if (payload && !found) {
      this.#removals.add(hashedKey.member);
      await this.#sendRemovals();
      if (began === 0 && leaseId !== '') return this.#lookUp(hashedKey, false, leaseId);
    }
    return { found, writeLease: began === 1 ? this.#lease(leaseId) : null };
  }

  #unseal(hashedKey: HashedKey, payload: Buffer, leftMs: number): FoundEntry | null {
    const opened = this.#cipher.open(hashedKey, payload);
    // An entry whose TTL is longer than we set was changed by another program.
    if (!opened || leftMs > opened.keepMs) return null;
    return { content: opened.content, freshMs: opened.freshMs, residentMs: opened.keepMs - leftMs };
  }

  #lease(leaseId: string): WriteLease {
    let hasEnded = false;
    const drop = () => {
      if (!hasEnded) this.#endLease(leaseId);
      hasEnded = true;
    };
    return {
      release: drop,
      store: async (entries) => {
        if (hasEnded) return false;
        for (const { key } of entries) this.#flushRemovalsFor(key);
        const args: Argument[] = [leaseId];
        for (const { key, entry } of entries) args.push(...this.#sealed(key, entry));
        if (args.some((it) => Buffer.isBuffer(it) && it.length > MAX_ENTRY_BYTES)) {
          drop();
          return false;
        }
        try {
          const isStored = (await this.#run(STORE, args)) === 1;
          hasEnded = true;
          return isStored;
        } catch {
          drop();
          return false;
        }
      },
    };
  }

  #sealed(key: CacheKey, entry: CacheEntry): Argument[] {
    const hashedKey = this.#cipher.hashedKeyOf(key);
    const { payload, keepMs } = this.#cipher.seal(hashedKey, entry);
    return [hashedKey.member, entry.content.kind === 'vary' ? 'v' : '', keepMs, payload];
  }

  /** @returns how many responses or leases it found. */
  async #pageThrough(set: 'index' | 'fills', selection: CacheSelection, removes: boolean): Promise<number> {
    const project = selection.kind === 'project' ? this.#cipher.project(selection.projectId) : '';
    let total = 0;
    let last: string | Buffer = '';
    do {
      const args = [set, project, removes ? 1 : 0, last];
      const [found, next] = (await this.#run(PAGE_THROUGH, args)) as [number, Buffer];
      total += found;
      last = next;
    } while (last.length > 0);
    return total;
  }

  // ---- removing

  /** @returns false while Redis is disconnected: the next connection then clears the index. */
  #scheduleRemovals(): boolean {
    if (this.#connection.isDisconnected) {
      this.#mayHaveLostRemovals = true;
      return false;
    }
    this.#cancelRemoving ??= this.#clock.after(REMOVE_WITHIN_MS, () => {
      this.#cancelRemoving = null;
      void this.#sendRemovals();
    });
    return true;
  }

  #endLease(leaseId: string): void {
    if (this.#scheduleRemovals()) this.#removals.add(leaseId.slice(0, -1));
  }

  /** Sends a pending change of this resource first, so that Redis executes it before the next command. */
  #flushRemovalsFor({ projectId, resource }: CacheKey): void {
    if (this.#changes.size > 0 && this.#changes.has(changeKey(projectId, resource))) void this.#sendRemovals();
  }

  /** Never rejects. Sends at once, so that commands sent from now on are executed after the removals. */
  async #sendRemovals(): Promise<void> {
    const changed = [...this.#changes.values()].map((change) => this.#cipher.resourceOf(...change));
    const prefixes = [...this.#removals, ...changed];
    this.#removals.clear();
    this.#changes.clear();
    if (prefixes.length === 0) return;
    try {
      await this.#connection.run(REMOVE, prefixes);
    } catch (error) {
      if (error instanceof RedisErrorReply) await this.#clear();
      else if (this.#scheduleRemovals()) for (const prefix of prefixes) this.#removals.add(prefix);
    }
  }

  /** Runs a script. If another program has overwritten our keys, it clears them. */
  async #run(script: Script, args: readonly Argument[]): Promise<unknown> {
    try {
      return await this.#connection.run(script, args);
    } catch (error) {
      if (error instanceof RedisErrorReply && CORRUPTION_ERRORS.has(error.code)) await this.#clear();
      throw error;
    }
  }

  async #clear(): Promise<void> {
    try {
      await this.#connection.run(CLEAR, []);
    } catch (error) {
      this.#connection.abandon(error as Error);
    }
  }

  async #prepare({ run, runId }: NewConnection): Promise<void> {
    // Clearing the index covers these removals. New ones are sent after it.
    if (this.#mayHaveLostRemovals) {
      this.#removals.clear();
      this.#changes.clear();
    }
    await run(PREPARE, [runId ?? '', this.#mayHaveLostRemovals ? 1 : 0]);
    this.#mayHaveLostRemovals = true; // Stays set: however this connection ends, removals may be lost with it.
  }
}

const changeKey = (projectId: string, resource: string) => `${projectId}\n${resource}`;

/** Error codes for a key that has another type or an invalid value. */
const CORRUPTION_ERRORS = new Set(['WRONGTYPE', 'ERR']);
