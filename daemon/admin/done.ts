import { counted } from './pages/words.js';
import type { Visit } from './visit.js';

/** What the page that a change leads to says of it: the query names one of these sentences, and none of its own. */
export function doneOf({ query }: Visit, words: Readonly<Record<string, string>>): string | null {
  const done = query.get('done') ?? '';
  return Object.hasOwn(words, done) ? (words[done] ?? null) : null;
}

/** The same with a number, which stands in the query by the name of what was done. */
export function countDone({ query }: Visit, done: string, one: string): string | null {
  const count = query.get(done);
  return count !== null && /^\d{1,12}$/.test(count) ? `${counted(Number(count), one)} ${done}.` : null;
}
