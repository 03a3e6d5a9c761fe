import { type Clock, type Population, type RecordStore, StoreUnavailable } from './ports.js';
import { AdaptiveMemo } from './adaptive-memo.js';

export interface CountedPopulation extends Population {
  countedAtMs: number;
}

/** Number of projects and tokens. Memoised, because counting a million tokens takes the database a few hundred ms. */
export class PopulationCount {
  readonly #store: Pick<RecordStore, 'population'>;
  readonly #clock: Clock;
  readonly #counted: AdaptiveMemo<CountedPopulation>;

  constructor(store: Pick<RecordStore, 'population'>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#counted = new AdaptiveMemo(clock);
  }

  /** @returns null when the database is unavailable. */
  async current(): Promise<CountedPopulation | null> {
    try {
      return await this.#counted.current(async () => {
        const countedAtMs = this.#clock.now();
        return { ...(await this.#store.population(countedAtMs)), countedAtMs };
      });
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      return null;
    }
  }
}
