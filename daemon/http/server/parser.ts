/**
 * Node's HTTP parser of a connection, as far as it lets itself be watched and stopped. None of this is documented, and all of it has been so
 * since Node 12: `test/faults/a-pipelining.test.ts` and `test/faults/a-memory.measured.ts` fail on a release where it is otherwise.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Returned by `onIncoming`, this value stops the parser right behind the head that it has read. The bytes behind it are not parsed. */
export const PAUSED = 21;
/** Node reports the stop as a `clientError` with this code. The error holds all that was read, and how much of it was parsed. */
export const PAUSED_CODE = 'HPE_PAUSED';

/** What Node makes of a failure to parse, and of a stop. */
type ParseFailure = Error & { rawPacket?: Buffer };

type Hook = (this: Parser, result: number | ParseFailure) => void;

export interface Parser {
  /** Called with each whole head. What it returns goes to the parser: 0 lets it go on. */
  onIncoming: (this: Parser, req: IncomingMessage, keepAlive: boolean) => number;
  resume(): void;
  /** The fields of an unfinished head, names and values in turn, beyond the first of them. */
  readonly _headers: readonly string[];
  /** Whether it reads the connection itself. If not, it parses what the socket's `data` events bring. */
  readonly _consumed: boolean;
  readonly constructor: { readonly kOnExecute: number; readonly kOnMessageBegin: number };
  [hook: number]: Hook;
}

/** A connection as Node's server has it. */
export type ParsedSocket = Socket & {
  parser: Parser | null;
  /** Node has stopped reading it until its client has read the responses so far. */
  _paused?: boolean;
};

/** Calls `begun` at the first byte of each head. Node does not use this hook itself. */
export function onEachHead(parser: Parser, begun: () => void): void {
  parser[parser.constructor.kOnMessageBegin] = begun;
}

/** What is read of a connection. */
export interface Reads {
  /** How much of a paused connection Node may read and hold. */
  readonly aheadBytes: number;
  /** Has the parser read these bytes, behind which it had stopped, as if they had just come. */
  resume(bytes: Buffer): void;
  stop(): void;
}

const ONE_READ_BYTES = 64 * 1024;
// Node takes bytes that stand nowhere in memory for the end of the connection.
const NO_BYTES = Buffer.allocUnsafeSlow(1).subarray(0, 0);

/** Calls `arrived` behind each read, with the number of bytes, whether or not all of them were parsed. */
export function onEachRead(socket: ParsedSocket, parser: Parser, arrived: (bytes: number) => void): Reads {
  const isConsumed = parser._consumed;
  const resume = (bytes: Buffer) => {
    parser.resume();
    socket.emit('data', bytes.length > 0 ? bytes : NO_BYTES);
    if (isConsumed) arrived(bytes.length);
  };
  if (!isConsumed) {
    const read = (piece: Buffer) => {
      arrived(piece.length);
    };
    socket.on('data', read);
    return { aheadBytes: ONE_READ_BYTES, resume, stop: () => socket.off('data', read) };
  }
  const { kOnExecute } = parser.constructor;
  const executed = parser[kOnExecute];
  parser[kOnExecute] = function (result) {
    executed?.call(this, result);
    arrived(typeof result === 'number' ? result : (result.rawPacket?.length ?? 0));
  };
  return { aheadBytes: 0, resume, stop: () => undefined }; // Node itself takes the hook off a parser that has no connection any more.
}
