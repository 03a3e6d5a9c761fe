/**
 * Formats of error responses. An SDK parses the error format of its own provider; of any other format its user sees a status without a
 * message. All formats have the same content in different fields.
 *
 * | format      | body of an error response                                                                   |
 * | ----------- | ------------------------------------------------------------------------------------------- |
 * | `plain`     | `{"error": "message", "code", "request_id", "hint"}`; `hint` is optional                     |
 * | `openai`    | `{"error": {"message", "type", "param": null, "code"}, "code", "request_id"}`                |
 * | `anthropic` | `{"type": "error", "error": {"type", "message"}, "code", "request_id"}`                      |
 * | `google`    | `{"error": {"code": HTTP status, "message", "status", "details": [code, request ID, delay]}}` |
 *
 * In all but `plain` the hint is part of the message, because the SDKs show nothing else.
 */
import type { Reloadable } from '../../config/settings.js';

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
  /** The HTTP status that the kind of error has. */
  status: number;
  /** The HTTP status that this client gets. Default: `status`. */
  sentStatus?: number;
  /** When a retry makes sense. */
  retryAfterSeconds: number | undefined;
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
    body: ({ message, hint, type, code, requestId }) => ({
      error: { message: hinted(message, hint), type, param: null, code },
      code,
      request_id: requestId,
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

function plainBody({ message, hint, code, requestId }: ErrorContent): object {
  // JSON.stringify omits an undefined hint.
  return { error: message, code, request_id: requestId, hint };
}

/** Types of Anthropic's errors, by status (platform.claude.com/docs/en/api/errors). */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
};

function anthropicBody({ message, hint, code, requestId, status }: ErrorContent): object {
  const type = ANTHROPIC_TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  return { type: 'error', error: { type, message: hinted(message, hint) }, code, request_id: requestId };
}

/** Canonical codes of Google's APIs (google.rpc.Code), by status. */
const GOOGLE_STATUSES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
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
function googleBody({ message, hint, code, requestId, status, sentStatus, retryAfterSeconds }: ErrorContent): object {
  const details: object[] = [
    { '@type': `${RPC}ErrorInfo`, reason: code.toUpperCase(), domain: 'llmp', metadata: { code } },
    { '@type': `${RPC}RequestInfo`, requestId },
  ];
  if (retryAfterSeconds !== undefined)
    details.push({ '@type': `${RPC}RetryInfo`, retryDelay: `${retryAfterSeconds}s` });
  const canonical = GOOGLE_STATUSES[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL');
  return { error: { code: sentStatus ?? status, message: hinted(message, hint), status: canonical, details } };
}

/** @returns the JSON text of an error response. */
export const errorBody = (format: ErrorFormat, words: ErrorContent): string =>
  JSON.stringify(FORMATTERS[format].body(words));

/** @returns the text that ends a truncated event stream. */
export const errorEvent = (format: ErrorFormat, words: ErrorContent): string => FORMATTERS[format].event(words);

/**
 * @param shape the setting `ERROR_SHAPE`.
 * @param rawHeaders the request's, names and values in turn.
 */
export function errorFormatFor(shape: Reloadable['errorShape'], rawHeaders: readonly string[]): ErrorFormat {
  if (shape !== 'auto') return shape;
  let format: ErrorFormat = 'plain';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    // These name the API. Anthropic's SDKs send `X-Stainless-*` as well.
    if (name === 'anthropic-version') return 'anthropic';
    if (name === 'x-goog-api-key') format = 'google';
    else if (format === 'plain' && isOfOpenAi(name, rawHeaders[i + 1] ?? '')) format = 'openai';
  }
  return format;
}

/**
 * Whether the client retries every 429 and 5xx, regardless of `X-Should-Retry`, as the `ai` package does. To prevent pointless retries,
 * such a client gets another status.
 */
export function retriesByStatus(shape: Reloadable['errorShape'], rawHeaders: readonly string[]): boolean {
  if (shape !== 'auto') return false;
  return rawHeaders.some(
    (name, i) => i % 2 === 0 && /^user-agent$/i.test(name) && AI_SDK.test(rawHeaders[i + 1] ?? ''),
  );
}

const AI_SDK = /\bai-sdk\//i;

/**
 * User agents of clients that parse OpenAI's error format: those with that name in them, the `ai` package (`ai-sdk/provider-utils/…`),
 * and Go's own HTTP client, which is the user agent of go-openai. Mistral's SDKs (`mistral-client-typescript/…`) show the whole
 * body of an error.
 */
const OPENAI_USER_AGENT = /openai|\bai-sdk\/|mistral-client|^Go-http-client\//i;

/**
 * Whether a header shows that the client parses OpenAI's error format. OpenAI's SDKs, and those from the same generator, send
 * `X-Stainless-*`; other clients send a header of OpenAI's, or are known by their user agent.
 */
const isOfOpenAi = (name: string, value: string): boolean =>
  name.startsWith('x-stainless-') ||
  name.startsWith('openai-') ||
  (name === 'user-agent' && OPENAI_USER_AGENT.test(value));
