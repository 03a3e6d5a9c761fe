/** `llmp audit …`: lists, exports and follows audit records, and verifies audit files. */
import { counted } from '../../daemon/api/formats.js';
import { type Kind, oneOf } from '../../config/kinds.js';
import type { ManagementClient } from '../../daemon/api/client.js';
import type { AuditQuery, AuditStreamQuery, WireAuditRecord } from '../../daemon/api/contract.js';
import {
  ACTOR_PATTERN,
  AUDIT_ACTIONS,
  AUDIT_ACTORS,
  AUDIT_OUTCOMES,
  MAX_PAGE_SIZE,
} from '../../daemon/api/vocabulary.js';
import { auditVerify } from './audit-verify.js';
import { command, type Invocation } from '../command.js';
import { text, value, type Values } from '../option.js';
import { EXIT } from '../../console/failure.js';
import { idsIn, onlyIds, timesIn } from '../filters.js';
import { limit, listed } from '../listing.js';
import { queryArgument, queryIn, withOptions, withTokensShown } from '../query.js';
import { moment } from '../../console/span.js';
import { auditView } from '../../console/views.js';

const ACTOR = new RegExp(`^${ACTOR_PATTERN}$`);
const actorKind: Kind<string> = {
  accepts: `one of ${AUDIT_ACTORS.join(', ')}, or operator:NAME, person:ISSUER#ID or trust:ID`,
  values: AUDIT_ACTORS,
  parse: (given) => (ACTOR.test(given) ? given : undefined),
};

const filters = {
  action: value('--action <ACTION>', oneOf(...AUDIT_ACTIONS), `only this action: ${AUDIT_ACTIONS.join(', ')}`),
  actor: value(
    '--actor <ACTOR>',
    actorKind,
    `only by this actor: ${AUDIT_ACTORS.join(', ')}, or operator:NAME, person:ISSUER#ID or trust:ID`,
  ),
  ...onlyIds,
  outcome: value('--outcome <OUTCOME>', oneOf(...AUDIT_OUTCOMES), 'only this outcome: success, denied or error'),
};

const batches = {
  batch: text('--batch <ID>', 'only the changes of this batch, which one command has made', 'batch'),
};

const spans = {
  since: value('--since <TIME>', moment, 'start time: a timestamp, or a time before now such as 24h'),
  until: value('--until <TIME>', moment, 'end time: a timestamp, or a time before now such as 24h'),
  search: text('--search <TEXT>', 'only records that contain words that start with these, in any column or detail'),
};

/** @returns a function that asks the daemon for full IDs. @throws {Failure} if an ID has a wrong form. */
function filterIn({ action, actor, outcome, ...others }: Values<typeof filters>) {
  const ids = idsIn(others);
  return async (client: ManagementClient): Promise<AuditStreamQuery> => ({
    ...(action !== undefined && { action }),
    ...(actor !== undefined && { actor }),
    ...(outcome !== undefined && { outcome }),
    ...(await ids(client)),
  });
}

/** In the same way, with the times and the words to search for. */
function queryOf({
  options,
  shell,
}: Pick<Invocation<typeof filters & typeof spans & typeof batches>, 'options' | 'shell'>) {
  const filter = filterIn(options);
  return async (client: ManagementClient): Promise<AuditQuery> => ({
    ...(await filter(client)),
    ...timesIn(options, shell.now()),
    ...(options.search !== undefined && { q: await withTokensShown(options.search, client) }),
    ...(options.batch !== undefined && { batch: options.batch }),
  });
}

const list = command({
  path: ['manage', 'audit', 'list'],
  summary: 'list audit records, newest first',
  examples: [
    ['audit list --since 24h --outcome denied', 'list what was denied in the last 24 hours'],
    ['audit list --token-id 3fa91c2e -o csv', 'list all records of a token, for a spreadsheet'],
    ['audit list --group batch --since 1d', 'list what was changed today, one record for each command'],
    ["audit list 'action:token.revoke since:7d leaked'", 'list records that a query selects: llmp help query'],
  ],
  argument: queryArgument('audit', "'actor:cli since:7d'"),
  options: {
    ...spans,
    ...filters,
    ...batches,
    group: value('--group <BY>', oneOf('batch'), 'list the changes of one command as one record: batch'),
    limit,
  },
  async run(invocation) {
    const { args, output, options } = invocation;
    const selected = queryOf(invocation);
    const client = await invocation.connect();
    const { query: given } = await queryIn(args, 'audit', client);
    const query = {
      ...withOptions(given, await selected(client)),
      ...(options.group !== undefined && { group: options.group }),
    };
    const records = await listed((page) => client.auditRecords({ ...query, ...page }), options.limit, output);
    await output.list(records, auditView);
    if (records.length === 0) output.note('No matching records.');
    return EXIT.done;
  },
});

const exported = command({
  path: ['manage', 'audit', 'export'],
  summary: 'export all audit records as JSON lines or CSV, newest first',
  examples: [
    ['audit export --since 30d > audit.jsonl', 'export the last 30 days, one record per line'],
    ['audit export -o csv > audit.csv', 'export all records'],
  ],
  options: { ...spans, ...filters, ...batches },
  async run(invocation) {
    const { output } = invocation;
    const selected = queryOf(invocation);
    const client = await invocation.connect();
    const query = await selected(client);
    let cursor: string | null = null;
    let count = 0;
    const lines = output.linesAs('jsonl', auditView);
    do {
      const page: { items: WireAuditRecord[]; next: string | null } = await client.auditRecords({
        ...query,
        limit: String(MAX_PAGE_SIZE),
        ...(cursor !== null && { cursor }),
      });
      await lines(page.items);
      count += page.items.length;
      cursor = page.next;
    } while (cursor !== null);
    output.note(`Exported ${counted(count, 'record')}.`);
    return EXIT.done;
  },
});

const tail = command({
  path: ['manage', 'audit', 'tail'],
  summary: 'stream new audit records until interrupted',
  examples: [['audit tail --action token.revoke', 'show every revocation from now on']],
  options: filters,
  async run(invocation) {
    const { output, options } = invocation;
    const filter = filterIn(options);
    const { follow } = await import('../follow.js');
    const client = await invocation.connect();
    const query = await filter(client);
    const lines = output.linesAs('table', auditView);
    return follow(
      invocation,
      (position) => client.auditStream(query, position),
      (record: WireAuditRecord) => lines([record]),
    );
  },
});

export const auditCommands = [list, tail, exported, auditVerify];
