/** What is believed of an answer: names of models and counts of tokens, in whichever of the provider's formats they come. */
import type { ModelUsage } from '../events.js';
import { withoutSecret } from '../masking.js';

const LONGEST_MODEL = 200;
// No context is that long; whoever says more is not to be added up.
const MOST_TOKENS = 1_000_000_000;

/** @returns the name as it was said, without what cannot be printed; null for what is none. It may hold a secret. */
export function modelNamed(value: unknown): string | null {
  if (typeof value !== 'string' || value.length === 0 || value.length > 2 * LONGEST_MODEL) return null;
  const printable = PLAIN.test(value) ? value : value.replace(UNPRINTABLE, '');
  return printable === '' ? null : printable;
}

/**
 * The name as it may be written down: somebody may have put a key where the model belongs, and a provider may repeat it.
 *
 * @param upstreamKey the key that the provider was asked with.
 */
export function modelShown(name: string | null, upstreamKey: string | null): string | null {
  if (name === null) return null;
  const masked = withoutSecret(upstreamKey, name);
  // Cut last: what is left of a key that the cut goes through could not be told for one.
  return masked.length <= LONGEST_MODEL ? masked : Array.from(masked).slice(0, LONGEST_MODEL).join('');
}

const PLAIN = /^[\x21-\x7e]+$/;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * Token counts as chat completions, completions and embeddings name them (`prompt_tokens`, `completion_tokens`), or as
 * responses, images and audio do (`input_tokens`, `output_tokens`). What is billed by the second has none.
 */
export function usageIn(value: unknown): ModelUsage | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const said = value as Record<string, unknown>;
  const promptTokens = countOf(said.prompt_tokens) ?? countOf(said.input_tokens);
  const completionTokens = countOf(said.completion_tokens) ?? countOf(said.output_tokens);
  const totalTokens = countOf(said.total_tokens);
  if (promptTokens === null && completionTokens === null && totalTokens === null) return null;
  return { promptTokens, completionTokens, totalTokens };
}

const countOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MOST_TOKENS ? value : null;
