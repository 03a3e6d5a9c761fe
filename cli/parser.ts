/** Parses a command line with the commander library, from the declarations. No other file uses commander. */
import { Argument as NodeArgument, type CommanderError, Command as Node, Option as NodeOption } from 'commander';
import { readVersion } from '../config/version.js';
import { versionLines } from './help/about.js';
import type { Command } from './command.js';
import type { Option, Options } from './option.js';
import { commandsFor, GROUPS, rootCommand, wholeTree } from './commands.js';
import { type Failure, failureOf, quoted, usage } from '../console/failure.js';
import { GLOBAL_OPTIONS, type Globals } from './globals.js';
import type { Shell } from './shell.js';
import { pathsOf, Tree } from './help/tree.js';

interface Chosen {
  kind: 'chosen';
  command: Command;
  args: readonly string[];
  options: Record<string, unknown>;
}

export type ParseResult =
  | Chosen
  /** Help or the version was requested, and has been printed. */
  | { kind: 'shown' }
  | { kind: 'failed'; failure: Failure };

export interface ParsedLine {
  result: ParseResult;
  /** If parsing failed, the global options before the error. */
  globals: Globals;
  /** @throws {Failure} if `words` name no command. */
  helpOf: (words: readonly string[]) => Promise<string>;
}

export async function parse(argv: readonly string[], shell: Shell): Promise<ParsedLine> {
  const commands = await commandsFor(argv);
  const tree = new Tree(commands, GROUPS);
  const helpAt = (words: readonly string[]) => helpOf(words, tree, shell);
  const valid = chosenIn(argv, commands);
  if (valid) return { ...valid, helpOf: helpAt };

  let result: ParseResult = { kind: 'shown' };
  const root = nodesOf(commands, argv, shell, (chosen) => {
    result = chosen;
  });
  try {
    root.parse(argv, { from: 'user' });
  } catch (error) {
    result = await resultOfError(error, tree);
    if (error instanceof ParsingStopped && error.reason.code === 'commander.helpDisplayed') {
      shell.stdout.write(`${await helpAt(wordsOf(error.node))}\n`);
    }
  }
  return { result, globals: globalsOf(root), helpOf: helpAt };
}

/**
 * Parses a line that chooses a command and has no error. It declares the given words only: those that could stand in their place are
 * needed for messages, and to declare them takes as long as to parse the line.
 */
function chosenIn(argv: readonly string[], commands: readonly Command[]): Omit<ParsedLine, 'helpOf'> | undefined {
  let result: Chosen | undefined;
  const root = nodesOf(commands, argv, undefined, (chosen) => {
    result = chosen;
  });
  try {
    root.parse(argv, { from: 'user' });
  } catch {
    return undefined; // Parsed again, it is reported.
  }
  return result && { result, globals: globalsOf(root) };
}

async function helpOf(words: readonly string[], tree: Tree, shell: Shell): Promise<string> {
  const path = tree.resolved(words);
  if (!path) throw await noHelp(words, tree);
  const [help, { readableWidth }] = await Promise.all([import('./help/help.js'), import('./help/prose.js')]);
  return help.helpOf(tree, path, readableWidth(shell.stdout.columns));
}

async function noHelp(words: readonly string[], tree: Tree): Promise<Failure> {
  const [{ suggestedCommand }, { TOPICS }] = await Promise.all([
    import('./help/suggest.js'),
    import('./help/topics.js'),
  ]);
  const at = words.findIndex((_, index) => !tree.resolved(words.slice(0, index + 1)));
  const given = words[at] ?? '';
  const why = await suggestedCommand(
    words.slice(0, at),
    given,
    { tree, wholeTree },
    at === 0 ? Object.keys(TOPICS) : [],
  );
  return usage(`no help for ${quoted(given)}`, {
    why,
    advice: `See: llmp help ${words.slice(0, at).join(' ')}`.trimEnd(),
  });
}

// ---- building

/**
 * Only commands and groups that `argv` can name get their options, which take time.
 *
 * @param shell prints the version. With it, the words that can follow a given one are declared too, for messages.
 */
