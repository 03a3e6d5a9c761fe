/** Batches: the changes of one command or dialog, which can be undone together. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { MAX_UNDONE } from '../vocabulary.js';

const UNDO_DESCRIPTION = `Undoes the changes that were sent with the ID of this batch in \`X-Audit-Batch\`: tokens that it revoked are reactivated, tokens that it created or reactivated
are revoked, and changed fields of projects get their values from before. Whatever was changed again since stays as it is, and is listed in \`skipped\`. Each change back
has its own audit record. One request undoes up to ${MAX_UNDONE} tokens and projects, in up to 5 seconds; if there are more, \`next\` is not null. Repeating a request with
the same \`X-Audit-Batch\` returns the same result: send one, to be able to repeat a request whose response was lost.`;

export const batches = {
  undoBatch: {
    ...ROUTES.undoBatch,
    permission: 'undo changes',
    parts: [{ what: 'changes of projects in it', permission: 'change projects' }],
    tag: 'Batches',
    summary: 'Undo a batch',
    description: UNDO_DESCRIPTION,
    body: schemas.batchUndo,
    response: schemas.batchUndone,
    refusals: ['not_found'],
    example: {
      bodies: { 'from the start': {}, 'the rest': { cursor: '4711' } },
      response: schemas.batchUndoneExample,
    },
  },
} as const satisfies Partial<Declared>;
