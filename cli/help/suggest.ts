/** Suggestions for mistyped commands, options and values. */
import { nearest } from '../../config/nearest.js';
import type { Tree } from './tree.js';

/** Words that other tools use for the same action. */
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
 * Suggests a replacement for an unknown word after `path`: a similar word, a synonym, or a command of another group.
 *
 * @param trees the current tree, and a function that loads the complete one.
 * @param others additional candidates.
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

/** @param options their declarations, for example `-o, --output <FORMAT>`. */
export function suggestedOption(given: string, options: readonly { flags: string }[]): string {
  const names = options.flatMap(({ flags }) => flags.match(/(?<=^|\s)--[\w-]+/g) ?? []);
  return question(nearest(given, [...names, '--help']));
}

export const suggestedValue = (given: string, values: readonly string[]) => question(nearest(given, values));

const MAX_SUGGESTIONS = 3;

function question(words: readonly string[]): string {
  return words.length === 0 || words.length > MAX_SUGGESTIONS ? '' : `Did you mean ${words.join(' or ')}?`;
}
