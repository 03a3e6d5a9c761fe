/** Words that are similar to a mistyped one. */

const MAX_EDITS = 3;
const MIN_SIMILARITY = 0.4;

/** @returns the words with the smallest edit distance, if they are similar enough. */
export function nearest(given: string, words: readonly string[]): string[] {
  const bare = (word: string) => word.replace(/^--/, '');
  const rated = words
    .map((word) => ({ word, edits: editsBetween(bare(given), bare(word)) }))
    .filter(({ word, edits }) => {
      const length = Math.max(bare(given).length, bare(word).length);
      return edits <= MAX_EDITS && (length - edits) / length > MIN_SIMILARITY;
    });
  const fewest = Math.min(...rated.map(({ edits }) => edits));
  return rated.filter(({ edits }) => edits === fewest).map(({ word }) => word);
}

/** @returns a question with the most similar word, or else the other advice. */
export function didYouMean(given: string, words: readonly string[], otherwise: string): string {
  const [near] = nearest(given, words);
  return near === undefined ? otherwise : `did you mean ${near}?`;
}

/** The restricted Damerau-Levenshtein distance: insertions, deletions, replacements and swaps of neighbouring letters. */
function editsBetween(one: string, other: string): number {
  // Such a difference in length already exceeds the limit.
  if (Math.abs(one.length - other.length) > MAX_EDITS) return MAX_EDITS + 1;
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const above = rows[i - 1] ?? [];
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row.push(
        Math.min(
          (above[j] ?? 0) + 1,
          (row[j - 1] ?? 0) + 1,
          (above[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1),
          isSwapped ? (rows[i - 2]?.[j - 2] ?? 0) + 1 : Infinity,
        ),
      );
    }
    rows.push(row);
  }
  return rows.at(-1)?.at(-1) ?? 0;
}
