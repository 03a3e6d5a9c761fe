/** One node:http server: /v1 goes straight to the proxy, everything else to the Express app. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Duplex } from 'node:stream';
import { Refusal, type RefusalKind } from '../core/refusal.js';
import { requestIdOf } from './credentials.js';
import { problemAnswer, sendProblem, statusOf } from './problems.js';
import { isProxied, type ProxyHandler, REFUSAL_HEADERS } from './proxy.js';
import { headersTooLarge, LARGEST_HEADERS, LONGEST_TARGET, methodNotAllowed } from './shape.js';

export interface ServerOptions {
  proxy: ProxyHandler;
  app: RequestListener;
  maxConnections: number;
  isDraining: () => boolean;
}

const HEADERS_TIMEOUT_MS = 10_000;
const CHECK_EVERY_MS = 1_000;
// Longer than the idle time of load balancers (60 s as a rule), so that it is not us who closes under their hands.
const KEEP_ALIVE_MS = 75_000;

export function createHttpServer({ proxy, app, maxConnections, isDraining }: ServerOptions): Server {
  const server = createServer({
    // Room for the longest target and headers that the shape check lets through, so that it is the one to refuse.
    maxHeaderSize: LARGEST_HEADERS + LONGEST_TARGET + 4096,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0, // Uploads may take long; silence is what ends them.
    connectionsCheckingInterval: CHECK_EVERY_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requireHostHeader: false, // Checked with the rest of the shape, and answered in JSON.
  });
  // By default Node drops headers beyond some number without a word, the framing ones too.
  server.maxHeadersCount = 0;
  server.maxConnections = maxConnections;

  const serve = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => {
    const target = req.url ?? '';
    // A client that keeps its connection would lose the request it sends just as we close.
    if (isDraining()) res.setHeader('Connection', 'close');
    if (isProxied(target)) proxy(req, res, expectsContinue);
    else if (req.method === 'OPTIONS' && target === '*') answerOptions(req, res);
    else app(req, res);
  };
  server.on('request', (req, res) => {
    serve(req, res, false);
  });
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    if (isProxied(req.url ?? '')) {
      serve(req, res, true); // It says "continue" itself, once the request is admitted.
      return;
    }
    res.writeContinue();
    serve(req, res, false);
  });
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    const refusal = new Refusal('expectation_failed', 'expectation not supported');
    sendProblem(res, refusal, requestIdOf(req.headers['x-request-id']), { ...REFUSAL_HEADERS, Connection: 'close' });
  });
  server.on('connect', (req: IncomingMessage, socket: Duplex) => {
    endWithProblem(socket, methodNotAllowed(), requestIdOf(req.headers['x-request-id']));
  });
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    // An answer may be under way on this socket: words of ours in the middle of it would be taken for its body.
    const isAnswering = (socket as Duplex & { _httpMessage?: unknown })._httpMessage != null;
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswering) socket.destroy();
    else endWithProblem(socket, unparsed(error), requestIdOf(undefined));
  });
  return server;
}

function answerOptions(req: IncomingMessage, res: ServerResponse): void {
  res.writeHead(204, { 'X-Request-ID': requestIdOf(req.headers['x-request-id']) });
  res.end();
}

/** Why the parser gave up, as far as it says so. */
function unparsed(error: NodeJS.ErrnoException & { rawPacket?: Buffer }): Refusal {
  const cause = { cause: error };
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new Refusal('request_timeout', 'the request headers did not arrive in time', cause);
  }
  if (error.code === 'HPE_HEADER_OVERFLOW') {
    const firstLine = error.rawPacket?.indexOf('\r\n') ?? 0;
    const isTarget = firstLine === -1 || firstLine > LONGEST_TARGET;
    return isTarget ? new Refusal('uri_too_long', 'request target too long', cause) : headersTooLarge();
  }
  const kind: RefusalKind = error.code === 'HPE_INVALID_VERSION' ? 'http_version_not_supported' : 'malformed_request';
  return new Refusal(kind, kind === 'malformed_request' ? 'malformed request' : 'HTTP version not supported', cause);
}

/** An answer where Node made no response object, and the end of the connection: where the next request would begin is unknown. */
function endWithProblem(socket: Duplex, refusal: Refusal, requestId: string): void {
  const { headers, body } = problemAnswer(refusal, requestId);
  const lines = Object.entries({ ...headers, ...REFUSAL_HEADERS, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const status = statusOf(refusal);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n${lines.join('')}\r\n${body}`);
}
