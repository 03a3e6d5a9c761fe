import { exact } from './formats.js';
import type { WireProjectChanged, WireProjectCheck } from './contract.js';
import { isUnknownField } from './older-daemon.js';
import type { KeyCheck } from './vocabulary.js';

/** How the check of a key ended. `not_supported`: the daemon is of an earlier release. */
export type KeyCheckResult = KeyCheck | 'not_supported';

export const KEY_CHECK_SENTENCES: Readonly<Record<KeyCheckResult, string>> = {
  accepted: 'The provider accepted the key.',
  not_confirmed: 'The provider could not confirm the key.',
  not_supported: 'The key was not checked: the daemon is of an earlier release.',
};

/** The result of the check of a project, as a sentence for people. */
export function projectCheckSentence({ reason, latency_ms: ms }: WireProjectCheck): string {
  if (reason === null) return `The provider accepted the key${ms === null ? '' : `, after ${exact(ms)} ms`}.`;
  return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
}

/**
 * Sends a change with a key that the daemon checks with the provider. Daemons of earlier releases refuse the field `check_key`; they get
 * the change without it.
 *
 * @param send sends the change, with these fields in addition to its own.
 * @returns the project; `isChecked` is false if the daemon is of an earlier release.
 * @throws the client's errors: `key_refused` and `key_not_checked` mean that nothing was changed.
 */
export async function sendCheckedKey(
  send: (check: { check_key?: true }) => Promise<WireProjectChanged>,
): Promise<{ project: WireProjectChanged; isChecked: boolean }> {
  try {
    return { project: await send({ check_key: true }), isChecked: true };
  } catch (error) {
    if (!isUnknownField(error, 'check_key')) throw error;
    return { project: await send({}), isChecked: false };
  }
}
