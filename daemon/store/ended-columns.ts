/**
 * Records of completed requests as texts and numbers in a fixed order, for tables of many records. A record and its usage are a dozen small objects,
 * which cost the garbage collector, and the way to another process, more than their values do.
 */
import type { ModelUsage, Outcome, RequestEnded } from '../core/events.js';

/** The texts of a record, without its bodies. */
export const TEXTS = 15;
/** Its numbers; of unknown ones, NaN. */
export const NUMBERS = 15;

// Places of texts that are looked at, among those of the record.
export const REQUEST_ID = 0;
export const CLIENT_IP = 6;
export const PATH = 8;
export const UPSTREAM_REQUEST_ID = 13;
export const MODEL = 14;

/** Stores the texts of a record in `texts`, from the place `at`. */
export function putTexts(ended: RequestEnded, texts: (string | null)[], at: number): void {
  texts[at] = ended.requestId;
  texts[at + 1] = ended.projectId;
  texts[at + 2] = ended.tokenId;
  texts[at + 3] = ended.tokenName;
  texts[at + 4] = ended.projectName;
  texts[at + 5] = ended.obfuscated;
  texts[at + CLIENT_IP] = ended.clientIp;
  texts[at + 7] = ended.method;
  texts[at + PATH] = ended.path;
  texts[at + 9] = ended.code;
  texts[at + 10] = ended.problem;
  texts[at + 11] = ended.outcome;
  texts[at + 12] = ended.cache;
  texts[at + UPSTREAM_REQUEST_ID] = ended.upstreamRequestId;
  texts[at + MODEL] = ended.model;
}

/** Stores the numbers of a record in `numbers`, from the place `at`. */
export function putNumbers(ended: RequestEnded, numbers: Float64Array, at: number): void {
  const { usage } = ended;
  numbers[at] = ended.timeMs;
  numbers[at + 1] = ended.status;
  numbers[at + 2] = ended.durationMs;
  numbers[at + 3] = ended.upstreamMs ?? NaN;
  numbers[at + 4] = ended.firstByteMs ?? NaN;
  numbers[at + 5] = ended.bytesIn;
  numbers[at + 6] = ended.bytesOut;
  numbers[at + 7] = (ended.isForwarded ? 1 : 0) + (ended.streamed ? 2 : 0) + (ended.isModelAnswered ? 4 : 0);
  numbers[at + 8] = usage ? 1 : 0;
  numbers[at + 9] = usage?.promptTokens ?? NaN;
  numbers[at + 10] = usage?.completionTokens ?? NaN;
  numbers[at + 11] = usage?.totalTokens ?? NaN;
  numbers[at + 12] = usage?.cacheReadTokens ?? NaN;
  numbers[at + 13] = usage?.cacheWriteTokens ?? NaN;
  numbers[at + 14] = ended.costNano ?? NaN;
}

/** @returns the record whose values were stored at these places, without bodies. */
export function recordFrom(
  texts: readonly (string | null)[],
  text: number,
  numbers: Float64Array,
  number: number,
): RequestEnded {
  const flags = numbers[number + 7] ?? 0;
  return {
    requestId: texts[text] ?? '',
    timeMs: numbers[number] ?? 0,
    projectId: texts[text + 1] ?? null,
    projectName: texts[text + 4] ?? null,
    tokenId: texts[text + 2] ?? null,
    tokenName: texts[text + 3] ?? null,
    obfuscated: texts[text + 5] ?? null,
    clientIp: texts[text + CLIENT_IP] ?? null,
    method: texts[text + 7] ?? '',
    path: texts[text + PATH] ?? '',
    status: numbers[number + 1] ?? 0,
    code: texts[text + 9] ?? null,
    problem: texts[text + 10] ?? null,
    outcome: texts[text + 11] as Outcome,
    isForwarded: (flags & 1) !== 0,
    cache: texts[text + 12] as RequestEnded['cache'],
    durationMs: numbers[number + 2] ?? 0,
    upstreamMs: knownOf(numbers[number + 3]),
    firstByteMs: knownOf(numbers[number + 4]),
    bytesIn: numbers[number + 5] ?? 0,
    bytesOut: numbers[number + 6] ?? 0,
    streamed: (flags & 2) !== 0,
    isModelAnswered: (flags & 4) !== 0,
    upstreamRequestId: texts[text + UPSTREAM_REQUEST_ID] ?? null,
    model: texts[text + MODEL] ?? null,
    usage: usageAt(numbers, number + 8),
    costNano: knownOf(numbers[number + 14]),
    requestBody: null,
    responseBody: null,
  };
}

const knownOf = (number = NaN): number | null => (Number.isNaN(number) ? null : number);

function usageAt(numbers: Float64Array, at: number): ModelUsage | null {
  if (numbers[at] !== 1) return null;
  return {
    promptTokens: knownOf(numbers[at + 1]),
    completionTokens: knownOf(numbers[at + 2]),
    totalTokens: knownOf(numbers[at + 3]),
    cacheReadTokens: knownOf(numbers[at + 4]),
    cacheWriteTokens: knownOf(numbers[at + 5]),
  };
}
