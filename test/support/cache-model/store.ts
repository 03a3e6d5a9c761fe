import type {
  CachePlace,
  CacheSelection,
  CacheSize,
  CacheStore,
  Fill,
  LookUp,
  LookUpOptions,
} from '../../../daemon/core/ports.js';
import type { Gates } from './gates.js';

/** A store whose questions and answers take their time, if they are to, and whose fills are counted. */
export class GatedStore implements CacheStore {
  readonly #store: CacheStore;
  readonly #gates: Gates;
  readonly #name: string;
  readonly #isGated: boolean;
  /** Fills that were begun, and neither kept nor dropped. */
  readonly fills = new Set<Fill>();

  constructor(store: CacheStore, gates: Gates, name: string, isGated: boolean) {
    this.#store = store;
    this.#gates = gates;
    this.#name = name;
    this.#isGated = isGated;
  }

  get backend(): CacheStore['backend'] {
    return this.#store.backend;
  }

  lookUp(place: CachePlace, options: LookUpOptions): LookUp | Promise<LookUp> {
    const looking = this.#through('look-up', () => this.#store.lookUp(place, options));
    return looking instanceof Promise ? looking.then((it) => this.#counted(it)) : this.#counted(looking);
  }

  // Nobody waits for it, so there is nothing to hold up.
  invalidate(projectId: string, resource: string): void {
    this.#store.invalidate(projectId, resource);
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

  #counted({ found, fill }: LookUp): LookUp {
    if (!fill) return { found, fill };
    const counted: Fill = {
      keep: (entries) => {
        this.fills.delete(counted);
        return this.#through('keep', () => fill.keep(entries));
      },
      drop: () => {
        this.fills.delete(counted);
        fill.drop();
      },
    };
    this.fills.add(counted);
    return { found, fill: counted };
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
