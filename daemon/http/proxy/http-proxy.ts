/**
 * WebSocket upgrades to the upstream through http-proxy, which no other file uses. By itself http-proxy would forward the client's
 * headers, write the upstream's responses directly to the client, and continue after the client has disconnected. This module replaces
 * all of that; http-proxy only connects and pipes.
 */
import http, { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import type { LookupFunction, Socket } from 'node:net';
import util from 'node:util';
import type HttpProxy from 'http-proxy';
import { Refusal } from '../../core/refusal.js';
import { type Connect, MAX_RESPONSE_HEADER_BYTES } from './upstream-connection.js';
import { KEEP_ALIVE_AFTER_MS, type Opening } from './upstream-tunnel.js';

/** Receives the result of an upgrade request to the upstream. */
export interface UpgradeReceiver {
  /** The connection to the upstream is established, and the request is being sent. */
  onConnected(): void;
  /**
   * The upstream switches protocols.
   *
   * @returns the headers of the 101 for the client, which is sent next.
   * @throws if the response cannot be forwarded.
   */
  onUpgrade(response: IncomingMessage): OutgoingHttpHeaders;
  /** The 101 was sent, and the two connections are piped into each other. */
  onTunnel(upstream: Socket): void;
  /** The upstream responded with another status. */
  onResponse(response: IncomingMessage): void;
  /** There is no response, or the connection broke. */
  fail(refusal: Refusal): void;
}

type Join = (response: IncomingMessage, upstream: Socket, head: Buffer) => void;

const NOTHING = Buffer.alloc(0);

export interface UpgradeRequest {
  /** Path and query for the upstream. */
  target: string;
  /** Headers for the upstream. */
  headers: OutgoingHttpHeaders;
  /** The client's connection. */
  socket: Socket;
}

/** @returns the request to the upstream. Destroying it aborts it as long as there is no response. */
export type ForwardUpgrade = (request: UpgradeRequest, receiver: UpgradeReceiver) => ClientRequest;

/** @param lookup resolves the upstream's name. @param connect null: directly. */
export function upgradesAt(upstream: URL, lookup: LookupFunction, connect: Connect | null = null): ForwardUpgrade {
  const httpProxy = loadHttpProxy();
  const directly = new (upstream.protocol === 'https:' ? https.Agent : http.Agent)({ lookup });
  const place = {
    protocol: upstream.protocol,
    host: upstream.host,
    hostname: upstream.hostname.replace(/^\[|\]$/g, ''),
    port: upstream.port as unknown as number, // The types require a number; Node accepts both, and '' means the protocol's default.
  };
  const connectEvent = upstream.protocol === 'https:' ? 'secureConnect' : 'connect';

  return ({ target, headers, socket }, receiver) => {
    const agent = connect ? new ConnectingAgent(upstream, connect) : directly;
    const proxy = httpProxy.createProxyServer({ target: place, toProxy: true, agent });
    let request: ClientRequest | undefined;
    proxy.on('proxyReqWs', (made) => {
      request = made;
      made.path = target; // http-proxy normalizes the path; this restores it.
      // By default Node silently drops headers above a number, and allows 16 KiB.
      Object.assign(made, { maxHeadersCount: 0, maxHeaderSize: MAX_RESPONSE_HEADER_BYTES });
      made.once('socket', (connection) => {
        const onConnected = () => {
          connection.setKeepAlive(true, KEEP_ALIVE_AFTER_MS);
          receiver.onConnected();
        };
        if (connect) onConnected();
        else connection.once(connectEvent, onConnected);
      });
    });
    // http-proxy gets these headers only, not the client's: its own options only add to the headers of the request.
    const asked = { method: 'GET', url: target, headers: { ...headers, host: upstream.host } } as IncomingMessage;
    // The callback is for errors after the connections are piped.
    proxy.ws(asked, socket, NOTHING, {}, (error) => {
      receiver.fail(refusalOf(error));
    });
    if (!request) throw new Error('http-proxy made no request');
    takeOver(request, receiver);
    if (agent instanceof ConnectingAgent) agent.cancelWith(request);
    return request;
  };
}

/** Opens the connection of one request with `connect`. */
class ConnectingAgent extends http.Agent {
  readonly #upstream: URL;
  readonly #connect: Connect;
  #opening: Opening | null = null;

  constructor(upstream: URL, connect: Connect) {
    super();
    this.#upstream = upstream;
    this.#connect = connect;
    // The agent of another protocol would be refused.
    Object.assign(this, { protocol: upstream.protocol });
  }

  override createConnection(
    _options: unknown,
    callback: (error: Error | null, stream: Socket) => void = () => undefined,
  ): null {
    const { protocol, host, hostname, port } = this.#upstream;
    const target = { protocol, host, hostname: hostname.replace(/^\[|\]$/g, ''), port };
    this.#opening = this.#connect(target, (...[error, socket]) => {
      this.#opening = null;
      if (error)
        callback(error, null as unknown as Socket); // Node's types require a socket also for an error.
      else callback(null, socket);
    });
    return null;
  }

  /** Destroying the request also cancels its connection, of which Node knows nothing until it is open. */
  cancelWith(request: ClientRequest): void {
    const destroy = request.destroy.bind(request);
    request.destroy = (error) => {
      this.#opening?.destroy(new Error('the connection is no longer needed'));
      return destroy(error);
    };
  }
}

