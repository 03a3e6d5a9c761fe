/** Tunnels through the HTTP proxy of UPSTREAM_PROXY (CONNECT, RFC 9110, 9.3.6), for networks whose only way out is a proxy. */
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { isIP, isIPv6, type LookupFunction, type OnReadOpts, type Socket } from 'node:net';

/** A connection that is being opened. */
export interface Opening {
  /** Cancels it: its callback gets the error, if there is one. */
  destroy(error?: Error): unknown;
}

export interface TunnelTarget {
  /** A name or an address, which only the proxy resolves; IPv6 addresses have no brackets. */
  host: string;
  port: number;
}

export type OpenTunnel = (
  target: TunnelTarget,
  callback: (...result: [error: null, socket: Socket] | [error: Error, socket: null]) => void,
  onread?: OnReadOpts,
) => Opening;

/** Until TCP probes a silent connection, as undici does. */
export const KEEP_ALIVE_AFTER_MS = 60_000;

/**
 * @param proxy its URL, with credentials if it requires them. They occur in no error.
 * @param lookup resolves the name of the proxy.
 */
export function tunnelsThrough(proxy: URL, lookup?: LookupFunction): OpenTunnel {
  const { request } = proxy.protocol === 'https:' ? https : http;
  const hostname = proxy.hostname.replace(/^\[|\]$/g, '');
  const credentials = basicCredentials(proxy);
  return ({ host, port }, callback, onread) => {
    const authority = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
    const options: https.RequestOptions & { onread?: OnReadOpts } = {
      method: 'CONNECT',
      host: hostname,
      servername: isIP(hostname) === 0 ? hostname : '', // Otherwise Node takes it from `Host`.
      rejectUnauthorized: true, // Also if NODE_TLS_REJECT_UNAUTHORIZED is 0.
      port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
      path: authority,
      headers: { host: authority, ...(credentials !== null && { 'proxy-authorization': credentials }) },
      agent: false,
      ...(lookup && { lookup }),
      ...(onread && { onread }),
    };
    const asked = request(options);
    asked.once('connect', ({ statusCode = 0 }: IncomingMessage, socket: Socket, early: Buffer) => {
      // `close` follows.
      socket.on('error', () => undefined);
      const problem =
        statusCode < 200 || statusCode > 299
          ? `the proxy ${proxy.host} responded with ${statusCode} to CONNECT ${authority}`
          : // No server of HTTP or TLS sends anything first: it would become the response to the next request.
            early.length > 0
            ? `the proxy ${proxy.host} sent more than its response to CONNECT ${authority}`
            : null;
      if (problem !== null) {
        socket.destroy();
        callback(new Error(problem), null);
        return;
      }
      socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_AFTER_MS);
      callback(null, socket);
    });
    asked.once('response', (response) => {
      response.destroy();
      callback(new Error(`the proxy ${proxy.host} did not understand CONNECT`), null);
    });
    asked.on('error', (error) => {
      callback(new Error(`no tunnel through the proxy ${proxy.host}: ${error.message}`, { cause: error }), null);
    });
    asked.end();
    return asked;
  };
}

/** @returns null without credentials. */
function basicCredentials({ username, password }: URL): string | null {
  if (username === '' && password === '') return null;
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(text).toString('base64')}`;
}
