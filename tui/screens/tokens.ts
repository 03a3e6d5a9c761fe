/** The tokens screen. */
import { shortId } from '../../console/views.js';
import type { WireToken } from '../../daemon/api/contract.js';
import { keyOf } from '../keys/press.js';
import type { ListColumn } from '../parts/columns.js';
import { exact, relativeTime } from '../../daemon/api/formats.js';
import { count, dateTime, percent } from '../parts/figures.js';
import { withFound } from '../parts/found.js';
import { type Area, key, listFrame, emptyListLines } from '../parts/list.js';
import { stateMark } from '../parts/state-mark.js';
import { strip, type Strip, text } from '../parts/strip.js';
import { parsed } from '../state/filtering.js';
import { daemonNow, type State, type TokenOrder } from '../state/state.js';
import { type ChoosableColumn, chosenOf } from './chosen-columns.js';

export function tokensScreen(state: State, area: Area): Strip[] {
  const { tokens } = state;
  return listFrame(
    {
      window: tokens.window,
      columns: columnsOf(state),
      markOf: (token, index) => strip(markOf(state, token, index)),
      emptyLines: emptyListLines(tokens.window, nothing(state), loadingText(state)),
    },
    area,
  );
}

function markOf({ tokens: { marks, rangeFrom, window } }: State, token: WireToken | undefined, index: number) {
  if (token && marks.has(token.id)) return text('✓', 'accent');
  if (rangeFrom === null) return ' ';
  const isInRange =
    index >= Math.min(rangeFrom, window.cursorIndex) && index <= Math.max(rangeFrom, window.cursorIndex);
  return isInRange ? text('·', 'accent') : ' ';
}

/** Below this width there is no room for IDs, because names are more useful. */
const WIDE_COLUMNS = 100;
/** Below this width names are cut, so that state and expiry are visible. */
const NARROW_COLUMNS = 72;

function columnsOf(state: State): readonly ListColumn<WireToken>[] {
  const {
    tokens,
    size: { columns },
  } = state;
  const now = daemonNow(state);
  const isWide = columns >= WIDE_COLUMNS;
  const words = parsed(state, tokens.filter)?.words ?? [];
  const ago = (timestamp: string | null) =>
    strip(text(relativeTime(timestamp, now), timestamp === null ? 'faint' : 'plain'));
  const all: (ChoosableColumn<WireToken, 'tokens'> & { order?: TokenOrder })[] = [
    { id: 'id', title: 'ID', rank: isWide ? 0 : 9, minWidth: 8, show: ({ id }) => strip(text(shortId(id), 'faint')) },
    {
      id: 'name',
      title: 'NAME',
      rank: 1,
      minWidth: isWide || columns < NARROW_COLUMNS ? 10 : 20,
      maxWidth: 40,
      order: 'name',
      show: ({ id, name }) =>
        name === null && !isWide ? strip(text(shortId(id), 'faint')) : withFound(name ?? '', words),
    },
    {
      id: 'project',
      title: 'PROJECT',
      rank: 4,
      minWidth: 9,
      maxWidth: 24,
      show: ({ project_name }) => strip(project_name),
    },
    { id: 'state', title: 'STATE', rank: 0, minWidth: 13, show: ({ state: it }) => strip(stateMark(it)) },
    {
      id: 'expires',
      title: 'EXPIRES',
      rank: 2,
      minWidth: 9,
      order: 'expires_at',
      show: (token) => strip(text(relativeTime(token.expires_at, now), expiresSoon(token, now) ? 'warning' : 'plain')),
    },
    {
      id: 'requests',
      title: 'REQUESTS',
      rank: 3,
      minWidth: 13,
      alignRight: true,
      order: 'request_count',
      show: requests,
    },
    { id: 'hit_ratio', title: 'HIT%', rank: 6, minWidth: 4, alignRight: true, show: hits },
    {
      id: 'last_used',
      title: 'LAST USED',
      rank: 5,
      minWidth: 11,
      order: 'last_used_at',
      show: ({ last_used_at: at }) => ago(at),
    },
    {
      id: 'created',
      title: 'CREATED',
      rank: 7,
      minWidth: 9,
      order: 'created_at',
      show: ({ created_at: at }) => ago(at),
    },
    {
      id: 'secret',
      title: 'SECRET',
      rank: 8,
      minWidth: 16,
      show: ({ obfuscated }) => strip(text(obfuscated, 'faint')),
    },
    {
      id: 'hits',
      title: 'HITS',
      rank: 9,
      minWidth: 6,
      alignRight: true,
      show: (token) => strip(count(token.cache_hit_count)),
    },
    { id: 'used', title: 'USED', rank: 9, minWidth: 4, alignRight: true, show: usedShare },
    { id: 'expiry', title: 'EXPIRY', rank: 9, minWidth: 19, show: (token) => strip(dateTime(token.expires_at)) },
    {
      id: 'revoked',
      title: 'REVOKED',
      rank: 9,
      minWidth: 9,
      show: ({ revoked_at: at }) => (at === null ? [] : ago(at)),
    },
    {
      id: 'revoked_by',
      title: 'REVOKED BY',
      rank: 9,
      minWidth: 10,
      maxWidth: 30,
      show: ({ revoked_by: by }) => strip(by),
    },
    {
      id: 'reason',
      title: 'REASON',
      rank: 9,
      minWidth: 10,
      maxWidth: 60,
      show: ({ revoke_reason: why }) => strip(why),
    },
    { id: 'issued', title: 'ISSUED', rank: 9, minWidth: 19, show: (token) => strip(dateTime(token.created_at)) },
  ];
  const shown = tokens.order === 'live' ? 'expires_at' : tokens.order;
  const titled = all.map(({ order, ...column }) =>
    order === shown
      ? // The sort column stays visible.
        { ...column, rank: Math.min(column.rank, 1.5), title: `${column.title} ${arrow(state, tokens)}` }
      : column,
  );
  return chosenOf(state, 'tokens', titled);
}

