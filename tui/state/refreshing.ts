/** Refresh: the data requests of the current view, sent now and at every refresh interval. */
import { costsQuery } from '../../console/columns/costs.js';
import { NEARLY_SPENT_TOKENS } from '../../console/problems.js';
import { requesting, mayRequest, nextRefreshMs } from './connection.js';
import type { Effect, DataRequest, Stream } from './exchange.js';
import * as feeds from './feeds.js';
import { mayAsk, mayFollow } from './permitted.js';
import { whyFilterInvalid } from './filtering.js';
import { countRequests } from './saved-views.js';
import { daemonNow, layer, withMessage, type State, type Transition, view, loads } from './state.js';
import * as project from './project.js';
import * as token from './token.js';
import * as tokens from './tokens.js';
import * as top from './top.js';

/** Rows of each list of tokens on the overview: what a tall screen has room for. */
const LISTED = '20';

/** Requests of the view, apart from the list of tokens, which is loaded page by page. */
function dataRequests(state: State): DataRequest[] {
  const shown = view(state);
  switch (shown.screen) {
    case 'overview':
      return [
        { of: 'lastHour', query: { by: 'token', window: '1h', sort: 'errors', limit: LISTED } },
        { of: 'expiring', query: { state: 'active', sort: 'expires_at', limit: LISTED } },
        { of: 'usage', query: { by: 'hour', since: token.dayBefore(state) } },
      ];
    case 'token':
      return token.dataRequests(state, shown.id);
    case 'project':
      return project.dataRequests(state, shown.id);
    case 'audit':
    case 'events':
      return feeds.dataRequests(state, shown.screen);
    case 'cache':
      return [{ of: 'cache' }];
    case 'top':
      return top.dataRequests(state);
    case 'operators':
    case 'operator':
      return [{ of: 'operators' }];
    case 'trusts':
    case 'trust':
      return [{ of: 'trusts' }];
    default:
      return [];
  }
}

/** Reports over days and the budgets of all tokens change slowly, and take longer to read. */
const SPENDING_MS = 30_000;

function isDue({ overview: { loadedMs }, nowMs }: State, what: keyof State['overview']['loadedMs']): boolean {
  const atMs = loadedMs[what];
  return atMs === null || nowMs - atMs >= SPENDING_MS;
}

function spendingRequests(state: State): DataRequest[] {
  const hasCosts = view(state).screen === 'overview' && isDue(state, 'costs');
  return [
    ...(hasCosts ? [{ of: 'costs', query: costsQuery(daemonNow(state)) } as const] : []),
    ...(isDue(state, 'spenders') ? [{ of: 'spenders', query: NEARLY_SPENT_TOKENS } as const] : []),
  ];
}

/** A change of what the caller may do is also noticed when the daemon refuses something. */
const SELF_MS = 30_000;

const isSelfDue = ({ selfMs, nowMs }: State) => selfMs === null || nowMs - selfMs >= SELF_MS;

/** The requests of a refresh that the caller may send, apart from the list of tokens. */
export function requestsOf(state: State): DataRequest[] {
  const all: DataRequest[] = [
    ...(isSelfDue(state) ? [{ of: 'self' } as const] : []),
    { of: 'status' },
    { of: 'incidents' },
    { of: 'projects' },
    ...dataRequests(state),
    ...spendingRequests(state),
    ...countRequests(state),
  ];
  return all.filter((request) => mayAsk(state, request));
}

/** Requests the data of the current view, and schedules the next refresh. */
export function refreshed(state: State): Transition {
  if (!mayRequest(state)) return [state];
  const all = requestsOf(state);
  const isList = view(state).screen === 'tokens';
  const kinds = all.map(({ of }) => of);
  const isListAsked = isList && tokens.filterQuery(state) !== null;
  const begun = requesting(state, isListAsked ? [...kinds, 'tokens'] : kinds);
  const [next, ...ofTokens] = isList ? tokens.refreshed(begun) : [begun];
  const asked = loads(all);
  const problem = whyFilterInvalid(next);
  return [problem === null ? next : withMessage(next, problem, 'bad'), ...asked, ...ofTokens, wake(next)];
}

const wake = (state: State): Effect => ({ do: 'wake', name: 'refresh', afterMs: nextRefreshMs(state) });

/** Nothing is requested while the screen is paused or shows a secret. */
export const isIdle = (state: State) => state.isPaused || layer(state)?.kind === 'reveal';

/** The refresh timer has fired. */
export function woke(state: State): Transition {
  return isIdle(state) && mayRequest(state) ? [state, wake(state)] : refreshed(state);
}

export function streams(state: State): readonly Stream[] {
  if (isIdle(state) || !mayRequest(state)) return [];
  return feeds.streams(state).filter((stream) => mayFollow(state, stream));
}
