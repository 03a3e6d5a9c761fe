/** What cannot be served as a request: where the parser gives up, and CONNECT. Node has no answer of its own for them. */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock, Log } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import { requestIdOf } from '../credentials.js';
import { type AnsweredSocket, cut, isLingering, linger, LINGER_MS } from '../endings.js';
import { type Foreign, foreignProtocolOf } from './foreign.js';
import type { Intake } from './intake.js';
import type { OffPath } from './off-path.js';
import { PAUSED_CODE } from './parser.js';
import { problemAnswer, sendProblem, statusOf } from '../problems.js';
import { cacheFields, type Proxy } from '../proxy/proxy.js';
import type { Unread } from '../proxy/record.js';
import { Seldom } from './seldom.js';
import { headersTooLarge, LONGEST_TARGET, methodNotAllowed } from '../shape.js';
import type { Untaken } from '../untaken.js';
import type { Wording } from '../wording.js';

type ParserError = NodeJS.ErrnoException & { rawPacket?: Buffer; bytesParsed?: number };

export interface UnreadableOptions {
  /** Null where /v1 is not served. */
  proxy: Pick<Proxy, 'refuse' | 'recordUnread'> | null;
  offPath: OffPath | null;
  clock: Clock;
  intake: Pick<Intake, 'stopped'>;
  untaken: Pick<Untaken, 'watch'>;
  log: Pick<Log, 'warn'>;
}

// Somebody configured a client wrongly, and it tries again and again: once in a while is enough to find it by.
const SAY_EVERY_MS = 10_000;

export function refuseUnreadable(server: Server, options: UnreadableOptions): void {
  const { proxy, offPath, clock, intake, untaken, log } = options;
  const unreadable = new WeakSet<Duplex>();
  /** By protocol. */
  const warnings = new Map<string, Seldom<[from: string | undefined]>>();

  const warn = ({ protocol, message }: Foreign, { remoteAddress }: Socket) => {
    const warning =
      warnings.get(protocol) ??
      new Seldom(clock, SAY_EVERY_MS, (connections, from) => {
        log.warn(message, { connections, from });
      });
    warnings.set(protocol, warning);
    warning.happened(remoteAddress);
  };

  const endUnread = (socket: Duplex, refusal: Refusal, unread: Unread) => {
    proxy?.recordUnread(socket as Socket, refusal, unread);
    const fields = cacheFields(proxy, null);
    endWithProblem(socket, refusal, unread.requestId, clock, fields, offPath?.wordingOfUnread(refusal));
  };

  /** Answers go out in the order of their requests: those to the requests before the unreadable one come first. */
  const refuseInTurn = (socket: AnsweredSocket, refusal: Refusal) => {
    const { _httpMessage: current } = socket;
    // It ends anyway, or it is the rest of an answered request that is broken: a second answer would be taken for another request's.
    if (!socket.writable || isLingering(socket) || (current?.writableEnded && !current.req.complete)) return;
    if (!current) {
      endUnread(socket, refusal, { method: '', requestId: requestIdOf(undefined) });
    } else if (current.req.complete) {
      current.once('close', () => {
        refuseInTurn(socket, refusal);
      });
    } else if (current.headersSent) {
      cut(current); // In the middle of an answer words of ours would be taken for its body.
    } else if (!proxy?.refuse(current, refusal)) {
      current.once('close', () => {
        linger(current.req, clock);
      });
      const requestId = requestIdOf(current.req.headers['x-request-id']);
      const fields = cacheFields(proxy, current.req.url ?? '');
      sendProblem(current, refusal, requestId, fields, offPath?.wording(refusal, current.req));
      untaken.watch(current);
    }
  };

  server.on('clientError', (error: ParserError, socket: Duplex) => {
    if (error.code === PAUSED_CODE) {
      intake.stopped(socket as Socket, error.rawPacket?.subarray(error.bytesParsed) ?? Buffer.alloc(0));
      return;
    }
    // The client is gone, perhaps in the middle of its request.
    if (error.code === 'ECONNRESET' || error.code === 'HPE_INVALID_EOF_STATE') socket.destroy();
    if (unreadable.has(socket)) return; // The parser complains again about whatever else arrives.
    unreadable.add(socket);
    const { rawPacket = Buffer.alloc(0), code } = error;
    const foreign = foreignProtocolOf(code, rawPacket, (socket as Socket).bytesRead === rawPacket.length);
    if (foreign) warn(foreign, socket as Socket);
    refuseInTurn(
      socket as AnsweredSocket,
      foreign ? new Refusal('malformed_request', foreign.message, { cause: error }) : unparsed(error),
    );
  });

  server.on('connect', (req: IncomingMessage, socket: Duplex) => {
    // Node has let go of this socket: a reset would be nobody's, and end the process.
    socket.on('error', () => undefined);
    socket.resume();
    // Its answer would overtake those of the requests before it, which Node carries on no further than their next pause.
    if ((socket as AnsweredSocket)._httpMessage) socket.destroy();
    else
      endUnread(socket, methodNotAllowed(), { method: 'CONNECT', requestId: requestIdOf(req.headers['x-request-id']) });
  });
}

/** Why the parser gave up, as far as it says so and the last that was read shows it. */
function unparsed(error: ParserError): Refusal {
  const cause = { cause: error };
  const parsed = (error.rawPacket?.subarray(0, error.bytesParsed) ?? Buffer.alloc(0)).toString('latin1');
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new Refusal('request_timeout', 'the request headers did not arrive in time', cause);
  }
  if (error.code === 'HPE_HEADER_OVERFLOW') {
    const line = parsed.slice(parsed.lastIndexOf('\r\n') + 1).trimStart();
    const isTarget = /^[A-Z-]+ \S/.test(line) && line.length > LONGEST_TARGET;
    return isTarget ? new Refusal('uri_too_long', 'request target too long', cause) : headersTooLarge();
  }
  // The parser says the same of a version that it does not know and of a line that does not end behind the version.
  if (error.code === 'HPE_INVALID_VERSION' && /HTTP\/(?!1\.[01])\d\.\d$/.test(parsed)) {
    return new Refusal('http_version_not_supported', 'HTTP version not supported', cause);
  }
  return new Refusal('malformed_request', 'malformed request', cause);
}

/** An answer where Node made no response object, and the end of the connection: where the next request would begin is unknown. */
function endWithProblem(
  socket: Duplex,
  refusal: Refusal,
  requestId: string,
  clock: Clock,
  extraHeaders: Readonly<Record<string, string>>,
  wording: Wording | undefined,
): void {
  const { headers, body } = problemAnswer(refusal, requestId, wording);
  const lines = Object.entries({ ...headers, ...extraHeaders, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const status = statusOf(refusal);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n${lines.join('')}\r\n${body}`);
  // What still arrives is not read as a request any more; closing at once would take the answer with it.
  socket.once(
    'close',
    clock.after(LINGER_MS, () => socket.destroy()),
  );
}
