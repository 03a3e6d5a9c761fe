/** How `llmp top` shows its rows: names, figures, kinds of errors, and a sparkline. */
import { merged, sparkline } from '../../console/sparkline.js';
import type { TableColumn, View } from '../../console/table.js';
import { errorKinds, lastUseShown } from '../../daemon/api/top-words.js';
import { nameOr } from '../../console/views.js';
import type { WireTopRow } from '../../daemon/api/contract.js';
import { exact } from '../../daemon/api/formats.js';
import type { TopDimension, TopSort, TopWindow } from '../../daemon/api/vocabulary.js';

const FIGURES = [
  'requests',
  'cache_hits',
  'errors',
  'refused',
  'upstream_refused',
  'upstream_errors',
  'cut',
  'prompt_tokens',
  'completion_tokens',
  'p50_ms',
  'p95_ms',
  'last_used_at',
] as const satisfies readonly (keyof WireTopRow)[];

const IDENTITIES: Record<TopDimension, readonly (keyof WireTopRow)[]> = {
  token: ['token_id', 'token_name', 'project_id', 'project_name'],
  project: ['project_id', 'project_name'],
  model: ['model', 'project_id', 'project_name'],
};

/** Columns of the sparkline. Longer histories are summed up. */
const TREND_COLUMNS = 12;
const NONE = '-';

const project: TableColumn<WireTopRow> = {
  title: 'PROJECT',
  rank: 0,
  show: ({ project_id: id, project_name: name }) => nameOr(name, id),
  shrinks: true,
};

const NAMES: Record<TopDimension, readonly TableColumn<WireTopRow>[]> = {
  token: [
    {
      title: 'TOKEN',
      rank: 0,
      show: ({ token_id: id = NONE, token_name: name }) => nameOr(name, id),
      shrinks: true,
    },
    { ...project, rank: 4 },
  ],
  project: [project],
  model: [{ title: 'MODEL', rank: 0, show: ({ model }) => model ?? NONE, shrinks: true }, project],
};

const millisecondsShown = (value: number | null) => (value === null ? NONE : `${exact(Math.round(value))} ms`);

// If the terminal is too narrow, the columns with the highest rank are removed first.
const columnsOf = (by: TopDimension, window: TopWindow): (TableColumn<WireTopRow> & { sort?: TopSort })[] => [
  { title: 'REQUESTS', rank: 1, sort: 'requests', show: ({ requests }) => exact(requests), alignRight: true },
  {
    title: 'ERRORS',
    rank: 0,
    sort: 'errors',
    show: ({ errors }) => exact(errors),
    tint: ({ errors }) => (errors > 0 ? 'red' : undefined),
    alignRight: true,
  },
  {
    title: 'ERROR KINDS',
    rank: 7,
    show: (row) =>
      errorKinds(row)
        .map(({ label, count }) => `${label} ${exact(count)}`)
        .join(', '),
    tint: () => 'dim',
  },
  {
    title: 'MODEL TOKENS',
    rank: 2,
    sort: 'tokens',
    show: ({ prompt_tokens: prompt, completion_tokens: completion }) => exact(prompt + completion),
    alignRight: true,
  },
  { title: 'P50', rank: 8, sort: 'p50', show: ({ p50_ms: ms }) => millisecondsShown(ms), alignRight: true },
  { title: 'P95', rank: 6, sort: 'p95', show: ({ p95_ms: ms }) => millisecondsShown(ms), alignRight: true },
  {
    title: 'LAST USE',
    rank: 5,
    sort: 'last_used',
    show: (row, { now }) => lastUseShown(by, window, row, now),
  },
  {
    title: 'TREND',
    rank: 3,
    show: ({ history }, { ascii }) => sparkline(merged(history, TREND_COLUMNS), ascii).join(''),
    tint: () => 'green',
  },
];

/** @param sort what the rows are sorted by, which is always shown. */
export const topView = (by: TopDimension, window: TopWindow, sort: TopSort): View<WireTopRow> => ({
  // A model belongs to several projects, so its name alone does not identify a row.
  idOf: (row) =>
    by === 'token'
      ? (row.token_id ?? NONE)
      : [row.project_id, ...(by === 'model' ? [row.model ?? NONE] : [])].join(' '),
  fields: [...IDENTITIES[by], ...FIGURES],
  columns: [
    ...NAMES[by],
    ...columnsOf(by, window).map(({ sort: field, ...column }) => (field === sort ? { ...column, rank: 0 } : column)),
  ],
  details: {},
});
