/** The filter of events for failed requests only, as a part of a filter line. */
import { termsOf } from '../../console/query/terms.js';

const ONLY_FAILURES = 'outcome:failed';

const partOf = (filter: string) =>
  termsOf(filter).find(({ at, length }) => filter.slice(at, at + length).toLowerCase() === ONLY_FAILURES);

export const isOnly = (filter: string): boolean => partOf(filter) !== undefined;

/** Adds the part, or removes it. */
export function toggled(filter: string): string {
  const part = partOf(filter);
  if (!part) return `${filter} ${ONLY_FAILURES}`.trim();
  return `${filter.slice(0, part.at).trimEnd()} ${filter.slice(part.at + part.length).trimStart()}`.trim();
}
