import { exact } from './formats.js';
import type { WireProjectCheck } from './contract.js';
import type { KeyCheck } from './vocabulary.js';

/** How the check of a key ended, for people. */
export const KEY_CHECK_SENTENCES: Readonly<Record<KeyCheck, string>> = {
  accepted: 'The provider accepted the key.',
  not_confirmed: 'The provider could not confirm the key.',
};

/** The result of the check of a project, as a sentence for people. */
export function projectCheckSentence({ reason, latency_ms: ms }: WireProjectCheck): string {
  if (reason === null) return `The provider accepted the key${ms === null ? '' : `, after ${exact(ms)} ms`}.`;
  return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
}
