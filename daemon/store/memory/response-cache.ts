import { LRUCache } from 'lru-cache';
import { placeText, resourceText } from '../../core/cache/caching.js';
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

/** All that is kept, and being got, of a resource in a project: what a write removes. */
interface Shelf {
  projectId: string;
  resource: string;
  /** Of the entries; each is the key of one. */
  variants: Set<string>;
  fills: Set<MemoryFill>;
}

interface Entry extends Kept {
  shelf: Shelf;
  variant: string;
  /** Monotonic. */
  keptAtMs: number;
  bytes: number;
}

// What an entry takes beside its texts and its body: objects, its part of tables, and what the allocator and the collector
// leave unused. With 200,000 bodies of 100 bytes the process (RSS) grew by 1.08 times what is counted.
const ENTRY_OVERHEAD_BYTES = 2_000;
const NOTHING: LookUp = { found: null, fill: null };

/**
 * Answers in the memory of this process, those that were used least recently the first to go. What an entry counts for includes
 * what it takes beside its bytes, so that many small answers take no more than few large ones.
 */
export class MemoryResponseCache implements CacheStore {
  readonly backend = 'memory';
  readonly #clock: Clock;
  readonly #live: { readonly current: { httpCacheMaxBytes: number } };
  readonly #shelves = new Map<string, Shelf>();
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
      dispose: ({ shelf, variant }, _key, reason) => {
        if (reason !== 'set') this.#takeFrom(shelf, variant);
      },
    });
  }

  lookUp(place: CachePlace, { reads, fills }: LookUpOptions): LookUp {
    const found = reads ? this.#find(place) : null;
    if (found !== null && found.heldMs < found.freshMs) return { found, fill: null };
    if (!fills) return found === null ? NOTHING : { found, fill: null };
    return { found, fill: this.#begin(place) };
  }

  #find(place: CachePlace): Found | null {
    const key = placeText(place);
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    const heldMs = this.#clock.monotonic() - entry.keptAtMs;
    if (heldMs < entry.keepMs) return { content: entry.content, heldMs, freshMs: entry.freshMs };
    this.#entries.delete(key);
    return null;
  }

  #begin(place: CachePlace): Fill {
    const shelf = this.#shelfOf(place);
    const fill = new MemoryFill(shelf, {
      keep: (entries) => {
        for (const { place: at, kept } of entries) this.#keep(shelf, at, kept);
      },
      end: () => {
        shelf.fills.delete(fill);
        this.#clear(shelf);
      },
    });
    shelf.fills.add(fill);
    return fill;
  }

  #keep(shelf: Shelf, place: CachePlace, kept: Kept): void {
    this.#fitSettings();
    const entry: Entry = {
      ...kept,
      shelf,
      variant: place.variant,
      keptAtMs: this.#clock.monotonic(),
      bytes: bytesOf(place, kept),
    };
    shelf.variants.add(place.variant);
    this.#entries.set(placeText(place), entry);
    // Larger than the whole cache: then it is not taken in, nor disposed of.
    if (!this.#entries.has(placeText(place))) this.#takeFrom(shelf, place.variant);
  }

  /** HTTP_CACHE_MAX_BYTES may have changed. */
  #fitSettings(): void {
    if (this.#entries.maxSize === Math.max(1, this.#live.current.httpCacheMaxBytes)) return;
    const before = this.#entries;
    this.#entries = this.#newEntries();
    before.rforEach((entry, key) => this.#entries.set(key, entry)); // The oldest first, so that they are the first to go again.
  }

  invalidate(projectId: string, resource: string): void {
    if (this.#shelves.size === 0) return;
    const shelf = this.#shelves.get(resourceText({ projectId, resource }));
    if (shelf) this.#remove(shelf);
  }

  purge(selection: CacheSelection): Promise<number> {
    let count = 0;
    for (const shelf of this.#selected(selection)) count += this.#remove(shelf);
    return Promise.resolve(count);
  }

  count(selection: CacheSelection): Promise<number> {
    let count = 0;
    for (const shelf of this.#selected(selection)) count += this.#answersOn(shelf);
    return Promise.resolve(count);
  }

  size(): Promise<CacheSize> {
    return Promise.resolve({ entries: this.#entries.size, bytes: this.#entries.calculatedSize });
  }

  #selected(selection: CacheSelection): Shelf[] {
    return [...this.#shelves.values()].filter(({ projectId, resource }) => {
      if (selection.kind === 'project') return projectId === selection.projectId;
      return selection.kind === 'all' || resource === selection.resource;
    });
  }

  /** @returns how many answers there were. */
  #remove(shelf: Shelf): number {
    for (const fill of [...shelf.fills]) fill.drop();
    const count = this.#answersOn(shelf);
    for (const variant of [...shelf.variants]) this.#entries.delete(placeText({ ...shelf, variant }));
    return count;
  }

  /** Signs to where answers stand are none; nor is what only waits to be taken away. */
  #answersOn(shelf: Shelf): number {
    const now = this.#clock.monotonic();
    return [...shelf.variants].filter((variant) => {
      const entry = this.#entries.peek(placeText({ ...shelf, variant }));
      return entry?.content.kind === 'answer' && now < entry.keptAtMs + entry.keepMs;
    }).length;
  }

  #shelfOf(place: CachePlace): Shelf {
    const key = resourceText(place);
    let shelf = this.#shelves.get(key);
    if (!shelf) {
      const { projectId, resource } = place;
      shelf = { projectId, resource, variants: new Set(), fills: new Set() };
      this.#shelves.set(key, shelf);
    }
    return shelf;
  }

  #takeFrom(shelf: Shelf, variant: string): void {
    shelf.variants.delete(variant);
    this.#clear(shelf);
  }

  #clear(shelf: Shelf): void {
    if (shelf.variants.size === 0 && shelf.fills.size === 0) this.#shelves.delete(resourceText(shelf));
  }
}

class MemoryFill implements Fill {
  readonly shelf: Shelf;
  readonly #on: { keep: (entries: Parameters<Fill['keep']>[0]) => void; end: () => void };
  #isOpen = true;

  constructor(shelf: Shelf, on: { keep: (entries: Parameters<Fill['keep']>[0]) => void; end: () => void }) {
    this.shelf = shelf;
    this.#on = on;
  }

  keep(entries: Parameters<Fill['keep']>[0]): boolean {
    if (!this.#isOpen) return false;
    this.#on.keep(entries);
    this.drop();
    return true;
  }

  drop(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#on.end();
  }
}

function bytesOf({ projectId, resource, variant }: CachePlace, { content }: Kept): number {
  const texts = content.kind === 'answer' ? content.headers : content.names;
  const body = content.kind === 'answer' ? content.body.length : 0;
  // The key stands in two tables, and its parts on the shelf.
  const key = 2 * (projectId.length + resource.length + variant.length);
  return ENTRY_OVERHEAD_BYTES + key + body + texts.reduce((sum, text) => sum + text.length + 16, 0);
}
