/** Runs random histories of admission, for the quick suite and the long one. */
import { type HistoryOptions, runHistory, type Sabotage, Violation } from '../support/model.js';

const STEPS = 120;
const STEPS_OF_SEVERAL = 250;

export type Kind = Omit<HistoryOptions, 'seed' | 'steps' | 'sabotage'>;

const stepsOf = ({ instances = 1 }: Kind) => (instances === 1 ? STEPS : STEPS_OF_SEVERAL);

/** @throws {Violation} */
export async function runHistories(count: number, options: Kind, firstSeed: number) {
  const totals = { forwarded: 0, reads: 0, kills: 0 };
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    const { forwarded, reads, kills } = await runHistory({ ...options, seed, steps: stepsOf(options) });
    totals.forwarded += forwarded;
    totals.reads += reads;
    totals.kills += kills;
  }
  return totals;
}

/** Number of histories needed to detect a deliberately broken store; null if more than `most`. */
export async function historiesToNotice(sabotage: Sabotage, kind: Kind, most: number): Promise<number | null> {
  for (let n = 1; n <= most; n++) {
    try {
      await runHistory({ ...kind, seed: n, steps: stepsOf(kind), sabotage });
    } catch (error) {
      if (error instanceof Violation) return n;
      throw error;
    }
  }
  return null;
}
