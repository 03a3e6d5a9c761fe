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
 * Suggests a replacement for an unknown word after `path`: a synonym, a similar word, or a command of another group.
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
  const meant = here.filter((word) => SYNONYMS[given]?.includes(word));
  if (meant.length > 0) return question(meant);
  const near = nearest(given, here);
  if (path.length > 0) return near.length > 0 ? question(near) : '';
  const below = (await wholeTree()).commands.filter(({ path: { length } }) => length > 1);
  const endingWith = (ends: readonly string[]) =>
    below.filter((it) => ends.includes(it.path.at(-1) ?? '')).map((it) => it.path.join(' '));
  const exact = endingWith([given]);
  if (exact.length > 0 || near.length > 0) return question(exact.length > 0 ? exact : near);
  return question(endingWith(nearest(given, [...new Set(below.map((it) => it.path.at(-1) ?? ''))])));
}

/**
 * Suggests a similar option, or a command of the same group that has this option.
 *
 * @param path of the command. @param globals the options of every command.
 */
export function suggestedOption(
  given: string,
  path: readonly string[],
  { tree, globals }: { tree: Tree; globals: readonly Declared[] },
): string {
  const similar = nearest(given, [...namesIn(tree.commandAt(path)?.options, globals), '--help']);
  if (similar.length > 0) return question(similar);
  const group = path.slice(0, -1);
  const siblings = group.length === 0 ? [] : tree.wordsUnder(group).map(({ word }) => [...group, word]);
  const having = siblings.filter((sibling) => namesIn(tree.commandAt(sibling)?.options).includes(given));
  return question(having.map((sibling) => `${sibling.join(' ')} ${given}`));
}

/** For example `-o, --output <FORMAT>`. */
interface Declared {
  flags: string;
}

const namesIn = (options: Readonly<Record<string, Declared>> = {}, more: readonly Declared[] = []) =>
  [...Object.values(options), ...more].flatMap(({ flags }) => flags.match(/(?<=^|\s)--[\w-]+/g) ?? []);

export const suggestedValue = (given: string, values: readonly string[]) => question(nearest(given, values));

const MAX_SUGGESTIONS = 3;

function question(words: readonly string[]): string {
  return words.length === 0 || words.length > MAX_SUGGESTIONS ? '' : `Did you mean ${words.join(' or ')}?`;
}
