import type { Page } from '../../api/client.js';
import type { AuditQuery, WireAuditRecord } from '../../api/contract.js';
import { AUDIT_ACTIONS, AUDIT_ACTORS, AUDIT_OUTCOMES } from '../../api/vocabulary.js';
import { exported } from '../export.js';
import { auditPage, recordPage } from '../pages/audit.js';
import { namesOf } from '../pages/links.js';
import { allProjects, get, givenOf, hoursFrom, listed, statusOf, type Visit } from '../visit.js';

const FILTERS = ['q', 'action', 'outcome', 'actor', 'project_id', 'token_id', 'cursor'] as const;
const CHOICES = { actions: AUDIT_ACTIONS, actors: AUDIT_ACTORS, outcomes: AUDIT_OUTCOMES };

const COLUMNS = [
  'time',
  'action',
  'outcome',
  'actor',
  'client_ip',
  'project_id',
  'token_id',
  'reason',
  'count',
  'request_id',
  'id',
  'details',
] as const;

function filterOf({ query, nowMs }: Visit): AuditQuery {
  const since = hoursFrom(nowMs, query.get('since_hours'), -1);
  return { ...givenOf(query, FILTERS), ...(since && { since }) };
}

async function* recordsOf(visit: Visit): AsyncGenerator<readonly WireAuditRecord[]> {
  const client = visit.client();
  const filter = filterOf(visit);
  let cursor: string | null = filter.cursor ?? null;
  do {
    const page: Page<WireAuditRecord> = await client.auditRecords({ ...filter, ...(cursor !== null && { cursor }) });
    yield page.items;
    cursor = page.next;
  } while (cursor !== null);
}

export const auditRoutes = [
  get('/audit', async (visit) => {
    const client = visit.client();
    const { query } = visit;
    const filter = filterOf(visit);
    const [projects, { items, ...page }] = await Promise.all([
      allProjects(client),
      listed(() => client.auditRecords(filter)),
    ]);
    return {
      title: 'Audit',
      section: 'audit',
      // Who has gone on to older records wants them to stay.
      isLive: !query.has('cursor'),
      body: auditPage({ records: items, ...page, query, projects, choices: CHOICES }),
      ...statusOf(page.refused),
    };
  }),
  get('/audit/export', async (visit) => {
    const download = await exported('audit', visit.query.get('format'), COLUMNS, recordsOf(visit));
    return { download };
  }),
  get('/audit/:id', async (visit) => {
    const client = visit.client();
    const [record, projects] = await Promise.all([client.auditRecord(visit.params.id ?? ''), allProjects(client)]);
    const body = recordPage({ record, names: namesOf(projects) });
    return { title: `Audit: ${record.action}`, section: 'audit', body };
  }),
];
