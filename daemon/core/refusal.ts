/**
 * The closed list of reasons to refuse a request. The message is for the client; details for the log go into the cause.
 * daemon/http/problems.ts maps each kind to a status; a kind without one does not compile.
 */
import type { Limits } from '../api/vocabulary.js';
import type { SubjectNames } from './audit.js';
import { type LimitPolicy, type RecordStore, StoreRefused, StoreUnavailable } from './ports.js';

export type RefusalKind =
  // the management API
  | 'invalid_request'
  | 'management_token_refused'
  | 'log_in_refused'
  | 'session_ended'
  | 'login_pending'
  | 'not_permitted'
  | 'beyond_ceiling'
  | 'too_many_attempts'
  | 'not_found'
  | 'name_taken'
  | 'precondition_failed'
  | 'upstream_changed'
  | 'key_required'
  | 'key_refused'
  | 'key_not_checked'
  | 'token_for_inactive_project'
  | 'schema_too_new'
  | 'method_not_allowed'
  // exchanges of JWTs
  | 'invalid_grant'
  | 'token_used'
  | 'no_trust'
  | 'ambiguous_trust'
  | 'trust_limit_reached'
  // several of them
  | 'unsupported_media_type'
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
  | 'route_not_allowed'
  | 'route_escapes'
  | 'model_not_allowed'
  | 'model_not_named'
  | 'model_not_checkable'
  | 'rate_limited'
  | 'concurrency_limited'
  | 'budget_exhausted'
  | 'budget_reserved'
  | 'model_not_priced'
  | 'cost_not_bounded'
  | 'usage_not_requested'
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

/** `self`: questions about a token by its holder. */
export type RateLimitPolicy = 'address' | 'global' | 'self';

/** A rate limit window that is full. */
export interface RateLimitState {
  policy: RateLimitPolicy | LimitPolicy;
  limit: number;
  windowMs: number;
  /** Until the window ends. */
  resetMs: number;
}

/** The state of a budget that a request does not fit. Amounts of money are decimal strings in USD, amounts of tokens are numbers. */
export interface BudgetShortage {
  unit: 'usd' | 'tokens';
  limit: string | number;
  used: string | number;
  /** For requests in flight, and leased by instances. */
  reserved: string | number;
  /** What the request may cost: its bound with a hard budget, an estimate with a soft one. */
  needed: string | number;
  /** With a hard budget: the largest maximum of output tokens with which the request fits. */
  maxOutputTokens?: number;
}

export interface RefusalDetails {
  cause?: unknown;
  /** Sent as `Retry-After`. */
  retryAfterSeconds?: number;
  /** Sent as `Allow`. */
  allow?: string;
  /** Sent as `RateLimit` and `RateLimit-Policy`. */
  rateLimit?: RateLimitState;
  /** Routes or models that the token may use, or the first of them. */
  allowed?: readonly string[];
  /** The budget that the request does not fit. */
  budget?: BudgetShortage;
  /** The provider may have received the whole request, and may bill it although there is no response. */
  mayBeBilled?: boolean;
  /** What the client can do about it, in a phrase that continues the message. */
  hint?: string;
  /** Why a token is no longer valid. Set only for a client that presented the correct secret. */
  tokenIs?: 'expired' | 'revoked';
}

/** The known token of a refused request, for its records. */
export interface KnownSubject extends SubjectNames {
  tokenId: string;
  projectId: string;
  obfuscated: string;
}

export class Refusal extends Error {
  readonly kind: RefusalKind;
  override name = 'Refusal';
  /** The refused token, if known. */
  subject: KnownSubject | null = null;
  readonly retryAfterSeconds: number | undefined;
  readonly allow: string | undefined;
  readonly rateLimit: RateLimitState | undefined;
  readonly allowed: readonly string[] | undefined;
  readonly budget: BudgetShortage | undefined;
  readonly mayBeBilled: boolean;
  readonly hint: string | undefined;
  readonly tokenIs: 'expired' | 'revoked' | undefined;

  constructor(kind: RefusalKind, message: string, details: RefusalDetails = {}) {
    // No stack trace: it is useless here, and takes a tenth of the cost of a refusal, which matters in a flood.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    Error.stackTraceLimit = stackTraceLimit;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.allow = details.allow;
    this.rateLimit = details.rateLimit;
    this.allowed = details.allowed;
    this.budget = details.budget;
    this.mayBeBilled = details.mayBeBilled ?? false;
    this.hint = details.hint;
    this.tokenIs = details.tokenIs;
  }
}

