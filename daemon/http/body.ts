import type { IncomingMessage } from 'node:http';
import type { RequestFields } from './fields.js';
import { Refusal } from '../core/refusal.js';
import { bodyTooLarge } from './shape.js';

/** The client's connection ended before its request did. Nobody is left to answer. */
export class ClientGone extends Error {
  override name = 'ClientGone';
}

// A whole body in one piece is forwarded twice as fast as a stream, and up to here costs little to hold.
const LARGEST_HELD = 64 * 1024;

export type RequestBody = Buffer | AsyncIterable<Buffer> | null;

/** Who is waited for while a body comes from the client and goes to the upstream. */
export interface Turns {
  waitForClient(): void;
  /** Something has come from the client. */
  received(bytes: number): void;
  waitForUpstream(): void;
  waitForNobody(): void;
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

/** Hands over the whole body once it is there; nothing if the client leaves before. */
export function holdBody(req: IncomingMessage, turns: Turns, onWhole: (body: Buffer) => void): void {
  const pieces: Buffer[] = [];
  turns.waitForClient();
  req.on('data', (piece: Buffer) => {
    pieces.push(piece);
    turns.received(piece.length);
    if (req.complete) return;
    turns.waitForClient();
  });
  req.on('end', () => {
    turns.waitForNobody();
    const [first] = pieces;
    onWhole(pieces.length === 1 && first ? first : Buffer.concat(pieces));
  });
}

/**
 * The body piece by piece, read no faster than it is taken. Resolves when it has begun: until then nothing need be spent on it.
 *
 * @throws {ClientGone}
 * @throws {Refusal} `body_too_large` from the iterable, at the piece that passes the limit.
 */
export async function streamBody(req: IncomingMessage, maxBytes: number, turns: Turns): Promise<AsyncIterable<Buffer>> {
  // Not destroyed on return: that would take the connection, and with it an early answer.
  const pieces = req.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer, undefined>;
  const next: Next = async () => {
    turns.waitForClient();
    const piece = await pieces.next();
    turns.received(piece.value?.length ?? 0);
    return piece;
  };
  try {
    return within(maxBytes, await next(), next, turns);
  } catch {
    throw new ClientGone();
  } finally {
    turns.waitForNobody();
  }
}

/**
 * The whole body, if it is no larger than that; else the same piece by piece, from its beginning.
 *
 * @throws {ClientGone}
 * @throws {Refusal} as the body does.
 */
export async function gatherBody(
  body: AsyncIterable<Buffer>,
  mostBytes: number,
): Promise<Buffer | AsyncIterable<Buffer>> {
  const pieces: Buffer[] = [];
  const rest = body[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  try {
    for (let bytes = 0; bytes <= mostBytes;) {
      const piece = await rest.next();
      if (piece.done) return Buffer.concat(pieces);
      pieces.push(piece.value);
      bytes += piece.value.length;
    }
  } catch (error) {
    throw error instanceof Refusal ? error : new ClientGone();
  }
  return following(pieces, rest);
}

async function* following(pieces: readonly Buffer[], rest: AsyncIterator<Buffer, undefined>): AsyncGenerator<Buffer> {
  yield* pieces;
  for (let piece = await rest.next(); !piece.done; piece = await rest.next()) yield piece.value;
}

type Piece = IteratorResult<Buffer, undefined>;
type Next = () => Promise<Piece>;

async function* within(maxBytes: number, first: Piece, next: Next, turns: Turns): AsyncGenerator<Buffer> {
  let bytes = 0;
  for (let piece = first; !piece.done; piece = await next()) {
    bytes += piece.value.length;
    if (bytes > maxBytes) throw bodyTooLarge();
    turns.waitForUpstream();
    yield piece.value;
  }
  turns.waitForUpstream();
}
