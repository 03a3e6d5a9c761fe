/** A listener: one node:http server, which passes /v1 directly to the proxy and everything else to the Express app. */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Live } from '../../../config/settings.js';
import type { Clock, Log } from '../../core/ports.js';
import type { Refusal } from '../../core/refusal.js';
import type { MemoryBounds, Urgency } from './memory-bounds.js';
import { corsFields, type CorsSettings, preflightFields } from '../cors.js';
import { requestIdOf } from '../client-identity.js';
import { type HttpSocket, limitConnections, linger, type OpenConnections } from '../connection-ends.js';
import { isHandshake } from '../proxy/handshake.js';
import type { UnknownPathErrors } from './unknown-path.js';
import { asRefusal, sendProblem } from '../problems.js';
import { cacheFields, isPath, type Proxy } from '../proxy/proxy.js';
import {
  checkExpectation,
  checkMessage,
  MAX_HEADER_BYTES,
  MAX_HEADERS,
  MAX_TARGET_LENGTH,
  targetNotNormalized,
} from '../request-head.js';
import { type ClientRoutes, forClients } from './client-routes.js';
import { refuseUnreadable } from './unreadable.js';
import type { Upgrades } from '../proxy/upgrades.js';
import type { Socket } from 'node:net';

interface ServerOptions {
  /** Null if this listener does not serve /v1. */
  proxy: Pick<Proxy, 'handles' | 'handle' | 'refuse' | 'recordUnreadable'> | null;
  /** How requests outside of /v1 are refused; null without a proxy. */
  unknownPathErrors: UnknownPathErrors | null;
  /** Null without a proxy. */
  upgrades: Pick<Upgrades, 'handle'> | null;
  /** Null without a proxy. */
  clientRoutes: ClientRoutes | null;
  app: RequestListener;
  clock: Clock;
  log: Pick<Log, 'warn'>;
  /** The limits of the process, which all its listeners share. */
  bounds: MemoryBounds;
  maxConnections: number;
  /** How long an idle connection stays open. Default: 75 s. */
  keepAliveMs?: number;
  isDraining: () => boolean;
  /** The current settings: SIGHUP may replace them. */
  live: Live<keyof CorsSettings>;
}

const HEADERS_TIMEOUT_MS = 10_000;
const CHECK_EVERY_MS = 1_000;
/** Longer than the idle timeout of most load balancers (60 s), so that they close idle connections first. */
const DEFAULT_KEEP_ALIVE_MS = 75_000;
// Shorter than the time after which NATs and firewalls forget a silent connection (usually 4 minutes or more).
const TCP_KEEP_ALIVE_AFTER_MS = 60_000;

/** A listener that can be taken out of service. */
export type HttpServer = Server & Pick<OpenConnections, 'stopKeepAlive'>;

