/**
 * Formats of error responses. An SDK parses the error format of its own provider; of any other format its user sees a status without a
 * message. All formats have the same content in different fields.
 *
 * | format      | body of an error response                                                                   |
 * | ----------- | ------------------------------------------------------------------------------------------- |
 * | `plain`     | `{"error": "message", "code", "request_id", "hint", "allowed"}`; the last two are optional    |
 * | `openai`    | `{"error": {"message", "type", "param": null, "code"}, "code", "request_id"}`                |
 * | `anthropic` | `{"type": "error", "error": {"type", "message"}, "code", "request_id"}`                      |
 * | `google`    | `{"error": {"code": HTTP status, "message", "status", "details": [code, request ID, delay]}}` |
 *
 * All but `google` have the list `allowed` beside `code`, if the token may use no more; there it is one text in `details`.
 * So is `budget`, the state of the budget that the request does not fit: an object, whose members are strings in `google`.
 * In all but `plain` the hint is part of the message, because the SDKs show nothing else.
 */
export type ErrorFormat = 'plain' | 'openai' | 'anthropic' | 'google';

/** Values of `type` in errors of OpenAI's API. */
export type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'insufficient_quota'
  | 'rate_limit_error'
  | 'server_error';

/** The content of an error, in any format. */
export interface ErrorContent {
  message: string;
  /** What the client can do about the error. */
  hint: string | undefined;
  type: ErrorType;
  code: string;
  requestId: string;
  /** The HTTP status that the client gets. */
  status: number;
  /** When a retry makes sense. */
  retryAfterSeconds: number | undefined;
  /** What the token may use instead. */
  allowed?: readonly string[] | undefined;
  /** The state of the budget that the request does not fit. */
  budget?: Readonly<Record<string, string | number>> | undefined;
}

interface Formatter {
  /** The body of an error response, as a value for JSON. */
  body(words: ErrorContent): object;
  /** What ends a truncated event stream, complete with an empty line. */
  event(words: ErrorContent): string;
}

const FORMATTERS: Record<ErrorFormat, Formatter> = {
  plain: {
    body: plainBody,
    event: (words) => `data: ${JSON.stringify(plainBody(words))}\n\n`,
  },
  openai: {
    body: ({ message, hint, type, code, requestId, allowed, budget }) => ({
      error: { message: hinted(message, hint), type, param: null, code },
      code,
      request_id: requestId,
      allowed,
      budget,
    }),
    event: ({ message, type, code }) => `data: ${JSON.stringify({ error: { message, type, code } })}\n\n`,
  },
  anthropic: {
    body: anthropicBody,
    event: (words) => `event: error\ndata: ${JSON.stringify(anthropicBody(words))}\n\n`,
  },
  google: {
    body: googleBody,
    // Google's APIs send no event here, but bare JSON, and its SDKs report an error only in this form. Other readers of event streams
    // ignore such a line.
    event: (words) => `${JSON.stringify(googleBody(words))}\n\n`,
  },
};

const hinted = (message: string, hint: string | undefined) => (hint === undefined ? message : `${message}: ${hint}`);

function plainBody({ message, hint, code, requestId, allowed, budget }: ErrorContent): object {
  // JSON.stringify omits what is undefined.
  return { error: message, code, request_id: requestId, hint, allowed, budget };
}

/** Types of Anthropic's errors, by status (platform.claude.com/docs/en/api/errors). */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
};

function anthropicBody({ message, hint, code, requestId, status, allowed, budget }: ErrorContent): object {
  const type = ANTHROPIC_TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  return {
    type: 'error',
    error: { type, message: hinted(message, hint) },
    code,
    request_id: requestId,
    allowed,
    budget,
  };
}

/** Canonical codes of Google's APIs (google.rpc.Code), by status. */
const GOOGLE_STATUSES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  408: 'DEADLINE_EXCEEDED',
  429: 'RESOURCE_EXHAUSTED',
  501: 'UNIMPLEMENTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
  505: 'UNIMPLEMENTED',
};

const RPC = 'type.googleapis.com/google.rpc.';

/**
 * Our code and the request ID are in `details`, in the messages that Google defines for them (google/rpc/error_details.proto). They
 * are not beside `error`: Google's SDK for Python would take a `code` there for the status.
 */
function googleBody({
  message,
  hint,
  code,
  requestId,
  status,
  retryAfterSeconds,
  allowed,
  budget,
}: ErrorContent): object {
  // Its values can only be texts.
  const metadata = {
    code,
    ...(allowed && { allowed: allowed.join(', ') }),
    ...(budget && Object.fromEntries(Object.entries(budget).map(([name, value]) => [name, String(value)]))),
  };
  const details: object[] = [
    { '@type': `${RPC}ErrorInfo`, reason: code.toUpperCase(), domain: 'llmp', metadata },
    { '@type': `${RPC}RequestInfo`, requestId },
  ];
  if (retryAfterSeconds !== undefined)
    details.push({ '@type': `${RPC}RetryInfo`, retryDelay: `${retryAfterSeconds}s` });
  const canonical = GOOGLE_STATUSES[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL');
  return { error: { code: status, message: hinted(message, hint), status: canonical, details } };
}

/** @returns the JSON text of an error response. */
export const errorBody = (format: ErrorFormat, words: ErrorContent): string =>
  JSON.stringify(FORMATTERS[format].body(words));

/** @returns the text that ends a truncated event stream. */
export const errorEvent = (format: ErrorFormat, words: ErrorContent): string => FORMATTERS[format].event(words);