/**
 * Replaces http-proxy's listeners, which write to the client or close it immediately. Only the one that pipes the connections is called,
 * once the receiver has agreed.
 */
function takeOver(request: ClientRequest, receiver: UpgradeReceiver): void {
  const [join] = request.listeners('upgrade') as [Join];
  for (const event of ['upgrade', 'response', 'error']) request.removeAllListeners(event);
  let finalResponse: IncomingMessage | null = null;
  request.on('response', (response) => {
    finalResponse = response;
    // A 101 without a protocol. Nothing can follow it.
    if (response.statusCode === 101) receiver.fail(malformedResponse(new Error('101 without a protocol')));
    else receiver.onResponse(response);
  });
  request.on('upgrade', (response: IncomingMessage, upstream: Socket, head: Buffer) => {
    upstream.on('error', () => undefined); // `close` follows.
    if (finalResponse) {
      upstream.destroy(); // Node keeps reading after a response.
      return;
    }
    try {
      if (response.headers.upgrade?.toLowerCase() !== 'websocket')
        throw new Error('101 with another protocol than websocket');
      // http-proxy sends the headers of this object to the client.
      response.headers = receiver.onUpgrade(response) as IncomingMessage['headers'];
    } catch (error) {
      upstream.destroy();
      receiver.fail(malformedResponse(error));
      return;
    }
    join(response, upstream, head);
    receiver.onTunnel(upstream);
  });
  request.on('error', (error) => {
    // Bytes after a complete response are ignored.
    if (!finalResponse?.complete) receiver.fail(refusalOf(error));
  });
}

function refusalOf(error: NodeJS.ErrnoException): Refusal {
  return error.code?.startsWith('HPE_')
    ? malformedResponse(error)
    : new Refusal('upstream_unreachable', 'upstream unreachable', { cause: error });
}

export const malformedResponse = (cause: unknown) =>
  new Refusal('upstream_malformed', 'upstream answered malformed', { cause });

/**
 * Loads http-proxy, which takes `util._extend` when it is loaded. From Node 22 on, calling that prints a warning, so http-proxy gets its
 * replacement.
 */
function loadHttpProxy(): typeof HttpProxy {
  const original = Object.getOwnPropertyDescriptor(util, '_extend');
  Object.defineProperty(util, '_extend', { ...original, value: Object.assign });
  try {
    return createRequire(import.meta.url)('http-proxy') as typeof HttpProxy;
  } finally {
    if (original) Object.defineProperty(util, '_extend', original);
  }
}
