/** The tokens screen. */
import { TOKEN_COLUMNS } from '../../console/columns/tokens.js';
import type { WireToken } from '../../daemon/api/contract.js';
import { keyOf, offers } from '../keys/press.js';
import type { ListColumn } from '../parts/columns.js';
import { key, List } from '../parts/list.js';
import { strip, type Strip, text } from '../parts/strip.js';
import { whyDenied } from '../state/connection.js';
import { listRows } from '../state/rows.js';
import type { State, TokensState } from '../state/state.js';
import { shownColumns, WIDE_COLUMNS } from './chosen-columns.js';

export const TokensScreen = ({ state }: { state: State }) => (
  <List
    window={state.tokens.window}
    title={orderShown(state.tokens)}
    columns={columnsOf(state)}
    rows={listRows(state)}
    markOf={(token, index) => strip(markOf(state, token, index))}
    emptyLines={nothing(state)}
    wait={loadingText(state)}
  />
);

function markOf({ tokens: { marks, rangeFrom, window } }: State, token: WireToken | undefined, index: number) {
  if (token && marks.has(token.id)) return text('✓', 'accent');
  if (rangeFrom === null) return ' ';
  const isInRange =
    index >= Math.min(rangeFrom, window.cursorIndex) && index <= Math.max(rangeFrom, window.cursorIndex);
  return isInRange ? text('·', 'accent') : ' ';
}

function columnsOf(state: State): readonly ListColumn<WireToken>[] {
  const { filter, order, isDescending } = state.tokens;
  return shownColumns(state, 'tokens', TOKEN_COLUMNS, {
    filter,
    order: { by: order, isDescending },
    own: { id: state.size.columns >= WIDE_COLUMNS ? {} : { rank: 9 } },
  });
}

/** The order that is none of a single column. */
const orderShown = ({ order, isDescending }: TokensState): Strip =>
  order === 'live' ? strip(text(`usable ${isDescending ? 'last' : 'first'}, by expiry`, 'faint')) : [];

function nothing(state: State): (string | Strip)[] {
  const { tokens } = state;
  if (tokens.filter.trim() !== '') {
    return [
      strip('No tokens match ', text(tokens.filter, 'accent'), '.'),
      strip(key('esc'), ' shows all, ', key(keyOf(state, 'global.filter')), ' changes the filter.'),
    ];
  }
  const first = strip(key(keyOf(state, 'tokens.new')), ' issues the first one.');
  return ['No tokens yet.', ...(offers(state, 'tokens.new') ? [first] : [])];
}

/** The text shown until the data is loaded. */
export function loadingText(state: State): string {
  const { is } = state.connection;
  if (is === 'offline') return 'No data yet: the daemon is unreachable.';
  return is === 'denied' ? `No data yet: ${whyDenied(state)}.` : '…';
}
