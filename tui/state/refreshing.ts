/** What is asked for the view that is shown: now, and again every two seconds. */
import { asking, mayAsk, nextMs } from './connection.js';
import type { Effect, Question, Stream } from './exchange.js';
import * as feeds from './feeds.js';
import { filterGone } from './filtering.js';
import { layer, saying, type State, type Step, view } from './state.js';
import * as token from './token.js';
import * as tokens from './tokens.js';

/** Beside the list of tokens, which asks page by page. */
function questions(state: State): Question[] {
  const shown = view(state);
  switch (shown.screen) {
    case 'overview':
      return [
        { of: 'dying', query: { state: 'active', sort: 'expires_at', limit: '8' } },
        { of: 'usage', query: { by: 'hour', since: token.dayBefore(state) } },
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

/** Asks for what is shown, and begins to wait for the next time. */
export function refreshed(state: State): Step {
  if (!mayAsk(state)) return [state];
  const all: Question[] = [{ of: 'status' }, { of: 'projects' }, ...questions(state)];
  const isList = view(state).screen === 'tokens';
  const kinds = all.map(({ of }) => of);
  const isListAsked = isList && tokens.filterQuery(state) !== null;
  const begun = asking(state, isListAsked ? [...kinds, 'tokens'] : kinds);
  const [next, ...ofTokens] = isList ? tokens.refreshed(begun) : [begun];
  const asked = all.map((question): Effect => ({ do: 'ask', question }));
  const problem = filterGone(next);
  return [problem === null ? next : saying(next, problem, 'bad'), ...asked, ...ofTokens, wake(next)];
}

const wake = (state: State): Effect => ({ do: 'wake', name: 'refresh', afterMs: nextMs(state) });

/** Nothing is asked while the operator wants it to stand still, or looks at a secret. */
export const isAtRest = (state: State) => state.isPaused || layer(state)?.kind === 'reveal';

/** The time for it has come. */
export function woke(state: State): Step {
  return isAtRest(state) && mayAsk(state) ? [state, wake(state)] : refreshed(state);
}

export function streams(state: State): readonly Stream[] {
  return isAtRest(state) || !mayAsk(state) ? [] : feeds.streams(state);
}