/** The sort arrow. In ASCII it differs from the sign of a state that has the same symbol. */
export const arrow = ({ look }: State, { isDescending }: { isDescending: boolean }) =>
  isDescending ? '▼' : look.ascii ? '^' : '▲';

const SOON_MS = 3_600_000;
const expiresSoon = ({ state, expires_at }: WireToken, nowMs: number) =>
  state === 'active' && Date.parse(expires_at) - nowMs < SOON_MS;

function requests({ request_count: used, max_requests: most }: WireToken): Strip {
  const isNear = most > 0 && used >= most * 0.9;
  return strip(text(count(used), isNear ? 'warning' : 'plain'), text(`/${most === 0 ? '∞' : count(most)}`, 'faint'));
}

function usedShare({ request_count: used, max_requests: most }: WireToken): Strip {
  return most === 0 ? strip(text('∞', 'faint')) : strip(percent(used / most));
}

function hits({ cache_hit_count: hit, request_count: used }: WireToken): Strip {
  // A cache hit does not count towards the cap, so it is not in request_count.
  const answered = hit + used;
  return strip(answered === 0 ? text('–', 'faint') : exact(Math.floor((100 * hit) / answered)));
}

function nothing(state: State): (string | Strip)[] {
  const { tokens } = state;
  if (tokens.filter.trim() !== '') {
    return [
      strip('No tokens match ', text(tokens.filter, 'accent'), '.'),
      strip(key('esc'), ' shows all, ', key(keyOf(state, 'global.filter')), ' changes the filter.'),
    ];
  }
  return ['No tokens yet.', strip(key(keyOf(state, 'tokens.new')), ' issues the first one.')];
}

/** The text shown until the data is loaded. */
export function loadingText({ connection: { is } }: State): string {
  if (is === 'offline') return 'No data yet: the daemon is unreachable.';
  return is === 'denied' ? 'No data yet: the management token was refused.' : '…';
}
