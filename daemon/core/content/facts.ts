/** Validation of model names and token counts from requests and responses, in all formats of the providers. */
import type { ModelUsage } from '../events.js';
import { withoutSecret } from '../masking.js';

const MAX_MODEL_LENGTH = 200;
// No context is that long; a larger number is not credible and must not enter the sums.
const MAX_TOKENS = 1_000_000_000;

/** @returns the name without unprintable characters; null if it is not a name. It may contain a secret. */
export function modelNameFrom(value: unknown): string | null {
  if (typeof value !== 'string' || value.length === 0 || value.length > 2 * MAX_MODEL_LENGTH) return null;
  const printable = PLAIN.test(value) ? value : value.replace(UNPRINTABLE, '');
  return printable === '' ? null : printable;
}

/**
 * A model name that is safe to record: a client may have sent a key instead of a model name, and a provider may repeat it.
 *
 * @param upstreamKey the key that was used for the request.
 */
export function maskedModelName(name: string | null, upstreamKey: string | null): string | null {
  if (name === null) return null;
  const masked = withoutSecret(upstreamKey, name);
  // Truncated last: a truncated key would not be recognised and masked.
  return masked.length <= MAX_MODEL_LENGTH ? masked : Array.from(masked).slice(0, MAX_MODEL_LENGTH).join('');
}

const PLAIN = /^[\x21-\x7e]+$/;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * Token counts under the names of chat completions, completions and embeddings (`prompt_tokens`, `completion_tokens`), or of
 * responses, images and audio (`input_tokens`, `output_tokens`). Services billed by the second report none.
 */
export function usageFrom(value: unknown): ModelUsage | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const usage = value as Record<string, unknown>;
  const promptTokens = countOf(usage.prompt_tokens) ?? countOf(usage.input_tokens);
  const completionTokens = countOf(usage.completion_tokens) ?? countOf(usage.output_tokens);
  const totalTokens = countOf(usage.total_tokens);
  if (promptTokens === null && completionTokens === null && totalTokens === null) return null;
  return { promptTokens, completionTokens, totalTokens };
}

const countOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS ? value : null;
