/** `llmp audit …`: lists, exports and follows audit records, and verifies audit files. */
import { counted } from '../../daemon/api/formats.js';
import { oneOf } from '../../config/kinds.js';
import type { ManagementClient } from '../../daemon/api/client.js';
import type { AuditQuery, AuditStreamQuery, WireAuditRecord } from '../../daemon/api/contract.js';
import { AUDIT_ACTIONS, AUDIT_ACTORS, AUDIT_OUTCOMES, MAX_PAGE_SIZE } from '../../daemon/api/vocabulary.js';
import { auditVerify } from './audit-verify.js';
import { command, type Invocation } from '../command.js';
import { text, value } from '../option.js';
import { EXIT } from '../../console/failure.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { limit, listed } from '../listing.js';
import { queryArgument, queryIn, withOptions } from '../query.js';
import { moment, timestampOf } from '../../console/span.js';
import { auditView } from '../../console/views.js';

const filters = {
  action: value('--action <ACTION>', oneOf(...AUDIT_ACTIONS), `only this action: ${AUDIT_ACTIONS.join(', ')}`),
  actor: value('--actor <ACTOR>', oneOf(...AUDIT_ACTORS), `only by this actor: ${AUDIT_ACTORS.join(', ')}`),
  projectId: text('--project-id <ID>', 'only this project, by name or ID', 'project'),
  tokenId: text('--token-id <ID>', 'only this token, by name or ID', 'token'),
  outcome: value('--outcome <OUTCOME>', oneOf(...AUDIT_OUTCOMES), 'only this outcome: success, denied or error'),
};

const spans = {
  since: value('--since <TIME>', moment, 'start time: a timestamp, or a time before now such as 24h'),
  until: value('--until <TIME>', moment, 'end time: a timestamp, or a time before now such as 24h'),
  search: text(
    '--search <TEXT>',
    'only records whose IDs, users, addresses, reasons or details contain words that start with these',
  ),
};

type Filtered = Invocation<typeof filters>;
type Spanned = Invocation<typeof filters & typeof spans>;

async function filterOf({ options }: Pick<Filtered, 'options'>, client: ManagementClient): Promise<AuditStreamQuery> {
  const { action, actor, outcome, projectId, tokenId } = options;
  const query: AuditStreamQuery = {};
  if (action !== undefined) query.action = action;
  if (actor !== undefined) query.actor = actor;
  if (outcome !== undefined) query.outcome = outcome;
  if (projectId !== undefined) query.project_id = await wholeIdOf(client, 'project', checkedId('project', projectId));
  if (tokenId !== undefined) query.token_id = await wholeIdOf(client, 'token', checkedId('token', tokenId));
  return query;
}

async function queryOf(invocation: Spanned, client: ManagementClient): Promise<AuditQuery> {
  const { options, shell } = invocation;
  const { since, until, search } = options;
  return {
    ...(await filterOf(invocation, client)),
    ...(since && { since: timestampOf(since, shell.now()) }),
    ...(until && { until: timestampOf(until, shell.now()) }),
    ...(search !== undefined && { q: search }),
  };
}

const list = command({
  path: ['manage', 'audit', 'list'],
  summary: 'list audit records, newest first',
  examples: [
    ['audit list --since 24h --outcome denied', 'list what was denied in the last 24 hours'],
    ['audit list --token-id 3fa91c2e -o csv', 'list all records of a token, for a spreadsheet'],
    ["audit list 'action:token.revoke since:7d leaked'", 'list records that a query selects: llmp help query'],
  ],
  argument: queryArgument('audit', "'actor:cli since:7d'"),
  options: { ...spans, ...filters, limit },
  async run(invocation) {
    const { args, output, options } = invocation;
    const client = await invocation.connect();
    const { query: given } = await queryIn(args, 'audit', client);
    const query = withOptions(given, await queryOf(invocation, client));
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
  options: { ...spans, ...filters },
  async run(invocation) {
    const { output } = invocation;
    const client = await invocation.connect();
    const query = await queryOf(invocation, client);
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

const RECONNECT_DELAY_MS = 2_000;

const tail = command({
  path: ['manage', 'audit', 'tail'],
  summary: 'stream new audit records until interrupted',
  examples: [['audit tail --action token.revoke', 'show every revocation from now on']],
  options: filters,
  async run(invocation) {
    const { output, shell } = invocation;
    const client = await invocation.connect();
    const query = await filterOf(invocation, client);
    const lines = output.linesAs(output.format === 'table' ? 'table' : 'jsonl', auditView);
    const ending = new AbortController();
    void shell.interrupted().then(() => {
      ending.abort();
    });
    let lastEventId: string | undefined;
    for (;;) {
      for await (const { id, item } of client.auditStream(query, { lastEventId, signal: ending.signal })) {
        lastEventId = id;
        await lines([item]);
      }
      // The daemon ended the stream, because it restarts or stops. Another instance may accept the next request.
      if (ending.signal.aborted) return EXIT.done;
      await shell.pause(RECONNECT_DELAY_MS, ending.signal);
    }
  },
});

export const auditCommands = [list, tail, exported, auditVerify];
