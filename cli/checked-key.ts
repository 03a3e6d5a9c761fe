import { ApiError } from '../daemon/api/client.js';
import type { WireProjectChanged } from '../daemon/api/contract.js';
import { flag } from './option.js';
import type { Output } from './output.js';

/** Without it, keys are checked. */
export const noCheck = flag('--no-check', 'store the key without checking it with the provider');

/**
 * Sends a change with a key that the daemon checks with the provider, and warns if the key is not confirmed. Daemons of earlier releases
 * store it without a check.
 *
 * @param send sends the change, with these fields in addition to its own.
 * @throws the client's errors: `key_refused` and `key_not_checked` mean that nothing was changed.
 */
export async function withCheckedKey(
  send: (check: { check_key?: true }) => Promise<WireProjectChanged>,
  isToCheck: boolean,
  output: Output,
): Promise<WireProjectChanged> {
  if (!isToCheck) return send({});
  let project: WireProjectChanged;
  try {
    project = await send({ check_key: true });
  } catch (error) {
    if (!isUnknownField(error)) throw error;
    output.warn('the daemon is of an earlier release and cannot check keys; the key is stored without a check');
    return send({});
  }
  if (project.key_check === 'not_confirmed') {
    output.warn('the key is stored, but the response of the provider does not show whether it is valid');
  }
  return project;
}

const isUnknownField = (error: unknown) =>
  error instanceof ApiError && error.code === 'invalid_request' && /^unknown field.*\bcheck_key\b/.test(error.message);

/** A sentence for the message of a change, with a leading space; empty if the key was not accepted. */
export const acceptance = ({ key_check: result }: WireProjectChanged): string =>
  result === 'accepted' ? ' The provider accepted the key.' : '';
