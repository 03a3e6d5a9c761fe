import type { IncomingMessage } from 'node:http';
import type { RequestFields } from './fields.js';
import { receiveBody } from './direct-body.js';
import { type BufferedBody, CHUNK_OVERHEAD_BYTES } from './buffered-bodies.js';
import { Refusal } from '../core/refusal.js';
import { bodyTooLarge } from './shape.js';

/** The client's connection ended before its request was complete. No response can be sent. */
export class ClientGone extends Error {
  override name = 'ClientGone';
}

// A complete body in one chunk is forwarded twice as fast as a stream, and up to this size it costs little memory.
const MAX_BUFFERED_BYTES = 64 * 1024;

export type RequestBody = Buffer | AsyncIterable<Buffer> | null;

/** Timeouts while a body is read from the client and sent to the upstream. */
export interface BodyTimeouts {
  waitForClient(): void;
  /** Data has arrived from the client. */
  received(bytes: number): void;
  waitForUpstream(): void;
  pause(): void;
}

type Framing = Pick<RequestFields, 'contentLength' | 'transferEncoding'>;

export const framingOf = ({ headers }: IncomingMessage): Framing => ({
  contentLength: headers['content-length'],
  transferEncoding: headers['transfer-encoding'],
});

/** Whether the body is small and has a declared length, so that it can be buffered completely before a use is drawn. */
export function isBufferable({ contentLength }: Framing): boolean {
  return contentLength !== undefined && Number(contentLength) <= MAX_BUFFERED_BYTES;
}

export function hasBody({ contentLength, transferEncoding }: Framing): boolean {
  return transferEncoding !== undefined || (contentLength !== undefined && contentLength !== '0');
}

export interface BodyReceiver {
  onBody(body: RequestBody): void;
}

/**
 * Buffers the body and hands it over when it is complete; never if the client disconnects first. If the memory for buffered bodies is
 * full, it hands the body over chunk by chunk, from its beginning.
 */
export function bufferBody(
  req: IncomingMessage,
  buffered: BufferedBody,
  timeouts: BodyTimeouts,
  receiver: BodyReceiver,
): void {
  const chunks: Buffer[] = [];
  timeouts.waitForClient();
  const stop = receiveBody(req, {
    onChunk(chunk) {
      timeouts.received(chunk.length);
      if (buffered.isReleased) return false; // The request was refused; the rest of its body is read and dropped.
      chunks.push(chunk);
      if (buffered.reserve(chunk.length + CHUNK_OVERHEAD_BYTES)) {
        timeouts.waitForClient();
        return true;
      }
      stop();
      buffered.release();
      timeouts.pause();
      const first = { value: concatenated(chunks), done: false } as const;
      receiver.onBody(withinLimit(MAX_BUFFERED_BYTES, first, chunksOf(req, timeouts), timeouts));
      return true;
    },
    onComplete() {
      if (buffered.isReleased) return;
      buffered.complete();
      timeouts.pause();
      receiver.onBody(concatenated(chunks));
    },
  });
}

/**
 * The body as a stream, read no faster than it is consumed. Resolves when its first chunk has arrived: until then no use has to be drawn.
 *
 * @throws {ClientGone}
 * @throws {Refusal} `body_too_large` from the iterable, at the chunk that exceeds the limit.
 */
export async function streamBody(
  req: IncomingMessage,
  maxBytes: number,
  timeouts: BodyTimeouts,
): Promise<AsyncIterable<Buffer>> {
  const chunks = chunksOf(req, timeouts);
  try {
    return withinLimit(maxBytes, await chunks.next(), chunks, timeouts);
  } catch {
    throw new ClientGone();
  } finally {
    timeouts.pause();
  }
}

function chunksOf(req: IncomingMessage, timeouts: BodyTimeouts): Chunks {
  // Destroying the request on return would close the connection, and lose an early response.
  const chunks = req.iterator({ destroyOnReturn: false }) as Chunks;
  return {
    async next() {
      timeouts.waitForClient();
      const chunk = await chunks.next();
      timeouts.received(chunk.value?.length ?? 0);
      return chunk;
    },
  };
}

/**
 * The complete body, if it is at most `maxBytes` and there is memory for it; else the same body chunk by chunk, from its beginning.
 *
 * @throws {ClientGone}
 * @throws {Refusal} as the body does.
 */
export async function collectBody(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
  buffered: BufferedBody,
): Promise<Buffer | AsyncIterable<Buffer>> {
  const chunks: Buffer[] = [];
  const rest = body[Symbol.asyncIterator]() as Chunks;
  try {
    for (let bytes = 0; bytes <= maxBytes;) {
      const chunk = await rest.next();
      if (chunk.done) {
        buffered.complete();
        return concatenated(chunks);
      }
      chunks.push(chunk.value);
      bytes += chunk.value.length;
      if (!buffered.reserve(chunk.value.length + CHUNK_OVERHEAD_BYTES)) break;
    }
    buffered.release();
  } catch (error) {
    throw error instanceof Refusal ? error : new ClientGone();
  }
  return collectedThenRest(chunks, rest);
}

/** All chunks as one. A single chunk is not copied. */
function concatenated(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks;
  return chunks.length === 1 && first ? first : Buffer.concat(chunks);
}

/** The collected chunks, then the rest of the body. Frees the collected chunks when they are taken. */
async function* collectedThenRest(chunks: Buffer[], rest: Chunks): AsyncGenerator<Buffer> {
  yield concatenated(chunks.splice(0));
  for (let chunk = await rest.next(); !chunk.done; chunk = await rest.next()) yield chunk.value;
}

type Chunk = IteratorResult<Buffer, undefined>;
type Chunks = Pick<AsyncIterator<Buffer, undefined>, 'next'>;

async function* withinLimit(
  maxBytes: number,
  first: Chunk,
  chunks: Chunks,
  timeouts: BodyTimeouts,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  for (let chunk = first; !chunk.done; chunk = await chunks.next()) {
    bytes += chunk.value.length;
    if (bytes > maxBytes) throw bodyTooLarge();
    timeouts.waitForUpstream();
    yield chunk.value;
  }
  timeouts.waitForUpstream();
}
