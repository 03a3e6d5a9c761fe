/** `llmp __complete -- WORDS…`: the candidates for the last word. The scripts of `llmp completion` run it. */
import { visible } from '../../console/escape.js';
import { EXIT } from '../../console/failure.js';
import { command } from '../command.js';
import type { Tree, TreeFor } from '../help/tree.js';
import type { Completes, Option } from '../option.js';
import type { Candidate } from './complete-ids.js';
import { type Line, lineOf, namesOf, optionsOf, takesValue } from './line.js';

/** `files` lets the shell complete file names, which it does best. */
type Offer = 'files' | readonly Candidate[];

const HELP: Option<boolean> = { flags: '-h, --help', meaning: 'show help for a command' };

/** @param treeFor loads the commands that the line can name. */
export const completeCommand = (treeFor: TreeFor) =>
  command({
    path: ['__complete'],
    isHidden: true,
    summary: 'list completions for a command line',
    examples: [],
    argument: { name: 'WORD', meaning: 'the words of the line up to the cursor', required: false, many: true },
    options: {},
    async run({ args, shell, output }) {
      const words = args.slice(0, -1);
      const current = args.at(-1) ?? '';
      const tree = await treeFor(words);
      const line = lineOf(words, tree);
      const offer = await offerFor(current, line, tree, async (what, beginning) => {
        const { candidatesFor } = await import('./complete-ids.js');
        return candidatesFor(what, beginning, line, tree, shell);
      });
      const isWords = offer !== 'files';
      output.text(isWords ? 'words' : 'files');
      for (const { word, meaning } of isWords ? offer : []) {
        // `visible` escapes tabs and newlines in a meaning, which would start a new field or word.
        if (word.startsWith(current)) output.text(meaning === '' ? word : `${word}\t${visible(meaning)}`);
      }
      return EXIT.done;
    },
  });

type Lookup = (what: Completes, beginning: string) => Promise<readonly Candidate[]>;

async function offerFor(current: string, line: Line, tree: Tree, find: Lookup): Promise<Offer> {
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

async function optionsFor(current: string, { command, given }: Line, find: Lookup): Promise<Offer> {
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
  find: Lookup,
): Promise<Offer> {
  if (/<(?:FILE|DIR|FOLDER)>/.test(flags)) return 'files';
  // Only the value after the last comma is completed.
  const [before] = (kind?.isList && /^.*,/s.exec(beginning)) || [''];
  const taken = before.split(',');
  const values = completes
    ? await find(completes, beginning.slice(before.length))
    : (kind?.values ?? []).map((word) => ({ word, meaning: '' }));
  return values.filter(({ word }) => !taken.includes(word)).map((value) => ({ ...value, word: before + value.word }));
}
