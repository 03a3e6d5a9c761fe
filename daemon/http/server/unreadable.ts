/** Refusals for input that the parser rejects, and for CONNECT. Node sends no suitable response for them. */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LogThrottle } from '../../core/log-throttle.js';
import type { Clock, Log } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import { requestIdOf } from '../client-identity.js';
import { cut, type HttpSocket, isLingering, linger, LINGER_MS, type UnreadResponses } from '../connection-ends.js';
import type { Intake } from './memory-bounds.js';
import type { UnknownPathErrors } from './unknown-path.js';
import { PAUSED_CODE, SMALL_CHUNKS_CODE } from './parser.js';
import { problemResponse, sendProblem, statusOf } from '../problems.js';
import { cacheFields, type Proxy } from '../proxy/proxy.js';
import type { UnreadableRequest } from '../proxy/request-record.js';
import { headersTooLarge, MAX_TARGET_LENGTH, methodNotAllowed } from '../request-head.js';
import type { Wording } from '../wording.js';

type ParserError = NodeJS.ErrnoException & { rawPacket?: Buffer; bytesParsed?: number };

interface UnreadableOptions {
  /** Null if this listener does not serve /v1. */
  proxy: Pick<Proxy, 'handles' | 'refuse' | 'recordUnreadable'> | null;
  unknownPathErrors: UnknownPathErrors | null;
  clock: Clock;
  intake: Pick<Intake, 'parserPaused'>;
  unreadResponses: Pick<UnreadResponses, 'watch'>;
  log: Pick<Log, 'warn'>;
}

// A wrongly configured client retries again and again: one message in a while is enough to find it.
const LOG_EVERY_MS = 10_000;

export function refuseUnreadable(server: Server, options: UnreadableOptions): void {
  const { proxy, unknownPathErrors, clock, intake, unreadResponses, log } = options;
  const unreadable = new WeakSet<Duplex>();
  const warnings = new LogThrottle(clock, log, LOG_EVERY_MS);

  const warn = ({ message }: ForeignProtocol, { remoteAddress: from }: Socket) => {
    warnings.record('warn', message, (connections) => ({ connections, from }));
  };

  const endUnread = (socket: Duplex, refusal: Refusal, unread: UnreadableRequest) => {
    proxy?.recordUnreadable(socket as Socket, refusal, unread);
    const fields = cacheFields(proxy, null);
    endWithProblem(socket, refusal, unread.requestId, clock, fields, unknownPathErrors?.wordingForUnreadable(refusal));
  };

  /** Refuses in order: the responses to requests before the unreadable one are sent first. */
  const refuseInTurn = (socket: HttpSocket, refusal: Refusal) => {
    const { _httpMessage: current } = socket;
    // The connection is ending anyway, or the broken input is the rest of a request that has its response: a second response would be
    // taken for another request's.
    if (!socket.writable || isLingering(socket) || (current?.writableEnded && !current.req.complete)) return;
    if (!current) {
      endUnread(socket, refusal, { method: '', requestId: requestIdOf(undefined) });
    } else if (current.req.complete) {
      current.once('close', () => {
        refuseInTurn(socket, refusal);
      });
    } else if (current.headersSent) {
      cut(current); // In the middle of a response, an error text would be taken for its body.
    } else if (!proxy?.refuse(current, refusal)) {
      current.once('close', () => {
        linger(current.req, clock);
      });
      const requestId = requestIdOf(current.req.headers['x-request-id']);
      const fields = cacheFields(proxy, current.req.url ?? '');
      sendProblem(current, refusal, requestId, fields, unknownPathErrors?.wording(refusal, current.req));
      unreadResponses.watch(current);
    }
  };

  server.on('clientError', (error: ParserError, socket: Duplex) => {
    if (error.code === PAUSED_CODE) {
      intake.parserPaused(socket as Socket, error.rawPacket?.subarray(error.bytesParsed) ?? Buffer.alloc(0));
      return;
    }
    // The client has disconnected, perhaps in the middle of its request.
    if (error.code === 'ECONNRESET' || error.code === 'HPE_INVALID_EOF_STATE') socket.destroy();
    if (unreadable.has(socket)) return; // The parser reports all further input again.
    unreadable.add(socket);
    const { rawPacket = Buffer.alloc(0), code } = error;
    const foreign = foreignProtocolOf(code, rawPacket, (socket as Socket).bytesRead === rawPacket.length);
    if (foreign) warn(foreign, socket as Socket);
    refuseInTurn(
      socket as HttpSocket,
      foreign ? new Refusal('malformed_request', foreign.message, { cause: error }) : unparsed(error),
    );
  });

  server.on('connect', (req: IncomingMessage, socket: Duplex) => {
    // Node has handed over this socket: without a listener, a reset would be an uncaught error and end the process.
    socket.on('error', () => undefined);
    socket.resume();
    // Its response would overtake those of earlier requests, which Node does not serve any further after a CONNECT.
    if ((socket as HttpSocket)._httpMessage) socket.destroy();
    else
      endUnread(socket, methodNotAllowed(), { method: 'CONNECT', requestId: requestIdOf(req.headers['x-request-id']) });
  });
}

