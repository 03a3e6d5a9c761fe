/** `llmp undo`: undoes all changes that one command, or one dialog of a user interface, has made. */
import { randomUUID } from 'node:crypto';
import { actorShown, counted, exact, relativeTime } from '../../daemon/api/formats.js';
import { ApiError, type ManagementClient, type Page } from '../../daemon/api/client.js';
import type { WireAuditRecord, WireBatchUndone } from '../../daemon/api/contract.js';
import { UNDO_SKIPS, UUID_PATTERN } from '../../daemon/api/vocabulary.js';
import { EXIT, Failure, usage } from '../../console/failure.js';
import { skippedSentences } from '../../daemon/api/undone.js';
import { undoneView } from '../../console/views.js';
import { confirmed } from '../batch.js';
import { command } from '../command.js';

export const undoCommand = command({
  path: ['undo'],
  summary: 'undo the changes of a command',
  examples: [
    ['undo 7e6d5c4b-2f1a-4b3c-9d8e-5a6b7c8d9e0f', 'undo what the command did that printed this ID'],
    ['undo 7e6d5c4b-2f1a-4b3c-9d8e-5a6b7c8d9e0f --yes -o json', 'the same in a script, with the result for each token'],
  ],
  argument: {
    name: 'BATCH',
    meaning: 'the ID that the command printed, or one of `llmp audit list --group batch`',
    required: true,
    many: false,
    completes: 'batch',
  },
  options: {},
  prints: () => undoneView.fields,
  async run(invocation) {
    const { output, shell } = invocation;
    const [given = ''] = invocation.args;
    if (!UUID_PATTERN.test(given))
      throw usage('this is not the ID of a batch', { advice: 'See: llmp audit list --group batch' });
    const batch = given.toLowerCase();
    const client = (await invocation.connect()).inBatch(randomUUID());
    const record = await recordOf(batch, client);
    const count = record?.count ?? 1;
    if (record === null) await confirmed('Undo all changes of this batch?', invocation);
    else if (count > 1) {
      const what = `${record.action} by ${actorShown(record)}, ${relativeTime(record.time, shell.now())}`;
      await confirmed(`Undo ${counted(count, 'change')} (${what})?`, invocation);
    }
    const result = await output.counting('Undoing', count, (tick) => undone(client, batch, tick));
    if (output.format !== 'table') await output.one(result, undoneView);
    const { undone: done, skipped } = result;
    const redo = done.length > 0 ? [`Redo: llmp undo ${result.batch}`] : [];
    const all = done.length + skipped.length;
    output.note(
      [`Undid ${exact(done.length)} of ${counted(all, 'change')}.`, ...skippedSentences(skipped), ...redo].join(' '),
    );
    return skipped.some(({ reason }) => !ALREADY.has(reason)) ? EXIT.refused : EXIT.done;
  },
});

/** What the batch did; null for a role that may not read the audit log. @throws {Failure} if there is no such batch. */
async function recordOf(batch: string, client: ManagementClient): Promise<WireAuditRecord | null> {
  let found: Page<WireAuditRecord>;
  try {
    found = await client.auditRecords({ batch, group: 'batch', limit: '1' });
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_permitted') return null;
    throw error;
  }
  const [record] = found.items;
  if (record) return record;
  throw new Failure(EXIT.notFound, 'no change has this batch ID', {
    code: 'not_found',
    advice: 'See: llmp audit list --group batch',
  });
}

/** Reasons after which everything is as it was before the batch. */
const ALREADY: ReadonlySet<(typeof UNDO_SKIPS)[number]> = new Set(['unchanged', 'undone_before']);

/** Undoes the whole batch, part by part. */
async function undone(client: ManagementClient, batch: string, tick: () => void): Promise<WireBatchUndone> {
  let all: WireBatchUndone | undefined;
  do {
    const part: WireBatchUndone = await client.undoBatch(batch, all?.next ? { cursor: all.next } : {});
    for (let i = part.undone.length + part.skipped.length; i > 0; i -= 1) tick();
    all = {
      ...part,
      undone: [...(all?.undone ?? []), ...part.undone],
      skipped: [...(all?.skipped ?? []), ...part.skipped],
    };
  } while (all.next !== null);
  return all;
}
