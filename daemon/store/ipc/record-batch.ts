/**
 * Records of completed requests as texts and numbers in a fixed order, for the way to another process. A record and its usage are a dozen small
 * objects, which cost the garbage collector, and a message, more than their values do.
 */
import type { ModelUsage, Outcome, RequestEnded } from '../../core/events.js';

/** Longer texts are not compared with others: V8 does not hash those above 16,383 characters, so that each of them is compared with all. */
const MAX_SHARED_LENGTH = 256;
/** The texts of a record, without its bodies. */
const TEXTS = 15;
/** Its numbers; of unknown ones, NaN. */
const NUMBERS = 14;
/** Its texts and the two bodies. */
const PLACES = TEXTS + 2;

// Places of texts that are different in each record.
const REQUEST_ID = 0;
const UPSTREAM_REQUEST_ID = 13;

/** Stores the texts of a record in `texts`. */
function putTexts(ended: RequestEnded, texts: (string | null)[]): void {
  texts[REQUEST_ID] = ended.requestId;
  texts[1] = ended.projectId;
  texts[2] = ended.tokenId;
  texts[3] = ended.tokenName;
  texts[4] = ended.projectName;
  texts[5] = ended.obfuscated;
  texts[6] = ended.clientIp;
  texts[7] = ended.method;
  texts[8] = ended.path;
  texts[9] = ended.code;
  texts[10] = ended.problem;
  texts[11] = ended.outcome;
  texts[12] = ended.cache;
  texts[UPSTREAM_REQUEST_ID] = ended.upstreamRequestId;
  texts[14] = ended.model;
}

/** Stores the numbers of a record in `numbers`, from the place `at`. */
function putNumbers(ended: RequestEnded, numbers: Float64Array, at: number): void {
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
}

/** @param at where its numbers are. @returns the record with these texts, without bodies. */
function recordFrom(texts: readonly (string | null)[], numbers: Float64Array, at: number): RequestEnded {
  const flags = numbers[at + 7] ?? 0;
  return {
    requestId: texts[REQUEST_ID] ?? '',
    timeMs: numbers[at] ?? 0,
    projectId: texts[1] ?? null,
    projectName: texts[4] ?? null,
    tokenId: texts[2] ?? null,
    tokenName: texts[3] ?? null,
    obfuscated: texts[5] ?? null,
    clientIp: texts[6] ?? null,
    method: texts[7] ?? '',
    path: texts[8] ?? '',
    status: numbers[at + 1] ?? 0,
    code: texts[9] ?? null,
    problem: texts[10] ?? null,
    outcome: texts[11] as Outcome,
    isForwarded: (flags & 1) !== 0,
    cache: texts[12] as RequestEnded['cache'],
    durationMs: numbers[at + 2] ?? 0,
    upstreamMs: knownOf(numbers[at + 3]),
    firstByteMs: knownOf(numbers[at + 4]),
    bytesIn: numbers[at + 5] ?? 0,
    bytesOut: numbers[at + 6] ?? 0,
    streamed: (flags & 2) !== 0,
    isModelAnswered: (flags & 4) !== 0,
    upstreamRequestId: texts[UPSTREAM_REQUEST_ID] ?? null,
    model: texts[14] ?? null,
    usage: usageAt(numbers, at + 8),
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

/** Records in columns. A short text that several of them have is there once. */
export interface RecordBatch {
  texts: readonly string[];
  /** `PLACES` for each record: 1 + the place in `texts`, 0 for null. */
  places: Uint16Array;
  /** `NUMBERS` for each record. */
  numbers: Float64Array;
}

/** @param records at most 3,000: their texts have places of 16 bits. */
export function encoded(records: readonly RequestEnded[]): RecordBatch {
  const texts: string[] = [];
  const places = new Uint16Array(records.length * PLACES);
  const numbers = new Float64Array(records.length * NUMBERS);
  const known = new Map<string, number>();
  const row: (string | null)[] = [];
  let place = 0;
  for (const [index, ended] of records.entries()) {
    putTexts(ended, row);
    putNumbers(ended, numbers, index * NUMBERS);
    for (let column = 0; column < TEXTS; column++) {
      const text = row[column] ?? null;
      if (text !== null) places[place] = isShared(column, text) ? placeOf(text) : texts.push(text);
      place++;
    }
    if (ended.requestBody !== null) places[place] = texts.push(ended.requestBody);
    if (ended.responseBody !== null) places[place + 1] = texts.push(ended.responseBody);
    place += 2;
  }
  return { texts, places, numbers };

  function placeOf(text: string): number {
    let found = known.get(text);
    if (found === undefined) known.set(text, (found = texts.push(text)));
    return found;
  }
}

const isShared = (column: number, { length }: string) =>
  column !== REQUEST_ID && column !== UPSTREAM_REQUEST_ID && length <= MAX_SHARED_LENGTH;

export function decoded({ texts, places, numbers }: RecordBatch): RequestEnded[] {
  const row: (string | null)[] = [];
  const textAt = (place: number): string | null => texts[(places[place] ?? 0) - 1] ?? null;
  return Array.from({ length: numbers.length / NUMBERS }, (_, index) => {
    const first = index * PLACES;
    for (let column = 0; column < TEXTS; column++) row[column] = textAt(first + column);
    const record = recordFrom(row, numbers, index * NUMBERS);
    record.requestBody = textAt(first + TEXTS);
    record.responseBody = textAt(first + TEXTS + 1);
    return record;
  });
}

/** About the memory that it takes, as a number of characters. */
export const charactersOf = ({ texts, places, numbers }: RecordBatch): number =>
  texts.reduce((sum, { length }) => sum + length, places.length + numbers.length * 4);
