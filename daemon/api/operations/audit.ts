/** The audit log. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';

const STREAM_DESCRIPTION = `Streams audit records of changes as server-sent events. The \`data\` of each event is one \`auditRecord\`; the \`id\` is
the number of the record. The stream starts with the next record, or with the record after \`Last-Event-ID\`.`;

const LIST_DESCRIPTION = `Lists audit records, newest first. Each change has its own record, including denied and failed attempts. A \`token.use\`
record summarises \`count\` requests of one token in the hour that starts at \`time\`, with the same result and model. \`since\` is inclusive,
\`until\` is exclusive; a duration such as \`24h\` means that long before now. \`since\` must not be after \`until\`. The response has no total count.
The changes of one command or dialog are a batch: \`group=batch\` lists each batch as one record, and \`batch\` its members.`;

export const audit = {
  listAudit: {
    ...ROUTES.listAudit,
    permission: 'read the audit log',
    tag: 'Audit',
    summary: 'List audit records',
    description: LIST_DESCRIPTION,
    query: schemas.auditQuery,
    list: schemas.auditRecord,
    isUncounted: true,
    refusals: [],
    example: { query: { action: 'token.revoke', since: '24h', q: 'laptop' }, response: [schemas.auditRecordExample] },
  },
  followAudit: {
    ...ROUTES.followAudit,
    permission: 'read the audit log',
    tag: 'Audit',
    summary: 'Stream audit records',
    description: STREAM_DESCRIPTION,
    query: schemas.auditStreamQuery,
    stream: schemas.auditRecord,
    refusals: [],
  },
  readAuditRecord: {
    ...ROUTES.readAuditRecord,
    permission: 'read the audit log',
    tag: 'Audit',
    summary: 'Get an audit record',
    description: 'Returns the audit record with this ID.',
    response: schemas.auditRecord,
    refusals: ['not_found'],
    example: { response: schemas.auditRecordExample },
  },
} as const satisfies Partial<Declared>;
