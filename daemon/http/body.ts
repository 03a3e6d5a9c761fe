import type { IncomingMessage } from 'node:http';
import type { RequestFields } from './fields.js';
import { type HeldBody, PIECE_OVERHEAD_BYTES } from './held-bodies.js';
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

/**
 * Hands over the whole body once it is there; nothing if the client leaves before. When the memory for held bodies is full, hands over
 * the same piece by piece, from its beginning.
 */
export function holdBody(
  req: IncomingMessage,
  held: HeldBody,
  turns: Turns,
  onBody: (body: RequestBody) => void,
): void {
  const pieces: Buffer[] = [];
  const hold = (piece: Buffer) => {
    turns.received(piece.length);
    if (held.isReleased) return; // The request was refused; its rest is read away.
    pieces.push(piece);
    if (!held.takes(piece.length + PIECE_OVERHEAD_BYTES)) {
      req.off('data', hold).off('end', finish).pause();
      held.release();
      turns.waitForNobody();
      const first = { value: joined(pieces), done: false } as const;
      onBody(within(LARGEST_HELD, first, piecesOf(req, turns), turns));
    } else if (!req.complete) turns.waitForClient();
  };
  const finish = () => {
    if (held.isReleased) return;
    held.finish();
    turns.waitForNobody();
    onBody(joined(pieces));
  };
  turns.waitForClient();
  req.on('data', hold).on('end', finish);
}

/**
 * The body piece by piece, read no faster than it is taken. Resolves when it has begun: until then nothing need be spent on it.
 *
 * @throws {ClientGone}
 * @throws {Refusal} `body_too_large` from the iterable, at the piece that passes the limit.
 */
export async function streamBody(req: IncomingMessage, maxBytes: number, turns: Turns): Promise<AsyncIterable<Buffer>> {
  const pieces = piecesOf(req, turns);
  try {
    return within(maxBytes, await pieces.next(), pieces, turns);
  } catch {
    throw new ClientGone();
  } finally {
    turns.waitForNobody();
  }
}

function piecesOf(req: IncomingMessage, turns: Turns): Pieces {
  // Not destroyed on return: that would take the connection, and with it an early answer.
  const pieces = req.iterator({ destroyOnReturn: false }) as Pieces;
  return {
    async next() {
      turns.waitForClient();
      const piece = await pieces.next();
      turns.received(piece.value?.length ?? 0);
      return piece;
    },
  };
}

/**
 * The whole body, if it is no larger than that and there is memory for it; else the same piece by piece, from its beginning.
 *
 * @throws {ClientGone}
 * @throws {Refusal} as the body does.
 */
export async function gatherBody(
  body: AsyncIterable<Buffer>,
  mostBytes: number,
  held: HeldBody,
): Promise<Buffer | AsyncIterable<Buffer>> {
  const pieces: Buffer[] = [];
  const rest = body[Symbol.asyncIterator]() as Pieces;
  try {
    for (let bytes = 0; bytes <= mostBytes;) {
      const piece = await rest.next();
      if (piece.done) {
        held.finish();
        return joined(pieces);
      }
      pieces.push(piece.value);
      bytes += piece.value.length;
      if (!held.takes(piece.value.length + PIECE_OVERHEAD_BYTES)) break;
    }
    held.release();
  } catch (error) {
    throw error instanceof Refusal ? error : new ClientGone();
  }
  return following(pieces, rest);
}

/** In one piece. One alone is not copied. */
function joined(pieces: readonly Buffer[]): Buffer {
  const [first] = pieces;
  return pieces.length === 1 && first ? first : Buffer.concat(pieces);
}

/** What has come, and then what comes. Of what has come nothing is held once it is taken. */
async function* following(pieces: Buffer[], rest: Pieces): AsyncGenerator<Buffer> {
  yield joined(pieces.splice(0));
  for (let piece = await rest.next(); !piece.done; piece = await rest.next()) yield piece.value;
}

type Piece = IteratorResult<Buffer, undefined>;
type Pieces = Pick<AsyncIterator<Buffer, undefined>, 'next'>;

async function* within(maxBytes: number, first: Piece, pieces: Pieces, turns: Turns): AsyncGenerator<Buffer> {
  let bytes = 0;
  for (let piece = first; !piece.done; piece = await pieces.next()) {
    bytes += piece.value.length;
    if (bytes > maxBytes) throw bodyTooLarge();
    turns.waitForUpstream();
    yield piece.value;
  }
  turns.waitForUpstream();
}
