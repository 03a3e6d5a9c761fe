import type { IncomingMessage } from 'node:http';
import type { RequestFields } from './fields.js';
import { bodyTooLarge } from './shape.js';
import type { Watch } from './watch.js';

/** The client's connection ended before its request did. Nobody is left to answer. */
export class ClientGone extends Error {
  override name = 'ClientGone';
}

// A whole body in one piece is forwarded twice as fast as a stream, and up to here costs little to hold.
const LARGEST_HELD = 64 * 1024;

export type RequestBody = Buffer | AsyncIterable<Buffer> | null;

/** Who is waited for while a body streams from the client to the upstream. */
export interface Turns {
  client(): void;
  upstream(): void;
  nobody(): void;
}

type Framing = Pick<RequestFields, 'contentLength' | 'transferEncoding'>;

export const framingOf = ({ headers }: IncomingMessage): Framing => ({
  contentLength: headers['content-length'],
  transferEncoding: headers['transfer-encoding'],
});

/** Whether the body is small and its length declared, so that it may be held before anything is spent on it. */
export function isHeld({ contentLength }: Framing): boolean {
  return contentLength !== undefined && Number(contentLength) <= LARGEST_HELD;
}

export function hasBody({ contentLength, transferEncoding }: Framing): boolean {
  return transferEncoding !== undefined || (contentLength !== undefined && contentLength !== '0');
}

/** The whole body; `watch` is told of each piece, and rests at the end. @throws {ClientGone} */
export function holdBody(req: IncomingMessage, watch: Watch): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    req.on('data', (piece: Buffer) => {
      watch.touch();
      pieces.push(piece);
    });
    req.on('end', () => {
      watch.rest();
      const [first] = pieces;
      resolve(pieces.length === 1 && first ? first : Buffer.concat(pieces));
    });
    req.on('error', () => {
      reject(new ClientGone());
    });
  });
}

/**
 * The body piece by piece, read no faster than it is taken. Resolves when it has begun: until then nothing need be spent on it.
 *
 * @throws {ClientGone}
 * @throws {Refusal} `body_too_large` from the iterable, at the piece that passes the limit.
 */
export async function streamBody(req: IncomingMessage, maxBytes: number, turns: Turns): Promise<AsyncIterable<Buffer>> {
  turns.client();
  // Not destroyed on return: that would take the connection, and with it an early answer.
  const pieces = req.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer, undefined>;
  try {
    return within(maxBytes, await pieces.next(), pieces, turns);
  } catch {
    throw new ClientGone();
  } finally {
    turns.nobody();
  }
}

async function* within(
  maxBytes: number,
  first: IteratorResult<Buffer, undefined>,
  pieces: AsyncIterator<Buffer, undefined>,
  turns: Turns,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  for (let next = first; !next.done; next = await pieces.next()) {
    bytes += next.value.length;
    if (bytes > maxBytes) throw bodyTooLarge();
    turns.upstream();
    yield next.value;
    turns.client();
  }
  turns.upstream();
}
