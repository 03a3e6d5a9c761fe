import { AdaptiveMemo } from './adaptive-memo.js';
import { type Clock, type Population, type RecordStore, type Scope, StoreUnavailable } from './ports.js';

export interface CountedPopulation extends Population {
  countedAtMs: number;
}

/** @returns null when the database is unavailable. */
export type CountPopulation = (scope: Scope) => Promise<CountedPopulation | null>;

/** Fewer tokens are counted each time: even on a busy machine, the first project must be seen at once. */
const MANY_TOKENS = 1_000;
/** Counts of different scopes that are reused. */
const MAX_REUSED = 32;

/** Counts projects and tokens. Memoised, because counting a million tokens takes the database a few hundred ms. */
export function populationOf(store: Pick<RecordStore, 'population'>, clock: Clock): CountPopulation {
  const memo = new AdaptiveMemo<CountedPopulation>(
    clock,
    MAX_REUSED,
    ({ tokens }) => Object.values(tokens).reduce((sum, count) => sum + count, 0) >= MANY_TOKENS,
  );
  const count = async (scope: Scope) => {
    const countedAtMs = clock.now();
    return { ...(await store.population(countedAtMs, scope)), countedAtMs };
  };
  return (scope) =>
    memo
      .current(JSON.stringify(scope), () => count(scope))
      .catch((error: unknown) => {
        if (error instanceof StoreUnavailable) return null;
        throw error;
      });
}
