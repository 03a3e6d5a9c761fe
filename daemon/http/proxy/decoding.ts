/** Content codings undone, of copies: what the client gets is what the provider sent. */
import * as zlib from 'node:zlib';
import type { Decode } from '../../core/content/reader.js';

// A small one is done before a thread of Node's pool would have begun.
const LARGEST_AT_ONCE = 16 * 1024;
const MOST_MADE_AT_ONCE = 256 * 1024;
const MOST_MADE = 4 * 1024 * 1024;
// Each may make that much.
const MOST_TOGETHER = 4;

interface Options {
  maxOutputLength: number;
  finishFlush: number;
}

interface Coding {
  now(bytes: Buffer, options: Options): Buffer;
  later(bytes: Buffer, options: Options, done: (error: Error | null, made: Buffer) => void): void;
  /** Gives what there is of an answer that was broken off. */
  flush: number;
}

const { constants } = zlib;
const deflate: Coding = { now: zlib.inflateSync, later: zlib.inflate, flush: constants.Z_SYNC_FLUSH };
// Some servers leave out what the coding of that name begins with.
const rawDeflate: Coding = { now: zlib.inflateRawSync, later: zlib.inflateRaw, flush: constants.Z_SYNC_FLUSH };
const gzip: Coding = { now: zlib.gunzipSync, later: zlib.gunzip, flush: constants.Z_SYNC_FLUSH };
const brotli: Coding = {
  now: zlib.brotliDecompressSync,
  later: zlib.brotliDecompress,
  flush: constants.BROTLI_OPERATION_FLUSH,
};

/** Of Node 22.15 and later. */
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

/** 4 MiB are made of an answer at most, and no more than four large ones at a time. */
export function decoder(): Decode {
  let running = 0;
  const waiting: (() => void)[] = [];
  const later = async (coding: Coding, bytes: Buffer): Promise<Buffer | null> => {
    if (running < MOST_TOGETHER) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve)); // Whoever is done hands its place on.
    const options = { maxOutputLength: MOST_MADE, finishFlush: coding.flush };
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
    if (bytes.length > LARGEST_AT_ONCE) return later(coding, bytes);
    try {
      return coding.now(bytes, { maxOutputLength: MOST_MADE_AT_ONCE, finishFlush: coding.flush });
    } catch (error) {
      return (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE' ? later(coding, bytes) : null;
    }
  };
}
