import { type Clock, type Population, type RecordStore, StoreUnavailable } from './ports.js';

/** A count of a million tokens takes some hundred ms of a database that has other things to do: it gets this share of the time at most. */
const SHARE = 20;
/** Who asks waits no longer for a new count while there is an older one. */
const PATIENCE_MS = 50;

export interface Counted extends Population {
  countedAtMs: number;
}

/** How many projects and tokens there are: counted anew for whoever asks where that costs little, and now and then where it costs much. */
export class PopulationCount {
  #last: { counted: Counted; usableUntilMs: number } | null = null;
  #counting: Promise<Counted | null> | null = null;

  constructor(
    private readonly store: Pick<RecordStore, 'population'>,
    private readonly clock: Clock,
  ) {}

  /** @returns null when the database does not say. */
  async current(): Promise<Counted | null> {
    const { clock } = this;
    const last = this.#last;
    if (last && clock.monotonic() < last.usableUntilMs) return last.counted;
    this.#counting ??= this.#count().finally(() => {
      this.#counting = null;
    });
    if (!last) return this.#counting;
    let cancel: () => void = () => undefined;
    const enough = new Promise<Counted>((resolve) => {
      cancel = clock.after(PATIENCE_MS, () => {
        resolve(last.counted);
      });
    });
    return Promise.race([this.#counting, enough]).finally(() => {
      cancel();
    });
  }

  async #count(): Promise<Counted | null> {
    const { clock, store } = this;
    const [begunAtMs, countedAtMs] = [clock.monotonic(), clock.now()];
    try {
      const counted = { ...(await store.population(countedAtMs)), countedAtMs };
      const endedAtMs = clock.monotonic();
      this.#last = { counted, usableUntilMs: endedAtMs + SHARE * (endedAtMs - begunAtMs) };
      return counted;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#last = null;
      return null;
    }
  }
}