// Created for each use: a shared error object would carry the first caller's stack and cause.
export const managementTokenRefused = () =>
  new Refusal('management_token_refused', 'management token missing or wrong');
/** For a log-in with a wrong token. The process that requested it for a user has authenticated itself correctly. */
export const logInRefused = () => new Refusal('log_in_refused', 'this is not the management token');
/** For a session that was valid, and for one that never was. @param why completes `because …`; undefined if it is not known. */
export const sessionEnded = (why?: string) =>
  new Refusal('session_ended', `the session has ended${why === undefined ? '' : `, because ${why}`}: log in again`);
export const unauthorized = () => new Refusal('unauthorized', 'unauthorized');
/** For a credential in the query or the path. The request is not forwarded, because the target is sent to the upstream unchanged. */
export const credentialInTarget = () =>
  new Refusal('credential_in_query', 'the URL contains a credential, which is not accepted there', {
    hint: 'send the token as `Authorization: Bearer sk-wt-…`',
  });
/** For the holder of the right secret. */
export const tokenExpired = () => new Refusal('unauthorized', 'unauthorized', { tokenIs: 'expired' });
/** For the holder of the right secret. */
export const tokenRevoked = () => new Refusal('unauthorized', 'unauthorized', { tokenIs: 'revoked' });
export const projectInactive = () =>
  new Refusal('project_inactive', 'project is inactive', {
    hint: 'ask the issuer of the token to activate the project, or to issue a token for another project',
  });
export const limitReached = () =>
  new Refusal('request_limit_reached', 'token request limit reached', { hint: 'ask for another token' });
export const rateLimited = (rateLimit: RateLimitState) =>
  new Refusal('rate_limited', 'rate limit exceeded', { rateLimit, retryAfterSeconds: wholeSeconds(rateLimit.resetMs) });
/** For a limit of a token or project. A slot is free as soon as a request ends. */
export const limited = (rateLimit: RateLimitState, limit: keyof Limits) =>
  limit === 'concurrent'
    ? new Refusal('concurrency_limited', `too many requests of this ${rateLimit.policy} at the same time`, {
        rateLimit,
        retryAfterSeconds: 1,
      })
    : new Refusal('rate_limited', `${limit.replaceAll('_', ' ')} of this ${rateLimit.policy} exceeded`, {
        rateLimit,
        retryAfterSeconds: wholeSeconds(rateLimit.resetMs),
      });
export const loopDetected = () => new Refusal('loop_detected', 'request loop: the upstream leads back to this proxy');
export const unavailable = (cause?: unknown) =>
  cause instanceof StoreRefused
    ? // An operator has to act, so it makes no sense to try every second.
      new Refusal('unavailable', 'unavailable: the operator must correct the database', {
        cause,
        retryAfterSeconds: 60,
      })
    : new Refusal('unavailable', 'temporarily unavailable', { cause, retryAfterSeconds: 1 });
export const projectNotFound = () => new Refusal('not_found', 'project not found');

/** Turns `StoreUnavailable` from a store into an `unavailable` refusal. */
export async function orUnavailable<T>(result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    throw error instanceof StoreUnavailable ? unavailable(error) : error;
  }
}

/** Call before an action that is recorded only afterwards. @throws {Refusal} `unavailable` while changes are refused. */
export function checkChangeable(store: Pick<RecordStore, 'checkChangeable'>): void {
  try {
    store.checkChangeable();
  } catch (error) {
    throw error instanceof StoreUnavailable ? unavailable(error) : error;
  }
}

/** What is recorded of a refusal: more than the client is told, which must not find out why a token is refused. */
export function sentenceOf({ message, hint, tokenIs, cause }: Refusal): string {
  if (tokenIs !== undefined) return `the token is ${tokenIs}`;
  if (hint !== undefined) return `${message}: ${hint}`;
  const code = (cause as { code?: unknown } | undefined)?.code;
  // The code of a system error, such as ECONNREFUSED. Its message may contain anything.
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,40}$/.test(code) ? `${message} (${code})` : message;
}

/** Rounded up, and at least 1, so that a client never retries too early. */
export const wholeSeconds = (ms: number) => Math.max(1, Math.ceil(ms / 1000));