function nodesOf(
  commands: readonly Command[],
  argv: readonly string[],
  shell: Shell | undefined,
  choose: (chosen: Chosen) => void,
): Node {
  const given = new Set(argv);
  const root = prepared(new Node('llmp'), rootCommand.summary)
    .helpOption('-h, --help', 'show help for a command')
    .helpCommand(false)
    .showSuggestionAfterError(false) // help/suggest.ts also knows the global options and the commands of other groups.
    .configureHelp({ formatHelp: () => '' }) // help/help.ts writes the help, from the declarations.
    .configureOutput({
      writeOut: (text) => void shell?.stdout.write(text),
      writeErr: () => undefined, // Parse errors are reported like all other failures.
    });
  if (given.has('--version')) {
    const isVerbose = given.has('-v') || given.has('--verbose');
    root.version(isVerbose && shell ? versionLines(shell.now()) : readVersion(), '--version', 'print the version');
  }
  declareOptions(root, GLOBAL_OPTIONS);

  const isReached = (path: readonly string[]) => path.slice(0, -1).every((word) => given.has(word));
  const isGiven = (path: readonly string[], alias?: string) =>
    [path.at(-1), alias].some((word) => word !== undefined && given.has(word));
  for (const [words, { summary }] of Object.entries(GROUPS)) {
    const path = words.split(' ');
    if (!isReached(path) || (!shell && !isGiven(path))) continue;
    const node = nodeAt(root, path, summary);
    if (isGiven(path)) declareOptions(node, GLOBAL_OPTIONS);
  }
  for (const command of commands) {
    for (const path of pathsOf(command).filter(isReached)) {
      const isNamed = isGiven(path, command.alias);
      if (!shell && !isNamed) continue;
      const node = nodeAt(root, path, command.summary);
      if (command.alias !== undefined) node.alias(command.alias);
      if (!isNamed) continue;
      // The path of a command can be that of a group, which has these options already.
      if (node.options.length === 0) declareOptions(node, GLOBAL_OPTIONS);
      declare(node, command);
      node.action(() => {
        choose({ kind: 'chosen', command, args: node.args, options: valuesOf(node, command.options) });
      });
    }
  }
  return root;
}

/** Finds or creates the node at `path`. The groups on the path already exist. */
function nodeAt(root: Node, path: readonly string[], summary: string): Node {
  return path.reduce((parent, word) => {
    const known = parent.commands.find((node) => node.name() === word);
    return known ?? prepared(parent.command(word), summary);
  }, root);
}

function prepared(node: Node, summary: string): Node {
  return (
    node
      .description(summary)
      // Every node declares the global options itself. If commander searched the whole line for them, it would take a value
      // such as `-created_at` in `--sort -created_at` for a group of short options.
      .enablePositionalOptions()
      .exitOverride((error) => {
        throw new ParsingStopped(node, error);
      })
  );
}

function declare(node: Node, { argument, options }: Command): void {
  if (argument) {
    const name = argument.many ? `${argument.name}...` : argument.name;
    const declared = new NodeArgument(argument.required ? `<${name}>` : `[${name}]`);
    const { kind } = argument;
    if (kind) declared.argParser((text) => parsed(argument.name, kind, text));
    node.addArgument(declared);
    if (argument.isCommandLine) node.passThroughOptions();
  }
  declareOptions(node, options);
}

function declareOptions(node: Node, options: Options): void {
  for (const option of Object.values(options)) {
    const declared = new NodeOption(option.flags);
    const { kind } = option;
    if (kind) {
      let given: string | undefined;
      declared.argParser((text) => {
        given = kind.isList && given !== undefined ? listOf(given, text) : text;
        return parsed(declared.long ?? option.flags, kind, given);
      });
    }
    node.addOption(declared);
  }
}

/**
 * Joins the values of a repeated option: `a` and `b` become `a,b`; `!a` and `!b` become `!a,b`, everything except both. A mixture of the
 * two forms has no meaning: it becomes a text that no kind accepts.
 */
function listOf(before: string, text: string): string {
  if (!before.startsWith('!')) return `${before},${text}`;
  return text.startsWith('!') ? `${before},${text.slice(1)}` : `${text},${before}`;
}

