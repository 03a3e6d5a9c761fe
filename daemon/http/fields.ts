/** A request's header fields, read in one go: what we look at ourselves, and what may go on to the upstream. */
import { SECRET_LENGTH } from '../core/token.js';
import { holdsToken } from '../core/token-in-text.js';

export interface RequestFields {
  host: string | undefined;
  authorization: string | undefined;
  requestId: string | undefined;
  /** Several fields are joined, as they mean one list. */
  forwardedFor: string | undefined;
  cacheControl: string | undefined;
  /** The marks of proxies that the request came through; several fields are joined, as they mean one list. */
  cdnLoop: string | undefined;
  contentLength: string | undefined;
  /** Several fields are joined, as they mean one list. */
  transferEncoding: string | undefined;
  hosts: number;
  authorizations: number;
  /** As they stood on the wire. */
  bytes: number;
  /** Names and values in turn: those that may go on. */
  forwarded: string[];
}

type FieldKind =
  | 'forwarded'
  | 'dropped'
  | 'host'
  | 'authorization'
  | 'connection'
  | 'content-length'
  | 'transfer-encoding'
  | 'x-request-id'
  | 'cache-control'
  | 'cdn-loop'
  | 'x-forwarded-for';

/** Meant for the next hop only (RFC 9110, 7.6.1). */
export const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
];

const LOOKED_AT: ReadonlySet<string> = new Set<FieldKind>([
  'host',
  'authorization',
  'connection',
  'content-length',
  'transfer-encoding',
  'x-request-id',
  'cache-control',
  'cdn-loop',
  'x-forwarded-for',
]);

/**
 * In these fields the APIs of providers take a credential. Nothing in them goes on, whatever it is: the project's key is
 * what authenticates. (`Authorization`, `Proxy-*` and `Cookie` do not go on either.)
 */
const CREDENTIAL_FIELDS = [
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'xi-api-key',
  'ocp-apim-subscription-key',
  'x-auth-token',
];

const NOT_SENT_UPSTREAM = new Set([
  ...HOP_BY_HOP,
  ...CREDENTIAL_FIELDS,
  'openai-organization', // Who pays is the project's matter.
  'openai-project',
  'cookie',
  'expect',
  'forwarded',
  'x-real-ip',
  'constructor',
  'prototype',
]);

const MOST_REMEMBERED = 1_000;
const LONGEST_REMEMBERED = 64;

/**
 * `classify` with a memory by the spelling on the wire: lower-casing each name and asking about it costs more than all
 * the rest. Peers spell few names in few ways; what is thought up beyond that is not remembered.
 */
export function remembering<Kind>(classify: (lowerCaseName: string) => Kind): (name: string) => Kind {
  const kinds = new Map<string, Kind>();
  return (name) => {
    let kind = kinds.get(name);
    if (kind === undefined) {
      kind = classify(name.toLowerCase());
      if (kinds.size < MOST_REMEMBERED && name.length <= LONGEST_REMEMBERED) kinds.set(name, kind);
    }
    return kind;
  };
}

const kindOf = remembering<FieldKind>((lower) => {
  if (LOOKED_AT.has(lower)) return lower as FieldKind;
  // Some servers read `_` as `-`, so a name with one could stand in for a field that is dropped here.
  if (NOT_SENT_UPSTREAM.has(lower) || lower.includes('_')) return 'dropped';
  // Of a WebSocket's handshake, whose fields are made anew (upgrade.ts); elsewhere a credential that stands in one would go on.
  if (lower.startsWith('sec-websocket-')) return 'dropped';
  return lower.startsWith('x-forwarded-') || lower.startsWith('proxy-') ? 'dropped' : 'forwarded';
});

/** @param rawHeaders names and values in turn. */
export function readFields(rawHeaders: readonly string[]): RequestFields {
  const forwarded: string[] = [];
  const fields: RequestFields = {
    host: undefined,
    authorization: undefined,
    requestId: undefined,
    forwardedFor: undefined,
    cacheControl: undefined,
    cdnLoop: undefined,
    contentLength: undefined,
    transferEncoding: undefined,
    hosts: 0,
    authorizations: 0,
    bytes: 0,
    forwarded,
  };
  let connection: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    fields.bytes += name.length + value.length + 4; // ": " and CRLF
    switch (kindOf(name)) {
      case 'forwarded':
        forwarded.push(name, value);
        break;
      case 'content-length':
        fields.contentLength = value;
        forwarded.push(name, value);
        break;
      case 'host':
        fields.host = value;
        fields.hosts += 1;
        break;
      case 'authorization':
        fields.authorization = value;
        fields.authorizations += 1;
        break;
      case 'transfer-encoding':
        fields.transferEncoding = joined(fields.transferEncoding, value);
        break;
      case 'x-request-id':
        fields.requestId = joined(fields.requestId, value);
        break;
      case 'cache-control':
        fields.cacheControl = joined(fields.cacheControl, value);
        forwarded.push(name, value);
        break;
      case 'cdn-loop':
        fields.cdnLoop = joined(fields.cdnLoop, value);
        break;
      case 'x-forwarded-for':
        fields.forwardedFor = joined(fields.forwardedFor, value);
        break;
      case 'connection':
        connection = joined(connection, value);
        break;
      case 'dropped':
    }
  }
  const named = namedByConnection(connection);
  if (named) fields.forwarded = without(forwarded, named);
  return fields;
}

/**
 * The fields without those that hold a withering token in their name or value: wherever else a client puts its token, the
 * upstream never gets it. Called for admitted requests only, since others are not forwarded.
 */
export function withoutTokens(fields: RequestFields): RequestFields {
  const { forwarded, cacheControl, cdnLoop } = fields;
  let isClean = cdnLoop === undefined || !holdsToken(cdnLoop);
  // What stands in Cache-Control stands here as well. Most names and values are too short to be looked at.
  for (const text of forwarded) if (text.length >= SECRET_LENGTH && holdsToken(text)) isClean = false;
  if (isClean) return fields;
  const rest: string[] = [];
  for (let i = 0; i < forwarded.length; i += 2) {
    const [name = '', value = ''] = forwarded.slice(i, i + 2);
    if (!holdsToken(name) && !holdsToken(value)) rest.push(name, value);
  }
  const clean = (value: string | undefined) => (value !== undefined && holdsToken(value) ? undefined : value);
  return { ...fields, forwarded: rest, cacheControl: clean(cacheControl), cdnLoop: clean(cdnLoop) };
}

/** Several fields of one name mean one list. */
export const joined = (before: string | undefined, value: string) =>
  before === undefined ? value : `${before}, ${value}`;

/** The fields that a `Connection` header names as meant for this hop only; null when it names none. */
export function namedByConnection(value: string | undefined): ReadonlySet<string> | null {
  if (value === undefined || /^(?:keep-alive|close)$/i.test(value)) return null;
  return new Set(value.split(',').map((name) => name.trim().toLowerCase()));
}

function without(fields: readonly string[], named: ReadonlySet<string>): string[] {
  const rest: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    const lower = name.toLowerCase();
    // Framing is not the client's to name away.
    if (!named.has(lower) || lower === 'content-length') rest.push(name, fields[i + 1] ?? '');
  }
  return rest;
}
