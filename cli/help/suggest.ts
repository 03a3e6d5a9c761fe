/** What was probably meant by a word that is none. */
import type { Tree } from './tree.js';

/** Words of other tools for what is called otherwise here. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  add: ['create', 'generate'],
  create: ['generate'],
  delete: ['revoke', 'deactivate', 'remove'],
  describe: ['get'],
  disable: ['deactivate', 'revoke'],
  enable: ['activate', 'reactivate'],
  generate: ['create'],
  issue: ['generate'],
  ls: ['list'],
  logs: ['tail'],
  new: ['generate', 'create'],
  rm: ['revoke', 'remove'],
  show: ['get'],
  start: ['daemon'],
  watch: ['tail'],
};

/**
 * For a word that does not follow `path`: one that does, or a command elsewhere that ends like that.
 *
 * @param trees the tree at hand, and how to get the one with every command.
 * @param others what else might have been meant.
 */
export async function suggestedCommand(
  path: readonly string[],
  given: string,
  { tree, wholeTree }: { tree: Tree; wholeTree: () => Promise<Tree> },
  others: readonly string[] = [],
): Promise<string> {
  const words = tree.wordsUnder(path).flatMap(({ word, alias }) => (alias === undefined ? [word] : [word, alias]));
  const here = [...words, ...others];
  const near = nearest(given, here);
  if (near.length > 0) return question(near);
  const otherwise = here.filter((word) => SYNONYMS[given]?.includes(word));
  if (otherwise.length > 0) return question(otherwise);
  if (path.length > 0) return '';
  const below = (await wholeTree()).commands.filter(({ path: { length } }) => length > 1);
  const ends = new Set(nearest(given, [...new Set(below.map((it) => it.path.at(-1) ?? ''))]));
  return question(below.filter((it) => ends.has(it.path.at(-1) ?? '')).map((it) => it.path.join(' ')));
}

/** @param options as they are declared, such as `-o, --output <FORMAT>`. */
export function suggestedOption(given: string, options: readonly { flags: string }[]): string {
  const names = options.flatMap(({ flags }) => flags.match(/(?<=^|\s)--[\w-]+/g) ?? []);
  return question(nearest(given, [...names, '--help']));
}

export const suggestedValue = (given: string, values: readonly string[]) => question(nearest(given, values));

const MOST_SUGGESTED = 3;

function question(words: readonly string[]): string {
  return words.length === 0 || words.length > MOST_SUGGESTED ? '' : `Did you mean ${words.join(' or ')}?`;
}

const MOST_EDITS = 3;
const LEAST_ALIKE = 0.4;

/** Those with the fewest edits, unless they are hardly alike. */
function nearest(given: string, words: readonly string[]): string[] {
  const bare = (word: string) => word.replace(/^--/, '');
  const rated = words
    .map((word) => ({ word, edits: editsBetween(bare(given), bare(word)) }))
    .filter(({ word, edits }) => {
      const length = Math.max(bare(given).length, bare(word).length);
      return edits <= MOST_EDITS && (length - edits) / length > LEAST_ALIKE;
    });
  const fewest = Math.min(...rated.map(({ edits }) => edits));
  return rated.filter(({ edits }) => edits === fewest).map(({ word }) => word);
}

/** Letters put in, left out, replaced, or two swapped (the restricted Damerau-Levenshtein distance). */
function editsBetween(one: string, other: string): number {
  // No word of ours is near one so long.
  if (Math.abs(one.length - other.length) > MOST_EDITS) return MOST_EDITS + 1;
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
