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
 *
 * What only the cost depends on:
 *
 * | format    | reasoning                                        | audio                                                        | also |
 * | --------- | ------------------------------------------------ | ------------------------------------------------------------ | ---- |
 * | OpenAI    | `completion_tokens_details` or `output_tokens_details` or `output_token_details`: `reasoning_tokens` | `audio_tokens` of the same, and of those of the prompt | OpenRouter: `cost` |
 * | Anthropic | none                                             | none                                                         | `cache_creation.ephemeral_1h_input_tokens` |
 * | Gemini    | `thoughtsTokenCount`                             | `AUDIO` in `promptTokensDetails`, `candidatesTokensDetails`, `responseTokensDetails` | |
 *
 * The completion includes the reasoning, except at xAI, where the total shows it. Audio that was read from the cache is a cache read.
 */
import type { DetailedUsage, ModelUsage } from '../events.js';
import { addedNano, MAX_NANO, NANO_PER_USD } from '../../api/money.js';

// No context is that long; a larger number is not credible and must not enter the sums.
const MAX_TOKENS = 1_000_000_000;

/** Counts under their meaning, as one event or response reported them. A stream may report them in parts. */
export interface ReportedUsage {
  input: number | null;
  output: number | null;
  total: number | null;
  cacheRead: number | null;
  cacheWrite: number | null;
  cacheWrite1h: number | null;
  reasoning: number | null;
  audioInput: number | null;
  audioOutput: number | null;
  /** In nano-USD. */
  cost: number | null;
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
  cacheWrite1h: null,
  reasoning: countOf(usage.thoughtsTokenCount),
  audioInput: lessOf(spokenIn(usage.promptTokensDetails), spokenIn(usage.cacheTokensDetails)),
  audioOutput: spokenIn(usage.candidatesTokensDetails ?? usage.responseTokensDetails),
  cost: null,
  isOfAnthropic: false,
});

const MAX_MODALITIES = 20;

/** @param details a list such as `[{"modality": "AUDIO", "tokenCount": 7}]`. */
function spokenIn(details: unknown): number | null {
  if (!Array.isArray(details)) return null;
  const spoken = details
    .slice(0, MAX_MODALITIES)
    .map(countsIn)
    .find((each) => each?.modality === 'AUDIO');
  return countOf(spoken?.tokenCount);
}

function ofOthers(usage: Counts): ReportedUsage {
  const prompt = countOf(usage.prompt_tokens);
  const completion = countOf(usage.completion_tokens);
  const total = countOf(usage.total_tokens);
  const details = countsIn(usage.prompt_tokens_details ?? usage.input_tokens_details ?? usage.input_token_details);
  const outputDetails = countsIn(
    usage.completion_tokens_details ?? usage.output_tokens_details ?? usage.output_token_details,
  );
  const input = prompt ?? countOf(usage.input_tokens);
  const output = completion ?? countOf(usage.output_tokens);
  const reasoning = countOf(outputDetails?.reasoning_tokens);
  const isReasoningExtra =
    output !== null && reasoning !== null && total !== null && total === (input ?? 0) + output + reasoning;
  return {
    input,
    output: isReasoningExtra ? output + reasoning : output,
    total,
    cacheRead:
      countOf(details?.cached_tokens) ??
      countOf(usage.cache_read_input_tokens) ??
      countOf(usage.prompt_cache_hit_tokens),
    cacheWrite: countOf(details?.cache_write_tokens) ?? countOf(usage.cache_creation_input_tokens),
    cacheWrite1h: countOf(countsIn(usage.cache_creation)?.ephemeral_1h_input_tokens),
    reasoning,
    audioInput: lessOf(countOf(details?.audio_tokens), countOf(countsIn(details?.cached_tokens_details)?.audio_tokens)),
    audioOutput: countOf(outputDetails?.audio_tokens),
    cost: costIn(usage),
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
    cacheWrite1h: later.cacheWrite1h || (earlier.cacheWrite1h ?? later.cacheWrite1h),
    reasoning: later.reasoning || (earlier.reasoning ?? later.reasoning),
    audioInput: later.audioInput || (earlier.audioInput ?? later.audioInput),
    audioOutput: later.audioOutput || (earlier.audioOutput ?? later.audioOutput),
    cost: later.cost || (earlier.cost ?? later.cost),
    isOfAnthropic: later.isOfAnthropic && earlier.isOfAnthropic,
  };
}

