/**
 * Records of requests, taken apart into columns: as objects, the young generation would have to move those of every stored request to the old one,
 * which was most of the pause of each garbage collection. The two IDs, which no other record has, are bytes for the same reason.
 */
import type { RequestEnded } from '../../core/events.js';
import {
  CLIENT_IP,
  MODEL,
  NUMBERS,
  PATH,
  putNumbers,
  putTexts,
  recordFrom,
  REQUEST_ID,
  TEXTS,
  UPSTREAM_REQUEST_ID,
} from '../ended-columns.js';

/** Of the texts, that of the request and that of the upstream. */
const IDS = 2;
/** A longer ID stays a string. */
const ID_BYTES = 64;
// eslint-disable-next-line no-control-regex
const IS_LATIN1 = /^[\x00-\xff]+$/;
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
    const text = (slot % CHUNK) * TEXTS;
    putTexts(ended, texts, text);
    texts[text + REQUEST_ID] = asBytes(chunk, id, ended.requestId);
    texts[text + UPSTREAM_REQUEST_ID] = asBytes(chunk, id + 1, ended.upstreamRequestId);
    texts[text + CLIENT_IP] = this.#shared(ended.clientIp);
    texts[text + PATH] = this.#shared(ended.path);
    texts[text + MODEL] = this.#shared(ended.model);
    putNumbers(ended, numbers, (slot % CHUNK) * NUMBERS);
  }

  /** @returns the record at `slot`; null if there is none. */
  at(slot: number): RequestEnded | null {
    const chunk = this.#chunks[Math.floor(slot / CHUNK)];
    if (!chunk) return null;
    const { texts, numbers } = chunk;
    const id = (slot % CHUNK) * IDS;
    const text = (slot % CHUNK) * TEXTS;
    const requestId = fromBytes(chunk, id) ?? texts[text + REQUEST_ID] ?? null;
    if (requestId === null) return null;
    const record = recordFrom(texts, text, numbers, (slot % CHUNK) * NUMBERS);
    return { ...record, requestId, upstreamRequestId: fromBytes(chunk, id + 1) ?? record.upstreamRequestId };
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
