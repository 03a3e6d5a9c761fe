import type { ManagementClient } from '../../api/client.js';
import type { UsageQuery } from '../../api/contract.js';
import { beginningOf, SPANS, spanNamed } from '../pages/chart.js';
import { overviewPage } from '../pages/overview.js';
import { namesOf } from '../pages/links.js';
import { allProjects, get, type Visit } from '../visit.js';

const EXPIRING_SHOWN = '6';

/** What was used in the span that the page is asked for. */
export async function usageFor(visit: Visit, client: ManagementClient, of: Omit<UsageQuery, 'by' | 'since'> = {}) {
  const spanName = spanNamed(visit.query.get('span'));
  const since = new Date(beginningOf(spanName, visit.nowMs)).toISOString();
  return { spanName, usage: await client.usage({ ...of, by: SPANS[spanName].by, since }) };
}

export const overviewRoutes = [
  get('/', async (visit) => {
    const client = visit.client();
    const now = new Date(visit.nowMs).toISOString();
    const [status, used, expiring, projects] = await Promise.all([
      client.status(),
      usageFor(visit, client),
      client.tokens({ state: 'active', expires_after: now, sort: 'expires_at', limit: EXPIRING_SHOWN }),
      allProjects(client),
    ]);
    const body = overviewPage({ status, ...used, expiring: expiring.items, projectNames: namesOf(projects) });
    return { title: 'Overview', section: 'overview', isLive: true, body };
  }),
];
