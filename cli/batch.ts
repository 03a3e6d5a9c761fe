/** Runs a command on one or several IDs, given as arguments or on standard input. */
import { counted, exact } from '../daemon/api/formats.js';
import type { ChangeOptions, ManagementClient } from '../daemon/api/client.js';
import type { Argument, Invocation } from './command.js';
import { flag } from './option.js';
import { EXIT, Failure, failureOf, usage } from '../console/failure.js';
import { checkedId, type Noun, wholeIdOf } from './ids.js';
import { type Output } from './output.js';
import type { View } from '../console/table.js';
import { shortId } from '../console/columns/cell-text.js';

const CONCURRENCY = 8;
// A larger batch prints one summary instead of one line per ID.
const MAX_NOTES = 20;

const STDIN = '-';

export const TOKENS: Argument = {
  name: 'TOKEN',
  meaning:
    'token ID, unique prefix of 6 or more characters, or unique name; - reads them from standard input, one per line',
  required: true,
  many: true,
  completes: 'token',
};
export const PROJECTS: Argument = {
  name: 'PROJECT',
  meaning: 'project name, ID or unique prefix of 6 or more characters; - reads them from standard input, one per line',
  required: true,
  many: true,
  completes: 'project',
};
export const ONE_PROJECT: Argument = {
  name: 'PROJECT',
  meaning: 'project name, ID or unique prefix of 6 or more characters',
  required: true,
  many: false,
  completes: 'project',
};

export const ONE_TOKEN: Argument = {
  name: 'TOKEN',
  meaning: 'token name, ID or unique prefix of 6 or more characters',
  required: true,
  many: false,
  completes: 'token',
};

export const OPERATORS: Argument = {
  name: 'OPERATOR',
  meaning: 'operator name, ID or unique prefix of 6 or more characters; - reads them from standard input, one per line',
  required: true,
  many: true,
  completes: 'operator',
};

export const ONE_OPERATOR: Argument = {
  name: 'OPERATOR',
  meaning: 'operator name, ID or unique prefix of 6 or more characters',
  required: true,
  many: false,
  completes: 'operator',
};

export const TRUSTS: Argument = {
  name: 'TRUST',
  meaning:
    'trust ID, unique prefix of 6 or more characters, or unique name; - reads them from standard input, one per line',
  required: true,
  many: true,
  completes: 'trust',
};

export const ONE_TRUST: Argument = {
  name: 'TRUST',
  meaning: 'trust ID, unique prefix of 6 or more characters, or unique name',
  required: true,
  many: false,
  completes: 'trust',
};

export const dryRun = flag('-n, --dry-run', 'show what would change, without changing anything');

/** The fields that tokens, projects, operators and trusts share. */
interface Resource {
  id: string;
  name: string | null;
}

/** A command on IDs: it shows each resource, or with `change` changes it. */
export interface BatchCommand<T extends Resource> {
  noun: Noun;
  view: View<T>;
  lookUp: (client: ManagementClient, id: string) => Promise<T>;
  change?: BatchChange<T>;
}

/** A change to a resource, with the words of its messages. A batch of changes needs a confirmation. */
export interface BatchChange<T> {
  verb: string;
  pastTense: string;
  /** The command that undoes it, if there is one. */
  opposite?: string;
  /** Its consequence, shown in a confirmation at a terminal even for one resource, because it affects more than that resource. */
  question?: string;
  apply: (client: ManagementClient, id: string, options?: ChangeOptions) => Promise<T>;
  /** Whether the resource is already in the state that the change leads to. */
  isApplied: (thing: T) => boolean;
  /** An additional sentence about the changed resource. */
  remark?: (thing: T) => string | undefined;
}

type WithDryRun = Omit<Invocation, 'options'> & { options: { dryRun?: boolean | undefined } };

/** Runs the command for each given ID. It validates the form of all IDs before it sends the first request. */
export async function onEachId<T extends Resource>(invocation: WithDryRun, command: BatchCommand<T>): Promise<number> {
  const { args, options } = invocation;
  const { noun, change } = command;
  const ids = await idsIn(invocation, noun);
  // Standard input always counts as a batch: a script that needs --yes for two IDs should need it for one as well.
  const isSelection = ids.length > 1 || args.includes(STDIN);
  const isDryRun = options.dryRun === true;
  if (change && isSelection && !isDryRun) {
    await confirmed(`${change.verb} ${counted(ids.length, noun)}?`, invocation);
  } else if (change?.question !== undefined && !isDryRun && invocation.input.canAsk) {
    await confirmed(`${change.verb} ${ids[0] ?? ''}? ${change.question}`, invocation);
  }

  return changeEach(ids, isSelection, await invocation.connect(), invocation, command);
}

/**
 * Runs the command for these IDs, which are confirmed.
 *
 * @param isSelection whether there can be several: they get a summary, with the command that undoes them.
 */
