/** The state of a token or project: a sign and a word, in a colour. */
import { stateShown, stateTint } from '../../console/views.js';
import type { Role } from './roles.js';
import { type Piece, text } from './strip.js';

const ROLE_OF: Record<NonNullable<ReturnType<typeof stateTint>>, Role> = {
  green: 'good',
  red: 'bad',
  yellow: 'warning',
  dim: 'faint',
};

/** @param state as sent by the daemon. A newer daemon may send states that this release does not know. */
export function stateMark(state: string): Piece {
  const tint = stateTint(state);
  return text(stateShown(state, { ascii: false }), tint ? ROLE_OF[tint] : 'plain');
}
