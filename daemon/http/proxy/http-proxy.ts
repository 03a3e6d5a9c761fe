/**
 * The only file that knows http-proxy, which carries upgrades. By itself it would forward the client's headers, write to the
 * client whatever the upstream answers, and go on when the client has left: it is let do what is left when that is taken away.
 */
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import util from 'node:util';
import type HttpProxy from 'http-proxy';
import { Refusal } from '../../core/refusal.js';
import { LARGEST_RESPONSE_HEADERS } from './connection.js';

/** Takes what becomes of an upgrade at the upstream. */
export interface UpgradeReceiver {
  /** The upstream's connection stands, and the request is on its way. */
  connected(): void;
  /**
   * The upstream switches protocols.
   *
   * @returns the header fields of the 101 that the client is about to be sent.
   * @throws when there can be none.
   */
  accepted(answer: IncomingMessage): OutgoingHttpHeaders;
  /** The client has its 101, and the two connections are piped into each other. */
  joined(upstream: Socket): void;
  /** The upstream answers with something else. */
  answered(answer: IncomingMessage): void;
  /** There is no answer, or the connection broke. */
  fail(refusal: Refusal): void;
}

type Join = (answer: IncomingMessage, upstream: Socket, head: Buffer) => void;

const NOTHING = Buffer.alloc(0);

export interface UpgradeRequest {
  /** Path and query, byte for byte as the client sent them. */
  target: string;
  /** As the upstream shall see them. */
  headers: OutgoingHttpHeaders;
  /** The client's connection. */
  socket: Socket;
}

/** @returns the request at the upstream: destroying it ends it as long as there is no answer. */
export type ForwardUpgrade = (request: UpgradeRequest, receiver: UpgradeReceiver) => ClientRequest;

export function upgradesAt(upstream: URL): ForwardUpgrade {
  const httpProxy = loadHttpProxy();
  const prefix = upstream.pathname.replace(/\/+$/, '');
  const place = {
    protocol: upstream.protocol,
    host: upstream.host,
    hostname: upstream.hostname.replace(/^\[|\]$/g, ''),
    port: upstream.port as unknown as number, // Its types want a number; Node takes both, and '' is the protocol's own.
  };
  const connectEvent = upstream.protocol === 'https:' ? 'secureConnect' : 'connect';

  return ({ target, headers, socket }, receiver) => {
    const proxy = httpProxy.createProxyServer({ target: place, toProxy: true });
    let request: ClientRequest | undefined;
    proxy.on('proxyReqWs', (made) => {
      request = made;
      made.path = prefix + target; // http-proxy tidies a path up.
      // By default Node drops fields beyond some number without a word, and allows 16 KiB.
      Object.assign(made, { maxHeadersCount: 0, maxHeaderSize: LARGEST_RESPONSE_HEADERS });
      made.once('socket', (connection) => {
        connection.once(connectEvent, () => {
          receiver.connected();
        });
      });
    });
    // The client's headers are nowhere for http-proxy to find: what it is told to set it only adds to those it sees.
    const asked = { method: 'GET', url: target, headers: { ...headers, host: upstream.host } } as IncomingMessage;
    // The callback is for what breaks once the connections are joined.
    proxy.ws(asked, socket, NOTHING, {}, (error) => {
      receiver.fail(refusalOf(error));
    });
    if (!request) throw new Error('http-proxy made no request');
    takeOver(request, receiver);
    return request;
  };
}

/** http-proxy's own listeners write to the client, or close it, at once. Only for joining the connections is theirs called, once we agree. */
function takeOver(request: ClientRequest, receiver: UpgradeReceiver): void {
  const [join] = request.listeners('upgrade') as [Join];
  for (const event of ['upgrade', 'response', 'error']) request.removeAllListeners(event);
  let answered: IncomingMessage | null = null;
  request.on('response', (answer) => {
    answered = answer;
    // A 101 that names no protocol. Nothing can follow it.
    if (answer.statusCode === 101) receiver.fail(malformedAnswer(new Error('it switches to no protocol')));
    else receiver.answered(answer);
  });
  request.on('upgrade', (answer: IncomingMessage, upstream: Socket, head: Buffer) => {
    upstream.on('error', () => undefined); // `close` follows.
    if (answered) {
      upstream.destroy(); // Node reads on behind an answer.
      return;
    }
    try {
      if (answer.headers.upgrade?.toLowerCase() !== 'websocket') throw new Error('it switches to another protocol');
      // http-proxy writes them as they stand in this object.
      answer.headers = receiver.accepted(answer) as IncomingMessage['headers'];
    } catch (error) {
      upstream.destroy();
      receiver.fail(malformedAnswer(error));
      return;
    }
    join(answer, upstream, head);
    receiver.joined(upstream);
  });
  request.on('error', (error) => {
    // What stands behind a whole answer is nobody's.
    if (!answered?.complete) receiver.fail(refusalOf(error));
  });
}

function refusalOf(error: NodeJS.ErrnoException): Refusal {
  return error.code?.startsWith('HPE_')
    ? malformedAnswer(error)
    : new Refusal('upstream_unreachable', 'upstream unreachable', { cause: error });
}

export const malformedAnswer = (cause: unknown) =>
  new Refusal('upstream_malformed', 'upstream answered malformed', { cause });

/** From Node 22 on calling `util._extend` prints a warning; http-proxy takes hold of it when it is loaded. It gets what replaces it. */
function loadHttpProxy(): typeof HttpProxy {
  const original = Object.getOwnPropertyDescriptor(util, '_extend');
  Object.defineProperty(util, '_extend', { ...original, value: Object.assign });
  try {
    return createRequire(import.meta.url)('http-proxy') as typeof HttpProxy;
  } finally {
    if (original) Object.defineProperty(util, '_extend', original);
  }
}
