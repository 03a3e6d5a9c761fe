/** The fields and columns of the busiest tokens, projects or models. */
import type { WireTopRow } from '../../daemon/api/contract.js';
import { failureKinds } from '../../daemon/api/failure-words.js';
import { isOfModels, lastUseShown } from '../../daemon/api/top-words.js';
import type { TopDimension, TopWindow } from '../../daemon/api/vocabulary.js';
import { type Cell, columnsOf, cost, count, failures, ON_REQUEST, text, TREND_COLUMNS } from './column.js';

const IDENTITIES: Record<TopDimension, readonly (keyof WireTopRow)[]> = {
  token: ['token_id', 'token_name', 'project_id', 'project_name'],
  project: ['project_id', 'project_name'],
  model: ['model', 'project_id', 'project_name'],
  model_total: ['model'],
};

const FIGURES = [
  'requests',
  'cache_hits',
  'errors',
  'refused',
  'upstream_refused',
  'failed',
  'cut',
  'prompt_tokens',
  'completion_tokens',
  'p50_ms',
  'p95_ms',
  'last_used_at',
  'cost_usd',
  'unpriced_requests',
] as const satisfies readonly (keyof WireTopRow)[];

/** What the rows are, and their figures, in the order of exports. */
export const topFields = (by: TopDimension): (keyof WireTopRow)[] => [...IDENTITIES[by], ...FIGURES];

const MODEL = {
  title: 'Model',
  cell: ({ model }: WireTopRow): Cell => (model ? text(model) : text('no model', 'dim')),
};

const NAMES: Record<TopDimension, { title: string; cell: (row: WireTopRow) => Cell }> = {
  token: {
    title: 'Token',
    cell: ({ token_id: id = '', token_name: name = null }) => ({ kind: 'token', of: { id, name } }),
  },
  project: { title: 'Project', cell: projectCell },
  model: MODEL,
  model_total: MODEL,
};

function projectCell({ project_id: id = '', project_name: name = null }: WireTopRow): Cell {
  return { kind: 'project', of: { id, name } };
}

export const topColumns = (by: TopDimension, window: TopWindow) => {
  const all = columnsOf<WireTopRow>()({
    name: {
      ...NAMES[by],
      what: 'token, project or model',
      rank: 0,
      width: [12, 40],
      keepsWidth: true,
      sort: 'name',
      isSearched: true,
    },
    project: {
      title: 'Project',
      what: 'name of the project',
      // A model belongs to several projects, so its name alone does not identify a row.
      rank: by === 'model' ? 1 : 3,
      width: [9, 24],
      sort: 'project',
      key: 'project',
      isSearched: true,
      cell: projectCell,
    },
    requests: {
      title: 'Requests',
      what: 'completed requests',
      rank: 2,
      width: 8,
      alignRight: true,
      sort: 'requests',
      cell: ({ requests }) => count(requests),
    },
    errors: {
      title: 'Failures',
      what: 'requests that llmp or the provider refused, that failed, or that a revocation cut off',
      rank: 0,
      width: 8,
      alignRight: true,
      sort: 'errors',
      cell: ({ errors }) => failures(errors),
    },
    kinds: {
      title: 'Failure kinds',
      what: 'failures by kind; refused: by llmp',
      rank: 6,
      width: [24, 48],
      cell: (row) => ({ kind: 'counts', counts: failureKinds(row) }),
    },
    model_tokens: {
      title: 'Model tokens',
      what: 'model tokens in prompts and responses',
      rank: isOfModels(by) ? 0 : 4,
      width: 12,
      alignRight: true,
      sort: 'tokens',
      cell: ({ prompt_tokens: prompt, completion_tokens: completion }) => count(prompt + completion),
    },
    cost: {
      title: 'Cost',
      what: 'cost of the requests; + if the cost of some is unknown',
      rank: isOfModels(by) ? 1.5 : 5.5,
      width: [6, 10],
      isWhole: true,
      alignRight: true,
      sort: 'cost',
      cell: cost,
    },
    median: {
      title: 'P50',
      what: 'median time until the response of the provider started',
      rank: 9,
      width: 8,
      alignRight: true,
      sort: 'p50',
      cell: ({ p50_ms: ms }) => ({ kind: 'milliseconds', ms }),
    },
    percentile: {
      title: 'P95',
      what: '95th percentile of that time',
      rank: 8,
      width: 8,
      alignRight: true,
      sort: 'p95',
      cell: ({ p95_ms: ms }) => ({ kind: 'milliseconds', ms }),
    },
    last_use: {
      title: 'Last used',
      what: 'time since the last request',
      rank: 7,
      width: 9,
      sort: 'last_used',
      cell: (row, nowMs) => ({ kind: 'distance', at: row.last_used_at, words: lastUseShown(by, window, row, nowMs) }),
    },
    trend: {
      title: 'Trend',
      what: 'requests over time; a part with failures has their color',
      rank: 5,
      width: TREND_COLUMNS,
      cell: ({ history, error_history: errors }) => ({ kind: 'trend', history, errors }),
    },
    id: {
      title: 'ID',
      what: 'beginning of the ID of the token or project',
      shownBy: ON_REQUEST,
      rank: 10,
      width: 8,
      cell: ({ token_id: token, project_id: project }) => ({ kind: 'id', id: token ?? project ?? '' }),
    },
    hits: {
      title: 'Hits',
      what: 'responses from the cache',
      shownBy: ON_REQUEST,
      rank: 10,
      width: 6,
      alignRight: true,
      cell: ({ cache_hits: hits }) => count(hits),
    },
    prompt: {
      title: 'Prompt',
      what: 'model tokens in prompts',
      shownBy: ON_REQUEST,
      rank: 10,
      width: 7,
      alignRight: true,
      cell: ({ prompt_tokens: tokens }) => count(tokens),
    },
    completion: {
      title: 'Completion',
      what: 'model tokens in responses',
      shownBy: ON_REQUEST,
      rank: 10,
      width: 10,
      alignRight: true,
      cell: ({ completion_tokens: tokens }) => count(tokens),
    },
    unpriced: {
      title: 'Unpriced',
      what: 'requests whose cost is unknown',
      shownBy: ON_REQUEST,
      rank: 10,
      width: 8,
      alignRight: true,
      cell: ({ unpriced_requests: requests }) => count(requests),
    },
  });
  return all.filter(({ id }) => id !== 'project' || by === 'token' || by === 'model');
};
