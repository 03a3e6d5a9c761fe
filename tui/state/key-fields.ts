/** The fields of forms for a provider's key. */
import { isOn, type Problem, textField, toggleField, valueOf } from './dialog.js';
import type { NewKey } from './exchange.js';
import type { Dialog } from './layers.js';
import { Secret } from './secret.js';

/** The key becomes part of a header line. */
const KEY = /^[\x21-\x7e]{1,512}$/;

export const keyField = (hint = 'never shown again') =>
  textField("Provider's key", { isSecret: true, hint, width: 40 });

/** On, unless the operator turns it off. */
export const checkField = () => toggleField('Check', true, 'with the provider, before the key is stored');

export function keyIn(dialog: Dialog): { key: NewKey } | Problem {
  const key = valueOf(dialog, "Provider's key").trim();
  if (key === '') return { field: "Provider's key", words: "Enter the provider's key" };
  return KEY.test(key)
    ? { key: { secret: new Secret(key), isToCheck: isOn(dialog, 'Check') } }
    : { field: "Provider's key", words: 'A key must be 1 to 512 visible ASCII characters without spaces' };
}
