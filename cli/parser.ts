/** The declared commands as a commander program: the only file that knows commander. */
import { type CommanderError, Command as Node, Help, Option as NodeOption } from 'commander';
import { readVersion } from '../config/version.js';
import type { Command, Option, Options } from './command.js';
import { commandsFor, GROUPS, pathsOf, rootCommand } from './commands.js';
import { type Failure, failureOf, quoted, usage } from './failure.js';
import { GLOBAL_OPTIONS, type Globals } from './globals.js';
import type { Shell } from './shell.js';

export type Outcome =
  | { kind: 'chosen'; command: Command; args: readonly string[]; options: Record<string, unknown> }
  /** Help or the version was asked for and has been printed. */
  | { kind: 'shown' }
  | { kind: 'failed'; failure: Failure };

export interface Parsed {
  outcome: Outcome;
  /** When parsing failed, as far as they were understood. */
  globals: Globals;
  helpOf: (path: readonly string[]) => string | undefined;
}

export async function parse(argv: readonly string[], shell: Shell): Promise<Parsed> {
  let outcome: Outcome = { kind: 'shown' };
  const root = treeOf(await commandsFor(argv), shell, (command, node) => {
    outcome = { kind: 'chosen', command, args: node.args, options: valuesOf(node, command.options) };
  });
  try {
    root.parse(argv, { from: 'user' });
  } catch (error) {
    outcome = outcomeOf(error);
  }
  return { outcome, globals: globalsOf(root), helpOf: (path) => find(root, path)?.helpInformation() };
}

// ---- building

const HELP_WIDTH = 100;

function treeOf(commands: readonly Command[], shell: Shell, choose: (command: Command, node: Node) => void): Node {
  const declaredAt = new Map<Node, Command>();
  const root = prepared(new Node('llmp'), rootCommand.summary)
    .version(readVersion(), '--version', 'print the version')
    .helpOption('-h, --help', 'explain a command')
    .helpCommand(false)
    .configureHelp({
      subcommandTerm: (node) => [node.name(), ...node.aliases()].join(', '),
      formatHelp: (node, help) => Help.prototype.formatHelp.call(help, node, help) + epilogue(declaredAt.get(node)),
    })
    .configureOutput({
      writeOut: (text) => void shell.stdout.write(text),
      writeErr: () => undefined, // What went wrong is reported like every other failure.
      getOutHelpWidth: () => shell.stdout.columns || HELP_WIDTH,
      getOutHasColors: () => false,
    });
  declareOptions(root, GLOBAL_OPTIONS, false);

  for (const [words, { summary }] of Object.entries(GROUPS)) nodeAt(root, words.split(' '), summary);
  for (const command of commands) {
    for (const path of pathsOf(command)) {
      const node = nodeAt(root, path, command.summary).action(() => {
        choose(command, node);
      });
      declare(node, command);
      declaredAt.set(node, command);
    }
  }
  return root;
}

/** Finds or makes the node at `path`; the groups that lead to it are there already. */
function nodeAt(root: Node, path: readonly string[], summary: string): Node {
  return path.reduce((parent, word) => {
    const known = parent.commands.find((node) => node.name() === word);
    if (known) return known;
    const node = prepared(parent.command(word), summary);
    declareOptions(node, GLOBAL_OPTIONS, true);
    return node;
  }, root);
}

function prepared(node: Node, summary: string): Node {
  return (
    node
      .description(summary)
      // Every node has the global options itself. Were they looked for across the whole line instead, a value
      // such as that of `--sort -created_at` would be taken for a bundle of short options.
      .enablePositionalOptions()
      .exitOverride((error) => {
        throw new Stopped(node, error);
      })
  );
}

function declare(node: Node, { alias, argument, options }: Command): void {
  if (alias !== undefined) node.alias(alias);
  if (argument) {
    const name = argument.many ? `${argument.name}...` : argument.name;
    node.argument(argument.required ? `<${name}>` : `[${name}]`, argument.meaning);
  }
  declareOptions(node, options, false);
}

function declareOptions(node: Node, options: Options, isHidden: boolean): void {
  for (const option of Object.values(options)) {
    const declared = new NodeOption(option.flags, option.meaning).hideHelp(isHidden);
    const { kind } = option;
    if (kind) declared.argParser((text) => parsed(declared.long ?? option.flags, kind, text));
    node.addOption(declared);
  }
}

function parsed(name: string, kind: NonNullable<Option<unknown>['kind']>, text: string): unknown {
  const value = kind.parse(text);
  if (value === undefined) throw usage(`${name} must be ${kind.accepts}, not ${quoted(text)}`);
  return value;
}

function epilogue(command: Command | undefined): string {
  const lines = (command?.examples ?? []).map(([line, what]) => `  llmp ${line}\n      ${what}\n`);
  const examples = lines.length === 0 ? '' : `\nExamples:\n${lines.join('')}`;
  return command ? `${examples}\nOptions that every command takes, such as --server, -o and -q: llmp help\n` : '';
}

// ---- reading

function valuesOf(node: Node, options: Options): Record<string, unknown> {
  const given = Object.keys(options).filter((key) => node.getOptionValueSource(key) === 'cli');
  return Object.fromEntries(given.map((key) => [key, node.getOptionValue(key) as unknown]));
}

/** Wherever on the line they stood; the last word counts. */
function globalsOf(node: Node): Globals {
  const below = node.commands.map(globalsOf);
  return Object.assign(valuesOf(node, GLOBAL_OPTIONS), ...below) as Globals;
}

function find(root: Node, path: readonly string[]): Node | undefined {
  return path.reduce<Node | undefined>(
    (node, word) => node?.commands.find((child) => child.name() === word || child.aliases().includes(word)),
    root,
  );
}

// ---- ending early

/** commander ended the parse at `node`. */
class Stopped extends Error {
  constructor(
    readonly node: Node,
    readonly reason: CommanderError,
  ) {
    super(reason.message);
  }
}

function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof Stopped)) return { kind: 'failed', failure: failureOf(error, '') };
  const { node, reason } = error;
  switch (reason.code) {
    case 'commander.helpDisplayed':
    case 'commander.version':
      return { kind: 'shown' };
    case 'commander.help':
      return withoutCommand(node);
    default: {
      // `error: unknown option '--nmae=x'\n(Did you mean --name?)`; what follows the =, or stands for a command, may be a secret.
      const [what = '', why = ''] = reason.message.replace(/^error: /, '').split('\n');
      const message = what
        .replace(/^(unknown option '[^=]*)=.*/, "$1'")
        .replace(/^(unknown command) '(.*)'$/, (_, problem: string, given: string) => `${problem}: ${quoted(given)}`);
      return { kind: 'failed', failure: usage(message, { why, advice: `See: llmp help ${wordsOf(node)}`.trimEnd() }) };
    }
  }
}

function withoutCommand(node: Node): Outcome {
  if (!node.parent) return { kind: 'chosen', command: rootCommand, args: [], options: {} };
  const words = wordsOf(node);
  const choices = node.commands.map((child) => child.name()).join(', ');
  const failure = usage(`llmp ${words} needs one of: ${choices}`, { advice: `See: llmp help ${words}` });
  return { kind: 'failed', failure };
}

function wordsOf(node: Node): string {
  return node.parent ? `${wordsOf(node.parent)} ${node.name()}`.trimStart() : '';
}
