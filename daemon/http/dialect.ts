/**
 * Errors in the dialect of the client. An SDK reads the error format of its own provider: in any other format its user
 * sees a status and no message. Every dialect says the same things and differs only in where they stand.
 *
 * | dialect  | body of an error answer                                                                     |
 * | -------- | ------------------------------------------------------------------------------------------- |
 * | `plain`  | `{"error": "message", "code", "request_id", "hint"}`; `hint` only where there is one         |
 * | `openai` | `{"error": {"message", "type", "param": null, "code"}, "code", "request_id"}`                |
 *
 * In `openai` the hint is part of the message, because OpenAI's SDKs show nothing else.
 */
import type { Reloadable } from '../../config/settings.js';

export type Dialect = 'plain' | 'openai';

/** The kinds of errors that OpenAI's API names in `type`. */
export type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'insufficient_quota'
  | 'rate_limit_error'
  | 'server_error';

/** What an error says, in whichever dialect. */
export interface ErrorWords {
  message: string;
  /** What the client can do about it. */
  hint: string | undefined;
  type: ErrorType;
  code: string;
  requestId: string;
}

interface Format {
  /** The body of an error answer, as a value for JSON. */
  body(words: ErrorWords): object;
  /** What stands in an event that ends a stream in place of its rest, as a value for JSON. */
  event(words: ErrorWords): object;
}

const FORMATS: Record<Dialect, Format> = {
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

function plainBody({ message, hint, code, requestId }: ErrorWords): object {
  // JSON leaves out a hint that is undefined.
  return { error: message, code, request_id: requestId, hint };
}

/** @returns the JSON text of an error answer. */
export const errorBody = (dialect: Dialect, words: ErrorWords): string => JSON.stringify(FORMATS[dialect].body(words));

/** @returns a whole server-sent event that tells of an error. */
export const errorEvent = (dialect: Dialect, words: ErrorWords): string =>
  `data: ${JSON.stringify(FORMATS[dialect].event(words))}\n\n`;

/**
 * @param shape the setting `ERROR_SHAPE`.
 * @param rawHeaders the request's, names and values in turn.
 */
export function dialectFor(shape: Reloadable['errorShape'], rawHeaders: readonly string[]): Dialect {
  if (shape !== 'auto') return shape;
  return isOfOpenAi(rawHeaders) ? 'openai' : 'plain';
}

/**
 * Whether the client repeats every 429 and 5xx, whatever else the answer says, as the `ai` package does: it does not know
 * `X-Should-Retry`. What is not to be repeated then needs another status.
 */
export function goesByStatus(shape: Reloadable['errorShape'], rawHeaders: readonly string[]): boolean {
  if (shape !== 'auto') return false;
  return rawHeaders.some(
    (name, i) => i % 2 === 0 && /^user-agent$/i.test(name) && AI_SDK.test(rawHeaders[i + 1] ?? ''),
  );
}

const AI_SDK = /\bai-sdk\//i;

/**
 * The user agents of clients that read OpenAI's error format: those that name it, the `ai` package (`ai-sdk/provider-utils/…`), and
 * Go's own HTTP client, which is all that go-openai says of itself.
 */
const OPENAI_USER_AGENT = /openai|\bai-sdk\/|^Go-http-client\//i;

/** OpenAI's SDKs, and those made with the same generator, send `X-Stainless-*`; others send a header field of OpenAI's or are known by their user agent. */
function isOfOpenAi(rawHeaders: readonly string[]): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    if (name.startsWith('x-stainless-') || name.startsWith('openai-')) return true;
    if (name === 'user-agent' && OPENAI_USER_AGENT.test(rawHeaders[i + 1] ?? '')) return true;
  }
  return false;
}
