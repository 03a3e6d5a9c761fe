/** Commands that take ids, one or several. */
import type { ManagementClient } from '../daemon/api/client.js';
import type { Argument, Invocation } from './command.js';
import { EXIT, Failure, failureOf, usage } from './failure.js';
import { checkedId, type Noun, wholeIdOf } from './ids.js';
import type { Input } from './input.js';
import type { View } from './table.js';

const AT_A_TIME = 8;

export const IDS: Argument = {
  name: 'ID',
  meaning: 'an id, or its first 6 characters or more',
  required: true,
  many: true,
};

export interface Step<T> {
  noun: Noun;
  view: View<T>;
  /** A change says what it did in messages, and for several ids it wants a confirmation. A look-up has none. */
  change?: { verb: string; past: string };
  work: (client: ManagementClient, id: string) => Promise<T>;
}

/** Does one step for each id on the command line. Nothing is sent before every one of them can be an id. */
export async function onEachId<T>(invocation: Invocation, { noun, view, change, work }: Step<T>): Promise<number> {
  const { args, globals, input, output, server } = invocation;
  const ids = [...new Set(args.map((given) => checkedId(noun, given)))];
  const isSeveral = ids.length > 1;
  if (change && isSeveral) await confirmed(`${change.verb} ${ids.length} ${noun}s?`, globals.yes === true, input);

  const client = await invocation.connect();
  const { done, exitCode } = await forEach(ids, async (id) => work(client, await wholeIdOf(client, noun, id)), {
    output,
    server,
  });
  if (!change || output.format !== 'table') {
    const [only] = done;
    if (isSeveral) await output.list(done, view);
    else if (only !== undefined) await output.one(only, view);
  }
  if (change && isSeveral) output.note(`${change.past} ${done.length} of ${ids.length} ${noun}s.`);
  return exitCode;
}

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
export async function confirmed(question: string, isAgreed: boolean, input: Input): Promise<void> {
  if (isAgreed) return;
  if (!input.canAsk) {
    throw usage('this needs a confirmation, and there is no terminal to ask on', { advice: 'Add --yes' });
  }
  if (!(await input.confirm(question))) throw usage('not confirmed, nothing was changed');
}
