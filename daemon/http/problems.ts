import type { ServerResponse } from 'node:http';
import { type BudgetShortage, type RateLimitState, Refusal, type RefusalKind, wholeSeconds } from '../core/refusal.js';
import { errorBody, type ErrorType } from './error-format.js';
import { closeAfterRequest } from './connection-ends.js';
import { clientOf } from './client-families.js';
import type { Wording } from './wording.js';

interface Problem {
  status: number;
  /** The `type` in OpenAI's error format. Default: by the status. */
  type?: ErrorType;
  /** Error code for programs; its meaning never changes. Default: the refusal's kind. */
  code?: string;
  /** A retry would get the same response. SDKs are told so, because many retry by default. */
  isFinal?: boolean;
  /** The connection must be closed, because the start of a next request on it cannot be recognised. */
  endsConnection?: boolean;
}

const PROBLEMS: Record<RefusalKind, Problem> = {
  invalid_request: { status: 400 },
  management_token_refused: { status: 401 },
  log_in_refused: { status: 403 },
  session_ended: { status: 401 },
  login_pending: { status: 400 },
  not_permitted: { status: 403 },
  beyond_ceiling: { status: 403 },
  too_many_attempts: { status: 429 },
  not_found: { status: 404, isFinal: true },
  name_taken: { status: 409 },
  precondition_failed: { status: 412 },
  upstream_changed: { status: 409 },
  key_required: { status: 400 },
  key_refused: { status: 422 },
  key_not_checked: { status: 502 },
  token_for_inactive_project: { status: 400, code: 'project_inactive' },
  schema_too_new: { status: 409 },
  method_not_allowed: { status: 405 },
  invalid_grant: { status: 400 },
  token_used: { status: 400 },
  no_trust: { status: 403 },
  ambiguous_trust: { status: 403 },
  trust_limit_reached: { status: 429 },
  unsupported_media_type: { status: 415 },
  project_inactive: { status: 403, isFinal: true },
  unavailable: { status: 503 },
  internal: { status: 500 },
  malformed_request: { status: 400, endsConnection: true },
  unauthorized: { status: 401, isFinal: true },
  credential_in_query: { status: 401, isFinal: true },
  request_timeout: { status: 408 },
  body_too_large: { status: 413, isFinal: true },
  uri_too_long: { status: 414, endsConnection: true },
  expectation_failed: { status: 417, endsConnection: true },
  request_limit_reached: { status: 429, type: 'insufficient_quota', isFinal: true },
  route_not_allowed: { status: 403, isFinal: true },
  route_escapes: { status: 403, isFinal: true },
  model_not_allowed: { status: 403, isFinal: true },
  model_not_named: { status: 403, isFinal: true },
  model_not_checkable: { status: 403, isFinal: true },
  rate_limited: { status: 429, type: 'rate_limit_error' },
  concurrency_limited: { status: 429, type: 'rate_limit_error' },
  budget_exhausted: { status: 402, type: 'insufficient_quota', isFinal: true },
  budget_reserved: { status: 429, type: 'rate_limit_error' },
  model_not_priced: { status: 403, isFinal: true },
  cost_not_bounded: { status: 403, isFinal: true },
  usage_not_requested: { status: 400, isFinal: true },
  headers_too_large: { status: 431, endsConnection: true },
  transfer_coding_not_supported: { status: 501, code: 'not_supported', isFinal: true, endsConnection: true },
  http_version_not_supported: { status: 505, code: 'not_supported', isFinal: true, endsConnection: true },
  loop_detected: { status: 508, isFinal: true },
  not_cached: { status: 504 },
  upstream_unreachable: { status: 502 },
  upstream_key_rejected: { status: 502, isFinal: true },
  upstream_malformed: { status: 502 },
  upstream_timeout: { status: 504 },
};

/** Status, code and other properties of the response to a refusal of this kind. */
export const problemOf = (kind: RefusalKind): Required<Problem> => ({
  code: kind,
  type: typeOf(PROBLEMS[kind].status),
  isFinal: false,
  endsConnection: false,
  ...PROBLEMS[kind],
});

function typeOf(status: number): ErrorType {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
}

export const statusOf = (refusal: Refusal): number => problemOf(refusal.kind).status;
export const codeOf = (refusal: Refusal): string => problemOf(refusal.kind).code;

