/** Generates the manual: a page for each first word of the command line, and the overview llmp(1). */
import { chapter, entries, heading, literal, paragraphs, roff } from '../../config/roff.js';
import type { Command } from '../command.js';
import type { Options } from '../option.js';
import { GLOBAL_OPTIONS } from '../globals.js';
import { sectionsOf, synopsisOf } from '../help/help.js';
import type { Block } from '../help/prose.js';
import { TOPICS } from '../help/topics.js';
import type { Tree } from '../help/tree.js';
import type { CustomKeys } from '../../tui/state/state.js';
import { DESCRIPTIONS, OVERVIEW } from './descriptions.js';
import { keySection } from './keys.js';

/** Services are in section 8 of the manual, other commands in section 1. */
const SERVICES: readonly string[] = ['daemon', 'dispatcher', 'admin'];
const sectionOf = (word: string) => (SERVICES.includes(word) ? 8 : 1);

const SOURCE = 'the declarations in cli/';

/** @param tree all commands. @returns the pages, by the names of their files. */
export function manualPages(tree: Tree): ReadonlyMap<string, string> {
  const words = tree.wordsUnder([]).filter(({ word }) => word !== 'manage');
  const pages = words.map(({ word }) => [`llmp-${word}.${sectionOf(word)}`, pageOf(tree, word)] as const);
  return new Map([['llmp.1', overview(tree)], ...pages]);
}

function overview(tree: Tree): string {
  const { environment, formatting, 'exit-codes': exitCodes, security } = TOPICS;
  return text([
    ...heading('llmp', 1, SOURCE),
    ...chapter('NAME', [`llmp - ${tree.commandAt([])?.summary ?? 'token-gated reverse proxy for LLM APIs'}`]),
    ...chapter('SYNOPSIS', ['`llmp` COMMAND [OPTIONS]']),
    ...chapter('DESCRIPTION', []),
    ...blocks(OVERVIEW),
    '.SH COMMANDS',
    ...sectionsOf(tree).flatMap(([title, words]) => [
      `.SS ${roff(title)}`,
      ...words.flatMap(({ word, summary }) =>
        word === 'manage'
          ? entries([['llmp manage', sentence(summary)]])
          : ['.TP', `.BR ${roff(`llmp-${word}`)} (${sectionOf(word)})`, roff(sentence(summary))],
      ),
    ]),
    ...chapter('OPTIONS', ['Every command accepts these global options, anywhere on the command line:']),
    ...optionEntries(GLOBAL_OPTIONS),
    ...section('OUTPUT', formatting?.blocks ?? []),
    ...section('ENVIRONMENT', environment?.blocks ?? []),
    ...section('EXIT STATUS', exitCodes?.blocks ?? []),
    ...section('SECURITY', security?.blocks ?? []),
    ...seeAlso([
      'llmp(7)',
      'llmp.env(5)',
      ...SERVICES.filter((it) => tree.resolved([it])).map((it) => `llmp-${it}(8)`),
    ]),
  ]);
}

/** The page about the terminal UI, with the keys in effect. */
export const terminalPage = (tree: Tree, customKeys: CustomKeys): string => pageOf(tree, 'tui', customKeys);

