import type {
  CacheKey,
  CacheSelection,
  CacheSize,
  CacheStore,
  WriteLease,
  CacheLookup,
  CacheLookupOptions,
} from '../../../daemon/core/ports.js';
import type { Gates } from './gates.js';

/** A store whose queries and replies can be delayed, and whose write leases are counted. */
export class GatedStore implements CacheStore {
  readonly #store: CacheStore;
  readonly #gates: Gates;
  readonly #name: string;
  readonly #isGated: boolean;
  /** Write leases that were begun, and neither stored nor dropped. */
  readonly fills = new Set<WriteLease>();

  constructor(store: CacheStore, gates: Gates, name: string, isGated: boolean) {
    this.#store = store;
    this.#gates = gates;
    this.#name = name;
    this.#isGated = isGated;
  }

  get backend(): CacheStore['backend'] {
    return this.#store.backend;
  }

  lookUp(place: CacheKey, options: CacheLookupOptions): CacheLookup | Promise<CacheLookup> {
    const looking = this.#through('look-up', () => this.#store.lookUp(place, options));
    return looking instanceof Promise ? looking.then((it) => this.#counted(it)) : this.#counted(looking);
  }

  // No caller waits for it, so nothing is delayed.
  invalidate(projectId: string, resource: string): undefined | Promise<void> {
    return this.#store.invalidate(projectId, resource);
  }

  async purge(selection: CacheSelection): Promise<number> {
    return this.#through('purge', () => this.#store.purge(selection));
  }

  count(selection: CacheSelection): Promise<number> {
    return this.#store.count(selection);
  }

  size(): Promise<CacheSize> {
    return this.#store.size();
  }

  #counted({ found, writeLease }: CacheLookup): CacheLookup {
    if (!writeLease) return { found, writeLease };
    const counted: WriteLease = {
      store: (entries) => {
        this.fills.delete(counted);
        return this.#through('keep', () => writeLease.store(entries));
      },
      release: () => {
        this.fills.delete(counted);
        writeLease.release();
      },
    };
    this.fills.add(counted);
    return { found, writeLease: counted };
  }

  #through<T>(what: string, work: () => T | Promise<T>): T | Promise<T> {
    if (!this.#isGated) return work();
    return (async () => {
      await this.#gates.through(`${this.#name}: ${what}`);
      const done = await work();
      await this.#gates.through(`${this.#name}: after ${what}`);
      return done;
    })();
  }
}
