import * as z from 'zod';
import { UNDO_SKIPS } from '../vocabulary.js';
import { EXAMPLE_IDS, about, nullable, string, uuid } from './fields.js';

export const batchUndo = z
  .strictObject({
    cursor: about(
      z
        .string()
        .regex(/^[0-9]{1,15}$/)
        .describe('the `next` of the last response'),
      'Continues an undo. Send the `batch` of the last response as `X-Audit-Batch`, too.',
    ).optional(),
  })
  .describe('Which part of a batch to undo: by default, the first.');

const changed = {
  project_id: nullable(uuid('ID of the project, or of the project of the token; null for changes of something else.')),
  token_id: nullable(uuid('ID of the token; null for a change of a project.')),
};

export const undoneChange = z
  .strictObject(changed)
  .describe('A token or a project that is as it was before the batch.');

export const skippedChange = z
  .strictObject({
    ...changed,
    reason: z
      .enum(UNDO_SKIPS)
      .describe(
        'Why it stays as it is. `changed_since`: the same was changed again, by another batch or by a single change; `undone_before`: an earlier undo of this batch; `unchanged`: the batch changed nothing; `expired`: the token has expired; `gone`: it does not exist, or the caller may not see it, and then it has no IDs here; `irreversible`: the change cannot be undone; `refused`: see `message`.',
      ),
    message: nullable(string('Why the change back was refused, or null.')),
  })
  .describe('A token or a project that an undo leaves as it is.');

export const batchUndone = z
  .strictObject({
    batch: uuid('ID of the undo. It is a batch, too: to undo it makes the changes again.'),
    undone: z.array(undoneChange).describe('What is as it was before the batch.'),
    skipped: z.array(skippedChange).describe('What stays as it is.'),
    next: nullable(string('To continue with the rest of the batch, as `cursor`; null if this is all.')),
  })
  .describe('Result of an undo.');

export const batchUndoneExample: z.input<typeof batchUndone> = {
  batch: EXAMPLE_IDS.undo,
  undone: [{ project_id: EXAMPLE_IDS.project, token_id: EXAMPLE_IDS.token }],
  skipped: [
    { project_id: EXAMPLE_IDS.project, token_id: EXAMPLE_IDS.otherToken, reason: 'changed_since', message: null },
  ],
  next: null,
};
