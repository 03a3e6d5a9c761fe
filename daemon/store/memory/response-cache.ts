import { LRUCache } from 'lru-cache';
import { cacheKeyText, resourceKeyText } from '../../core/cache/caching.js';
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

/** The entries and open write leases of one resource in one project: what an invalidation removes. */
interface ResourceEntries {
  projectId: string;
  resource: string;
  /** Variants of the stored entries. */
  variants: Set<string>;
  fills: Set<WriteLease>;
}

interface Entry extends CacheEntry {
  group: ResourceEntries;
  variant: string;
  /** On the monotonic clock. */
  storedAtMs: number;
  bytes: number;
}

// Memory that an entry takes in addition to its headers and body: objects, its share of hash tables, and what the allocator and
// garbage collector leave unused. With 200,000 bodies of 100 bytes, the process (RSS) grew by 1.08 times the counted size.
const ENTRY_OVERHEAD_BYTES = 2_000;
const MISS: CacheLookup = { found: null, writeLease: null };

/**
 * LRU cache of responses in the memory of this process. The size of an entry includes its overhead, so that many small responses
 * use no more memory than a few large ones.
 */
export class MemoryResponseCache implements CacheStore {
  readonly backend = 'memory';
  readonly #clock: Clock;
  readonly #live: { readonly current: { httpCacheMaxBytes: number } };
  readonly #resources = new Map<string, ResourceEntries>();
  #entries: LRUCache<string, Entry>;

  constructor(live: { readonly current: { httpCacheMaxBytes: number } }, clock: Clock) {
    this.#live = live;
    this.#clock = clock;
    this.#entries = this.#newEntries();
  }

  #newEntries(): LRUCache<string, Entry> {
    return new LRUCache({
      maxSize: Math.max(1, this.#live.current.httpCacheMaxBytes),
      sizeCalculation: ({ bytes }) => bytes,
      dispose: ({ group, variant }, _key, reason) => {
        if (reason !== 'set') this.#removeVariant(group, variant);
      },
    });
  }

  lookUp(cacheKey: CacheKey, { mayRead, mayStore }: CacheLookupOptions): CacheLookup {
    const found = mayRead ? this.#find(cacheKey) : null;
    if (found !== null && found.residentMs < found.freshMs) return { found, writeLease: null };
    if (!mayStore) return found === null ? MISS : { found, writeLease: null };
    return { found, writeLease: this.#beginLease(cacheKey) };
  }

  #find(cacheKey: CacheKey): FoundEntry | null {
    const key = cacheKeyText(cacheKey);
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    const residentMs = this.#clock.monotonic() - entry.storedAtMs;
    if (residentMs < entry.keepMs) return { content: entry.content, residentMs, freshMs: entry.freshMs };
    this.#entries.delete(key);
    return null;
  }

  #beginLease(cacheKey: CacheKey): WriteLease {
    const group = this.#groupOf(cacheKey);
    const fill: WriteLease = {
      store: (entries) => {
        if (!group.fills.has(fill)) return false;
        for (const { key, entry } of entries) this.#store(group, key, entry);
        fill.release();
        return true;
      },
      release: () => {
        if (group.fills.delete(fill)) this.#removeIfEmpty(group);
      },
    };
    group.fills.add(fill);
    return fill;
  }

  #store(group: ResourceEntries, cacheKey: CacheKey, newEntry: CacheEntry): void {
    this.#applySizeLimit();
    const entry: Entry = {
      ...newEntry,
      group,
      variant: cacheKey.variant,
      storedAtMs: this.#clock.monotonic(),
      bytes: bytesOf(cacheKey, newEntry),
    };
    group.variants.add(cacheKey.variant);
    this.#entries.set(cacheKeyText(cacheKey), entry);
    // An entry larger than the whole cache is neither stored nor disposed of.
    if (!this.#entries.has(cacheKeyText(cacheKey))) this.#removeVariant(group, cacheKey.variant);
  }

  /** Applies a changed HTTP_CACHE_MAX_BYTES. */
  #applySizeLimit(): void {
    if (this.#entries.maxSize === Math.max(1, this.#live.current.httpCacheMaxBytes)) return;
    const before = this.#entries;
    this.#entries = this.#newEntries();
    before.rforEach((entry, key) => this.#entries.set(key, entry)); // Oldest first, so that the oldest entries are evicted first again.
  }

  invalidate(projectId: string, resource: string): undefined {
    if (this.#resources.size === 0) return;
    const group = this.#resources.get(resourceKeyText({ projectId, resource }));
    if (group) this.#remove(group);
  }

  purge(selection: CacheSelection): Promise<number> {
    let count = 0;
    for (const group of this.#selected(selection)) count += this.#remove(group);
    return Promise.resolve(count);
  }

  count(selection: CacheSelection): Promise<number> {
    let count = 0;
    for (const group of this.#selected(selection)) count += this.#countResponses(group);
    return Promise.resolve(count);
  }

  size(): Promise<CacheSize> {
    return Promise.resolve({ entries: this.#entries.size, bytes: this.#entries.calculatedSize });
  }

  #selected(selection: CacheSelection): ResourceEntries[] {
    return [...this.#resources.values()].filter(({ projectId, resource }) => {
      if (selection.kind === 'project') return projectId === selection.projectId;
      return selection.kind === 'all' || resource === selection.resource;
    });
  }

  /** @returns how many responses were removed. */
  #remove(group: ResourceEntries): number {
    for (const fill of [...group.fills]) fill.release();
    const count = this.#countResponses(group);
    for (const variant of [...group.variants]) this.#entries.delete(cacheKeyText({ ...group, variant }));
    return count;
  }

  /** Counts fresh and stale responses, without Vary markers and expired entries. */
  #countResponses(group: ResourceEntries): number {
    const now = this.#clock.monotonic();
    return [...group.variants].filter((variant) => {
      const entry = this.#entries.peek(cacheKeyText({ ...group, variant }));
      return entry?.content.kind === 'answer' && now < entry.storedAtMs + entry.keepMs;
    }).length;
  }

  #groupOf(cacheKey: CacheKey): ResourceEntries {
    const key = resourceKeyText(cacheKey);
    let group = this.#resources.get(key);
    if (!group) {
      const { projectId, resource } = cacheKey;
      group = { projectId, resource, variants: new Set(), fills: new Set() };
      this.#resources.set(key, group);
    }
    return group;
  }

  #removeVariant(group: ResourceEntries, variant: string): void {
    group.variants.delete(variant);
    this.#removeIfEmpty(group);
  }

  #removeIfEmpty(group: ResourceEntries): void {
    if (group.variants.size === 0 && group.fills.size === 0) this.#resources.delete(resourceKeyText(group));
  }
}

function bytesOf({ projectId, resource, variant }: CacheKey, { content }: CacheEntry): number {
  const texts = content.kind === 'answer' ? content.headers : content.names;
  const body = content.kind === 'answer' ? content.body.length : 0;
  // The key is stored in two tables, and its parts in the group.
  const key = 2 * (projectId.length + resource.length + variant.length);
  return ENTRY_OVERHEAD_BYTES + key + body + texts.reduce((sum, text) => sum + text.length + 16, 0);
}
