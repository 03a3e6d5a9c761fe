/** A WebSocket's handshake (RFC 6455, 4): what is one, and what becomes of its header fields. */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { holdsToken } from '../../core/token-in-text.js';
import { framingOf, hasBody } from '../body.js';
import type { RequestFields } from '../fields.js';
import { upstreamRequestHeaders } from './headers.js';

/** Whether a request is one. Who asks for another protocol is served as if they had not. */
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

interface Added {
  upstreamKey: string;
  requestId: string;
  loopMark: string;
  /** The subprotocols that are for the upstream. */
  offered: readonly string[];
}

/** The handshake as the upstream shall see it. */
export function handshakeForUpstream(
  fields: RequestFields,
  { headers: given }: IncomingMessage,
  { offered, ...added }: Added,
): OutgoingHttpHeaders {
  const headers = asObject(upstreamRequestHeaders(fields, added), ['origin', 'content-length']);
  for (const name of ['Sec-WebSocket-Key', 'Sec-WebSocket-Version', 'Sec-WebSocket-Extensions']) {
    const value = given[name.toLowerCase()];
    if (typeof value === 'string' && !holdsToken(value)) headers[name] = value;
  }
  if (offered.length > 0) headers['Sec-WebSocket-Protocol'] = offered.join(', ');
  return { ...headers, connection: 'Upgrade', upgrade: 'websocket' };
}

/** @param fields of any answer, names and values in turn. */
export const handshakeForClient = (fields: readonly string[]): OutgoingHttpHeaders => ({
  ...asObject(fields, ['content-length']),
  Connection: 'Upgrade',
  Upgrade: 'websocket',
});

/** Header fields given as names and values in turn, but those left out: each name with its value, or with its values. */
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
