/** The Top screen: the busiest tokens, projects or models. */
import { errorKinds, gapsOf, lastUseShown, PERIODS, PLURALS } from '../../daemon/api/top-words.js';
import { nameOr, shortId } from '../../console/views.js';
import { counted } from '../../daemon/api/formats.js';
import { keyOf } from '../keys/press.js';
import type { ListColumn } from '../parts/columns.js';
import { clockTime, count, milliseconds } from '../parts/figures.js';
import { withFound } from '../parts/found.js';
import { type Area, emptyListLines, key, listFrame } from '../parts/list.js';
import { joined, strip, type Strip, text } from '../parts/strip.js';
import { parsed } from '../state/filtering.js';
import { daemonNow, type State, type TopItem, type TopOrder } from '../state/state.js';
import { isDescending, nameOf, orderOf } from '../state/top.js';
import { type ChoosableColumn, chosenOf } from './chosen-columns.js';
import { arrow, loadingText } from './tokens.js';
import { trend } from './trend.js';

export function topScreen(state: State, area: Area): Strip[] {
  const { window, response } = state.top;
  const total = response?.total;
  const foot = total && ` · ${counted(total.requests, 'request')}, ${counted(total.errors, 'error')}`;
  return listFrame(
    {
      window,
      columns: columnsOf(state),
      emptyLines: emptyListLines(window, nothing(state), waitText(state)),
      title: titleOf(state),
      foot: strip(foot),
    },
    area,
  );
}

function titleOf({ top: { by, period, response } }: State): Strip {
  const what = `${PLURALS[by].charAt(0).toUpperCase()}${PLURALS[by].slice(1)}, ${PERIODS[period]}`;
  const gaps = response ? gapsOf(response, (at) => clockTime(Date.parse(at))) : [];
  return strip(text(what, 'title'), text(gaps.map((gap) => ` · ${gap}`).join(''), 'warning'));
}

/** Columns of the sparkline. Longer histories are summed up. */
const TREND_COLUMNS = 10;
const NAME_TITLES = { token: 'TOKEN', project: 'PROJECT', model: 'MODEL' };

function columnsOf(state: State): readonly ListColumn<TopItem>[] {
  const { top } = state;
  const now = daemonNow(state);
  const words = parsed(state, top.filter)?.words ?? [];
  const figure = (of: (row: TopItem) => number) => (row: TopItem) => strip(count(of(row)));
  const all: (ChoosableColumn<TopItem, 'top'> & { order?: TopOrder })[] = [
    {
      id: 'name',
      title: NAME_TITLES[top.by],
      rank: 0,
      minWidth: 12,
      maxWidth: 40,
      order: 'name',
      show: (row) => nameShown(row, state, words),
    },
    {
      id: 'project',
      title: 'PROJECT',
      rank: top.by === 'model' ? 1 : 3,
      minWidth: 9,
      maxWidth: 24,
      order: 'project',
      show: ({ project_name: name, project_id: id }) => withFound(nameOr(name, id), words),
    },
    {
      id: 'requests',
      title: 'REQUESTS',
      rank: 2,
      minWidth: 8,
      alignRight: true,
      order: 'requests',
      show: figure(({ requests }) => requests),
    },
    {
      id: 'errors',
      title: 'ERRORS',
      rank: 0,
      minWidth: 6,
      alignRight: true,
      order: 'errors',
      show: ({ errors }) => strip(text(count(errors), errors > 0 ? 'bad' : 'plain')),
    },
    { id: 'kinds', title: 'ERROR KINDS', rank: 7, minWidth: 16, maxWidth: 40, show: kindsShown },
    {
      id: 'model_tokens',
      title: 'MODEL TOKENS',
      rank: top.by === 'model' ? 0 : 4,
      minWidth: 12,
      alignRight: true,
      order: 'tokens',
      show: figure(({ prompt_tokens: prompt, completion_tokens: completion }) => prompt + completion),
    },
    {
      id: 'median',
      title: 'P50',
      rank: 9,
      minWidth: 8,
      alignRight: true,
      order: 'p50',
      show: ({ p50_ms: ms }) => strip(milliseconds(ms)),
    },
    {
      id: 'percentile',
      title: 'P95',
      rank: 8,
      minWidth: 8,
      alignRight: true,
      order: 'p95',
      show: ({ p95_ms: ms }) => strip(milliseconds(ms)),
    },
    {
      id: 'last_use',
      title: 'LAST USE',
      rank: 6,
      minWidth: 9,
      order: 'last_used',
      show: (row) => strip(lastUseShown(top.by, top.period, row, now)),
    },
    { id: 'trend', title: 'TREND', rank: 5, minWidth: TREND_COLUMNS, show: (row) => trend(row, TREND_COLUMNS) },
    {
      id: 'id',
      title: 'ID',
      rank: 10,
      minWidth: 8,
      show: ({ token_id: token, project_id: project }) => strip(text(shortId(token ?? project), 'faint')),
    },
    {
      id: 'hits',
      title: 'HITS',
      rank: 10,
      minWidth: 6,
      alignRight: true,
      show: figure(({ cache_hits: hits }) => hits),
    },
    {
      id: 'prompt',
      title: 'PROMPT',
      rank: 10,
      minWidth: 7,
      alignRight: true,
      show: figure(({ prompt_tokens: tokens }) => tokens),
    },
    {
      id: 'completion',
      title: 'COMPLETION',
      rank: 10,
      minWidth: 10,
      alignRight: true,
      show: figure(({ completion_tokens: tokens }) => tokens),
    },
  ];
  const titled = all
    .filter(({ id }) => top.by !== 'project' || id !== 'project')
    .map(({ order, ...column }) => (order === orderOf(top) ? withArrow(state, column) : column));
  return chosenOf(state, 'top', titled);
}

/** The sort column stays visible, and has room for the arrow. */
function withArrow(state: State, column: ChoosableColumn<TopItem, 'top'>): ChoosableColumn<TopItem, 'top'> {
  const title = `${column.title} ${arrow(state, { isDescending: isDescending(state.top) })}`;
  const minWidth = Math.max(column.minWidth, title.length);
  return { ...column, title, minWidth, rank: Math.min(column.rank, 0.5) };
}

function nameShown(row: TopItem, { top: { by } }: State, words: readonly string[]): Strip {
  const name = nameOf(row, by);
  if (name !== null) return withFound(name, words);
  if (by === 'model') return strip(text('no model', 'faint'));
  return strip(text(shortId(row.token_id ?? row.project_id), 'faint'));
}

const kindsShown = (row: TopItem): Strip =>
  joined(
    errorKinds(row).map(({ label, count: errors }) => strip(text(`${label} `, 'faint'), count(errors))),
    '  ',
  );

/** The text shown until there is a response. */
function waitText(state: State): string {
  return state.top.isUnsupported ? 'The daemon is too old to have this list.' : loadingText(state);
}

function nothing(state: State): (string | Strip)[] {
  const { top } = state;
  const period = key(keyOf(state, 'top.next-window'));
  if (top.filter.trim() === '') {
    return [`No requests in the ${PERIODS[top.period]}.`, strip(period, ' shows another time.')];
  }
  const isModel = /(?:^|\s)!?model:/.test(top.filter) && top.by !== 'model';
  return [
    strip(`No ${PLURALS[top.by]} match `, text(top.filter, 'accent'), '.'),
    isModel && top.response !== null && top.response.rows.length > 0
      ? strip(key(keyOf(state, 'top.models')), ' shows models, which it selects.')
      : strip(key('esc'), ' shows all, ', key(keyOf(state, 'global.filter')), ' changes the filter.'),
  ];
}
