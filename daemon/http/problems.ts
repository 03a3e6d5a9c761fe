import type { ServerResponse } from 'node:http';
import { type RateLimitState, Refusal, type RefusalKind, wholeSeconds } from '../core/refusal.js';
import { closeGently } from './endings.js';

interface Problem {
  status: number;
  /** For programs; never changes its meaning. The kind itself unless stated. */
  code?: string;
  /** Where the next request on the connection would begin cannot be told, so there is none. */
  endsConnection?: boolean;
}

const PROBLEMS: Record<RefusalKind, Problem> = {
  invalid_request: { status: 400 },
  management_token_refused: { status: 401 },
  log_in_refused: { status: 403 },
  too_many_attempts: { status: 429 },
  not_found: { status: 404 },
  name_taken: { status: 409 },
  token_for_inactive_project: { status: 400, code: 'project_inactive' },
  schema_too_new: { status: 409 },
  method_not_allowed: { status: 405 },
  unsupported_media_type: { status: 415 },
  project_inactive: { status: 403 },
  unavailable: { status: 503 },
  internal: { status: 500 },
  malformed_request: { status: 400, endsConnection: true },
  unauthorized: { status: 401 },
  credential_in_query: { status: 401 },
  request_timeout: { status: 408 },
  body_too_large: { status: 413 },
  uri_too_long: { status: 414, endsConnection: true },
  expectation_failed: { status: 417, endsConnection: true },
  request_limit_reached: { status: 429 },
  rate_limited: { status: 429 },
  headers_too_large: { status: 431, endsConnection: true },
  transfer_coding_not_supported: { status: 501, code: 'not_supported', endsConnection: true },
  http_version_not_supported: { status: 505, code: 'not_supported', endsConnection: true },
  loop_detected: { status: 508 },
  not_cached: { status: 504 },
  upstream_unreachable: { status: 502 },
  upstream_key_rejected: { status: 502 },
  upstream_malformed: { status: 502 },
  upstream_timeout: { status: 504 },
};

/** What a refusal of this kind becomes. */
export const problemOf = (kind: RefusalKind): Required<Problem> => ({
  code: kind,
  endsConnection: false,
  ...PROBLEMS[kind],
});

export const statusOf = (refusal: Refusal): number => problemOf(refusal.kind).status;
export const codeOf = (refusal: Refusal): string => problemOf(refusal.kind).code;

/** Any error as a refusal fit for a client; what it was before is the cause, for the log. */
export function asRefusal(error: unknown): Refusal {
  return error instanceof Refusal ? error : new Refusal('internal', 'internal error', { cause: error });
}

/** The header fields and the body of an error answer. */
export function problemAnswer(refusal: Refusal, requestId: string): { headers: Record<string, string>; body: string } {
  const body = JSON.stringify({ error: refusal.message, code: codeOf(refusal), request_id: requestId });
  const headers: Record<string, string> = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-ID': requestId,
  };
  if (statusOf(refusal) === 401) headers['WWW-Authenticate'] = 'Bearer';
  if (refusal.retryAfterSeconds !== undefined) headers['Retry-After'] = String(refusal.retryAfterSeconds);
  if (refusal.allow !== undefined) headers.Allow = refusal.allow;
  if (refusal.rateLimit) Object.assign(headers, rateLimitFields(refusal.rateLimit));
  return { headers, body };
}

/** As draft-ietf-httpapi-ratelimit-headers has them: what is left and until when, and what is allowed in which time. */
const rateLimitFields = ({ policy, limit, windowMs, resetMs }: RateLimitState) => ({
  RateLimit: `"${policy}";r=0;t=${wholeSeconds(resetMs)}`,
  'RateLimit-Policy': `"${policy}";q=${limit};w=${wholeSeconds(windowMs)}`,
});

/** Answers with a problem, unless an answer has begun: then the connection is destroyed, so that nobody takes a cut answer for a whole one. */
export function sendProblem(
  res: ServerResponse,
  refusal: Refusal,
  requestId: string,
  extraHeaders: Readonly<Record<string, string>> = {},
): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const { headers, body } = problemAnswer(refusal, requestId);
  // What was set for the answer that is not to be must not travel with this one.
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  if (problemOf(refusal.kind).endsConnection) res.shouldKeepAlive = false;
  if (!res.req.complete) closeGently(res.req);
  res.writeHead(statusOf(refusal), { ...headers, ...extraHeaders });
  res.end(body);
}
