/**
 * Internals of Node's HTTP parser, used to observe and pause it. They are undocumented, but unchanged since Node 12;
 * `test/faults/a-pipelining.test.ts` and `test/faults/a-memory.measured.ts` fail on a release that changes them.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** If `onIncoming` returns this value, the parser pauses directly after the head, and does not parse the following bytes. */
export const PAUSED = 21;
/**
 * Node reports the pause as a `clientError` with this code. The error contains all bytes that were read, and the number of those that
 * were parsed.
 */
export const PAUSED_CODE = 'HPE_PAUSED';

/** The error that Node creates for a parse failure, and for a pause. */
type ParseFailure = Error & { rawPacket?: Buffer };

type Hook = (this: Parser, result: number | ParseFailure) => void;

export interface Parser {
  /** Called with each complete head. The returned value goes to the parser: 0 lets it continue. */
  onIncoming: (this: Parser, req: IncomingMessage, keepAlive: boolean) => number;
  resume(): void;
  /** Headers of an incomplete head, names and values in turn, except for the first ones. */
  readonly _headers: readonly string[];
  /** Whether the parser reads from the connection itself. If not, it parses the socket's `data` events. */
  readonly _consumed: boolean;
  readonly constructor: { readonly kOnExecute: number; readonly kOnMessageBegin: number };
  [hook: number]: Hook;
}

/** A socket of Node's HTTP server. */
export type ParsedSocket = Socket & {
  parser: Parser | null;
  /** Set while Node does not read because the client has not read the responses so far. */
  _paused?: boolean;
};

/** Calls `begun` at the first byte of each head. Node itself does not use this hook. */
export function onEachHead(parser: Parser, begun: () => void): void {
  parser[parser.constructor.kOnMessageBegin] = begun;
}

/** Observes what is read from a connection. */
export interface ReadHook {
  /** How many bytes of a paused connection Node may read and buffer. */
  readonly readAheadBytes: number;
  /** Resumes a paused parser with these bytes, as if they had just arrived. */
  resume(bytes: Buffer): void;
  stop(): void;
}

const ONE_READ_BYTES = 64 * 1024;
// Node takes a buffer without memory for the end of the connection.
const NO_BYTES = Buffer.allocUnsafeSlow(1).subarray(0, 0);

/** Calls `arrived` after each read with the number of bytes, whether or not all of them were parsed. */
export function onEachRead(socket: ParsedSocket, parser: Parser, arrived: (bytes: number) => void): ReadHook {
  const isConsumed = parser._consumed;
  const resume = (bytes: Buffer) => {
    parser.resume();
    socket.emit('data', bytes.length > 0 ? bytes : NO_BYTES);
    if (isConsumed) arrived(bytes.length);
  };
  if (!isConsumed) {
    const read = (chunk: Buffer) => {
      arrived(chunk.length);
    };
    socket.on('data', read);
    return { readAheadBytes: ONE_READ_BYTES, resume, stop: () => socket.off('data', read) };
  }
  const { kOnExecute } = parser.constructor;
  const executed = parser[kOnExecute];
  parser[kOnExecute] = function (result) {
    executed?.call(this, result);
    arrived(typeof result === 'number' ? result : (result.rawPacket?.length ?? 0));
  };
  return { readAheadBytes: 0, resume, stop: () => undefined }; // Node itself removes the hook from a parser without a connection.
}
