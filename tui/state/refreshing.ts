/** What is asked for the view that is shown: now, and again every two seconds. */
import type { Effect, Question, Stream } from './exchange.js';
import * as feeds from './feeds.js';
import { layer, type State, type Step, view } from './state.js';
import * as token from './token.js';
import * as tokens from './tokens.js';

/** Beside the list of tokens, which asks page by page. */
function questions(state: State): Question[] {
  const shown = view(state);
  switch (shown.screen) {
    case 'overview':
      return [
        { of: 'dying', query: { state: 'active', sort: 'expires_at', limit: '8' } },
        { of: 'usage', query: { by: 'hour', since: dayBefore(state.nowMs) } },
      ];
    case 'token':
      return token.questions(state, shown.id);
    case 'audit':
      return feeds.questions(state);
    case 'cache':
      return [{ of: 'cache' }];
    default:
      return [];
  }
}

const HOUR_MS = 3_600_000;
/** From a whole hour on, so that the question stays the same for a while, and its answer with it. */
const dayBefore = (nowMs: number) => new Date(Math.floor(nowMs / HOUR_MS) * HOUR_MS - 23 * HOUR_MS).toISOString();

/** Asks for what is shown, and begins to wait for the next time. */
export function refreshed(state: State): Step {
  const wake: Effect = { do: 'wake', name: 'refresh', afterMs: state.refreshMs };
  const always: Question[] = [{ of: 'status' }, { of: 'projects' }];
  const asked = [...always, ...questions(state)].map((question): Effect => ({ do: 'ask', question }));
  const [next, ...ofTokens] = view(state).screen === 'tokens' ? tokens.refreshed(state) : [state];
  return [next, ...asked, ...ofTokens, wake];
}

/** Nothing is asked while the operator wants it to stand still, or looks at a secret. */
export const isAtRest = (state: State) => state.isPaused || layer(state)?.kind === 'reveal';

/** The time for it has come. */
export function woke(state: State): Step {
  const wake: Effect = { do: 'wake', name: 'refresh', afterMs: state.refreshMs };
  // Until the operator asks: a wrong token again and again would look like an attack.
  if (state.connection.is === 'denied') return [state];
  return isAtRest(state) ? [state, wake] : refreshed(state);
}

export function streams(state: State): readonly Stream[] {
  if (isAtRest(state) || state.connection.is === 'denied') return [];
  return feeds.streams(state);
}
