/**
 * Token counts from responses, in the formats of the providers. They are made comparable: prompt tokens are all tokens of the prompt, and
 * include those that the provider read from its prompt cache or wrote to it.
 *
 * | format                                                  | prompt                                 | completion         | cache read, cache write                      |
 * | ------------------------------------------------------- | -------------------------------------- | ------------------ | -------------------------------------------- |
 * | OpenAI: chat completions, completions, embeddings       | `prompt_tokens`                        | `completion_tokens` | `prompt_tokens_details`: `cached_tokens`, `cache_write_tokens` |
 * | OpenAI: responses, images, audio, realtime              | `input_tokens`                         | `output_tokens`    | `input_tokens_details` or `input_token_details`: the same      |
 * | Anthropic: messages                                     | `input_tokens` and both cache counts   | `output_tokens`    | `cache_read_input_tokens`, `cache_creation_input_tokens` |
 * | Gemini (`usageMetadata`)                                | `promptTokenCount`, `toolUsePromptTokenCount` | `candidatesTokenCount` (Live API: `responseTokenCount`), `thoughtsTokenCount` | `cachedContentTokenCount`, none |
 *
 * Anthropic's `input_tokens` exclude what was read from the cache or written to it, and it reports no total. The prompt tokens of the
 * others include it. DeepSeek's `prompt_cache_hit_tokens` are cache reads. Services billed by the second report no tokens.
 */
import type { ModelUsage } from '../events.js';

// No context is that long; a larger number is not credible and must not enter the sums.
const MAX_TOKENS = 1_000_000_000;

/** Counts under their meaning, as one event or response reported them. A stream may report them in parts. */
export interface ReportedUsage {
  input: number | null;
  output: number | null;
  total: number | null;
  cacheRead: number | null;
  cacheWrite: number | null;
  /** In the format of Anthropic: the input excludes what was read from the cache or written to it, and there is no total. */
  isOfAnthropic: boolean;
}

type Counts = Readonly<Record<string, unknown>>;

/** @param value of `usage` or `usageMetadata`. @returns null if it has no counts. */
export function reportedUsage(value: unknown): ReportedUsage | null {
  const usage = countsIn(value);
  if (!usage) return null;
  const reported = 'promptTokenCount' in usage || 'totalTokenCount' in usage ? ofGemini(usage) : ofOthers(usage);
  const { input, output, total, cacheRead, cacheWrite } = reported;
  return (input ?? output ?? total ?? cacheRead ?? cacheWrite) === null ? null : reported;
}

const ofGemini = (usage: Counts): ReportedUsage => ({
  input: sumOf(countOf(usage.promptTokenCount), countOf(usage.toolUsePromptTokenCount)),
  output: sumOf(
    countOf(usage.candidatesTokenCount) ?? countOf(usage.responseTokenCount),
    countOf(usage.thoughtsTokenCount),
  ),
  total: countOf(usage.totalTokenCount),
  cacheRead: countOf(usage.cachedContentTokenCount),
  cacheWrite: null,
  isOfAnthropic: false,
});

function ofOthers(usage: Counts): ReportedUsage {
  const prompt = countOf(usage.prompt_tokens);
  const completion = countOf(usage.completion_tokens);
  const total = countOf(usage.total_tokens);
  const details = countsIn(usage.prompt_tokens_details ?? usage.input_tokens_details ?? usage.input_token_details);
  return {
    input: prompt ?? countOf(usage.input_tokens),
    output: completion ?? countOf(usage.output_tokens),
    total,
    cacheRead:
      countOf(details?.cached_tokens) ??
      countOf(usage.cache_read_input_tokens) ??
      countOf(usage.prompt_cache_hit_tokens),
    cacheWrite: countOf(details?.cache_write_tokens) ?? countOf(usage.cache_creation_input_tokens),
    // Some gateways add Anthropic's cache counts to OpenAI's format, in which the prompt tokens include them.
    isOfAnthropic: (prompt ?? completion ?? total) === null && details === null,
  };
}

/**
 * Combines two reports of one stream: for each count, the later one is valid, because counts are cumulative. So a later zero is a count
 * that the provider left out: Anthropic's last event may have `"input_tokens": 0`.
 */
export function mergedUsage(earlier: ReportedUsage | null, later: ReportedUsage): ReportedUsage {
  if (earlier === null) return later;
  return {
    input: later.input || (earlier.input ?? later.input),
    output: later.output || (earlier.output ?? later.output),
    total: later.total || (earlier.total ?? later.total),
    cacheRead: later.cacheRead || (earlier.cacheRead ?? later.cacheRead),
    cacheWrite: later.cacheWrite || (earlier.cacheWrite ?? later.cacheWrite),
    isOfAnthropic: later.isOfAnthropic && earlier.isOfAnthropic,
  };
}

/** The comparable counts. */
export function usageOf(reported: ReportedUsage): ModelUsage {
  const { input, output, total, cacheRead, cacheWrite, isOfAnthropic } = reported;
  const promptTokens = isOfAnthropic ? sumOf(input, cacheRead, cacheWrite) : input;
  const hasSum = isOfAnthropic && promptTokens !== null && output !== null;
  return {
    promptTokens,
    completionTokens: output,
    totalTokens: hasSum ? promptTokens + output : total,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
  };
}

/** Adds up what several responses used. */
export function addedUsage<T extends ModelUsage | null>(one: ModelUsage | null, other: T): ModelUsage | T {
  if (one === null) return other;
  if (other === null) return one;
  return {
    promptTokens: sumOf(one.promptTokens, other.promptTokens),
    completionTokens: sumOf(one.completionTokens, other.completionTokens),
    totalTokens: sumOf(one.totalTokens, other.totalTokens),
    cacheReadTokens: sumOf(one.cacheReadTokens, other.cacheReadTokens),
    cacheWriteTokens: sumOf(one.cacheWriteTokens, other.cacheWriteTokens),
  };
}

const countsIn = (value: unknown): Counts | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Counts) : null;

const countOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS ? value : null;

/** The sum of the known counts; null if none is known. */
const sumOf = (...counts: readonly (number | null)[]): number | null =>
  counts.reduce((sum, count) => (count === null ? sum : (sum ?? 0) + count), null);
