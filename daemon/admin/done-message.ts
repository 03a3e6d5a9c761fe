import { counted } from '../api/formats.js';
import type { PageRequest } from './page-request.js';

/** Success message on the page after a change. A parameter of the query selects one of `words` by name and cannot contain a text. */
export function doneMessage(
  { query }: PageRequest,
  words: Readonly<Record<string, string>>,
  parameter = 'done',
): string | null {
  const done = query.get(parameter) ?? '';
  return Object.hasOwn(words, done) ? (words[done] ?? null) : null;
}

/** Success message with a count, which is in the query under the name `done`. */
export function countMessage({ query }: PageRequest, done: string, one: string): string | null {
  const count = query.get(done);
  return count !== null && /^\d{1,12}$/.test(count) ? `${counted(Number(count), one)} ${done}.` : null;
}
