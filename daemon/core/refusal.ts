/**
 * The closed list of reasons to say no. A refusal carries a message fit for the client; what is only for
 * the log travels as its cause. Which status a kind becomes is decided in daemon/http/problems.ts, where a
 * kind without a status does not compile.
 */
import { type RecordStore, StoreUnavailable } from './ports.js';

export type RefusalKind =
  // the management API
  | 'invalid_request'
  | 'management_token_refused'
  | 'log_in_refused'
  | 'too_many_attempts'
  | 'not_found'
  | 'name_taken'
  | 'token_for_inactive_project'
  | 'schema_too_new'
  | 'method_not_allowed'
  | 'unsupported_media_type'
  // both
  | 'project_inactive'
  | 'unavailable'
  | 'internal'
  // the proxy: the request itself
  | 'malformed_request'
  | 'unauthorized'
  | 'credential_in_query'
  | 'request_timeout'
  | 'body_too_large'
  | 'uri_too_long'
  | 'expectation_failed'
  | 'request_limit_reached'
  | 'rate_limited'
  | 'headers_too_large'
  | 'transfer_coding_not_supported'
  | 'http_version_not_supported'
  | 'loop_detected'
  | 'not_cached'
  // the proxy: the upstream
  | 'upstream_unreachable'
  | 'upstream_key_rejected'
  | 'upstream_malformed'
  | 'upstream_timeout';

export type RateLimitPolicy = 'address' | 'global';

/** A window that is full. */
export interface RateLimitState {
  policy: RateLimitPolicy;
  limit: number;
  windowMs: number;
  /** Until the window ends. */
  resetMs: number;
}

export interface RefusalDetails {
  cause?: unknown;
  /** Sent as `Retry-After`. */
  retryAfterSeconds?: number;
  /** Sent as `Allow`. */
  allow?: string;
  /** Sent as `RateLimit` and `RateLimit-Policy`. */
  rateLimit?: RateLimitState;
  /** What the client can do about it: the end of a sentence that the message begins. */
  hint?: string;
  /** Why a token is not good any more. Only whoever has the right secret may learn of it. */
  tokenIs?: 'expired' | 'revoked';
}

/** A token that is known, for the records. */
export interface KnownSubject {
  tokenId: string;
  projectId: string;
  obfuscated: string;
}

export class Refusal extends Error {
  readonly kind: RefusalKind;
  override name = 'Refusal';
  /** The token that was refused, where it is known. */
  subject: KnownSubject | null = null;
  readonly retryAfterSeconds: number | undefined;
  readonly allow: string | undefined;
  readonly rateLimit: RateLimitState | undefined;
  readonly hint: string | undefined;
  readonly tokenIs: 'expired' | 'revoked' | undefined;

  constructor(kind: RefusalKind, message: string, details: RefusalDetails = {}) {
    // Where a refusal was made tells nothing, and to find out is a tenth of what one costs: in a flood, that is much.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    Error.stackTraceLimit = stackTraceLimit;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.allow = details.allow;
    this.rateLimit = details.rateLimit;
    this.hint = details.hint;
    this.tokenIs = details.tokenIs;
  }
}

// Made anew for each use: a shared error object would carry the first caller's stack and cause.
export const managementTokenRefused = () =>
  new Refusal('management_token_refused', 'management token missing or wrong');
/** Of a log-in: whoever asks for it for somebody else has shown the right token. */
export const logInRefused = () => new Refusal('log_in_refused', 'this is not the management token');
export const unauthorized = () => new Refusal('unauthorized', 'unauthorized');
/** Also of one in the path. Nothing of the request is forwarded: the target goes on byte for byte, and would take it along. */
export const credentialInTarget = () =>
  new Refusal('credential_in_query', 'the URL holds a credential, which is not accepted there', {
    hint: 'send the token as `Authorization: Bearer sk-wt-…`',
  });
/** For the holder of the right secret. */
export const tokenExpired = () => new Refusal('unauthorized', 'unauthorized', { tokenIs: 'expired' });
/** For the holder of the right secret. */
export const tokenRevoked = () => new Refusal('unauthorized', 'unauthorized', { tokenIs: 'revoked' });
export const projectInactive = () =>
  new Refusal('project_inactive', 'project is inactive', {
    hint: 'ask whoever issued the token to activate the project again, or for a token of another one',
  });
export const limitReached = () =>
  new Refusal('request_limit_reached', 'token request limit reached', { hint: 'ask for another token' });
export const rateLimited = (rateLimit: RateLimitState) =>
  new Refusal('rate_limited', 'rate limit exceeded', { rateLimit, retryAfterSeconds: wholeSeconds(rateLimit.resetMs) });
export const loopDetected = () =>
  new Refusal('loop_detected', 'the request has come back: the upstream leads to this proxy again');
export const unavailable = (cause?: unknown) =>
  new Refusal('unavailable', 'temporarily unavailable', { cause, retryAfterSeconds: 1 });
export const projectNotFound = () => new Refusal('not_found', 'project not found');

/** What a store answers, or its being away as a refusal. */
export async function reading<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw error instanceof StoreUnavailable ? unavailable(error) : error;
  }
}

/** Before something is done that is recorded behind it. @throws {Refusal} `unavailable` while no change is made. */
export function checkChangeable(store: Pick<RecordStore, 'checkChangeable'>): void {
  try {
    store.checkChangeable();
  } catch (error) {
    throw error instanceof StoreUnavailable ? unavailable(error) : error;
  }
}

/** At least one, and never too early. */
export const wholeSeconds = (ms: number) => Math.max(1, Math.ceil(ms / 1000));
