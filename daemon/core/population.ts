import { AdaptiveMemo } from './adaptive-memo.js';
import { type Clock, type Population, type RecordStore, StoreUnavailable } from './ports.js';

export interface CountedPopulation extends Population {
  countedAtMs: number;
}

/** @returns null when the database is unavailable. */
export type CountPopulation = () => Promise<CountedPopulation | null>;

/** Fewer tokens are counted each time: even on a busy machine, the first project must be seen at once. */
const MANY_TOKENS = 1_000;

/** Counts projects and tokens. Memoised, because counting a million tokens takes the database a few hundred ms. */
export function populationOf(store: Pick<RecordStore, 'population'>, clock: Clock): CountPopulation {
  const memo = new AdaptiveMemo<CountedPopulation>(
    clock,
    1,
    ({ tokens }) => Object.values(tokens).reduce((sum, count) => sum + count, 0) >= MANY_TOKENS,
  );
  const count = async () => {
    const countedAtMs = clock.now();
    return { ...(await store.population(countedAtMs)), countedAtMs };
  };
  return () =>
    memo.current('', count).catch((error: unknown) => {
      if (error instanceof StoreUnavailable) return null;
      throw error;
    });
}
