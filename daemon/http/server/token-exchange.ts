/** `POST /token/exchange`: a JWT of a trusted issuer in, a token out (RFC 8693). The JWT is the only credential. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { AddressLimit } from '../../core/address-limit.js';
import type { Exchanges } from '../../core/exchanges.js';
import { HeldMemory, type MemoryLimit } from '../../core/memory-limit.js';
import type { Clock, Log } from '../../core/ports.js';
import type { RateLimits } from '../../core/rate-limit.js';
import { Refusal, type RefusalKind, unavailable } from '../../core/refusal.js';
import { withTimeout } from '../../core/timing.js';
import { type AddressOf, requestIdOf } from '../client-identity.js';
import { ClientGone, closeAfterRequest } from '../connection-ends.js';
import { asRefusal, codeOf, problemOf, problemResponse, statusOf } from '../problems.js';
import { checkShape, pathOf } from '../request-head.js';
import { MAX_SMALL_BODY_BYTES, readSmallBody, type SmallBodyOptions } from '../small-body.js';

export const TOKEN_EXCHANGE_PATH = '/token/exchange';

export const isTokenExchange = (target: string): boolean => pathOf(target) === TOKEN_EXCHANGE_PATH;

/** Refusals that anybody can cause, without a JWT that a trust matches. */
const OF_STRANGERS: ReadonlySet<RefusalKind> = new Set(['invalid_request', 'invalid_grant', 'no_trust']);
/** Of one address: without IP_RATE_LIMIT there is no other limit on what they cost. */
const FAILURES_PER_MINUTE = 120;

export interface TokenExchangeOptions extends SmallBodyOptions {
  /** In a worker: passes the request to the primary. */
  exchanges: Exchanges | RequestListener;
  /** Null in a primary: its workers have counted the request. */
  rateLimits: Pick<RateLimits, 'countsAddresses' | 'countAddress'> | null;
  addressOf: AddressOf;
  /** False until the database is connected, and after draining has ended. */
  isServing: () => boolean;
  memory: MemoryLimit;
  clock: Clock;
  log: Pick<Log, 'error'>;
}

export type TokenExchangeHandler = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

/** @returns a handler that never rejects. */
export function tokenExchangeHandler(options: TokenExchangeOptions): TokenExchangeHandler {
  const { exchanges, memory, log, clock } = options;
  const failures = new AddressLimit(clock, FAILURES_PER_MINUTE);
  return async (req, res) => {
    const requestId = requestIdOf(req.headers['x-request-id']);
    // Anybody can send a body: what waits for the rest of it, or for an issuer, counts as held for a client without a token.
    const held = new HeldMemory(memory, () => res.destroy());
    held.isUnknown = true;
    let clientIp: string | null | undefined;
    try {
      clientIp = await admitted(req, options);
      if (typeof exchanges === 'function') {
        exchanges(req, res);
        return;
      }
      failures.check(clientIp);
      held.hold(Number(req.headers['content-length'] ?? MAX_SMALL_BODY_BYTES));
      const jwt = jwtIn(await formOf(req, res, options));
      const { token, secret } = await exchanged(exchanges.exchange(jwt, { requestId, clientIp }), options);
      exchanges.count();
      send(res, 200, requestId, {
        access_token: secret,
        issued_token_type: ACCESS_TOKEN,
        token_type: 'Bearer',
        expires_in: (token.expiresAtMs - token.createdAtMs) / 1000,
      });
    } catch (error) {
      if (error instanceof ClientGone || res.closed) return;
      const refusal = asRefusal(error);
      const { kind, cause } = refusal;
      if (typeof exchanges !== 'function' && kind !== 'rate_limited') exchanges.count(kind);
      if (clientIp !== undefined && OF_STRANGERS.has(kind)) failures.note(clientIp);
      if (kind === 'internal') log.error('exchange failed', { requestId, error: cause });
      sendRefusal(res, refusal, requestId);
    } finally {
      held.release();
    }
  };
}

/** @returns the address of the client. */
async function admitted(
  req: IncomingMessage,
  { rateLimits, addressOf, isServing }: TokenExchangeOptions,
): Promise<string | null> {
  const { forwardedFor } = checkShape(req, MAX_SMALL_BODY_BYTES);
  const address = addressOf(req.socket, forwardedFor);
  if (rateLimits?.countsAddresses) await rateLimits.countAddress(address);
  if (req.method !== 'POST') throw new Refusal('method_not_allowed', 'method not allowed', { allow: 'POST' });
  if (!isServing()) throw unavailable();
  return address;
}

/** For an issuer whose keys are not cached, and the database. */
const MAX_EXCHANGE_MS = 15_000;

