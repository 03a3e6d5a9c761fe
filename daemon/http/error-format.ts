/**
 * Formats of error responses. An SDK parses the error format of its own provider; of any other format its user sees a status without a
 * message. All formats have the same content in different fields.
 *
 * | format   | body of an error response                                                                   |
 * | -------- | ------------------------------------------------------------------------------------------- |
 * | `plain`  | `{"error": "message", "code", "request_id", "hint"}`; `hint` is optional                     |
 * | `openai` | `{"error": {"message", "type", "param": null, "code"}, "code", "request_id"}`                |
 *
 * In `openai` the hint is part of the message, because OpenAI's SDKs show nothing else.
 */
import type { Reloadable } from '../../config/settings.js';

export type ErrorFormat = 'plain' | 'openai';

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
}

interface Formatter {
  /** The body of an error response, as a value for JSON. */
  body(words: ErrorContent): object;
  /** The data of the event that ends a truncated stream, as a value for JSON. */
  event(words: ErrorContent): object;
}

const FORMATTERS: Record<ErrorFormat, Formatter> = {
  plain: {
    body: plainBody,
    event: plainBody,
  },
  openai: {
    body: ({ message, hint, type, code, requestId }) => ({
      error: { message: hint === undefined ? message : `${message}: ${hint}`, type, param: null, code },
      code,
      request_id: requestId,
    }),
    event: ({ message, type, code }) => ({ error: { message, type, code } }),
  },
};

function plainBody({ message, hint, code, requestId }: ErrorContent): object {
  // JSON.stringify omits an undefined hint.
  return { error: message, code, request_id: requestId, hint };
}

/** @returns the JSON text of an error response. */
export const errorBody = (format: ErrorFormat, words: ErrorContent): string =>
  JSON.stringify(FORMATTERS[format].body(words));

/** @returns a complete server-sent event with an error. */
export const errorEvent = (format: ErrorFormat, words: ErrorContent): string =>
  `data: ${JSON.stringify(FORMATTERS[format].event(words))}\n\n`;

/**
 * @param shape the setting `ERROR_SHAPE`.
 * @param rawHeaders the request's, names and values in turn.
 */
export function errorFormatFor(shape: Reloadable['errorShape'], rawHeaders: readonly string[]): ErrorFormat {
  if (shape !== 'auto') return shape;
  return readsOpenAiErrors(rawHeaders) ? 'openai' : 'plain';
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
 * and Go's own HTTP client, which is the user agent of go-openai.
 */
const OPENAI_USER_AGENT = /openai|\bai-sdk\/|^Go-http-client\//i;

/**
 * Whether the client parses OpenAI's error format. OpenAI's SDKs, and those from the same generator, send `X-Stainless-*`; other clients
 * send a header of OpenAI's, or are known by their user agent.
 */
function readsOpenAiErrors(rawHeaders: readonly string[]): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    if (name.startsWith('x-stainless-') || name.startsWith('openai-')) return true;
    if (name === 'user-agent' && OPENAI_USER_AGENT.test(rawHeaders[i + 1] ?? '')) return true;
  }
  return false;
}
