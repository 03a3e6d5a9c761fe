/** The text of help: examples first, then options, then further reading. */
import { readVersion } from '../../config/version.js';
import type { Argument, Command } from '../command.js';
import type { Option, Options } from '../option.js';
import { GLOBAL_OPTIONS } from '../globals.js';
import { wrapped } from '../../config/wrapped.js';
import { columnsOf } from './prose.js';
import { TOPICS } from './topics.js';
import type { Tree, Word } from './tree.js';

/** Commands grouped by purpose. A word without a command in this build is omitted. */
const SECTIONS: readonly (readonly [title: string, words: readonly string[]])[] = [
  ['Get started', ['init', 'demo', 'doctor']],
  ['Services', ['daemon', 'dispatcher', 'admin']],
  ['Management', ['tui', 'token', 'project', 'operator', 'trust', 'cache', 'audit', 'events', 'undo', 'manage']],
  ['Use a token', ['run']],
  ['Monitoring', ['status', 'top', 'usage', 'prices']],
  ['Configuration', ['config', 'context', 'login', 'logout', 'whoami', 'migrate', 'backup', 'restore', 'completion']],
];
const OTHERS = 'Help';

export function sectionsOf(tree: Tree): [title: string, words: Word[]][] {
  const words = tree.wordsUnder([]);
  const known = new Set(SECTIONS.flatMap(([, named]) => named));
  const sections = SECTIONS.map(([title, named]): [string, Word[]] => [
    title,
    named.flatMap((word) => words.filter((it) => it.word === word)),
  ]);
  sections.push([OTHERS, words.filter(({ word }) => !known.has(word))]);
  return sections.filter(([, named]) => named.length > 0);
}

const FIRST_STEPS: Command['examples'] = [
  ['demo', 'try llmp on this machine, without a key'],
  ['daemon --env-file llmp.env', 'run the proxy'],
  ['project create --name web --key-file key.txt', 'create a project for an upstream key'],
  ['token generate --duration 48', 'issue a token for two days'],
  ['tui', 'open the terminal UI'],
];

/** @param path the declared path of a command or group. @param width in columns. */
export function helpOf(tree: Tree, path: readonly string[], width: number): string {
  const command = tree.commandAt(path);
  const sections = path.length === 0 ? rootHelp(tree) : command ? commandHelp(path, command) : groupHelp(tree, path);
  return sections.map((section) => rendered(section, width)).join('\n\n');
}

export const introduction = (width: number) =>
  [
    {
      text: [
        `llmp ${readVersion()}: a reverse proxy for LLM APIs. Give clients short-lived tokens; keep the provider's API key on the server.`,
      ],
    },
    { examples: FIRST_STEPS },
    { text: ['All commands: llmp help. Help for a command: llmp help token generate. The manual: llmp man.'] },
  ]
    .map((section) => rendered(section, width))
    .join('\n\n');

interface Section {
  title?: string;
  /** Lines of text, wrapped separately. */
  text?: readonly string[];
  rows?: readonly (readonly [string, string])[];
  /** Command lines without the leading `llmp `. */
  examples?: Command['examples'];
}

function rendered({ title, text = [], rows = [], examples = [] }: Section, width: number): string {
  return [
    ...(title === undefined ? [] : [`${title}:`]),
    ...text.flatMap((line) => wrapped(line, width)),
    ...(rows.length === 0 ? [] : columnsOf(rows, width)),
    ...examples.flatMap(([line, what]) => [`  llmp ${line}`, ...wrapped(what, width - 6).map((it) => `      ${it}`)]),
  ].join('\n');
}

function rootHelp(tree: Tree): Section[] {
  return [
    { text: ['llmp: token-gated reverse proxy for LLM APIs', 'Usage: llmp COMMAND [OPTIONS]'] },
    { title: 'Examples', examples: FIRST_STEPS },
    ...sectionsOf(tree).map(([title, words]) => ({ title, rows: words.map(rowOf) })),
    { title: 'Topics', rows: Object.entries(TOPICS).map(([name, { summary }]) => [`help ${name}`, summary] as const) },
    { title: 'Global options', rows: optionRows(GLOBAL_OPTIONS) },
    { text: ['More: llmp help COMMAND, llmp COMMAND --help, llmp man'] },
  ];
}

const rowOf = ({ word, alias, summary }: Word) => [alias === undefined ? word : `${word}, ${alias}`, summary] as const;

function groupHelp(tree: Tree, path: readonly string[]): Section[] {
  const words = tree.wordsUnder(path);
  const firsts = words.flatMap(({ word }) => tree.commandAt([...path, word])?.examples.slice(0, 1) ?? []);
  return [
    { text: [`llmp ${path.join(' ')}: ${tree.summaryOf(path)}`, `Usage: llmp ${path.join(' ')} COMMAND [OPTIONS]`] },
    ...(firsts.length === 0 ? [] : [{ title: 'Examples', examples: firsts }]),
    { title: 'Commands', rows: words.map(rowOf) },
    { text: [`More: llmp help ${path.join(' ')} COMMAND, llmp man ${path.at(-1) ?? ''}`] },
  ];
}

function commandHelp(path: readonly string[], command: Command): Section[] {
  const { summary, alias, examples, argument, options } = command;
  const words = path.join(' ');
  const page = (path[0] === 'manage' ? path[1] : path[0]) ?? '';
  return [
    {
      text: [
        `llmp ${words}: ${summary}`,
        `Usage: llmp ${synopsisOf(path, command)}${alias === undefined ? '' : `; or llmp ${alias}`}`,
      ],
    },
    ...(examples.length === 0 ? [] : [{ title: 'Examples', examples }]),
    ...(argument ? [{ title: 'Arguments', rows: [[argument.name, argument.meaning] as const] }] : []),
    ...(Object.keys(options).length === 0 ? [] : [{ title: 'Options', rows: optionRows(options) }]),
    { text: [`Global options (-o, -q, -v, --server, …): llmp help. More: llmp man ${page}`] },
  ];
}

/** For example `token revoke [ID...] [OPTIONS]`. If the arguments are another program's command line, options come before them. */
export function synopsisOf(path: readonly string[], { argument, options }: Command): string {
  const isBare = Object.keys(options).length === 0;
  const taken = isBare ? [] : ['[OPTIONS]'];
  if (!argument) return [...path, ...taken].join(' ');
  const shown = argumentShown(argument);
  return [...path, ...(argument.isCommandLine ? [...taken, '--', shown] : [shown, ...taken])].join(' ');
}

function argumentShown({ name, many, required }: Argument): string {
  const shown = many ? `${name}...` : name;
  return required ? shown : `[${shown}]`;
}

/** Aligns the long names of options, with and without a short name. */
function optionRows(options: Options): (readonly [string, string])[] {
  const hasShort = Object.values(options).some(({ flags }) => /^-\w,/.test(flags));
  const shown = ({ flags }: Option<unknown>) => (hasShort && flags.startsWith('--') ? `    ${flags}` : flags);
  return Object.values(options).map((option) => [shown(option), option.meaning] as const);
}
