/** Highlights the words of the filter in a text. */
import type { Role } from './roles.js';
import { strip, type Strip, text } from './strip.js';

/** @param words in lower case. */
export function withFound(whole: string, words: readonly string[], role: Role = 'plain'): Strip {
  const lower = whole.toLowerCase();
  // No highlights if lower case changes the length, which would shift them, or if they could split a composed character.
  if (words.length === 0 || lower.length !== whole.length || /[\p{M}\u200d]/u.test(whole))
    return strip(text(whole, role));
  const out = [];
  let from = 0;
  while (from < whole.length) {
    const next = earliest(lower, words, from);
    if (!next) break;
    out.push(text(whole.slice(from, next.at), role), text(whole.slice(next.at, next.at + next.length), 'found'));
    from = next.at + next.length;
  }
  return strip(...out, text(whole.slice(from), role)).filter(({ text: words }) => words !== '');
}

function earliest(lower: string, words: readonly string[], from: number): { at: number; length: number } | undefined {
  return words
    .filter((word) => word !== '')
    .map((word) => ({ at: lower.indexOf(word, from), length: word.length }))
    .filter(({ at }) => at !== -1)
    .sort((one, other) => one.at - other.at || other.length - one.length)[0];
}
