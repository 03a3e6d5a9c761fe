/** A listener, one node:http server: /v1 goes straight to the proxy, everything else to the Express app. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../core/ports.js';
import { Refusal, type RefusalKind } from '../core/refusal.js';
import { LINGER_MS } from './body.js';
import { cut } from './cut.js';
import { corsFields, type CorsSettings, preflightFields } from './cors.js';
import { requestIdOf } from './credentials.js';
import { problemAnswer, sendProblem, statusOf } from './problems.js';
import { isProxied, type Proxy, REFUSAL_HEADERS } from './proxy.js';
import { headersTooLarge, LARGEST_HEADERS, LONGEST_TARGET, methodNotAllowed, targetNotPlain } from './shape.js';

export interface ServerOptions {
  /** Null where /v1 is not served. */
  proxy: Pick<Proxy, 'handle' | 'refuse'> | null;
  app: RequestListener;
  clock: Clock;
  maxConnections: number;
  isDraining: () => boolean;
  /** Those in force: SIGHUP may put others in their place. */
  live: { readonly current: CorsSettings };
}

const HEADERS_TIMEOUT_MS = 10_000;
const CHECK_EVERY_MS = 1_000;
// Longer than the idle time of load balancers (60 s as a rule), so that it is not us who closes under their hands.
const KEEP_ALIVE_MS = 75_000;

export function createHttpServer({ proxy, app, clock, maxConnections, isDraining, live }: ServerOptions): Server {
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
    // A client that keeps its connection would lose the request it sends just as we close. Not as a header set
    // in advance: Node would then keep only the last of each repeated field of the answer.
    if (isDraining()) res.shouldKeepAlive = false;
    if (proxy && isProxied(target)) proxy.handle(req, res, expectsContinue);
    else if (req.method === 'OPTIONS' && target === '*') answerOptions(req, res, live.current);
    else if (isPath(target)) app(req, res);
    else sendProblem(res, targetNotPlain(), requestIdOf(req.headers['x-request-id']), REFUSAL_HEADERS);
  };
  server.on('request', (req, res) => {
    serve(req, res, false);
  });
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    if (proxy && isProxied(req.url ?? '')) {
      serve(req, res, true); // It says "continue" itself, once the request is admitted.
      return;
    }
    res.writeContinue();
    serve(req, res, false);
  });
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    const refusal = new Refusal('expectation_failed', 'expectation not supported');
    const headers = { ...REFUSAL_HEADERS, ...corsFields(live.current, req), Connection: 'close' };
    sendProblem(res, refusal, requestIdOf(req.headers['x-request-id']), headers);
  });
  server.on('connect', (req: IncomingMessage, socket: Duplex) => {
    // Node has let go of this socket: a reset would be nobody's, and end the process.
    socket.on('error', () => undefined);
    socket.resume();
    endWithProblem(socket, methodNotAllowed(), requestIdOf(req.headers['x-request-id']), clock);
  });

  const unreadable = new WeakSet<Duplex>();
  /** Answers go out in the order of their requests: those to the requests before the unreadable one come first. */
  const refuseInTurn = (socket: Duplex, refusal: Refusal) => {
    const { _httpMessage: current } = socket as Duplex & { _httpMessage?: ServerResponse | null };
    if (!socket.writable) socket.destroy();
    else if (!current) endWithProblem(socket, refusal, requestIdOf(undefined), clock);
    else if (current.req.complete)
      current.once('close', () => {
        refuseInTurn(socket, refusal);
      });
    // In the middle of an answer words of ours would be taken for its body.
    else if (current.headersSent) cut(current);
    else if (!proxy?.refuse(current, refusal)) socket.destroy();
  };
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    // The client is gone, perhaps in the middle of its request.
    if (error.code === 'ECONNRESET' || error.code === 'HPE_INVALID_EOF_STATE') socket.destroy();
    if (unreadable.has(socket)) return; // The parser complains again about whatever else arrives.
    unreadable.add(socket);
    refuseInTurn(socket, unparsed(error));
  });
  return server;
}

/** Neither an absolute URL nor what a browser would take for one (`//host`). */
const isPath = (target: string) => /^\/(?!\/)/.test(target);

function answerOptions(req: IncomingMessage, res: ServerResponse, settings: CorsSettings): void {
  res.writeHead(204, { 'X-Request-ID': requestIdOf(req.headers['x-request-id']), ...preflightFields(settings, req) });
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
function endWithProblem(socket: Duplex, refusal: Refusal, requestId: string, clock: Clock): void {
  const { headers, body } = problemAnswer(refusal, requestId);
  const lines = Object.entries({ ...headers, ...REFUSAL_HEADERS, Connection: 'close' }).map(
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
