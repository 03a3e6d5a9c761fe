/** How all front ends name failures, and each kind of them. */
import { counted, exact } from './formats.js';
import { FAILURE_KINDS, type FailureKind } from './vocabulary.js';

export type FailuresByKind = Readonly<Record<FailureKind, number>>;

/** In lists and sentences. `refused`: by llmp. */
export const FAILURE_WORDS: Readonly<Record<FailureKind, string>> = {
  refused: 'refused',
  upstream_refused: 'provider refused',
  failed: 'failed',
  cut: 'cut',
};

/** As titles of columns and series. */
export const FAILURE_TITLES: Readonly<Record<FailureKind, string>> = {
  refused: 'Refused',
  upstream_refused: 'Provider refused',
  failed: 'Failed',
  cut: 'Cut',
};

/** The kinds of failures that occurred. */
export const failureKinds = (counts: FailuresByKind): { label: string; count: number }[] =>
  FAILURE_KINDS.map((kind) => ({ label: FAILURE_WORDS[kind], count: counts[kind] })).filter(({ count }) => count > 0);

/** `5 failures`, and of which kinds: `5 failures: 3 refused, 2 failed`. */
export function failuresShown(counts: FailuresByKind & { errors: number }): string {
  const kinds = failureKinds(counts).map(({ label, count }) => `${exact(count)} ${label}`);
  return `${counted(counts.errors, 'failure')}${kinds.length === 0 ? '' : `: ${kinds.join(', ')}`}`;
}
