/** Generates docs/cli.md and docs/keys.md from the declarations of commands and keys. */
import type { Command } from '../command.js';
import { wholeTree } from '../commands.js';
import { GLOBAL_OPTIONS } from '../globals.js';
import { sectionsOf, synopsisOf } from '../help/help.js';
import type { Block } from '../help/prose.js';
import { TOPICS } from '../help/topics.js';
import type { Tree } from '../help/tree.js';
import type { Options } from '../option.js';
import { DESCRIPTIONS } from './descriptions.js';
import { commandBlock, type KeyRow, keyTables } from './keys.js';

const GENERATED = (source: string) => `<!-- Written by \`npm run docs\` from ${source}. Do not edit it here. -->`;

/** @returns the pages, by the names of their files in docs/. */
export async function markdownPages(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ['cli.md', commandLine(await wholeTree())],
    ['keys.md', keys()],
  ]);
}

function commandLine(tree: Tree): string {
  const sections = sectionsOf(tree).map(([title, words]) => ({
    title,
    words: words.filter(({ word }) => word !== 'manage'),
  }));
  return page([
    GENERATED('cli/'),
    '# Command line',
    'This page lists every command. `llmp help COMMAND` and `llmp man COMMAND` show the same text in a terminal.',
    'Commands that manage a daemon also work with `manage` in front: `llmp manage token list` is `llmp token list`.',
    ...sections.flatMap(({ title, words }) => [
      `**${title}**`,
      words.map(({ word, summary }) => `- [\`llmp ${word}\`](#llmp-${word}): ${escaped(sentence(summary))}`).join('\n'),
    ]),
    '## Global options',
    optionTable(GLOBAL_OPTIONS),
    ...Object.entries(TOPICS).flatMap(([name, { blocks }]) => [
      `## ${capitalized(name.replaceAll('-', ' '))}`,
      ...blocks.map(markdown),
    ]),
    ...sections.flatMap(({ words }) => words.flatMap(({ word }) => group(tree, word))),
  ]);
}

/** The section about a first word of the command line, with its commands. */
function group(tree: Tree, word: string): string[] {
  const own = tree.commandAt([word]);
  const below = tree.wordsUnder([word]).map((next) => [word, next.word]);
  const prose = DESCRIPTIONS[word];
  return [
    `## llmp ${word}`,
    escaped(sentence(own?.summary ?? tree.summaryOf([word]))),
    ...(own ? commandBody([word], own) : []),
    ...(prose?.description ?? []).map(markdown),
    ...below.flatMap((path) => {
      const command = tree.commandAt(path);
      return command
        ? [`### llmp ${path.join(' ')}`, escaped(sentence(command.summary)), ...commandBody(path, command)]
        : [];
    }),
    ...Object.entries(prose?.sections ?? {}).flatMap(([title, blocks]) => [
      `**${capitalized(title.toLowerCase())}**`,
      ...blocks.map(markdown),
    ]),
  ];
}

function commandBody(path: readonly string[], command: Command): string[] {
  const { argument, options, examples } = command;
  const argumentRows = argument ? [[argument.name, argument.meaning] as const] : [];
  const optionRows = rowsOf(options);
  return [
    fenced([`llmp ${synopsisOf(path, command)}`], 'text'),
    ...([...argumentRows, ...optionRows].length === 0 ? [] : [table([...argumentRows, ...optionRows])]),
    ...(examples.length === 0
      ? []
      : [
          ILLUSTRATION,
          fenced(
            examples.flatMap(([line, what]) => [`# ${sentence(what)}`, `llmp ${line}`]),
            'sh',
          ),
        ]),
  ];
}

const ILLUSTRATION = '<!-- illustration -->';

function keys(): string {
  return page([
    GENERATED('tui/keys/'),
    '# Keys of the terminal UI',
    'Press `?` in the terminal UI to see the keys of the current screen. `^X` means Ctrl with X.',
    'These are the default keys. [The file `keys.toml`](themes-and-keys.md#keys) gives an action, named in the last column, other keys.',
    '`:` opens the command line, whose [commands](#commands) are at the end of this page.',
    ...keyTables().flatMap(({ title, rows }) => [`## ${title.replace(/:$/, '')}`, keyTable(rows)]),
    '## Commands',
    markdown(commandBlock()),
  ]);
}

const keyTable = (rows: readonly KeyRow[]) =>
  [
    '| Keys | Meaning | Action |',
    '| --- | --- | --- |',
    ...rows.map(({ keys, meaning, action }) => `| \`${inCell(keys)}\` | ${inCell(escaped(meaning))} | \`${action}\` |`),
  ].join('\n');

function markdown(block: Block): string {
  if (typeof block === 'string') return escaped(block);
  return 'lines' in block ? `${ILLUSTRATION}\n\n${fenced(block.lines, 'sh')}` : table(block.entries);
}

const rowsOf = (options: Options) => Object.values(options).map(({ flags, meaning }) => [flags, meaning] as const);
const optionTable = (options: Options) => table(rowsOf(options));

function table(rows: readonly (readonly [term: string, meaning: string])[]): string {
  const lines = rows.map(([term, meaning]) => `| \`${inCell(term)}\` | ${inCell(escaped(sentence(meaning)))} |`);
  return ['| | |', '| --- | --- |', ...lines].join('\n');
}

const fenced = (lines: readonly string[], language: string) => [`\`\`\`${language}`, ...lines, '```'].join('\n');
const inCell = (text: string) => text.replaceAll('|', '\\|');
/** Escapes characters that Markdown would read as HTML or emphasis, except in code. */
const escaped = (text: string) =>
  text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replace(/[<*_]/g, (sign) => `\\${sign}`)))
    .join('');
const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const sentence = (phrase: string) =>
  `${phrase.replace(/^(?!llmp\b)[a-z]+(?=[ ,;'])/, capitalized).replace(/\.$/, '')}.`;
const page = (parts: readonly string[]) => `${parts.join('\n\n')}\n`;
