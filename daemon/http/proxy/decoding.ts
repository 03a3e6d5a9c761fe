/** Decoding of compressed responses, to read usage and content from a copy. The client gets the response as the provider sent it. */
import * as zlib from 'node:zlib';
import type { Decode } from '../../core/content/content-reader.js';

// Up to this size, decoding takes less time than starting a thread of Node's pool.
const MAX_SYNC_INPUT_BYTES = 16 * 1024;
const MAX_SYNC_OUTPUT_BYTES = 256 * 1024;
const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;
// Limits memory: each may produce `MAX_OUTPUT_BYTES`.
const MAX_CONCURRENT = 4;

interface Options {
  maxOutputLength: number;
  finishFlush: number;
}

interface Coding {
  now(bytes: Buffer, options: Options): Buffer;
  later(bytes: Buffer, options: Options, done: (error: Error | null, made: Buffer) => void): void;
  /** Returns the decoded part of a truncated response. */
  flush: number;
}

const { constants } = zlib;
const deflate: Coding = { now: zlib.inflateSync, later: zlib.inflate, flush: constants.Z_SYNC_FLUSH };
// Some servers send raw deflate data without the zlib header that the coding of this name requires.
const rawDeflate: Coding = { now: zlib.inflateRawSync, later: zlib.inflateRaw, flush: constants.Z_SYNC_FLUSH };
const gzip: Coding = { now: zlib.gunzipSync, later: zlib.gunzip, flush: constants.Z_SYNC_FLUSH };
const brotli: Coding = {
  now: zlib.brotliDecompressSync,
  later: zlib.brotliDecompress,
  flush: constants.BROTLI_OPERATION_FLUSH,
};

/** Exists from Node 22.15 on. */
interface WithZstd {
  zstdDecompressSync?: Coding['now'];
  zstdDecompress?: Coding['later'];
  constants: { ZSTD_e_flush?: number };
}

function codingOf(name: string, bytes: Buffer): Coding | null {
  switch (name.toLowerCase()) {
    case 'gzip':
    case 'x-gzip':
      return gzip;
    case 'deflate':
      return ((bytes[0] ?? 0) & 0x0f) === 8 ? deflate : rawDeflate;
    case 'br':
      return brotli;
    case 'zstd': {
      const { zstdDecompressSync: now, zstdDecompress: later, constants: of } = zlib as unknown as WithZstd;
      return now && later ? { now, later, flush: of.ZSTD_e_flush ?? 1 } : null;
    }
    default:
      return null;
  }
}

/** Decoder of content codings: up to 4 MiB of output per response, and up to four large responses at a time. */
export function decoder(): Decode {
  let running = 0;
  const waiting: (() => void)[] = [];
  const later = async (coding: Coding, bytes: Buffer): Promise<Buffer | null> => {
    if (running < MAX_CONCURRENT) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve)); // A finished decoding passes its slot on.
    const options = { maxOutputLength: MAX_OUTPUT_BYTES, finishFlush: coding.flush };
    const made = await new Promise<Buffer | null>((resolve) => {
      coding.later(bytes, options, (error, whole) => {
        resolve(error ? null : whole);
      });
    });
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
    return made;
  };
  return (name, bytes) => {
    const coding = codingOf(name, bytes);
    if (!coding || bytes.length === 0) return null;
    if (bytes.length > MAX_SYNC_INPUT_BYTES) return later(coding, bytes);
    try {
      return coding.now(bytes, { maxOutputLength: MAX_SYNC_OUTPUT_BYTES, finishFlush: coding.flush });
    } catch (error) {
      return (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE' ? later(coding, bytes) : null;
    }
  };
}
