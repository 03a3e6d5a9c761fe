/** Keys of the list of tokens and of a token's detail. */
import { shellWord } from '../../console/escape.js';
import * as changing from '../state/changes.js';
import * as forms from '../state/forms.js';
import { movedBy } from '../state/moving.js';
import { type State, type Transition, view, whyNoChange } from '../state/state.js';
import * as token from '../state/token.js';
import * as tokens from '../state/tokens.js';
import * as windows from '../state/window.js';
import { issueAgain, issueAllAgain, whyNotAgain } from '../state/changes.js';
import { firstKeyOf, firstOf, named } from './binding.js';
import { showEvents } from './feeds.js';

/** The tokens that a key acts on. */
function targetTokens(state: State) {
  if (view(state).screen !== 'token') return tokens.selectedTokens(state);
  const { token: it, isGone } = state.token ?? { token: null, isGone: false };
  return it && !isGone ? [it] : [];
}
function noToken(state: State): string | null {
  if (targetTokens(state).length > 0) return null;
  if (view(state).screen !== 'token') return noRow(state);
  return state.token?.isGone ? 'This token no longer exists' : 'Not loaded yet';
}
/** Why no token can be issued that is like the target. Of several, those are left out of which none can. */
function notLikeToken(state: State): string | null {
  const [it, ...others] = targetTokens(state);
  return it && others.length === 0 ? whyNotAgain(state, it) : null;
}
const notOneToken = (state: State) => (targetTokens(state).length > 1 ? 'Only one token at a time' : null);
/** The ids of the tokens that a key acts on. In the detail the id is known before the token is loaded. */
function targetIds(state: State): readonly string[] {
  const shown = view(state);
  return shown.screen === 'token' ? [shown.id] : targetTokens(state).map(({ id }) => id);
}
/** The shown token, or the one under the cursor. */
function shownTokenId(state: State): string | null {
  const shown = view(state);
  return shown.screen === 'token' ? shown.id : (tokens.underCursor(state)?.id ?? null);
}
/** The project of the shown token, or of the token under the cursor. */
function targetProject(state: State): string | undefined {
  const { screen } = view(state);
  if (screen === 'token') return state.token?.token?.project_id;
  return screen === 'tokens' ? tokens.underCursor(state)?.project_id : undefined;
}
const noTokenUnderCursor = (state: State) => (tokens.underCursor(state) ? null : noRow(state));
const noRow = ({ tokens: { window } }: State) =>
  windows.isLoaded(window) && windows.lengthOf(window) === 0 ? 'No token here' : 'Not loaded yet';

const ISSUE_AGAIN = 'tokens.issue-again';

