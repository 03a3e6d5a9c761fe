/** Finds the token of a secret, or of what is shown of one, which the operator pastes or enters instead of a filter. */
import { secretWordIn, shownSecret } from '../../daemon/api/tokens-of-secret.js';
import type { WireToken } from '../../daemon/api/contract.js';
import { nameOf } from './changes.js';
import { mayRequest, whyDenied } from './connection.js';
import { Secret, type SecretSearch } from './secret.js';
import { type State, type Transition, withMessage } from './state.js';
import * as token from './token.js';

/** The last word of a text that is one of both; null if there is none. */
export function searchIn(text: string): SecretSearch | null {
  const word = secretWordIn(text);
  if (word === undefined) return null;
  const shown = shownSecret(word);
  return shown === null ? { secret: new Secret(word) } : { shown };
}

/** The list keeps its filter: the secret is not part of any. */
export function searched(state: State, by: SecretSearch): Transition {
  if (!mayRequest(state)) return [withMessage(state, `${whyDenied(state)}: cannot search`, 'bad')];
  return [withMessage(state, 'Looking for the token …'), { do: 'load', request: { of: 'tokensOfSecret', by } }];
}

export function found(state: State, by: SecretSearch, [first, ...others]: readonly WireToken[]): Transition {
  const words = 'secret' in by ? 'this secret' : `a secret that is shown as ${by.shown}`;
  if (!first) return [withMessage(state, `No token has ${words}`, 'bad')];
  if (others.length > 0) {
    const ids = [first, ...others].map(({ id }) => id.slice(0, 8)).join(', ');
    return [withMessage(state, `Several tokens have ${words}: ${ids}`)];
  }
  // Something else has been opened meanwhile.
  if (state.layers.length > 0) return [withMessage(state, `The token with ${words} is ${nameOf(first)}`)];
  return token.open({ ...state, message: null }, first.id, first);
}
