/** What requests add up to: a page of it, and files. */
import { ApiError, type ManagementClient } from '../../api/client.js';
import type { UsageQuery, WireUsageLine } from '../../api/contract.js';
import { usageLine } from '../../api/schemas.js';
import { exported } from '../export.js';
import { namesOf } from '../pages/links.js';
import { figuresOf, isFigure, GROUPINGS, PERIODS, USAGE_SORTS, usagePage } from '../pages/usage.js';
import { allProjects, get, givenOf, refusal, refusedBecause, statusOf, type Visit } from '../visit.js';

const LINES_SHOWN = 50;
const AT_A_TIME = 8;
const DAY_MS = 86_400_000;
const FIGURES = (Object.keys(usageLine.shape) as (keyof WireUsageLine)[]).filter(isFigure);
const FIELDS = { token: 'token_id', project: 'project_id', model: 'model', day: 'day' } as const;

/** @throws {ApiError} for a value that is none of the choices. */
function chosen(query: URLSearchParams, name: string, choices: readonly (readonly [string, string])[], usual: string) {
  const given = query.get(name) || usual;
  if (choices.some(([value]) => value === given)) return given;
  throw refusal(`${name} must be one of ${choices.map(([value]) => value).join(' ')}`);
}

/** What is asked of the API, and in which order it is shown. */
function wantedOf({ query, nowMs }: Visit) {
  const by = chosen(query, 'by', GROUPINGS, 'model');
  const hours = Number(chosen(query, 'since_hours', PERIODS, '168'));
  const sort = chosen(query, 'sort', USAGE_SORTS, 'requests');
  const sinceMs = nowMs - hours * 3_600_000;
  const asked: UsageQuery = { ...givenOf(query, ['project_id', 'token_id']), by };
  return { by, sort, sinceMs, asked };
}

function inOrder(lines: WireUsageLine[], sort: string): WireUsageLine[] {
  if (sort === 'day') return lines.sort((one, other) => (other.day ?? '').localeCompare(one.day ?? ''));
  const figure = (line: WireUsageLine) => Number(line[sort as keyof WireUsageLine] ?? 0);
  return lines.sort((one, other) => figure(other) - figure(one));
}

function sumsOf(lines: readonly WireUsageLine[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const line of lines) {
    for (const field of figuresOf(line)) sums[field] = (sums[field] ?? 0) + Number(line[field] ?? 0);
  }
  return sums;
}

/** Of the tokens on one page; one that is gone has no name. */
async function tokenNamesOf(client: ManagementClient, lines: readonly WireUsageLine[]): Promise<Map<string, string>> {
  const ids = [...new Set(lines.flatMap(({ token_id: id }) => id ?? []))];
  const names = new Map<string, string>();
  for (let from = 0; from < ids.length; from += AT_A_TIME) {
    await Promise.all(
      ids.slice(from, from + AT_A_TIME).map(async (id) => {
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

/** The number of a page is its cursor. */
const pageOf = (query: URLSearchParams) => {
  const given = query.get('cursor') ?? '';
  return /^[1-9]\d{0,5}$/.test(given) ? Number(given) : 1;
};

/** By days one after the other, so that a long time is as little at once as a short one. */
async function* linesIn(client: ManagementClient, visit: Visit): AsyncGenerator<readonly WireUsageLine[]> {
  const { by, sinceMs, asked } = wantedOf(visit);
  if (!by.split(',').includes('day')) {
    yield client.usage({ ...asked, since: new Date(sinceMs).toISOString() });
    return;
  }
  for (let fromMs = sinceMs; fromMs < visit.nowMs;) {
    const toMs = Math.min(visit.nowMs, (Math.floor(fromMs / DAY_MS) + 1) * DAY_MS);
    yield client.usage({ ...asked, since: new Date(fromMs).toISOString(), until: new Date(toMs).toISOString() });
    fromMs = toMs;
  }
}

export const usageRoutes = [
  get('/usage', async (visit) => {
    const client = visit.client();
    const { query } = visit;
    const projects = await allProjects(client);
    let lines: WireUsageLine[] = [];
    const refused = await refusedBecause(async () => {
      const { sort, sinceMs, asked } = wantedOf(visit);
      lines = inOrder(await client.usage({ ...asked, since: new Date(sinceMs).toISOString() }), sort);
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
  get('/usage/export', async (visit) => {
    const { by } = wantedOf(visit);
    const dimensions = by.split(',').map((name) => FIELDS[name as keyof typeof FIELDS]);
    const columns = [...dimensions, ...FIGURES];
    return {
      download: await exported('usage', visit.query.get('format'), columns, linesIn(visit.client(), visit)),
    };
  }),
];