/** The reason why the parser rejected the input, as far as the error and the last bytes show it. */
function unparsed(error: ParserError): Refusal {
  const cause = { cause: error };
  const parsed = (error.rawPacket?.subarray(0, error.bytesParsed) ?? Buffer.alloc(0)).toString('latin1');
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new Refusal('request_timeout', 'the request headers did not arrive in time', cause);
  }
  if (error.code === SMALL_CHUNKS_CODE) {
    return new Refusal('malformed_request', 'the body is sent in very small chunks: send larger ones', cause);
  }
  if (error.code === 'HPE_HEADER_OVERFLOW') {
    const line = parsed.slice(parsed.lastIndexOf('\r\n') + 1).trimStart();
    const isTarget = /^[A-Z-]+ \S/.test(line) && line.length > MAX_TARGET_LENGTH;
    return isTarget ? new Refusal('uri_too_long', 'request target too long', cause) : headersTooLarge();
  }
  // The parser has one error for an unknown version and for a line that does not end after the version.
  if (error.code === 'HPE_INVALID_VERSION' && /HTTP\/(?!1\.[01])\d\.\d$/.test(parsed)) {
    return new Refusal('http_version_not_supported', 'HTTP version not supported', cause);
  }
  return new Refusal('malformed_request', 'malformed request', cause);
}

/** Writes a response without Node's response object, and closes the connection: the start of a next request could not be recognised. */
function endWithProblem(
  socket: Duplex,
  refusal: Refusal,
  requestId: string,
  clock: Clock,
  extraHeaders: Readonly<Record<string, string>>,
  wording: Wording | undefined,
): void {
  const { headers, body } = problemResponse(refusal, requestId, wording);
  const lines = Object.entries({ ...headers, ...extraHeaders, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const status = statusOf(refusal);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n${lines.join('')}\r\n${body}`);
  // Further input is not parsed as requests; closing immediately would lose the response.
  socket.once(
    'close',
    clock.after(LINGER_MS, () => socket.destroy()),
  );
}

/** Detects other protocols on a port of plain HTTP/1.1 by their first bytes. */

interface ForeignProtocol {
  protocol: string;
  /** What is wrong and what to do; for the client and for the log. */
  message: string;
}

const TLS: ForeignProtocol = {
  protocol: 'TLS',
  message:
    'the client started a TLS handshake, but this port serves plain HTTP/1.1: use http:// in the base URL, or put a TLS proxy in front',
};
const HTTP_2: ForeignProtocol = {
  protocol: 'HTTP/2',
  message:
    'the client started with HTTP/2, but this port serves HTTP/1.1: configure the client for HTTP/1.1, or put an HTTP/2 proxy in front',
};

// A TLS handshake record (22) of SSL 3.0 or TLS 1.x (3).
const HANDSHAKE = 22;
const MAJOR_VERSION = 3;

/**
 * @param code of the parser's error.
 * @param last the last bytes read.
 * @param isFirst whether these are the first bytes on the connection.
 */
function foreignProtocolOf(code: string | undefined, last: Buffer, isFirst: boolean): ForeignProtocol | null {
  // The parser recognises the complete preface, also when it arrives in parts.
  if (code === 'HPE_PAUSED_H2_UPGRADE') return HTTP_2;
  if (!isFirst) return null;
  if (last[0] === HANDSHAKE && (last.length === 1 || last[1] === MAJOR_VERSION)) return TLS;
  return last.subarray(0, 14).toString('latin1') === 'PRI * HTTP/2.0' ? HTTP_2 : null;
}