function parsed(name: string, kind: NonNullable<Option<unknown>['kind']>, text: string): unknown {
  const value = kind.parse(text);
  if (value === undefined) throw new InvalidValue(name, kind, text);
  return value;
}

// ---- reading

function valuesOf(node: Node, options: Options): Record<string, unknown> {
  // For commander, --no-color is also a value of a command's own --color <COLOR>.
  const isOwn = (key: string) =>
    !(/<.+>/.test(options[key]?.flags ?? '') && typeof node.getOptionValue(key) === 'boolean');
  const given = Object.keys(options).filter((key) => node.getOptionValueSource(key) === 'cli' && isOwn(key));
  return Object.fromEntries(given.map((key) => [key, node.getOptionValue(key) as unknown]));
}

/** Collects the global options from the whole line. The last occurrence wins. */
function globalsOf(node: Node): Globals {
  const below = node.commands.map(globalsOf);
  return Object.assign(valuesOf(node, GLOBAL_OPTIONS), ...below) as Globals;
}

// ---- errors, help and version

/** Commander stopped parsing at `node`: for an error, or because help or the version was requested. */
class ParsingStopped extends Error {
  readonly node: Node;
  readonly reason: CommanderError;

  constructor(node: Node, reason: CommanderError) {
    super(reason.message);
    this.node = node;
    this.reason = reason;
  }
}

/** The value of an option or argument does not have the required form. */
class InvalidValue extends Error {
  readonly parameter: string;
  readonly kind: NonNullable<Option<unknown>['kind']>;
  readonly given: string;

  constructor(parameter: string, kind: NonNullable<Option<unknown>['kind']>, given: string) {
    super(`${parameter} must be ${kind.accepts}, not ${quoted(given)}`);
    this.parameter = parameter;
    this.kind = kind;
    this.given = given;
  }
}

async function resultOfError(error: unknown, tree: Tree): Promise<ParseResult> {
  const { suggestedCommand, suggestedOption, suggestedValue } = await import('./help/suggest.js');
  if (error instanceof InvalidValue) {
    const why = suggestedValue(error.given, error.kind.values ?? []);
    return { kind: 'failed', failure: usage(error.message, { why }) };
  }
  if (!(error instanceof ParsingStopped)) return { kind: 'failed', failure: failureOf(error, '') };
  const { node, reason } = error;
  switch (reason.code) {
    case 'commander.helpDisplayed':
    case 'commander.version':
      return { kind: 'shown' };
    case 'commander.help':
      return incompleteCommand(node);
    default: {
      const words = wordsOf(node);
      // For example `error: unknown option '--nmae=x'`. The text after = may be a secret, and so may an unknown command.
      const what = reason.message.replace(/^error: /, '').replace(/^(unknown option '[^=]*)=.*/s, "$1'");
      const [, option] = /^unknown option '(.*)'$/.exec(what) ?? [];
      const [, word] = /^unknown command '(.*)'$/s.exec(what) ?? [];
      const why =
        option !== undefined
          ? suggestedOption(option, words, { tree, globals: Object.values(GLOBAL_OPTIONS) })
          : word !== undefined
            ? await suggestedCommand(words, word, { tree, wholeTree })
            : '';
      const message = word === undefined ? what : `unknown command: ${quoted(word)}`;
      return {
        kind: 'failed',
        failure: usage(message, { why, advice: `See: llmp help ${words.join(' ')}`.trimEnd() }),
      };
    }
  }
}

function incompleteCommand(node: Node): ParseResult {
  if (!node.parent) return { kind: 'chosen', command: rootCommand, args: [], options: {} };
  const words = wordsOf(node).join(' ');
  const choices = node.commands.map((child) => child.name()).join(', ');
  const failure = usage(`llmp ${words} requires a command: ${choices}`, { advice: `See: llmp help ${words}` });
  return { kind: 'failed', failure };
}

function wordsOf(node: Node): string[] {
  return node.parent ? [...wordsOf(node.parent), node.name()] : [];
}
