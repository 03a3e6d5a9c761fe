import type { WireProjectChanged } from '../daemon/api/contract.js';
import { KEY_CHECK_SENTENCES } from '../daemon/api/checked-key.js';
import { usage } from '../console/failure.js';
import type { Input } from './input.js';
import { flag, text } from './option.js';
import type { Output } from './output.js';

export const keyFile = text(
  '--key-file <FILE>',
  'a file that contains the upstream key (default: standard input, or a prompt)',
);

/** Reads the upstream key. There is no option for its value, because `ps` and the shell's history would expose it. */
export async function upstreamKey(file: string | undefined, input: Input): Promise<string> {
  if (file === undefined && !input.isPiped && !input.canAsk) {
    throw usage('no upstream key given', { advice: 'Use --key-file FILE, or standard input' });
  }
  const key = await input.secretFrom(file ?? '-', "the provider's API key");
  if (key.trim() === '') throw usage('the upstream key is empty', { advice: 'Use --key-file FILE, or standard input' });
  return key;
}

/** Without it, keys are checked. */
export const noCheck = flag('--no-check', 'store the key without checking it with the provider');

/**
 * Sends a change with a key that the daemon checks with the provider, and warns if the key is not confirmed.
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
  const project = await send({ check_key: true });
  if (project.key_check === 'not_confirmed') {
    output.warn('the key is stored, but the response of the provider does not show whether it is valid');
  }
  return project;
}

/** A sentence for the message of a change, with a leading space; empty if the key was not accepted. */
export const acceptance = ({ key_check: result }: WireProjectChanged): string =>
  result === 'accepted' ? ` ${KEY_CHECK_SENTENCES.accepted}` : '';