/** The comparable counts. */
export function usageOf(reported: ReportedUsage): DetailedUsage {
  const { input, output, total, cacheRead, cacheWrite, isOfAnthropic } = reported;
  const promptTokens = isOfAnthropic ? sumOf(input, cacheRead, cacheWrite) : input;
  const hasSum = isOfAnthropic && promptTokens !== null && output !== null;
  return {
    promptTokens,
    completionTokens: output,
    totalTokens: hasSum ? promptTokens + output : total,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
    cacheWrite1hTokens: reported.cacheWrite1h,
    reasoningTokens: reported.reasoning,
    audioInputTokens: reported.audioInput,
    audioOutputTokens: reported.audioOutput,
    reportedNano: reported.cost,
  };
}

/** Without what only the cost depends on. */
export function modelUsageOf(usage: DetailedUsage | null): ModelUsage | null {
  if (usage === null) return null;
  const { promptTokens, completionTokens, totalTokens, cacheReadTokens, cacheWriteTokens } = usage;
  return { promptTokens, completionTokens, totalTokens, cacheReadTokens, cacheWriteTokens };
}

/** Adds up what several responses used. */
export function addedUsage(one: DetailedUsage | null, other: DetailedUsage | null): DetailedUsage | null {
  if (one === null) return other;
  if (other === null) return one;
  return {
    promptTokens: sumOf(one.promptTokens, other.promptTokens),
    completionTokens: sumOf(one.completionTokens, other.completionTokens),
    totalTokens: sumOf(one.totalTokens, other.totalTokens),
    cacheReadTokens: sumOf(one.cacheReadTokens, other.cacheReadTokens),
    cacheWriteTokens: sumOf(one.cacheWriteTokens, other.cacheWriteTokens),
    cacheWrite1hTokens: sumOf(one.cacheWrite1hTokens, other.cacheWrite1hTokens),
    reasoningTokens: sumOf(one.reasoningTokens, other.reasoningTokens),
    audioInputTokens: sumOf(one.audioInputTokens, other.audioInputTokens),
    audioOutputTokens: sumOf(one.audioOutputTokens, other.audioOutputTokens),
    reportedNano: sumOf(one.reportedNano, other.reportedNano),
  };
}

const countsIn = (value: unknown): Counts | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Counts) : null;

const countOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS ? value : null;

/** The sum of the known counts; null if none is known. */
const sumOf = (...counts: readonly (number | null)[]): number | null =>
  counts.reduce((sum, count) => (count === null ? sum : (sum ?? 0) + count), null);

const lessOf = (count: number | null, part: number | null): number | null =>
  count === null ? null : Math.max(0, count - (part ?? 0));

/** OpenRouter's `cost`. With the customer's own key for the provider (BYOK) it is only a fee, and the provider's cost is added. */
function costIn(usage: Counts): number | null {
  const cost = nanoFrom(usage.cost);
  if (usage.is_byok !== true || cost === null) return cost;
  return addedNano(cost, nanoFrom(countsIn(usage.cost_details)?.upstream_inference_cost) ?? 0);
}

const NANO_PLACES = 9;

/** @param value USD, as parsed from JSON. @returns nano-USD, rounded up from the shortest decimal text; null if the value is not an amount. */
export function nanoFrom(value: unknown): number | null {
  if (typeof value !== 'number' || !(value >= 0) || value > MAX_NANO / NANO_PER_USD) return null;
  const [, whole = '', part = '', exponent = '0'] = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  const places = part.length - Number(exponent);
  const digits = BigInt(whole + part);
  if (places <= NANO_PLACES) return Number(digits * 10n ** BigInt(NANO_PLACES - places));
  const divisor = 10n ** BigInt(places - NANO_PLACES);
  return Number((digits + divisor - 1n) / divisor);
}