export function createHttpServer(options: ServerOptions): HttpServer {
  const { proxy, unknownPathErrors, upgrades, clientRoutes, clock, log, bounds, maxConnections, isDraining, live } =
    options;
  const { keepAliveMs = DEFAULT_KEEP_ALIVE_MS } = options;
  const { intake, unreadResponses } = bounds;
  const app = clientRoutes ? forClients(clientRoutes, options.app) : options.app;
  const server = createServer({
    // Large enough for the longest target and headers that the shape check accepts, so that the shape check is the one to refuse larger
    // ones.
    maxHeaderSize: MAX_HEADER_BYTES + MAX_TARGET_LENGTH + 4096,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0, // Uploads may take long; idle timeouts end stalled ones.
    connectionsCheckingInterval: CHECK_EVERY_MS,
    keepAliveTimeout: keepAliveMs,
    // A response can be silent for minutes, and a WebSocket longer.
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_AFTER_MS,
    requireHostHeader: false, // Checked with the rest of the shape, with a JSON error response.
  });
  // Node silently drops headers above this number, including framing headers, so it must exceed the limit of the shape check. Without a
  // limit a head would take ten times its bytes in memory.
  server.maxHeadersCount = 2 * MAX_HEADERS;
  intake.watch(server);
  const connections = limitConnections(server, maxConnections, clock, (socket) => intake.isSlow(socket));

  /** Serves a request that is not for the proxy. */
  const serveHere = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => {
    res.once('close', () => {
      linger(req, clock);
    });
    unreadResponses.watchAll(res);
    const refuse = (refusal: Refusal) => {
      const headers = { ...cacheFields(proxy, req.url ?? ''), ...corsFields(live.current, req) };
      sendProblem(
        res,
        refusal,
        requestIdOf(req.headers['x-request-id']),
        headers,
        unknownPathErrors?.wording(refusal, req),
      );
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
    else refuse(targetNotNormalized(target));
  };
  const serve = intake.inOrder(
    (req, res, expectsContinue) => {
      // A client that reuses its connection would lose the request that it sends just as the connection is closed. Not set as a header in
      // advance: Node would then keep only the last of each repeated response header.
      if (isDraining()) res.shouldKeepAlive = false;
      if (req.httpVersionMinor === 0) {
        res.shouldKeepAlive = false;
        res.useChunkedEncodingByDefault = false; // Node would use it for `TE: chunked`.
      }
      if (proxy?.handles(req.url ?? '')) proxy.handle(req, res, expectsContinue);
      else serveHere(req, res, expectsContinue);
    },
    (req) => urgencyOf(req, proxy),
  );
  server.on('request', (req, res) => {
    serve(req, res, false);
  });
  // These events have listeners so that Node does not send `100 Continue` before the request is checked.
  for (const event of ['checkContinue', 'checkExpectation']) {
    server.on(event, (req: IncomingMessage, res: ServerResponse) => {
      serve(req, res, true);
    });
  }
  server.on('upgrade', (req: IncomingMessage, socket: HttpSocket, head: Buffer) => {
    const rest = intake.restOf(socket, head);
    if (socket._httpMessage) {
      // Its response would overtake those of earlier requests, which Node does not serve any further after an upgrade.
      socket.on('error', () => undefined).destroy();
    } else if (upgrades && proxy?.handles(req.url ?? '') && isHandshake(req)) {
      upgrades.handle(req, socket, rest);
    } else {
      serveWithoutUpgrade(server, req, socket, rest);
    }
  });
  refuseUnreadable(server, { proxy, unknownPathErrors, clock, intake, unreadResponses, log });
  return Object.assign(server, { stopKeepAlive: connections.stopKeepAlive });
}

// Health checks must not wait for requests of other kinds.
const PROBE = /^\/(?:live|ready|health)$/;

/** Whether a request is a health check. */
export const isProbe = (target: string): boolean => PROBE.test(target);

/** Requests to the provider start immediately, since they are this program's purpose. Other requests must not delay them. */
function urgencyOf({ url = '' }: IncomingMessage, proxy: Pick<Proxy, 'handles'> | null): Urgency {
  // Not only where the proxy is: a request for it on another listener is refused at once.
  if (proxy?.handles(url)) return 'direct';
  return isProbe(url) ? 'urgent' : 'usual';
}

function answerOptions(req: IncomingMessage, res: ServerResponse, settings: CorsSettings): void {
  res.writeHead(204, { 'X-Request-ID': requestIdOf(req.headers['x-request-id']), ...preflightFields(settings, req) });
  res.end();
}

/**
 * Serves a request as if it had not asked for another protocol, as any server may (RFC 9110, 7.8). Some clients, such as Java's, request
 * h2c with every first request, and continue in HTTP/1.1 when it is declined.
 *
 * Node passes on either all upgrades or none; if it ignored this one itself, it would lose the bytes that arrived with it. So Node gets
 * the connection back as a new one, with the request in front of those bytes and without `Upgrade`.
 *
 * @param rest the bytes that arrived after the head.
 */
function serveWithoutUpgrade(server: Server, req: IncomingMessage, socket: Socket, rest: Buffer): void {
  const { method = '', url = '', httpVersion, rawHeaders } = req;
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.toLowerCase() !== 'upgrade') head += `${name}: ${rawHeaders[i + 1] ?? ''}\r\n`;
  }
  socket.unshift(Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), rest]));
  server.emit('connection', socket);
}
