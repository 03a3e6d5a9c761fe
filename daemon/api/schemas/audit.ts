import * as z from 'zod';
import { ACTOR_PATTERN, AUDIT_ACTIONS, AUDIT_ACTORS, AUDIT_OUTCOMES } from '../vocabulary.js';
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
  action: about(oneOf(AUDIT_ACTIONS), 'Only records with this action.').optional(),
  actor: about(
    z
      .string()
      .regex(new RegExp(`^${ACTOR_PATTERN}$`))
      .describe(`one of ${AUDIT_ACTORS.join(', ')}, or operator:, person: or trust: and a name or ID`),
    'Only records of this actor.',
  ).optional(),
  project_id: about(id, 'Only records about this project.').optional(),
  token_id: about(id, 'Only records about this token.').optional(),
  outcome: about(oneOf(AUDIT_OUTCOMES), 'Only records with this outcome.').optional(),
};

export const auditQuery = z.strictObject({
  ...paging,
  ...auditFilters,
  batch: about(id, 'Only the records of this batch.').optional(),
  group: about(
    oneOf(['batch']),
    'With `batch`, one record stands for all records of a batch: the last one that matches, with the number of records of the batch as its `count`, and without what differs between them.',
  ).optional(),
  since: about(timeAgo, 'Start of the period (inclusive). Must not be after `until`.').optional(),
  until: about(timeAgo, 'End of the period (exclusive).').optional(),
  q: about(
    textWithWords,
    'Only records that contain all of these words: records of changes in their action, actor, outcome, IDs, names, user, address, reason or details; records of uses in their action and outcome. Words match by prefix and are case-insensitive.',
  ).optional(),
});

export const auditStreamQuery = z.strictObject(auditFilters);

export const auditRecord = z
  .strictObject({
    id: uuid('ID of the record.'),
    time: timestamp('Time of the action. For `token.use`, the start of the hour.'),
    action: z.enum(AUDIT_ACTIONS).describe('The action that was taken or attempted.'),
    actor: string(
      'Who took the action: `operator:` and a name, `person:` with the identity provider and the ID that it gave, `trust:` and an ID, or one of management, admin, cli, tui, token and system. `management` is any API client with the management token that does not send `X-Llmp-Actor`.',
    ),
    user: nullable(
      string('The user of the front end, as reported by the front end; not verified. Null if it reported none.'),
    ),
    outcome: z.enum(AUDIT_OUTCOMES).describe('Result of the action.'),
    project_id: nullable(uuid('ID of the project concerned, or null.')),
    token_id: nullable(uuid('ID of the token concerned; null if there is none, or more than one.')),
    project_name: nullable(string('Current name of the project concerned; null if there is none.')),
    token_name: nullable(string('Name of the token concerned; null if there is none, or it has no name.')),
    obfuscated: nullable(string('The secret of the token, mostly masked; null unless the record is about one token.')),
    request_id: nullable(string('ID of the request, or null.')),
    client_ip: nullable(string('IP address of the client, or null.')),
    reason: nullable(string('The reason that the caller gave in `X-Audit-Reason`, or null.')),
    count: nullable(
      count(
        'Number of requests, tokens or responses concerned, or of records with `group=batch`; null for a single one.',
      ),
    ),
    details: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        'More details, depending on the action; for changes, the values before and after. Null if there are none.',
      ),
    batch: nullable(uuid('The batch that the change belongs to, as the client gave it in `X-Audit-Batch`, or null.')),
    undo_of: nullable(uuid('The batch that this change undoes, or null.')),
  })
  .describe('An audit record.');

export const auditRecordExample: z.input<typeof auditRecord> = {
  id: EXAMPLE_IDS.record,
  time: '2030-01-31T12:00:00.000Z',
  action: 'token.revoke',
  actor: 'cli',
  user: 'ana@laptop',
  outcome: 'success',
  project_id: EXAMPLE_IDS.project,
  token_id: EXAMPLE_IDS.token,
  project_name: 'Checkout',
  token_name: 'nightly tests',
  obfuscated: 'sk-wt-…3kQ9',
  request_id: 'f2b1c0d9-8e7a-4b6c-9d5e-4f3a2b1c0d9e',
  client_ip: '192.0.2.10',
  reason: 'the laptop was lost',
  count: null,
  details: { is_active: [true, false] },
  batch: EXAMPLE_IDS.batch,
  undo_of: null,
};