function pageOf(tree: Tree, word: string, customKeys?: CustomKeys): string {
  const own = tree.commandAt([word]);
  const below = tree.wordsUnder([word]).flatMap((next) => {
    const path = [word, next.word];
    const command = tree.commandAt(path);
    return command ? [{ path, command }] : [];
  });
  const commands = [...(own ? [{ path: [word], command: own }] : []), ...below];
  const prose = DESCRIPTIONS[word];
  const name = `llmp-${word}`;
  return text([
    ...heading(name, sectionOf(word), SOURCE),
    ...chapter('NAME', [`${name} - ${own?.summary ?? tree.summaryOf([word])}`]),
    '.SH SYNOPSIS',
    ...synopses(commands),
    ...section('DESCRIPTION', [...(prose?.description ?? []), ...otherNames(tree, word, own)]),
    ...(below.length === 0 ? [] : ['.SH COMMANDS', ...below.flatMap(subsection)]),
    ...(own ? ['.SH OPTIONS', ...argumentAndOptions(own), ...paragraphs([OTHER_OPTIONS])] : []),
    ...examples(commands),
    ...Object.entries({ ...prose?.sections, ...(customKeys && keySection(customKeys)) }).flatMap(([title, contents]) =>
      section(title, contents),
    ),
    ...chapter('EXIT STATUS', [prose?.exitStatus ?? 'See llmp(1).']),
    ...seeAlso(['llmp(1)', ...(prose?.seeAlso ?? []), 'llmp(7)']),
  ]);
}

const OTHER_OPTIONS = 'Global options, such as `-o`, `-q` and `--server`, are described in llmp(1).';

function otherNames(tree: Tree, word: string, own: Command | undefined): string[] {
  if (own?.alias !== undefined) return [`\`llmp ${own.alias}\` is the same command.`];
  return tree.resolved(['manage', word]) ? [`\`llmp manage ${word}\` is the same command.`] : [];
}

type Placed = { path: readonly string[]; command: Command };

function synopses(commands: readonly Placed[]): string[] {
  const lines = commands.map(({ path, command }) => {
    const words = path.join(' ');
    return roff(`\`llmp ${words}\`${synopsisOf(path, command).slice(words.length)}`);
  });
  return ['.nf', ...lines, '.fi'];
}

function subsection({ path, command }: Placed): string[] {
  return [
    `.SS ${roff(`llmp ${synopsisOf(path, command)}`)}`,
    ...paragraphs([sentence(command.summary)]),
    ...argumentAndOptions(command),
  ];
}

function argumentAndOptions({ argument, options }: Command): string[] {
  const operand = argument ? ['.TP', `.I ${roff(argument.name)}`, roff(sentence(argument.meaning))] : [];
  return [...operand, ...optionEntries(options)];
}

function optionEntries(options: Options): string[] {
  return Object.values(options).flatMap(({ flags, meaning }) => ['.TP', flagsShown(flags), roff(sentence(meaning))]);
}

/** `-o, --output <FORMAT>`: names in bold, the placeholder in italics. */
function flagsShown(flags: string): string {
  const [, names = flags, value] = /^(.*?)(?: [<[](.*)[>\]])?$/.exec(flags) ?? [];
  const bold = names.split(', ').map((name) => `\\fB${roff(name)}\\fR`);
  return `${bold.join(', ')}${value === undefined ? '' : ` \\fI${roff(value)}\\fR`}`;
}

function examples(commands: readonly Placed[]): string[] {
  const all = commands.flatMap(({ command }) => command.examples);
  if (all.length === 0) return [];
  return [
    '.SH EXAMPLES',
    ...all.flatMap(([line, what]) => [
      ...paragraphs([sentence(what).replace(/\.$/, ':')]),
      ...literal([`llmp ${line}`]),
    ]),
  ];
}

const seeAlso = (pages: readonly string[]) =>
  chapter('SEE ALSO', [[...new Set(pages)].map((page) => page.replace(/^[^(]+/, '`$&`')).join(', ')]);

const section = (title: string, contents: readonly Block[]) => [`.SH ${title}`, ...blocks(contents)];

const blocks = (contents: readonly Block[]) =>
  contents.flatMap((block) => {
    if (typeof block === 'string') return paragraphs([block]);
    return 'lines' in block ? literal(block.lines) : entries(block.entries);
  });

/** Makes a sentence of a phrase. The first word is not capitalized if it is part of a list of literal values. */
const sentence = (phrase: string) => `${phrase.replace(/^[a-z]+(?=[ ;'])/, capitalized).replace(/\.$/, '')}.`;
const capitalized = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

const text = (lines: readonly string[]) => `${lines.join('\n')}\n`;
