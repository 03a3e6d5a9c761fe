/** Decoding of compressed responses, to read usage and content from a copy. The client gets the response as the provider sent it. */
import * as zlib from 'node:zlib';
import type { Decoder, OpenDecoder } from '../../core/content/decoding-budget.js';

const OUTPUT_BYTES = 64 * 1024;
const KIB = 1024;
const MIB = KIB * KIB;

/** One for all: each slice is read before the next one is decoded. */
const output = Buffer.allocUnsafeSlow(OUTPUT_BYTES);

/**
 * The synchronous interface below Node's streams. Node itself uses it for `gunzipSync` and the like, but has no public interface for data
 * that arrives in parts: a stream decodes each part in another thread, so that its result is late, and many parts wait in a queue.
 */
interface Handle {
  writeSync(
    flush: number,
    input: Buffer,
    inputAt: number,
    inputBytes: number,
    output: Buffer,
    outputAt: number,
    outputBytes: number,
  ): void;
  reset(): void;
  close(): void;
}

interface Stream {
  /** Null after an error. */
  readonly _handle: Handle | null;
  /** After a write: how many bytes are left of the output and of the input. */
  readonly _writeState: Uint32Array;
  readonly destroyed: boolean;
  on(event: 'error', listener: () => void): unknown;
}

class StreamDecoder implements Decoder {
  readonly #coding: Coding;
  readonly #stream: Stream;

  constructor(coding: Coding, stream: Stream) {
    this.#coding = coding;
    this.#stream = stream;
    stream.on('error', () => undefined); // It is reported by `decode`.
  }

  get maxWindowBytes(): number {
    return this.#coding.maxWindowBytes;
  }

  decode(bytes: Buffer, maxBytes: number, take: (slice: Buffer) => void): number {
    const { _writeState: state } = this.#stream;
    let decoded = 0;
    let inputBytes = bytes.length;
    let outputLeft = 0;
    while (outputLeft === 0) {
      const handle = this.#stream._handle;
      if (!handle) return -1;
      handle.writeSync(this.#coding.flush, bytes, bytes.length - inputBytes, inputBytes, output, 0, OUTPUT_BYTES);
      if (this.#stream.destroyed) return -1;
      outputLeft = state[0] ?? OUTPUT_BYTES;
      inputBytes = state[1] ?? 0;
      decoded += OUTPUT_BYTES - outputLeft;
      if (decoded > maxBytes) return -1;
      if (outputLeft < OUTPUT_BYTES) take(output.subarray(0, OUTPUT_BYTES - outputLeft));
    }
    return decoded;
  }

  close(): void {
    const handle = this.#stream._handle;
    if (!handle) return;
    const { idle } = this.#coding;
    if (idle.length < MAX_IDLE) {
      handle.reset();
      idle.push(this);
    } else handle.close();
  }
}

// To open a decoder takes more time than to decode an ordinary response.
const MAX_IDLE = 4;

interface Coding {
  open(): unknown;
  idle: StreamDecoder[];
  flush: number;
  maxWindowBytes: number;
}

const { constants } = zlib;
const ofZlib = (open: () => unknown): Coding => ({
  open,
  idle: [],
  flush: constants.Z_SYNC_FLUSH,
  maxWindowBytes: 48 * KIB,
});
const gzip = ofZlib(() => zlib.createGunzip());
const deflate = ofZlib(() => zlib.createInflate());
const rawDeflate = ofZlib(() => zlib.createInflateRaw());
const brotli: Coding = {
  open: () => zlib.createBrotliDecompress(),
  idle: [],
  flush: constants.BROTLI_OPERATION_FLUSH,
  maxWindowBytes: 16 * MIB,
};

/** Exists from Node 22.15 on. */
interface WithZstd {
  createZstdDecompress?: (options: { params: Record<number, number> }) => unknown;
  constants: { ZSTD_e_flush?: number; ZSTD_d_windowLogMax?: number };
}
const { createZstdDecompress, constants: ofZstd } = zlib as unknown as WithZstd;
// The largest window that a server may use in HTTP (RFC 9659).
const ZSTD_WINDOW_LOG = 23;
const zstd: Coding | null = createZstdDecompress
  ? {
      open: () => createZstdDecompress({ params: { [ofZstd.ZSTD_d_windowLogMax ?? 0]: ZSTD_WINDOW_LOG } }),
      idle: [],
      flush: ofZstd.ZSTD_e_flush ?? 1,
      maxWindowBytes: 2 ** ZSTD_WINDOW_LOG,
    }
  : null;

function codingOf(name: string, first: number): Coding | null {
  switch (name.toLowerCase()) {
    case 'gzip':
    case 'x-gzip':
      return gzip;
    case 'deflate':
      // Some servers send raw deflate data without the zlib header that the coding of this name requires.
      return (first & 0x0f) === 8 ? deflate : rawDeflate;
    case 'br':
      return brotli;
    case 'zstd':
      return zstd;
    default:
      return null;
  }
}

export const openDecoder: OpenDecoder = (name, first) => {
  const coding = codingOf(name, first);
  if (!coding) return null;
  const idle = coding.idle.pop();
  if (idle) return idle;
  const stream = coding.open() as Stream;
  // Another release of Node.js may lack it. Then compressed responses are not read.
  const isSupported = typeof stream._handle?.writeSync === 'function' && stream._writeState instanceof Uint32Array;
  return isSupported ? new StreamDecoder(coding, stream) : null;
};