export const TOKEN_BINDINGS = named('tokens', [
  {
    keys: ['enter', 'l', 'right'],
    on: ['tokens'],
    label: 'detail',
    meaning: 'show the token',
    footer: 1,
    whyDisabled: noTokenUnderCursor,
    run(state) {
      const it = tokens.underCursor(state);
      return it ? token.open(state, it.id, it) : [state];
    },
  },
  {
    keys: ['x'],
    on: ['tokens', 'token'],
    label: 'revoke',
    meaning: 'revoke it, or the marked tokens; asks first',
    needs: 'revokeToken',
    footer: 2,
    whyDisabled: firstOf(whyNoChange, noToken),
    run: (state) => changing.revoke(state, targetTokens(state)),
  },
  {
    keys: ['a'],
    on: ['tokens', 'token'],
    label: 'reactivate',
    meaning: 'reactivate it, or the marked tokens; asks first for several',
    needs: 'changeToken',
    footer: 6.5,
    whyDisabled: firstOf(whyNoChange, noToken),
    run: (state) => changing.reactivate(state, targetTokens(state), firstKeyOf(TOKEN_BINDINGS, ISSUE_AGAIN, state)),
  },
  {
    keys: ['n'],
    on: ['tokens', 'token', 'overview'],
    label: 'new',
    meaning: 'issue a new token',
    needs: 'createToken',
    footer: 4,
    whyDisabled: whyNoChange,
    run: (state) => forms.newToken(state, targetProject(state)),
  },
  {
    keys: ['R'],
    on: ['tokens', 'token'],
    label: 'issue again',
    meaning:
      'issue a new token with the same project, name, cap and lifetime; the secrets of marked tokens go to a file; asks first',
    needs: 'createToken',
    footer: 3,
    whyDisabled: firstOf(whyNoChange, noToken, notLikeToken),
    run(state) {
      const [it, ...others] = targetTokens(state);
      if (it && others.length > 0) return issueAllAgain(state, [it, ...others]);
      return it ? issueAgain(state, it) : [state];
    },
  },
  {
    keys: ['L'],
    on: ['tokens', 'token'],
    label: 'limits',
    meaning: 'change what it may use, and how fast',
    needs: 'changeToken',
    whyDisabled: firstOf(whyNoChange, noToken, notOneToken),
    run(state) {
      const [it] = targetTokens(state);
      return it ? forms.restrictToken(state, it) : [state];
    },
  },
  {
    keys: ['$'],
    on: ['tokens', 'token'],
    label: 'budget',
    meaning: 'change what it may spend',
    needs: 'changeToken',
    footer: 8.7,
    whyDisabled: firstOf(whyNoChange, noToken, notOneToken),
    run(state) {
      const [it] = targetTokens(state);
      return it ? forms.budgetToken(state, it) : [state];
    },
  },
  {
    keys: ['space'],
    on: ['tokens'],
    label: 'mark',
    meaning: 'mark or unmark it, and move down',
    footer: 5,
    whyDisabled: noTokenUnderCursor,
    run: markAndMove,
  },
  {
    keys: ['v'],
    on: ['tokens'],
    label: 'range',
    meaning: 'mark a range: press it again at the other end',
    whyDisabled: noTokenUnderCursor,
    run: tokens.rangeMarked,
  },
  {
    keys: ['ctrl+a'],
    on: ['tokens'],
    label: 'mark all',
    meaning: 'mark all filtered tokens',
    whyDisabled: tokens.whyNotMarkAll,
    run: (state) => tokens.requestAllTokens(state, 'marks'),
  },
  {
    keys: ['*'],
    on: ['tokens'],
    label: 'invert',
    meaning: 'invert the marks of the filtered tokens',
    whyDisabled: tokens.whyNotMarkAll,
    run: (state) => tokens.requestAllTokens(state, 'inverse'),
  },
  {
    keys: ['f'],
    on: ['tokens', 'token'],
    label: 'live events',
    meaning: 'show its requests and changes as they occur',
    needs: 'listEvents',
    whyDisabled: (state) => (shownTokenId(state) === null ? noRow(state) : null),
    run(state) {
      const id = shownTokenId(state);
      return id === null ? [state] : showEvents(state, `token:${id}`);
    },
  },
  {
    keys: ['y'],
    on: ['tokens', 'token'],
    label: 'copy id',
    meaning: "copy the ID to the terminal's clipboard",
    whyDisabled: (state) => (targetIds(state).length === 0 ? noToken(state) : null),
    run(state) {
      const ids = targetIds(state);
      return [state, { do: 'copy', text: ids.join('\n'), what: ids.length === 1 ? 'The ID' : `${ids.length} IDs` }];
    },
  },
  {
    name: 'copy-get-command',
    keys: ['Y'],
    on: ['token'],
    label: 'copy command',
    meaning: "copy the command that shows the token to the terminal's clipboard",
    run: (state) => [state, { do: 'copy', text: getCommand(state), what: 'The command' }],
  },
  { keys: ['s'], on: ['tokens'], label: 'sort', meaning: 'sort by the next column', footer: 8, run: tokens.ordered },
  { keys: ['S'], on: ['tokens'], label: 'reverse', meaning: 'reverse the sort order', run: tokens.reversed },
]);

function markAndMove(state: State): Transition {
  const [marked] = tokens.marked(state);
  return movedBy(marked, 1);
}

/** The command that shows the token. */
export function getCommand({ target, ...state }: State): string {
  const shown = view({ target, ...state });
  const context = target.context === null ? '' : ` -c ${shellWord(target.context)}`;
  return `llmp${context} token get ${shown.screen === 'token' ? shown.id : ''}`;
}
