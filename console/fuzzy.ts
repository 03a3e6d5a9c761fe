/** Finds what a few typed letters mean. */

/** Ranks, the best first. */
const BEGINS = 0;
const WORD_BEGINS = 1;
const CONTAINS = 2;
const LETTERS = 3;

const isWordStart = (text: string, at: number) => at === 0 || !/[\p{L}\p{N}]/u.test(text.charAt(at - 1));

/**
 * How well `typed` matches: as the beginning of the text, of one of its words, as a part of it, or as some of its letters in their order,
 * the first one at the beginning of a word. Case is ignored. The time is linear in the length of the text.
 *
 * @returns null if it does not match; less is better.
 */
export function fuzzyRank(typed: string, text: string): number | null {
  const [wanted, whole] = [typed.toLowerCase(), text.toLowerCase()];
  if (whole.startsWith(wanted)) return BEGINS;
  const at = whole.indexOf(wanted);
  if (at !== -1) {
    for (let next = at; next !== -1; next = whole.indexOf(wanted, next + wanted.length)) {
      if (isWordStart(whole, next)) return WORD_BEGINS;
    }
    return CONTAINS;
  }
  return hasLetters(Array.from(wanted), whole) ? LETTERS : null;
}

function hasLetters([first = '', ...others]: readonly string[], whole: string): boolean {
  let from = whole.indexOf(first);
  while (from !== -1 && !isWordStart(whole, from)) from = whole.indexOf(first, from + 1);
  if (from === -1) return false;
  // The earliest place for each letter leaves the most text for the others.
  for (const letter of others) {
    from = whole.indexOf(letter, from + 1);
    if (from === -1) return false;
  }
  return true;
}

/** The items that match, the best first, otherwise in their order. */
export function fuzzyFound<T>(typed: string, items: readonly T[], textOf: (item: T) => string): T[] {
  return items
    .flatMap((item) => {
      const rank = fuzzyRank(typed, textOf(item));
      return rank === null ? [] : [{ item, rank }];
    })
    .sort((one, other) => one.rank - other.rank)
    .map(({ item }) => item);
}
