/** The Top screen: the busiest tokens, projects or models. */
import { topColumns } from '../../console/columns/top.js';
import { counted } from '../../daemon/api/formats.js';
import { failuresShown } from '../../daemon/api/failure-words.js';
import { isOfModels, moreRowsOf, PERIODS, PLURALS } from '../../daemon/api/top-words.js';
import { keyOf } from '../keys/press.js';
import type { ListColumn } from '../parts/columns.js';
import { key, List } from '../parts/list.js';
import { strip, type Strip, text } from '../parts/strip.js';
import { listRows } from '../state/rows.js';
import type { State, TopItem } from '../state/state.js';
import { isDescending, orderOf } from '../state/top.js';
import { shownColumns } from './chosen-columns.js';
import { loadingText } from './tokens.js';

export function TopScreen({ state }: { state: State }) {
  const { window, response } = state.top;
  const total = response?.total;
  const foot = total && ` · ${counted(total.requests, 'request')}, ${failuresShown(total)}`;
  return (
    <List
      window={window}
      columns={columnsOf(state)}
      rows={listRows(state)}
      emptyLines={nothing(state)}
      wait={loadingText(state)}
      title={titleOf(state)}
      foot={strip(foot)}
    />
  );
}

function titleOf({ top: { by, period, response } }: State): Strip {
  const what = `${PLURALS[by].charAt(0).toUpperCase()}${PLURALS[by].slice(1)}, ${PERIODS[period]}`;
  const more = response && moreRowsOf(response);
  return strip(text(what, 'title'), text(more ? ` · ${more}` : '', 'warning'));
}

const columnsOf = (state: State): readonly ListColumn<TopItem>[] =>
  shownColumns(state, 'top', topColumns(state.top.by, state.top.period), {
    filter: state.top.filter,
    order: { by: orderOf(state.top), isDescending: isDescending(state.top) },
  });

function nothing(state: State): (string | Strip)[] {
  const { top } = state;
  const period = key(keyOf(state, 'top.next-window'));
  if (top.filter.trim() === '') {
    return [`No requests in the ${PERIODS[top.period]}.`, strip(period, ' shows another time.')];
  }
  const isModel = /(?:^|\s)!?model:/.test(top.filter) && !isOfModels(top.by);
  return [
    strip(`No ${PLURALS[top.by]} match `, text(top.filter, 'accent'), '.'),
    isModel && top.response !== null && top.response.rows.length > 0
      ? strip(key(keyOf(state, 'top.models')), ' shows models, which it selects.')
      : strip(key('esc'), ' shows all, ', key(keyOf(state, 'global.filter')), ' changes the filter.'),
  ];
}
