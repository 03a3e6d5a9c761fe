/** The audit log. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';

const FOLLOWING_AUDIT = `Sends records of changes as they are made. The \`data\` of each server-sent event is one \`auditRecord\`; its
\`id\` is the number of the record. The stream begins with the next record, or behind \`Last-Event-ID\`.`;

const AUDIT = `The newest come first. \`token.use\` records stand for what a token was used for in the hour that begins at \`time\`, with one result and one
model: \`count\` requests. A change is one record, whoever made it and however it ended. \`since\` is the first moment shown,
\`until\` the first that is not; a span such as \`24h\` is so long ago. \`since\` must not be after \`until\`. Records are not counted.`;

export const audit = {
  listAudit: {
    ...ROUTES.listAudit,
    tag: 'Audit',
    summary: 'List audit records',
    description: AUDIT,
    query: schemas.auditQuery,
    list: schemas.auditRecord,
    isUncounted: true,
    refusals: [],
    example: { query: { action: 'token.revoke', since: '24h', q: 'laptop' }, answer: [schemas.auditRecordExample] },
  },
  followAudit: {
    ...ROUTES.followAudit,
    tag: 'Audit',
    summary: 'Follow audit records',
    description: FOLLOWING_AUDIT,
    query: schemas.auditStreamQuery,
    stream: schemas.auditRecord,
    refusals: [],
  },
  readAuditRecord: {
    ...ROUTES.readAuditRecord,
    tag: 'Audit',
    summary: 'Show an audit record',
    description: 'Shows an audit record by its id.',
    answer: schemas.auditRecord,
    refusals: ['not_found'],
    example: { answer: schemas.auditRecordExample },
  },
} as const satisfies Partial<Declared>;
