/** `llmp __complete -- WORDS…`, which the scripts of `llmp completion` ask: what may stand in the place of the last word. */
import { command, type Command, type Completes, type Option } from '../command.js';
import { commandsFor } from '../commands.js';
import { visible } from '../../console/escape.js';
import { EXIT } from '../../console/failure.js';
import { GLOBAL_OPTIONS } from '../globals.js';
import { Tree } from '../help/tree.js';

/** A word, and what a person may want to know of it, if anything. */
export interface Candidate {
  word: string;
  meaning: string;
}

/** The line up to the word in question. */
export interface Line {
  path: readonly string[];
  command: Command | undefined;
  args: readonly string[];
  /** Texts of options by their keys. */
  given: Readonly<Record<string, string>>;
  /** The one whose value comes next. */
  awaiting: Option<unknown> | undefined;
  /** Whether a word that begins with - is an option. */
  takesOptions: boolean;
}

/** `files` for what the shell itself completes best. */
type Offer = 'files' | readonly Candidate[];

const HELP: Option<boolean> = { flags: '-h, --help', meaning: 'explain a command' };

export const completeCommand = command({
  path: ['__complete'],
  isHidden: true,
  summary: 'say what may come next',
  examples: [],
  argument: { name: 'WORD', meaning: 'the words of the line up to the cursor', required: false, many: true },
  options: {},
  async run({ args, shell, output }) {
    const words = args.slice(0, -1);
    const current = args.at(-1) ?? '';
    const tree = new Tree(await commandsFor(words));
    const line = lineOf(words, tree);
    const offer = await offerFor(current, line, tree, async (what, beginning) => {
      const { found } = await import('./complete-ids.js');
      return found(what, beginning, line, tree, shell);
    });
    const isWords = offer !== 'files';
    output.text(isWords ? 'words' : 'files');
    for (const { word, meaning } of isWords ? offer : []) {
      // A tab or a newline in a meaning would be a word of its own; visible shows it.
      if (word.startsWith(current)) output.text(meaning === '' ? word : `${word}\t${visible(meaning)}`);
    }
    return EXIT.done;
  },
});

/** As the parser would read it, except that nothing is a mistake. */
export function lineOf(words: readonly string[], tree: Tree): Line {
  let path: readonly string[] = [];
  const args: string[] = [];
  const given: Record<string, string> = {};
  let awaiting: readonly [string, Option<unknown>] | undefined;
  let takesOptions = true;
  for (const word of words) {
    const next = args.length === 0 ? tree.resolved([...path, word]) : undefined;
    if (awaiting) {
      given[awaiting[0]] = word;
      awaiting = undefined;
    } else if (takesOptions && word === '--') takesOptions = false;
    else if (takesOptions && /^-./.test(word)) {
      const [, name = word, attached] = /^(--[^=]*|-\w)=?(.+)?$/s.exec(word) ?? [];
      const found = optionsOf(tree.commandAt(path)).find(([, option]) => namesOf(option).includes(name));
      given[found?.[0] ?? name] = attached ?? '';
      if (found && takesValue(found[1]) && attached === undefined) awaiting = found;
    } else if (next) path = next;
    else {
      args.push(word);
      // What follows the name of a command that is to be run is that command's.
      if (tree.commandAt(path)?.argument?.isCommandLine) takesOptions = false;
    }
  }
  return { path, command: tree.commandAt(path), args, given, awaiting: awaiting?.[1], takesOptions };
}

const optionsOf = (command: Command | undefined): [string, Option<unknown>][] => [
  ...Object.entries(command?.options ?? {}),
  ...Object.entries(GLOBAL_OPTIONS),
];
const namesOf = ({ flags }: Option<unknown>): readonly string[] => flags.match(/(?<=^|\s)--?[\w-]+/g) ?? [];
const takesValue = ({ flags }: Option<unknown>) => flags.includes('<');

type Find = (what: Completes, beginning: string) => Promise<readonly Candidate[]>;

async function offerFor(current: string, line: Line, tree: Tree, find: Find): Promise<Offer> {
  const { path, command, args, awaiting, takesOptions } = line;
  if (awaiting) return valuesOf(awaiting, current, find);
  if (takesOptions && current.startsWith('-')) return optionsFor(current, line, find);

  const words = args.length > 0 ? [] : tree.wordsUnder(path).map(({ word, summary }) => ({ word, meaning: summary }));
  const { argument } = command ?? {};
  if (argument?.isCommandLine) return 'files';
  if (!argument || (args.length > 0 && !argument.many)) return words;
  const values = await valuesOf({ ...argument, flags: `<${argument.name}>` }, current, find);
  return values === 'files' ? values : [...words, ...values.filter(({ word }) => !args.includes(word))];
}

async function optionsFor(current: string, { command, given }: Line, find: Find): Promise<Offer> {
  const options = optionsOf(command);
  const [, name, beginning] = /^(--[^=]+)=(.*)$/s.exec(current) ?? [];
  if (name !== undefined && beginning !== undefined) {
    const option = options.map(([, it]) => it).find((it) => namesOf(it).includes(name));
    const values = option && takesValue(option) ? await valuesOf(option, beginning, find) : [];
    return values === 'files' ? values : values.map((it) => ({ ...it, word: `${name}=${it.word}` }));
  }
  const open = [...options.filter(([key]) => !(key in given)).map(([, option]) => option), HELP];
  return open.flatMap((option) =>
    namesOf(option)
      .filter((it) => it.startsWith('--'))
      .map((word) => ({ word, meaning: option.meaning })),
  );
}

async function valuesOf(
  { flags, kind, completes }: Pick<Option<unknown>, 'flags' | 'kind' | 'completes'>,
  beginning: string,
  find: Find,
): Promise<Offer> {
  if (/<(?:FILE|DIR|FOLDER)>/.test(flags)) return 'files';
  if (completes) return find(completes, beginning);
  const values = kind?.values ?? [];
  // Those before the last comma stand.
  const [before] = (kind?.isList && /^.*,/s.exec(beginning)) || [''];
  const taken = before.split(',');
  return values.filter((value) => !taken.includes(value)).map((value) => ({ word: before + value, meaning: '' }));
}
