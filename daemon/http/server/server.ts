/** A listener, one node:http server: /v1 goes straight to the proxy, everything else to the Express app. */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Live } from '../../../config/settings.js';
import type { Clock, Log } from '../../core/ports.js';
import type { Refusal } from '../../core/refusal.js';
import type { Bounds } from './bounds.js';
import { corsFields, type CorsSettings, preflightFields } from '../cors.js';
import { requestIdOf } from '../credentials.js';
import { type AnsweredSocket, boundConnections, linger, type OpenConnections } from '../endings.js';
import { isHandshake } from '../proxy/handshake.js';
import type { Urgency } from './intake.js';
import type { OffPath } from './off-path.js';
import { asRefusal, sendProblem } from '../problems.js';
import { cacheFields, isPath, isProxied, type Proxy } from '../proxy/proxy.js';
import {
  checkExpectation,
  checkMessage,
  LARGEST_HEADERS,
  LONGEST_TARGET,
  MOST_HEADERS,
  targetNotPlain,
} from '../shape.js';
import { refuseUnreadable } from './unreadable.js';
import type { Upgrades } from '../proxy/upgrades.js';
import { serveWithoutUpgrade } from './without-upgrade.js';

export interface ServerOptions {
  /** Null where /v1 is not served. */
  proxy: Pick<Proxy, 'handle' | 'refuse' | 'recordUnread'> | null;
  /** How who misses /v1 is refused; null where there is no proxy. */
  offPath: OffPath | null;
  /** Null where there is no proxy. */
  upgrades: Pick<Upgrades, 'handle'> | null;
  app: RequestListener;
  clock: Clock;
  log: Pick<Log, 'warn'>;
  /** Those of the process: its listeners share them. */
  bounds: Bounds;
  maxConnections: number;
  isDraining: () => boolean;
  /** Those in force: SIGHUP may put others in their place. */
  live: Live<keyof CorsSettings>;
}

const HEADERS_TIMEOUT_MS = 10_000;
const CHECK_EVERY_MS = 1_000;
// Longer than the idle time of load balancers (60 s as a rule), so that it is not us who closes under their hands.
const KEEP_ALIVE_MS = 75_000;

/** A listener that can be taken out of service. */
export type HttpServer = Server & Pick<OpenConnections, 'promiseNoMore'>;

export function createHttpServer(options: ServerOptions): HttpServer {
  const { proxy, offPath, upgrades, app, clock, log, bounds, maxConnections, isDraining, live } = options;
  const { intake, untaken } = bounds;
  const server = createServer({
    // Room for the longest target and headers that the shape check lets through, so that it is the one to refuse.
    maxHeaderSize: LARGEST_HEADERS + LONGEST_TARGET + 4096,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0, // Uploads may take long; silence is what ends them.
    connectionsCheckingInterval: CHECK_EVERY_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requireHostHeader: false, // Checked with the rest of the shape, and answered in JSON.
  });
  // Node drops headers beyond this number without a word, the framing ones too, so that it must be more than the shape check lets
  // through. Without a limit a head would take ten times its bytes in memory.
  server.maxHeadersCount = 2 * MOST_HEADERS;
  intake.watch(server);
  const connections = boundConnections(server, maxConnections, clock, (socket) => intake.isSlow(socket));

  /** What is not for the proxy. */
  const serveHere = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => {
    res.once('close', () => {
      linger(req, clock);
    });
    // Behind the last byte of the answer, whoever gives it.
    res.once('prefinish', () => {
      untaken.watch(res);
    });
    const refuse = (refusal: Refusal) => {
      const headers = { ...cacheFields(proxy, req.url ?? ''), ...corsFields(live.current, req) };
      sendProblem(res, refusal, requestIdOf(req.headers['x-request-id']), headers, offPath?.wording(refusal, req));
    };
    try {
      checkMessage(req);
      if (expectsContinue) checkExpectation(req);
    } catch (error) {
      refuse(asRefusal(error));
      return;
    }
    const target = req.url ?? '';
    if (req.method === 'OPTIONS' && target === '*') answerOptions(req, res, live.current);
    else if (isPath(target)) app(req, res);
    else refuse(targetNotPlain(target));
  };
  const serve = intake.inTurn((req, res, expectsContinue) => {
    // A client that keeps its connection would lose the request it sends just as we close. Not as a header set
    // in advance: Node would then keep only the last of each repeated field of the answer.
    if (isDraining()) res.shouldKeepAlive = false;
    if (req.httpVersionMinor === 0) {
      res.shouldKeepAlive = false;
      res.useChunkedEncodingByDefault = false; // Node would, for a `TE: chunked`.
    }
    if (proxy && isProxied(req.url ?? '')) proxy.handle(req, res, expectsContinue);
    else serveHere(req, res, expectsContinue);
  }, urgencyOf);
  server.on('request', (req, res) => {
    serve(req, res, false);
  });
  // Listened to, so that nobody is told to go on before the request is looked at.
  for (const event of ['checkContinue', 'checkExpectation']) {
    server.on(event, (req: IncomingMessage, res: ServerResponse) => {
      serve(req, res, true);
    });
  }
  server.on('upgrade', (req: IncomingMessage, socket: AnsweredSocket, rest: Buffer) => {
    if (socket._httpMessage) {
      // Its answer would overtake those of the requests before it, which Node carries on no further than their next pause.
      socket.on('error', () => undefined).destroy();
    } else if (upgrades && isProxied(req.url ?? '') && isHandshake(req)) {
      upgrades.handle(req, socket, rest);
    } else {
      serveWithoutUpgrade(server, req, socket, rest);
    }
  });
  refuseUnreadable(server, { proxy, offPath, clock, intake, untaken, log });
  return Object.assign(server, { promiseNoMore: connections.promiseNoMore });
}

// Whoever watches over this instance is not to wait behind a crowd that asks for pages.
const PROBE = /^\/(?:live|ready|health)$/;

/** Requests to the provider begin at once: it is for them that this runs. Whatever else is asked for must not hold them up. */
function urgencyOf({ url = '' }: IncomingMessage): Urgency {
  if (isProxied(url)) return 'direct';
  return PROBE.test(url) ? 'urgent' : 'usual';
}

function answerOptions(req: IncomingMessage, res: ServerResponse, settings: CorsSettings): void {
  res.writeHead(204, { 'X-Request-ID': requestIdOf(req.headers['x-request-id']), ...preflightFields(settings, req) });
  res.end();
}
