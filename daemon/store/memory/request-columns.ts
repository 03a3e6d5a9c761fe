/**
 * Records of requests, taken apart into columns. A record and its usage are a dozen small objects, and the young generation would have to
 * move those of every stored request to the old one: this was most of the pause of each garbage collection. The two IDs, which no other
 * record has, are bytes for the same reason.
 */
import type { ModelUsage, Outcome, RequestEnded } from '../../core/events.js';

// The texts of a record, in the order of `put`.
const TEXTS = 15;
/** Of those, that of the request and that of the upstream. */
const IDS = 2;
/** A longer ID stays a string. */
const ID_BYTES = 64;
// eslint-disable-next-line no-control-regex
const IS_LATIN1 = /^[\x00-\xff]+$/;
// Its numbers; of unknown ones, NaN.
const NUMBERS = 14;
/** Records for which memory is allocated at a time. */
const CHUNK = 500;
const MAX_KNOWN_TEXTS = 1_000;

interface Chunk {
  texts: (string | null)[];
  numbers: Float64Array;
  /** The IDs in latin1. */
  ids: Buffer;
  /** 0 for one that is not there. */
  idLengths: Uint8Array;
}

export class RequestColumns {
  readonly #chunks: (Chunk | undefined)[] = [];
  /** Texts that many records have in common. */
  readonly #known = new Map<string, string>();

  /** Stores the record at `slot`, without bodies. */
  put(slot: number, ended: RequestEnded): void {
    const chunk = (this.#chunks[Math.floor(slot / CHUNK)] ??= newChunk());
    const { texts, numbers } = chunk;
    const id = (slot % CHUNK) * IDS;
    let text = (slot % CHUNK) * TEXTS;
    texts[text] = asBytes(chunk, id, ended.requestId);
    texts[++text] = ended.projectId;
    texts[++text] = ended.tokenId;
    texts[++text] = ended.tokenName;
    texts[++text] = ended.projectName;
    texts[++text] = ended.obfuscated;
    texts[++text] = this.#shared(ended.clientIp);
    texts[++text] = ended.method;
    texts[++text] = this.#shared(ended.path);
    texts[++text] = ended.code;
    texts[++text] = ended.problem;
    texts[++text] = ended.outcome;
    texts[++text] = ended.cache;
    texts[++text] = asBytes(chunk, id + 1, ended.upstreamRequestId);
    texts[text + 1] = this.#shared(ended.model);
    let number = (slot % CHUNK) * NUMBERS;
    numbers[number] = ended.timeMs;
    numbers[++number] = ended.status;
    numbers[++number] = ended.durationMs;
    numbers[++number] = ended.upstreamMs ?? NaN;
    numbers[++number] = ended.firstByteMs ?? NaN;
    numbers[++number] = ended.bytesIn;
    numbers[++number] = ended.bytesOut;
    numbers[++number] = (ended.isForwarded ? 1 : 0) + (ended.streamed ? 2 : 0);
    const { usage } = ended;
    numbers[++number] = usage ? 1 : 0;
    numbers[++number] = usage?.promptTokens ?? NaN;
    numbers[++number] = usage?.completionTokens ?? NaN;
    numbers[++number] = usage?.totalTokens ?? NaN;
    numbers[++number] = usage?.cacheReadTokens ?? NaN;
    numbers[number + 1] = usage?.cacheWriteTokens ?? NaN;
  }

  /** @returns the record at `slot`; null if there is none. */
  at(slot: number): RequestEnded | null {
    const chunk = this.#chunks[Math.floor(slot / CHUNK)];
    if (!chunk) return null;
    const texts = chunk.texts.slice((slot % CHUNK) * TEXTS, ((slot % CHUNK) + 1) * TEXTS);
    const id = (slot % CHUNK) * IDS;
    const requestId = fromBytes(chunk, id) ?? texts[0] ?? null;
    const [, projectId = null, tokenId = null, tokenName = null, projectName = null] = texts;
    const [obfuscated = null, clientIp = null, method, path, code = null, problem = null] = texts.slice(5);
    const [outcome, cache, upstreamRequestId = null, model = null] = texts.slice(11);
    if (requestId === null) return null;
    const from = (slot % CHUNK) * NUMBERS;
    const numbers = chunk.numbers.subarray(from, from + NUMBERS);
    const [timeMs = 0, status = 0, durationMs = 0, upstreamMs, firstByteMs, bytesIn = 0, bytesOut = 0, flags = 0] =
      numbers;
    return {
      requestId,
      timeMs,
      projectId,
      tokenId,
      tokenName,
      projectName,
      obfuscated,
      clientIp,
      method: method ?? '',
      path: path ?? '',
      status,
      code,
      problem,
      outcome: outcome as Outcome,
      isForwarded: flags % 2 === 1,
      cache: cache as RequestEnded['cache'],
      durationMs,
      upstreamMs: knownOf(upstreamMs),
      firstByteMs: knownOf(firstByteMs),
      bytesIn,
      bytesOut,
      streamed: flags >= 2,
      upstreamRequestId: fromBytes(chunk, id + 1) ?? upstreamRequestId,
      model,
      usage: usageIn(numbers.subarray(8)),
      requestBody: null,
      responseBody: null,
    };
  }

  /** Forgets the record at `slot`, if there is one. */
  clear(slot: number): void {
    const chunk = this.#chunks[Math.floor(slot / CHUNK)];
    if (!chunk) return;
    const at = slot % CHUNK;
    chunk.texts.fill(null, at * TEXTS, (at + 1) * TEXTS);
    chunk.idLengths.fill(0, at * IDS, (at + 1) * IDS);
  }

  /** One string for all equal ones. */
  #shared(text: string | null): string | null {
    if (text === null) return null;
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    if (this.#known.size === MAX_KNOWN_TEXTS) this.#known.clear();
    this.#known.set(text, text);
    return text;
  }
}

const newChunk = (): Chunk => ({
  texts: Array.from({ length: CHUNK * TEXTS }, () => null),
  numbers: new Float64Array(CHUNK * NUMBERS),
  ids: Buffer.alloc(CHUNK * IDS * ID_BYTES),
  idLengths: new Uint8Array(CHUNK * IDS),
});

/** Stores the ID as bytes, if it is a usual one. @returns what has to be stored as a text instead. */
function asBytes({ ids, idLengths }: Chunk, id: number, text: string | null): string | null {
  const isUsual = text !== null && text.length <= ID_BYTES && IS_LATIN1.test(text);
  idLengths[id] = isUsual ? ids.write(text, id * ID_BYTES, 'latin1') : 0;
  return isUsual ? null : text;
}

function fromBytes({ ids, idLengths }: Chunk, id: number): string | null {
  const length = idLengths[id] ?? 0;
  return length === 0 ? null : ids.toString('latin1', id * ID_BYTES, id * ID_BYTES + length);
}

const knownOf = (number = NaN): number | null => (Number.isNaN(number) ? null : number);

function usageIn([isKnown, prompt, completion, total, cacheRead, cacheWrite]: Float64Array): ModelUsage | null {
  if (isKnown !== 1) return null;
  return {
    promptTokens: knownOf(prompt),
    completionTokens: knownOf(completion),
    totalTokens: knownOf(total),
    cacheReadTokens: knownOf(cacheRead),
    cacheWriteTokens: knownOf(cacheWrite),
  };
}
