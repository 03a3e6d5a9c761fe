/**
 * Internals of Node's HTTP parser, used to observe and pause it. They are undocumented, but unchanged since Node 12;
 * `test/faults/a-pipelining.test.ts` and `test/faults/a-memory.measured.ts` fail on a release that changes them.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** If `onIncoming` returns this value, the parser pauses directly after the head, and does not parse the following bytes. */
export const PAUSED = 21;
/**
 * If `onIncoming` returns this value, the parser stops directly after the head, and all that follows is handed over with the upgrade. Without
 * it, Node 26 parses the body of an upgrade first, or while the upgrade is served.
 */
export const UPGRADED = 2;
/**
 * Node reports the pause as a `clientError` with this code. The error contains all bytes that were read, and the number of those that
 * were parsed.
 */
export const PAUSED_CODE = 'HPE_PAUSED';

/** The code of the `clientError` for a body that is sent in chunks that are too small. */
export const SMALL_CHUNKS_CODE = 'LLMP_SMALL_CHUNKS';

/** The error that Node creates for a parse failure, and for a pause. */
type ParseFailure = Error & { rawPacket?: Buffer };

type Hook = (this: Parser, result: number | ParseFailure) => void;
export type BodyHook = (this: Parser, chunk: Buffer) => void;
export type CompletionHook = (this: Parser) => void;

export interface Parser {
  /** Called with each complete head. The returned value goes to the parser: 0 lets it continue. */
  onIncoming: (this: Parser, req: IncomingMessage & { upgrade?: boolean | null }, keepAlive: boolean) => number;
  resume(): void;
  /** Headers of an incomplete head, names and values in turn, except for the first ones. */
  readonly _headers: readonly string[];
  /** Whether the parser reads from the connection itself. If not, it parses the socket's `data` events. */
  readonly _consumed: boolean;
  readonly constructor: Record<'kOnExecute' | 'kOnMessageBegin' | 'kOnBody' | 'kOnMessageComplete', number>;
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
  /** From now on `read` gets what is read instead of the parser. @returns a function that parses. */
  takeOver(read: (bytes: Buffer) => void): (bytes: Buffer) => void;
  stop(): void;
}

const ONE_READ_BYTES = 64 * 1024;
// Node takes a buffer without memory for the end of the connection.
const NO_BYTES = Buffer.allocUnsafeSlow(1).subarray(0, 0);

/** Calls `arrived` after each read with the number of bytes, whether or not all of them were parsed. */
export function onEachRead(socket: ParsedSocket, parser: Parser, arrived: (bytes: number) => void): ReadHook {
  // The first listener is Node's own, which parses.
  const parse = socket.listeners('data')[0] as (bytes: Buffer) => void;
  const isConsumed = parser._consumed;
  const onData = (chunk: Buffer) => {
    arrived(chunk.length);
  };
  if (isConsumed) {
    const { kOnExecute } = parser.constructor;
    const executed = parser[kOnExecute];
    parser[kOnExecute] = function (result) {
      executed?.call(this, result);
      arrived(typeof result === 'number' ? result : (result.rawPacket?.length ?? 0));
    }; // Node itself removes the hook from a parser without a connection.
  } else {
    socket.on('data', onData);
  }
  return {
    readAheadBytes: isConsumed ? 0 : ONE_READ_BYTES,
    resume(bytes) {
      parser.resume();
      socket.emit('data', bytes.length > 0 ? bytes : NO_BYTES);
      if (isConsumed) arrived(bytes.length);
    },
    takeOver(read) {
      // With a listener for data, Node reads the connection for it and no longer for the parser.
      socket.off('data', parse).off('data', onData).on('data', read);
      return (bytes) => {
        parser.resume();
        parse.call(socket, bytes);
      };
    },
    stop: () => socket.off('data', onData),
  };
}
