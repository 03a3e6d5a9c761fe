import type { UsageQuery } from '../../api/contract.js';
import { spanNamed, timelineOf } from '../pages/traffic.js';
import { overviewPage } from '../pages/overview.js';
import { get, type PageRequest } from '../page-request.js';

const EXPIRING_SHOWN = '6';

/** Usage in the period that the query of the page selects. */
export async function usageFor({ client, query, nowMs }: PageRequest, of: Omit<UsageQuery, 'by' | 'since'> = {}) {
  const spanName = spanNamed(query.get('span'));
  const { fromMs, step } = timelineOf(spanName, nowMs);
  return { spanName, usage: await client.usage({ ...of, by: step, since: new Date(fromMs).toISOString() }) };
}

export const overviewRoutes = [
  get('/', async (request) => {
    const { client } = request;
    const now = new Date(request.nowMs).toISOString();
    const [status, used, expiring] = await Promise.all([
      client.status(),
      usageFor(request),
      client.tokens({ state: 'active', expires_after: now, sort: 'expires_at', limit: EXPIRING_SHOWN }),
    ]);
    const body = overviewPage({ status, ...used, expiring: expiring.items });
    return { title: 'Overview', section: 'overview', isLive: true, body };
  }),
];
