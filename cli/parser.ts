/** The declared commands as a commander program: the only file that knows commander. */
import { Argument as NodeArgument, type CommanderError, Command as Node, Option as NodeOption } from 'commander';
import { readVersion } from '../config/version.js';
import type { Command } from './command.js';
import type { Option, Options } from './option.js';
import { commandsFor, GROUPS, rootCommand, wholeTree } from './commands.js';
import { type Failure, failureOf, quoted, usage } from '../console/failure.js';
import { GLOBAL_OPTIONS, type Globals } from './globals.js';
import type { Shell } from './shell.js';
import { pathsOf, Tree } from './help/tree.js';

export type Outcome =
  | { kind: 'chosen'; command: Command; args: readonly string[]; options: Record<string, unknown> }
  /** Help or the version was asked for and has been printed. */
  | { kind: 'shown' }
  | { kind: 'failed'; failure: Failure };

export interface Parsed {
  outcome: Outcome;
  /** When parsing failed, as far as they were understood. */
  globals: Globals;
  /** @throws {Failure} for words that lead nowhere. */
  helpOf: (words: readonly string[]) => Promise<string>;
}

export async function parse(argv: readonly string[], shell: Shell): Promise<Parsed> {
  let outcome: Outcome = { kind: 'shown' };
  const commands = await commandsFor(argv);
  const tree = new Tree(commands, GROUPS);
  const root = nodesOf(commands, shell, (command, node) => {
    outcome = { kind: 'chosen', command, args: node.args, options: valuesOf(node, command.options) };
  });
  const helpAt = (words: readonly string[]) => helpOf(words, tree, shell);
  try {
    root.parse(argv, { from: 'user' });
  } catch (error) {
    outcome = await outcomeOf(error, tree);
    if (error instanceof Stopped && error.reason.code === 'commander.helpDisplayed') {
      shell.stdout.write(`${await helpAt(wordsOf(error.node))}\n`);
    }
  }
  return { outcome, globals: globalsOf(root), helpOf: helpAt };
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

function nodesOf(commands: readonly Command[], shell: Shell, choose: (command: Command, node: Node) => void): Node {
  const root = prepared(new Node('llmp'), rootCommand.summary)
    .version(readVersion(), '--version', 'print the version')
    .helpOption('-h, --help', 'explain a command')
    .helpCommand(false)
    .showSuggestionAfterError(false) // It knows neither the global options nor what stands under other words.
    .configureHelp({ formatHelp: () => '' }) // Help is made from the declarations.
    .configureOutput({
      writeOut: (text) => void shell.stdout.write(text),
      writeErr: () => undefined, // What went wrong is reported like every other failure.
    });
  declareOptions(root, GLOBAL_OPTIONS);

  for (const [words, { summary }] of Object.entries(GROUPS)) nodeAt(root, words.split(' '), summary);
  for (const command of commands) {
    for (const path of pathsOf(command)) {
      const node = nodeAt(root, path, command.summary).action(() => {
        choose(command, node);
      });
      declare(node, command);
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
    declareOptions(node, GLOBAL_OPTIONS);
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

/** `a` and `b` are `a,b`; `!a` and `!b` are `!a,b`, all but both. The two together mean nothing: what they make no kind accepts. */
function listOf(before: string, text: string): string {
  if (!before.startsWith('!')) return `${before},${text}`;
  return text.startsWith('!') ? `${before},${text.slice(1)}` : `${text},${before}`;
}

function parsed(name: string, kind: NonNullable<Option<unknown>['kind']>, text: string): unknown {
  const value = kind.parse(text);
  if (value === undefined) throw new Unacceptable(name, kind, text);
  return value;
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

// ---- ending early

/** commander ended the parse at `node`. */
class Stopped extends Error {
  readonly node: Node;
  readonly reason: CommanderError;

  constructor(node: Node, reason: CommanderError) {
    super(reason.message);
    this.node = node;
    this.reason = reason;
  }
}

/** A value is not of the kind that is asked for. */
class Unacceptable extends Error {
  readonly place: string;
  readonly kind: NonNullable<Option<unknown>['kind']>;
  readonly given: string;

  constructor(place: string, kind: NonNullable<Option<unknown>['kind']>, given: string) {
    super(`${place} must be ${kind.accepts}, not ${quoted(given)}`);
    this.place = place;
    this.kind = kind;
    this.given = given;
  }
}

async function outcomeOf(error: unknown, tree: Tree): Promise<Outcome> {
  const { suggestedCommand, suggestedOption, suggestedValue } = await import('./help/suggest.js');
  if (error instanceof Unacceptable) {
    const why = suggestedValue(error.given, error.kind.values ?? []);
    return { kind: 'failed', failure: usage(error.message, { why }) };
  }
  if (!(error instanceof Stopped)) return { kind: 'failed', failure: failureOf(error, '') };
  const { node, reason } = error;
  switch (reason.code) {
    case 'commander.helpDisplayed':
    case 'commander.version':
      return { kind: 'shown' };
    case 'commander.help':
      return withoutCommand(node);
    default: {
      const words = wordsOf(node);
      // `error: unknown option '--nmae=x'`; what follows the =, or stands for a command, may be a secret.
      const what = reason.message.replace(/^error: /, '').replace(/^(unknown option '[^=]*)=.*/s, "$1'");
      const [, option] = /^unknown option '(.*)'$/.exec(what) ?? [];
      const [, word] = /^unknown command '(.*)'$/s.exec(what) ?? [];
      const options = [...Object.values(tree.commandAt(words)?.options ?? {}), ...Object.values(GLOBAL_OPTIONS)];
      const why =
        option !== undefined
          ? suggestedOption(option, options)
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

function withoutCommand(node: Node): Outcome {
  if (!node.parent) return { kind: 'chosen', command: rootCommand, args: [], options: {} };
  const words = wordsOf(node).join(' ');
  const choices = node.commands.map((child) => child.name()).join(', ');
  const failure = usage(`llmp ${words} needs one of: ${choices}`, { advice: `See: llmp help ${words}` });
  return { kind: 'failed', failure };
}

function wordsOf(node: Node): string[] {
  return node.parent ? [...wordsOf(node.parent), node.name()] : [];
}