/** Converts any error to a refusal that is safe to send to a client. The original error is the cause, for the log. */
export function asRefusal(error: unknown): Refusal {
  return error instanceof Refusal ? error : new Refusal('internal', 'internal error', { cause: error });
}

// Errors of the management API always have this format.
const PLAIN: Wording = { ...clientOf('plain', []), hint: undefined, hasToken: false };

/** The status for a client of /v1: the one with which it gives up if a retry is pointless. */
export function statusFor(refusal: Refusal, { finalStatus }: Pick<Wording, 'finalStatus'>): number {
  const { status, isFinal } = problemOf(refusal.kind);
  return isFinal ? finalStatus(status) : status;
}

/** The type in OpenAI's format. One that belongs to another status would invite to a retry: some clients go by it. */
export function typeFor(refusal: Refusal, wording: Pick<Wording, 'finalStatus'>): ErrorType {
  const { type, status } = problemOf(refusal.kind);
  const sent = statusFor(refusal, wording);
  return sent === status ? type : typeOf(sent);
}

/**
 * Headers and body of an error response.
 *
 * @param wording for a client of /v1; undefined for the management API.
 */
export function problemResponse(
  refusal: Refusal,
  requestId: string,
  wording?: Wording,
): { headers: Record<string, string>; body: string } {
  const problem = problemOf(refusal.kind);
  const { code, isFinal } = problem;
  const { message, retryAfterSeconds, allowed, budget } = refusal;
  const { format, hint } = wording ?? PLAIN;
  const status = statusFor(refusal, wording ?? PLAIN);
  const type = typeFor(refusal, wording ?? PLAIN);
  const body = errorBody(format, {
    message,
    hint,
    type,
    code,
    requestId,
    status,
    retryAfterSeconds,
    allowed,
    budget: budget && shortageShown(budget),
  });
  const headers: Record<string, string> = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-ID': requestId,
  };
  // Where Anthropic's SDKs look for it.
  if (format === 'anthropic') headers['Request-Id'] = requestId;
  if (status === 401 || problem.status === 401) headers['WWW-Authenticate'] = challengeOf(refusal, wording);
  if (wording && isFinal) headers['X-Should-Retry'] = 'false';
  if (retryAfterSeconds !== undefined) headers['Retry-After'] = String(retryAfterSeconds);
  if (refusal.allow !== undefined) headers.Allow = refusal.allow;
  if (refusal.rateLimit) Object.assign(headers, rateLimitFields(refusal.rateLimit));
  return { headers, body };
}

const shortageShown = ({ maxOutputTokens, ...shortage }: BudgetShortage) => ({
  ...shortage,
  ...(maxOutputTokens !== undefined && { max_output_tokens_that_fit: maxOutputTokens }),
});

/** Value of `WWW-Authenticate` (RFC 6750, 3): with an error only if a token was sent. */
function challengeOf({ tokenIs }: Refusal, wording: Wording | undefined): string {
  if (!wording?.hasToken) return 'Bearer';
  const description = tokenIs === undefined ? '' : `, error_description="${tokenIs}"`;
  return `Bearer error="invalid_token"${description}`;
}

/** Headers of draft-ietf-httpapi-ratelimit-headers: the remaining requests and the time until the reset, and the limit and its window. */
const rateLimitFields = ({ policy, limit, windowMs, resetMs }: RateLimitState) => ({
  RateLimit: `"${policy}";r=0;t=${wholeSeconds(resetMs)}`,
  'RateLimit-Policy': `"${policy}";q=${limit};w=${wholeSeconds(windowMs)}`,
});

/**
 * Sends an error response. If a response has begun, it destroys the connection instead, so that the client cannot take the truncated
 * response for a complete one.
 */
export function sendProblem(
  res: ServerResponse,
  refusal: Refusal,
  requestId: string,
  extraHeaders: Readonly<Record<string, string>> = {},
  wording?: Wording,
): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const { headers, body } = problemResponse(refusal, requestId, wording);
  // Headers that were set for another response must not be sent with this one.
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  if (problemOf(refusal.kind).endsConnection) res.shouldKeepAlive = false;
  if (!res.req.complete) closeAfterRequest(res.req);
  res.writeHead(statusFor(refusal, wording ?? PLAIN), { ...headers, ...extraHeaders });
  res.end(body);
}
