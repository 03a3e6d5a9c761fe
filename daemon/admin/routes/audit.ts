import { AUDIT_FIELDS } from '../../../console/columns/audit.js';
import type { AuditQuery, WireAuditRecord } from '../../api/contract.js';
import { exported, pagesOf } from '../export.js';
import { auditPage, recordPage } from '../pages/audit.js';
import { allProjects, get, parametersOf, hoursOf, listPage, statusOf, type PageRequest } from '../page-request.js';
import { withTokenId } from '../token-filter.js';

const FILTERS = ['q', 'action', 'outcome', 'actor', 'project_id', 'token_id', 'cursor'] as const;

async function filterOf({ client, query }: PageRequest): Promise<AuditQuery> {
  const since = hoursOf(query, 'since_hours');
  return { ...(await withTokenId(client, parametersOf(query, FILTERS))), ...(since && { since }) };
}

async function* allRecords(request: PageRequest): AsyncGenerator<readonly WireAuditRecord[]> {
  const { cursor = null, ...filter } = await filterOf(request);
  yield* pagesOf((paging) => request.client.auditRecords({ ...filter, ...paging }), cursor);
}

export const auditRoutes = [
  get('/audit', async (request) => {
    const { client, query } = request;
    const [projects, { items, ...page }] = await Promise.all([
      allProjects(client),
      listPage(async () => client.auditRecords(await filterOf(request))),
    ]);
    return {
      title: 'Audit',
      section: 'audit',
      // Only the first page refreshes: older records must not move while they are read.
      isLive: !query.has('cursor'),
      body: auditPage({ records: items, ...page, query, projects }),
      ...statusOf(page.refused),
    };
  }),
  get('/audit/export', (request) => exported(request, 'audit', AUDIT_FIELDS, allRecords(request))),
  get('/audit/:id', async ({ client, id }) => {
    const record = await client.auditRecord(id);
    const body = recordPage({ record });
    return { title: `Audit: ${record.action}`, section: 'audit', body };
  }),
];