/** A JWT that is exchanged after the client has given up is used up, as after a lost answer. */
const exchanged = <T>(exchanging: Promise<T>, { clock }: TokenExchangeOptions): Promise<T> =>
  withTimeout(clock, MAX_EXCHANGE_MS, exchanging, () => {
    throw unavailable(new Error(`the exchange took longer than ${MAX_EXCHANGE_MS / 1000} s`));
  });

const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;\s*charset="?utf-8"?\s*)?$/i;
/** More than RFC 8693 has. */
const MAX_PARAMETERS = 30;

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:';
const ACCESS_TOKEN = `${TOKEN_TYPE}access_token`;
const SUBJECT_TYPES = [`${TOKEN_TYPE}jwt`, `${TOKEN_TYPE}id_token`];

const invalid = (message: string) => new Refusal('invalid_request', message);

async function formOf(req: IncomingMessage, res: ServerResponse, options: SmallBodyOptions): Promise<URLSearchParams> {
  if (req.url !== TOKEN_EXCHANGE_PATH) throw invalid('parameters belong in the body, not in the URL');
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = req.headers;
  if (!FORM_TYPE.test(type) || coding.toLowerCase() !== 'identity') {
    throw new Refusal(
      'unsupported_media_type',
      'the body must be an uncompressed form, with Content-Type: application/x-www-form-urlencoded',
    );
  }
  const bytes = await readSmallBody(req, res, options);
  if (!isUtf8(bytes)) throw invalid('the body is not valid UTF-8');
  const text = bytes.toString();
  if (text.split('&', MAX_PARAMETERS + 1).length > MAX_PARAMETERS) throw invalid('the body has too many parameters');
  const form = new URLSearchParams(text);
  for (const name of form.keys()) if (form.getAll(name).length > 1) throw invalid('the body has a parameter twice');
  return form;
}

/** The names and values in the body are not quoted: they may be secrets. */
function jwtIn(form: URLSearchParams): string {
  // An empty parameter is as none (RFC 6749, 3.2).
  const of = (name: string) => form.get(name) || null;
  const grant = of('grant_type');
  if (grant === null) throw invalid('grant_type is missing');
  if (grant !== GRANT) throw new UnsupportedGrant('invalid_request', `grant_type must be ${GRANT}`);
  const jwt = of('subject_token');
  if (jwt === null) throw invalid('subject_token is missing');
  if (!SUBJECT_TYPES.includes(of('subject_token_type') ?? '')) {
    throw invalid(`subject_token_type must be ${SUBJECT_TYPES.join(' or ')}`);
  }
  if ((of('requested_token_type') ?? ACCESS_TOKEN) !== ACCESS_TOKEN) {
    throw invalid(`requested_token_type must be ${ACCESS_TOKEN}`);
  }
  if (of('actor_token') !== null) throw invalid('actor_token is not supported');
  return jwt;
}

class UnsupportedGrant extends Refusal {}

/** Values of `error` in RFC 6749 for refusals that are not errors of the request. */
const OAUTH_ERRORS: Partial<Record<RefusalKind, string>> = {
  invalid_grant: 'invalid_grant',
  token_used: 'invalid_grant',
  no_trust: 'unauthorized_client',
  ambiguous_trust: 'unauthorized_client',
  token_for_inactive_project: 'unauthorized_client',
  trust_limit_reached: 'temporarily_unavailable',
  rate_limited: 'temporarily_unavailable',
  too_many_attempts: 'temporarily_unavailable',
  unavailable: 'temporarily_unavailable',
  internal: 'server_error',
};

function oauthErrorOf(refusal: Refusal): string {
  if (refusal instanceof UnsupportedGrant) return 'unsupported_grant_type';
  return OAUTH_ERRORS[refusal.kind] ?? 'invalid_request';
}

/** RFC 6749 allows no other characters in a description. */
const NOT_IN_DESCRIPTION = /[^\x20\x21\x23-\x5b\x5d-\x7e]/g;

function sendRefusal(res: ServerResponse, refusal: Refusal, requestId: string): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const { headers } = problemResponse(refusal, requestId);
  if (problemOf(refusal.kind).endsConnection) res.shouldKeepAlive = false;
  if (!res.req.complete) closeAfterRequest(res.req);
  const body = {
    error: oauthErrorOf(refusal),
    error_description: refusal.message.replace(NOT_IN_DESCRIPTION, "'"),
    code: codeOf(refusal),
    request_id: requestId,
  };
  send(res, statusOf(refusal), requestId, body, headers);
}

function send(
  res: ServerResponse,
  status: number,
  requestId: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = JSON.stringify(body);
  res.writeHead(status, {
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(text)),
    'Cache-Control': 'no-store',
    Pragma: 'no-cache',
    'X-Request-ID': requestId,
  });
  res.end(text);
}
