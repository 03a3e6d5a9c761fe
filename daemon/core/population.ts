import { type Clock, type Population, type RecordStore, StoreUnavailable } from './ports.js';
import { Spared } from './spared.js';

export interface Counted extends Population {
  countedAtMs: number;
}

/** How many projects and tokens there are. A count of a million tokens takes some hundred ms of a database that has other things to do. */
export class PopulationCount {
  readonly #store: Pick<RecordStore, 'population'>;
  readonly #clock: Clock;
  readonly #counted: Spared<Counted>;

  constructor(store: Pick<RecordStore, 'population'>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#counted = new Spared(clock);
  }

  /** @returns null when the database does not say. */
  async current(): Promise<Counted | null> {
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
