/** The usage report: a page and exports. */
import { ApiError, type ManagementClient } from '../../api/client.js';
import type { UsageQuery, WireUsageLine } from '../../api/contract.js';
import { usageLine } from '../../api/schemas.js';
import { exportDownload } from '../export.js';
import { namesOf } from '../pages/links.js';
import { metricsOf, isMetric, GROUPINGS, PERIODS, USAGE_SORTS, usagePage } from '../pages/usage.js';
import {
  allProjects,
  get,
  parametersOf,
  invalidRequest,
  refusalOf,
  statusOf,
  type PageRequest,
} from '../page-request.js';

const LINES_SHOWN = 50;
const CONCURRENCY = 8;
const DAY_MS = 86_400_000;
const METRICS = (Object.keys(usageLine.shape) as (keyof WireUsageLine)[]).filter(isMetric);
const FIELDS = { token: 'token_id', project: 'project_id', model: 'model', day: 'day' } as const;

/** @throws {ApiError} if the value is not one of the choices. */
function choiceOf(
  query: URLSearchParams,
  name: string,
  choices: readonly (readonly [string, string])[],
  usual: string,
) {
  const given = query.get(name) || usual;
  if (choices.some(([value]) => value === given)) return given;
  throw invalidRequest(`${name} must be one of ${choices.map(([value]) => value).join(' ')}`);
}

/** Parameters of the API request, and the sort order of the page. */
function reportParametersOf({ query, nowMs }: PageRequest) {
  const by = choiceOf(query, 'by', GROUPINGS, 'model');
  const hours = Number(choiceOf(query, 'since_hours', PERIODS, '168'));
  const sort = choiceOf(query, 'sort', USAGE_SORTS, 'requests');
  const sinceMs = nowMs - hours * 3_600_000;
  const asked: UsageQuery = { ...parametersOf(query, ['project_id', 'token_id']), by };
  return { by, sort, sinceMs, asked };
}

function sorted(lines: WireUsageLine[], sort: string): WireUsageLine[] {
  if (sort === 'day') return lines.sort((one, other) => (other.day ?? '').localeCompare(one.day ?? ''));
  const figure = (line: WireUsageLine) => Number(line[sort as keyof WireUsageLine] ?? 0);
  return lines.sort((one, other) => figure(other) - figure(one));
}

function sumsOf(lines: readonly WireUsageLine[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const line of lines) {
    for (const field of metricsOf(line)) sums[field] = (sums[field] ?? 0) + Number(line[field] ?? 0);
  }
  return sums;
}

/** Names of the tokens on one page. Tokens that do not exist any more are left out. */
async function tokenNamesOf(client: ManagementClient, lines: readonly WireUsageLine[]): Promise<Map<string, string>> {
  const ids = [...new Set(lines.flatMap(({ token_id: id }) => id ?? []))];
  const names = new Map<string, string>();
  for (let from = 0; from < ids.length; from += CONCURRENCY) {
    await Promise.all(
      ids.slice(from, from + CONCURRENCY).map(async (id) => {
        try {
          const { name } = await client.token(id);
          if (name !== null) names.set(id, name);
        } catch (error) {
          if (!(error instanceof ApiError && error.status === 404)) throw error;
        }
      }),
    );
  }
  return names;
}

/** The cursor of this list is the page number. */
const pageOf = (query: URLSearchParams) => {
  const given = query.get('cursor') ?? '';
  return /^[1-9]\d{0,5}$/.test(given) ? Number(given) : 1;
};

/** Loads the lines of an export, day by day if it has days, so that a long period does not need more memory than a short one. */
async function* exportLines(client: ManagementClient, request: PageRequest): AsyncGenerator<readonly WireUsageLine[]> {
  const { by, sinceMs, asked } = reportParametersOf(request);
  if (!by.split(',').includes('day')) {
    yield client.usage({ ...asked, since: new Date(sinceMs).toISOString() });
    return;
  }
  for (let fromMs = sinceMs; fromMs < request.nowMs;) {
    const toMs = Math.min(request.nowMs, (Math.floor(fromMs / DAY_MS) + 1) * DAY_MS);
    yield client.usage({ ...asked, since: new Date(fromMs).toISOString(), until: new Date(toMs).toISOString() });
    fromMs = toMs;
  }
}

export const usageRoutes = [
  get('/usage', async (request) => {
    const client = request.client();
    const { query } = request;
    const projects = await allProjects(client);
    let lines: WireUsageLine[] = [];
    const refused = await refusalOf(async () => {
      const { sort, sinceMs, asked } = reportParametersOf(request);
      lines = sorted(await client.usage({ ...asked, since: new Date(sinceMs).toISOString() }), sort);
    });
    const page = pageOf(query);
    const shown = lines.slice((page - 1) * LINES_SHOWN, page * LINES_SHOWN);
    const body = usagePage({
      lines: shown,
      sums: sumsOf(lines),
      total: lines.length,
      next: lines.length > page * LINES_SHOWN ? String(page + 1) : null,
      query,
      projects,
      projectNames: namesOf(projects),
      tokenNames: await tokenNamesOf(client, shown),
      refused,
    });
    return { title: 'Usage', section: 'usage', body, ...statusOf(refused) };
  }),
  get('/usage/export', async (request) => {
    const { by } = reportParametersOf(request);
    const dimensions = by.split(',').map((name) => FIELDS[name as keyof typeof FIELDS]);
    const columns = [...dimensions, ...METRICS];
    return {
      download: await exportDownload(
        'usage',
        request.query.get('format'),
        columns,
        exportLines(request.client(), request),
      ),
    };
  }),
];
