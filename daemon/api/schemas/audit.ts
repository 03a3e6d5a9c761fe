import * as z from 'zod';
import { AUDIT_ACTIONS, AUDIT_ACTORS, AUDIT_OUTCOMES } from '../vocabulary.js';
import {
  EXAMPLE_IDS,
  about,
  count,
  id,
  nullable,
  oneOf,
  paging,
  string,
  textWithWords,
  timeAgo,
  timestamp,
  uuid,
} from './fields.js';

const auditFilters = {
  action: about(oneOf(AUDIT_ACTIONS), 'Shows records of this action only.').optional(),
  actor: about(oneOf(AUDIT_ACTORS), 'Shows records of this actor only.').optional(),
  project_id: about(id, 'Shows records about this project only.').optional(),
  token_id: about(id, 'Shows records about this token only.').optional(),
  outcome: about(oneOf(AUDIT_OUTCOMES), 'Shows records of this outcome only.').optional(),
};

export const auditQuery = z.strictObject({
  ...paging,
  ...auditFilters,
  since: about(timeAgo, 'Shows records from this time on; not after `until`.').optional(),
  until: about(timeAgo, 'Shows records before this time.').optional(),
  q: about(
    textWithWords,
    'Shows records of changes that hold each of these words in their ids, addresses, reason or details. A word matches from its beginning, in any letter case.',
  ).optional(),
});

export const auditStreamQuery = z.strictObject(auditFilters);

export const auditRecord = z
  .strictObject({
    id: uuid("The record's id."),
    time: timestamp('When it happened. For `token.use`, when the hour begins.'),
    action: z.enum(AUDIT_ACTIONS).describe('What was done, or tried.'),
    actor: z.enum(AUDIT_ACTORS).describe('Who did it. `management` is any client that does not name itself.'),
    outcome: z.enum(AUDIT_OUTCOMES).describe('How it ended.'),
    project_id: nullable(uuid('The project it is about; null if it is about none.')),
    token_id: nullable(uuid('The token it is about; null if it is about none, or several.')),
    obfuscated: nullable(string("The token's secret with most of it hidden; null if there is no single token.")),
    request_id: nullable(string('The id of the request; null if there was none.')),
    client_ip: nullable(string('The address it came from; null if there is none.')),
    reason: nullable(string('Why, as the caller put it in `X-Audit-Reason`; null if it said nothing.')),
    count: nullable(count('How many requests, tokens or answers it is about; null for a single one.')),
    details: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('What else is known, by action; for changes the values before and after. Null if nothing is.'),
  })
  .describe('A record of the audit log.');

export const auditRecordExample: z.input<typeof auditRecord> = {
  id: EXAMPLE_IDS.record,
  time: '2030-01-31T12:00:00.000Z',
  action: 'token.revoke',
  actor: 'cli',
  outcome: 'success',
  project_id: EXAMPLE_IDS.project,
  token_id: EXAMPLE_IDS.token,
  obfuscated: 'sk-wt-…3kQ9',
  request_id: 'f2b1c0d9-8e7a-4b6c-9d5e-4f3a2b1c0d9e',
  client_ip: '192.0.2.10',
  reason: 'the laptop was lost',
  count: null,
  details: null,
};
