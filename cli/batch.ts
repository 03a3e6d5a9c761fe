/** Commands that take ids, one or several, on the command line or on standard input. */
import type { ManagementClient } from '../daemon/api/client.js';
import type { Argument, Invocation } from './command.js';
import { flag } from './option.js';
import { EXIT, Failure, failureOf, usage } from '../console/failure.js';
import { checkedId, type Noun, wholeIdOf } from './ids.js';
import type { Output } from './output.js';
import type { View } from '../console/table.js';
import { shortId } from '../console/views.js';

const AT_A_TIME = 8;
// Beyond as many, what was done is one sentence, and not a line for each.
const MOST_LINES = 20;

const STDIN = '-';

export const TOKENS: Argument = {
  name: 'ID',
  meaning: 'token ID or unique prefix of 6 or more characters; - reads IDs from standard input, one per line',
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

export const dryRun = flag('-n, --dry-run', 'show what would change, without changing anything');

/** What tokens and projects have in common. */
interface Thing {
  id: string;
  name: string | null;
}

export interface Step<T extends Thing> {
  noun: Noun;
  view: View<T>;
  lookUp: (client: ManagementClient, id: string) => Promise<T>;
  change?: Change<T>;
}

/** A change says what it did in messages, and for several things it wants a confirmation. */
export interface Change<T> {
  verb: string;
  past: string;
  /** The command that takes it back. */
  opposite: string;
  /** Asked before a single one, at a terminal: it concerns more than what is named. */
  question?: string;
  make: (client: ManagementClient, id: string) => Promise<T>;
  /** Whether it has been made already. */
  isMade: (thing: T) => boolean;
  /** What else there is to say about a thing that was changed. */
  but?: (thing: T) => string | undefined;
}

type WithDryRun = Omit<Invocation, 'options'> & { options: { dryRun?: boolean | undefined } };

/** Takes one step for each id given. Nothing is sent before every one of them can be an id. */
export async function onEachId<T extends Thing>(invocation: WithDryRun, step: Step<T>): Promise<number> {
  const { args, options, output } = invocation;
  const { noun, view, change } = step;
  const ids = await idsIn(invocation, noun);
  // What is piped in may hold one id today and two tomorrow; a script should not find that out tomorrow.
  const isSelection = ids.length > 1 || args.includes(STDIN);
  const isRehearsal = options.dryRun === true;
  if (change && isSelection && !isRehearsal) {
    await confirmed(`${change.verb} ${counted(ids.length, noun)}?`, invocation);
  } else if (change?.question !== undefined && !isRehearsal && invocation.input.canAsk) {
    await confirmed(`${change.verb} ${ids[0] ?? ''}? ${change.question}`, invocation);
  }

  const client = await invocation.connect();
  const isLong = ids.length > MOST_LINES;
  const work = workOf(step, isRehearsal, isLong && !isRehearsal ? null : output);
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
    const undo = `Undo: give the same ids to llmp ${noun} ${change.opposite}`;
    const said = summary(change, done, isRehearsal, counted(ids.length, noun));
    output.note(isLong && !isRehearsal && done.length > 0 ? `${said} ${undo}` : said);
  }
  return exitCode;
}

async function idsIn({ args, input }: Pick<Invocation, 'args' | 'input'>, noun: Noun): Promise<string[]> {
  const given: string[] = [];
  for (const arg of args) given.push(...(arg === STDIN ? await input.linesOfStdin('ids') : [arg]));
  return [...new Set(given.map((id) => checkedId(noun, id)))];
}

/** What is done with one thing, and said of it. @param output null: nothing is said. */
function workOf<T extends Thing>(
  { noun, lookUp, change }: Step<T>,
  isRehearsal: boolean,
  output: Output | null,
): Step<T>['lookUp'] {
  if (!change) return lookUp;
  const { verb, past, opposite, make, isMade, but } = change;
  return async (client, id) => {
    const thing = await (isRehearsal ? lookUp : make)(client, id);
    if (!output) return thing;
    const shown = `${shortId(thing.id)}${thing.name === null ? '' : ` (${thing.name})`}`;
    if (!isRehearsal) {
      const sentences = [`${past} ${shown}.`, but?.(thing), `Undo: llmp ${noun} ${opposite} ${thing.id}`];
      output.note(sentences.filter((sentence) => sentence !== undefined).join(' '));
    } else if (isMade(thing)) output.note(`Would leave ${shown} as it is.`);
    else output.note(`Would ${verb.toLowerCase()} ${shown}.`);
    return thing;
  };
}

function summary<T>({ verb, past, isMade }: Change<T>, done: readonly T[], isRehearsal: boolean, of: string): string {
  if (!isRehearsal) return `${past} ${done.length} of ${of}.`;
  return `Would ${verb.toLowerCase()} ${done.filter((thing) => !isMade(thing)).length} of ${of}. Nothing was changed.`;
}

/** `1 token`, `2 tokens`. */
export const counted = (count: number, noun: Noun) => `${count} ${noun}${count === 1 ? '' : 's'}`;

/**
 * Does `work` for each id, eight at a time. A failure is reported and does not stop the others, unless it
 * would befall them as well: nobody answers, or the management token is wrong.
 */
async function forEach<T>(
  ids: readonly string[],
  work: (id: string) => Promise<T>,
  { output, server }: Pick<Invocation, 'output' | 'server'>,
): Promise<{ done: T[]; exitCode: number }> {
  const waiting = [...ids];
  const done = new Map<string, T>();
  const failed: Failure[] = [];
  let isOver = false;

  function report(id: string, failure: Failure): void {
    failed.push(failure);
    if (isOver) return;
    isOver = failure.exitCode === EXIT.unreachable || failure.exitCode === EXIT.managementToken;
    output.fail(ids.length === 1 || isOver ? failure : about(id, failure));
  }

  async function worker(): Promise<void> {
    for (let id = waiting.shift(); id !== undefined && !isOver; id = waiting.shift()) {
      try {
        done.set(id, await work(id));
      } catch (error) {
        report(id, failureOf(error, server));
      }
    }
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));

  return {
    // In the order given, whichever was answered first.
    done: ids.flatMap((id) => (done.has(id) ? [done.get(id) as T] : [])),
    exitCode: exitCodeOf(done.size, failed),
  };
}

/** One id, or the same misfortune for all, says exactly what it was; otherwise part of the batch failed. */
function exitCodeOf(doneCount: number, failed: readonly Failure[]): number {
  const [first] = failed;
  if (!first) return EXIT.done;
  const isSame = failed.every(({ exitCode }) => exitCode === first.exitCode);
  return doneCount === 0 && isSame ? first.exitCode : EXIT.refused;
}

function about(id: string, failure: Failure): Failure {
  const message = failure.message.includes(id) ? failure.message : `${id}: ${failure.message}`;
  return new Failure(failure.exitCode, message, failure.explanation);
}

/**
 * Asks before a change of more than one thing.
 *
 * @throws {Failure} with exit 2 when the answer is no, or nobody can be asked.
 */
export async function confirmed(
  question: string,
  { globals, input }: Pick<Invocation, 'globals' | 'input'>,
): Promise<void> {
  if (globals.yes) return;
  if (!input.canAsk) {
    throw usage('confirmation required, but there is no terminal', { advice: 'Use --yes to skip the prompt' });
  }
  if (!(await input.confirm(question))) throw usage('not confirmed, nothing was changed');
}
