import { AUDIT_ACTIONS, AUDIT_ACTORS, AUDIT_OUTCOMES } from '../../api/schemas.js';
import { auditPage, recordPage } from '../pages/audit.js';
import { namesOf } from '../pages/links.js';
import { allProjects, get, givenOf, hoursFrom, listed, statusOf } from '../visit.js';

const FILTERS = ['q', 'action', 'outcome', 'actor', 'project_id', 'token_id', 'cursor'] as const;
const CHOICES = { actions: AUDIT_ACTIONS, actors: AUDIT_ACTORS, outcomes: AUDIT_OUTCOMES };

export const auditRoutes = [
  get('/audit', async (visit) => {
    const client = visit.client();
    const { query, nowMs } = visit;
    const since = hoursFrom(nowMs, query.get('since_hours'), -1);
    const filter = { ...givenOf(query, FILTERS), ...(since && { since }) };
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
  get('/audit/:id', async (visit) => {
    const client = visit.client();
    const [record, projects] = await Promise.all([client.auditRecord(visit.params.id ?? ''), allProjects(client)]);
    const body = recordPage({ record, names: namesOf(projects) });
    return { title: `Audit: ${record.action}`, section: 'audit', body };
  }),
];
