/** The rows of the overview that can be opened: the states of tokens, and the tokens that expire next. */
import { TOKEN_STATES } from '../../daemon/api/vocabulary.js';
import { opened } from './navigation.js';
import { refreshed } from './refreshing.js';
import type { State, Transition } from './state.js';
import * as token from './token.js';
import * as tokens from './tokens.js';

/** In the order of the screen. */
const rowsOf = ({ overview: { expiring } }: State): readonly string[] => [
  ...TOKEN_STATES,
  ...expiring.map(({ id }) => id),
];

/** Index of the selected state of tokens, or of the selected token; null: it is not selected, or gone. */
export function selection(state: State): { state: number | null; token: number | null } {
  const at = rowsOf(state).findIndex((row) => row === state.overview.selected);
  const isState = at < TOKEN_STATES.length;
  return { state: at >= 0 && isState ? at : null, token: isState ? null : at - TOKEN_STATES.length };
}

/** Without a selection the first row is selected, or the last one when moving up. */
export function movedBy(state: State, by: number): State {
  const rows = rowsOf(state);
  const at = rows.findIndex((row) => row === state.overview.selected);
  const from = at >= 0 ? at : by > 0 ? -1 : rows.length;
  const to = Math.max(0, Math.min(rows.length - 1, from + by));
  return { ...state, overview: { ...state.overview, selected: rows[to] ?? null } };
}

export const whyNotOpened = (state: State): string | null => {
  const { state: ofState, token: ofToken } = selection(state);
  return ofState === null && ofToken === null ? 'No row is selected; j and k select one' : null;
};

/** Opens the selected token, or the tokens in the selected state. */
export function openSelected(state: State): Transition {
  const { state: ofState, token: ofToken } = selection(state);
  const it = ofToken === null ? undefined : state.overview.expiring[ofToken];
  if (it) return token.open(state, it.id, it);
  const inState = ofState === null ? undefined : TOKEN_STATES[ofState];
  if (inState === undefined) return [state];
  return refreshed(tokens.withNewList(opened(state, { screen: 'tokens' }), { filter: `state:${inState}` }));
}