export async function changeEach<T extends Resource>(
  ids: readonly string[],
  isSelection: boolean,
  client: ManagementClient,
  invocation: WithDryRun,
  command: BatchCommand<T>,
): Promise<number> {
  const { output, options } = invocation;
  const { noun, view, change } = command;
  const isDryRun = options.dryRun === true;
  const isLong = ids.length > MAX_NOTES;
  const work = workOf(command, isDryRun, isSelection, isLong && !isDryRun ? null : output);
  const { done, exitCode } = await output.counting(change?.verb ?? 'Looking up', ids.length, (tick) =>
    forEach(
      ids,
      async (id) => {
        const thing = await work(client, await wholeIdOf(client, noun, id));
        tick();
        return thing;
      },
      invocation,
    ),
  );
  if (!change || output.format !== 'table') {
    const [only] = done;
    if (isSelection) await output.list(done, view);
    else if (only !== undefined) await output.one(only, view);
  }
  if (change && isSelection) {
    const text = summary(change, done, isDryRun, counted(ids.length, noun));
    const hasUndo = !isDryRun && done.length > 0 && change.opposite !== undefined;
    output.note(hasUndo ? `${text} ${undoOf(client)}` : text);
  }
  return exitCode;
}

/** How to undo the changes of this command. */
export const undoOf = ({ batch }: ManagementClient): string => `Undo: llmp undo ${batch ?? ''}`;

async function idsIn({ args, input }: Pick<Invocation, 'args' | 'input'>, noun: Noun): Promise<string[]> {
  const given: string[] = [];
  for (const arg of args) given.push(...(arg === STDIN ? await input.linesOfStdin('IDs') : [arg]));
  return [...new Set(given.map((id) => checkedId(noun, id)))];
}

/** @returns the function that handles one ID and prints its message. @param output null: print no message. */
function workOf<T extends Resource>(
  { noun, lookUp, change }: BatchCommand<T>,
  isDryRun: boolean,
  isSelection: boolean,
  output: Output | null,
): BatchCommand<T>['lookUp'] {
  if (!change) return lookUp;
  const { verb, pastTense, opposite, apply, isApplied, remark } = change;
  return async (client, id) => {
    const thing = await (isDryRun ? lookUp : apply)(client, id);
    if (!output) return thing;
    const shown = `${shortId(thing.id)}${thing.name === null ? '' : ` (${thing.name})`}`;
    if (!isDryRun) {
      const undo = isSelection || opposite === undefined ? undefined : `Undo: llmp ${noun} ${opposite} ${thing.id}`;
      const sentences = [`${pastTense} ${shown}.`, remark?.(thing), undo];
      output.note(sentences.filter((sentence) => sentence !== undefined).join(' '));
    } else if (isApplied(thing)) output.note(`Would leave ${shown} as it is.`);
    else output.note(`Would ${verb.toLowerCase()} ${shown}.`);
    return thing;
  };
}

function summary<T>(
  { verb, pastTense, isApplied }: BatchChange<T>,
  done: readonly T[],
  isDryRun: boolean,
  of: string,
): string {
  if (!isDryRun) return `${pastTense} ${exact(done.length)} of ${of}.`;
  const count = exact(done.filter((thing) => !isApplied(thing)).length);
  return `Would ${verb.toLowerCase()} ${count} of ${of}. Nothing was changed.`;
}

/**
 * Does `work` for each ID, eight at a time. A failure is reported and the other IDs continue, except if the daemon is
 * unreachable or refuses the management token, because then all other IDs would fail in the same way.
 */
async function forEach<T>(
  ids: readonly string[],
  work: (id: string) => Promise<T>,
  { output, server }: Pick<Invocation, 'output' | 'server'>,
): Promise<{ done: T[]; exitCode: number }> {
  const waiting = [...ids];
  const done = new Map<string, T>();
  const failed: Failure[] = [];
  let isAborted = false;

  function report(id: string, failure: Failure): void {
    failed.push(failure);
    if (isAborted) return;
    isAborted = failure.exitCode === EXIT.unreachable || failure.exitCode === EXIT.managementToken;
    output.fail(ids.length === 1 || isAborted ? failure : withId(id, failure));
  }

  async function worker(): Promise<void> {
    for (let id = waiting.shift(); id !== undefined && !isAborted; id = waiting.shift()) {
      try {
        done.set(id, await work(id));
      } catch (error) {
        report(id, failureOf(error, server));
      }
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));

  return {
    // In the order in which the IDs were given, not in the order of the responses.
    done: ids.flatMap((id) => (done.has(id) ? [done.get(id) as T] : [])),
    exitCode: exitCodeOf(done.size, failed),
  };
}

/** If all IDs failed with the same exit code, that code; otherwise 1, for a batch that failed in part. */
function exitCodeOf(doneCount: number, failed: readonly Failure[]): number {
  const [first] = failed;
  if (!first) return EXIT.done;
  const isSame = failed.every(({ exitCode }) => exitCode === first.exitCode);
  return doneCount === 0 && isSame ? first.exitCode : EXIT.refused;
}

function withId(id: string, failure: Failure): Failure {
  const message = failure.message.includes(id) ? failure.message : `${id}: ${failure.message}`;
  return new Failure(failure.exitCode, message, failure.explanation);
}

/**
 * Asks for confirmation, unless --yes was given.
 *
 * @throws {Failure} with exit code 2 if the answer is no, or there is no terminal to ask on.
 */
export async function confirmed(
  question: string,
  { globals, input }: Pick<Invocation, 'globals' | 'input'>,
): Promise<void> {
  if (globals.yes) return;
  if (!input.canAsk) {
    throw usage('confirmation required, but there is no terminal', { advice: 'Use --yes to skip the prompt' });
  }
  if (!(await input.confirm(question))) throw usage('not confirmed; nothing was changed');
}
