/**
 * Node's HTTP parser of a connection, as far as it lets itself be watched and stopped. None of this is documented, and all of it has been so since Node 12:
 * `test/pipelining.test.ts` and `test/unfinished-heads.test.ts` fail on a release where it is otherwise.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** What Node's callback answers to have the parser stop right behind the head it has read, with what follows unread. */
export const PAUSED = 21;
/** The code of the error that Node makes of it, which comes as `clientError` with all that was read and how much of it was parsed. */
export const PAUSED_CODE = 'HPE_PAUSED';

type Hook = (this: Parser, result: number | Error) => void;

export interface Parser {
  /** Called with each head that is whole. What it returns goes to the parser: 0, unless it is to stop. */
  onIncoming: (this: Parser, req: IncomingMessage, keepAlive: boolean) => number;
  resume(): void;
  /** The fields of an unfinished head, names and values in turn, beyond the first of them. */
  readonly _headers: readonly string[];
  /** Whether it reads the connection by itself. Otherwise it is fed with the `data` of the socket. */
  readonly _consumed: boolean;
  readonly constructor: { readonly kOnExecute: number; readonly kOnMessageBegin: number };
  [hook: number]: Hook;
}

/** A connection as Node's server has it. */
export type ParsedSocket = Socket & {
  parser: Parser | null;
  /** Node reads nothing more of it until its client has taken what was answered. */
  _paused?: boolean;
};

/** Calls `begun` at the first byte of each head. Node has no hook there itself. */
export function onEachHead(parser: Parser, begun: () => void): void {
  parser[parser.constructor.kOnMessageBegin] = begun;
}

/** Calls `arrived` behind each read, with the number of bytes; 0 where parsing them failed or was stopped. */
export function onEachRead(socket: ParsedSocket, parser: Parser, arrived: (bytes: number) => void): void {
  if (!parser._consumed) {
    socket.on('data', (piece: Buffer) => {
      arrived(piece.length);
    });
    return;
  }
  const { kOnExecute } = parser.constructor;
  const executed = parser[kOnExecute];
  parser[kOnExecute] = function (result) {
    executed?.call(this, result);
    arrived(typeof result === 'number' ? result : 0);
  };
}
