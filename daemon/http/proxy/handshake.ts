/** WebSocket handshakes (RFC 6455, 4): recognises them and converts their headers. */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { holdsToken } from '../../core/token-in-text.js';
import { framingOf, hasBody, type RequestFields } from '../request-head.js';
import { type AddedHeaders, upstreamRequestHeaders } from './headers.js';

/** Whether a request is a WebSocket handshake. A request for another protocol is served as if it had no `Upgrade` header. */
export function isHandshake(req: IncomingMessage): boolean {
  const { method, httpVersion, headers } = req;
  const protocols = (headers.upgrade ?? '').split(',').map((name) => name.trim().toLowerCase());
  return (
    protocols.includes('websocket') &&
    method === 'GET' &&
    httpVersion === '1.1' &&
    !hasBody(framingOf(req)) &&
    headers.expect === undefined
  );
}

interface Added extends AddedHeaders {
  /** The subprotocols to offer to the upstream. */
  offered: readonly string[];
}

/** Headers of the handshake for the upstream. */
export function handshakeForUpstream(
  fields: RequestFields,
  { headers: given }: IncomingMessage,
  { offered, ...added }: Added,
): OutgoingHttpHeaders {
  const headers = asObject(upstreamRequestHeaders(fields, added), ['origin', 'content-length']);
  // No extensions: they change what frames mean, and the messages of compressed connections could not be read within bounds.
  for (const name of ['Sec-WebSocket-Key', 'Sec-WebSocket-Version']) {
    const value = given[name.toLowerCase()];
    if (typeof value === 'string' && !holdsToken(value)) headers[name] = value;
  }
  if (offered.length > 0) headers['Sec-WebSocket-Protocol'] = offered.join(', ');
  return { ...headers, connection: 'Upgrade', upgrade: 'websocket' };
}

/** Headers of the 101 for the client. @param fields headers of any response, names and values in turn. */
export const handshakeForClient = (fields: readonly string[]): OutgoingHttpHeaders => ({
  ...asObject(fields, ['content-length']),
  Connection: 'Upgrade',
  Upgrade: 'websocket',
});

/** Converts headers from a list of names and values in turn to an object: each name with its value or values. Drops those in `leftOut`. */
function asObject(list: readonly string[], leftOut: readonly string[]): OutgoingHttpHeaders {
  const fields = new Map<string, [name: string, ...values: string[]]>();
  for (let i = 0; i < list.length; i += 2) {
    const [name = '', value = ''] = list.slice(i, i + 2);
    const lower = name.toLowerCase();
    if (leftOut.includes(lower)) continue;
    const field = fields.get(lower);
    if (field) field.push(value);
    else fields.set(lower, [name, value]);
  }
  return Object.fromEntries(
    [...fields.values()].map(([name, ...values]) => [name, values.length > 1 ? values : values[0]]),
  );
}
