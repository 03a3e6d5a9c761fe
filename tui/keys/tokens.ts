/** The keys of the list of tokens, and of the detail of one. */
import { shellWord } from '../../console/escape.js';
import { shortId } from '../../console/views.js';
import * as changing from '../state/changing.js';
import * as forms from '../state/forms.js';
import { movedBy } from '../state/moving.js';
import { type State, type Step, view, whyNoChange } from '../state/state.js';
import * as token from '../state/token.js';
import * as tokens from '../state/tokens.js';
import * as windows from '../state/window.js';
import { type Binding, firstOf } from './binding.js';

/** What a key acts on, where a screen shows one token or many. */
function tokensMeant(state: State) {
  if (view(state).screen !== 'token') return tokens.meant(state);
  const { token: it, isGone } = state.token ?? { token: null, isGone: false };
  return it && !isGone ? [it] : [];
}
function noToken(state: State): string | null {
  if (tokensMeant(state).length > 0) return null;
  if (view(state).screen !== 'token') return noRow(state);
  return state.token?.isGone ? 'This token is not there any more' : 'It is not read yet';
}
/** Its id is known before it is. */
function idsMeant(state: State): readonly string[] {
  const shown = view(state);
  return shown.screen === 'token' ? [shown.id] : tokensMeant(state).map(({ id }) => id);
}
/** The project of the token that is looked at, or that the cursor is on. */
function projectMeant(state: State): string | undefined {
  const { screen } = view(state);
  if (screen === 'token') return state.token?.token?.project_id;
  return screen === 'tokens' ? tokens.underCursor(state)?.project_id : undefined;
}
const noTokenUnderCursor = (state: State) => (tokens.underCursor(state) ? null : noRow(state));
const noRow = ({ tokens: { window } }: State) =>
  windows.isHeardOf(window) && windows.lengthOf(window) === 0 ? 'There is no token here' : 'It is not read yet';

export const TOKEN_BINDINGS: readonly Binding[] = [
  {
    keys: ['enter', 'l', 'right'],
    on: ['tokens'],
    label: 'detail',
    meaning: 'show the token',
    footer: 1,
    unless: noTokenUnderCursor,
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
    footer: 2,
    unless: firstOf(whyNoChange, noToken),
    run: (state) => changing.revoke(state, tokensMeant(state)),
  },
  {
    keys: ['a'],
    on: ['tokens', 'token'],
    label: 'reactivate',
    meaning: 'reactivate it, or the marked tokens; asks first for several',
    footer: 3,
    unless: firstOf(whyNoChange, noToken),
    run: (state) => changing.reactivate(state, tokensMeant(state)),
  },
  {
    keys: ['n'],
    on: ['tokens', 'token', 'overview'],
    label: 'new',
    meaning: 'issue a new token',
    footer: 4,
    unless: whyNoChange,
    run: (state) => forms.newToken(state, projectMeant(state)),
  },
  {
    keys: ['space'],
    on: ['tokens'],
    label: 'mark',
    meaning: 'mark or unmark it, and move down',
    footer: 5,
    unless: noTokenUnderCursor,
    run: markAndMove,
  },
  {
    keys: ['v'],
    on: ['tokens'],
    label: 'range',
    meaning: 'mark a range: press it again at the other end',
    unless: noTokenUnderCursor,
    run: tokens.rangeMarked,
  },
  {
    keys: ['ctrl+a'],
    on: ['tokens'],
    label: 'mark all',
    meaning: 'mark all filtered tokens',
    unless: tokens.whyNotEvery,
    run: (state) => tokens.everyTokenAsked(state, 'marks'),
  },
  {
    keys: ['*'],
    on: ['tokens'],
    label: 'invert',
    meaning: 'invert the marks of the filtered tokens',
    unless: tokens.whyNotEvery,
    run: (state) => tokens.everyTokenAsked(state, 'inverse'),
  },
  {
    keys: ['y'],
    on: ['tokens', 'token'],
    label: 'copy id',
    meaning: "copy the ID to the terminal's clipboard",
    unless: (state) => (idsMeant(state).length === 0 ? noToken(state) : null),
    run(state) {
      const ids = idsMeant(state);
      return [state, { do: 'copy', text: ids.join('\n'), what: ids.length === 1 ? 'The id' : `${ids.length} ids` }];
    },
  },
  {
    keys: ['Y'],
    on: ['tokens', 'token'],
    label: 'copy command',
    meaning: "copy the equivalent command line to the terminal's clipboard",
    run: (state) => [state, { do: 'copy', text: commandLine(state), what: 'The command line' }],
  },
  { keys: ['s'], on: ['tokens'], label: 'sort', meaning: 'sort by the next column', footer: 8, run: tokens.ordered },
  { keys: ['S'], on: ['tokens'], label: 'reverse', meaning: 'reverse the sort order', run: tokens.reversed },
];

function markAndMove(state: State): Step {
  const [marked] = tokens.marked(state);
  return movedBy(marked, 1);
}

/** What shows the same at the command line. */
export function commandLine(state: State): string {
  const shown = view(state);
  const context = state.place.context === null ? '' : ` -c ${shellWord(state.place.context)}`;
  if (shown.screen === 'token') return `llmp${context} token get ${shown.id}`;
  const it = tokens.underCursor(state);
  return it ? `llmp${context} token get ${shortId(it.id)}` : `llmp${context} token list`;
}
