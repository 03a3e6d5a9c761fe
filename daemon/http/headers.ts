/** Header fields are rebuilt for each side, never passed along: what is not known to be harmless does not travel. */
import type { IncomingMessage } from 'node:http';
import type { CorsFields } from './cors.js';

/** Meant for the next hop only (RFC 9110, 7.6.1). */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
];

const NOT_SENT_UPSTREAM = new Set([
  ...HOP_BY_HOP,
  'host',
  'authorization',
  'x-api-key',
  'api-key',
  'openai-organization', // Who pays is the project's matter.
  'openai-project',
  'cookie',
  'expect',
  'forwarded',
  'x-real-ip',
  'x-request-id',
  'constructor',
  'prototype',
]);

const NOT_SENT_BACK = new Set([
  ...HOP_BY_HOP,
  'x-proxy-cache',
  'x-token-expires-at',
  'x-token-requests-remaining',
  'x-upstream-request-id',
]);

/** The fields that a `Connection` header names as meant for this hop only. */
function namedByConnection(value: string | undefined): ReadonlySet<string> | null {
  if (value === undefined || /^(?:keep-alive|close)$/i.test(value)) return null;
  return new Set(value.split(',').map((name) => name.trim().toLowerCase()));
}

/** @returns names and values in turn, as the upstream shall see them. */
export function upstreamRequestHeaders(
  req: IncomingMessage,
  added: { upstreamKey: string; requestId: string },
): string[] {
  const { rawHeaders } = req;
  const named = namedByConnection(req.headers.connection);
  const headers = ['authorization', `Bearer ${added.upstreamKey}`, 'x-request-id', added.requestId];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const lower = name.toLowerCase();
    // Some servers read `_` as `-`, so a name with one could stand in for a field that is dropped here.
    if (NOT_SENT_UPSTREAM.has(lower) || lower.includes('_')) continue;
    if (lower.startsWith('x-forwarded-') || lower.startsWith('proxy-')) continue;
    // Framing is not the client's to name away.
    if (named?.has(lower) && lower !== 'content-length') continue;
    headers.push(name, rawHeaders[i + 1] ?? '');
  }
  return headers;
}

export interface AnswerFacts {
  requestId: string;
  upstreamMs: number;
  proxyMs: number;
  expiresAtMs: number;
  remaining: number | null;
  cors: CorsFields;
}

export interface ClientHeaders {
  /** Names and values in turn. */
  list: string[];
  upstreamRequestId: string | null;
}

/** @param raw names and values in turn, as the upstream sent them. */
export function clientResponseHeaders(raw: readonly Buffer[], facts: AnswerFacts): ClientHeaders {
  const names: string[] = [];
  const connection: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const lower = latin1(raw[i]).toLowerCase();
    names.push(lower);
    if (lower === 'connection') connection.push(latin1(raw[i + 1]));
  }
  const named = connection.length === 0 ? null : namedByConnection(connection.join());

  const list: string[] = [];
  let vary = '';
  let upstreamRequestId: string | null = null;
  let isEventStream = false;
  for (const [index, lower] of names.entries()) {
    if (NOT_SENT_BACK.has(lower) || lower.startsWith('proxy-') || named?.has(lower)) continue;
    if (lower.startsWith('access-control-')) continue; // Which pages may read an answer of ours is not the upstream's to say.
    const value = latin1(raw[2 * index + 1]);
    if (lower === 'vary') {
      vary += `${value}, `;
    } else if (lower === 'x-request-id') {
      upstreamRequestId = value;
    } else {
      if (lower === 'content-type') isEventStream = /^text\/event-stream\b/i.test(value);
      list.push(latin1(raw[2 * index]), value);
    }
  }

  list.push('X-PROXY-CACHE', 'miss', 'X-Request-ID', facts.requestId);
  if (upstreamRequestId !== null) list.push('X-Upstream-Request-ID', upstreamRequestId);
  for (const [name, value] of Object.entries(facts.cors)) {
    if (name === 'Vary') vary += `${value}, `;
    else list.push(name, value);
  }
  // No cache in front of us may serve past a revocation.
  list.push('Vary', `${vary}Authorization`);
  list.push('Server-Timing', `upstream;dur=${facts.upstreamMs.toFixed(1)}, proxy;dur=${facts.proxyMs.toFixed(1)}`);
  list.push('X-Token-Expires-At', isoTime(facts.expiresAtMs));
  if (facts.remaining !== null) list.push('X-Token-Requests-Remaining', String(facts.remaining));
  if (isEventStream) list.push('X-Accel-Buffering', 'no');
  return { list, upstreamRequestId };
}

export const isoTime = (ms: number) => new Date(ms).toISOString();

// Header bytes are kept as they are: latin1 maps each to one character and back.
const latin1 = (bytes: Buffer | undefined) => bytes?.toString('latin1') ?? '';
