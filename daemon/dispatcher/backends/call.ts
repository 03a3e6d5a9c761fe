/** Facts about a model call that the vendors' formats share: operation, model, times, failure and usage. */
import { runsModel } from '../../core/content/runs-model.js';
import type { RequestEventJson, UsageJson } from '../../store/event-json.js';

/** Operation names of OpenTelemetry's GenAI conventions. */
export type Operation = 'chat' | 'text_completion' | 'embeddings' | 'generate_content';

/** API formats under the names of the same conventions. */
export type Provider = 'openai' | 'anthropic' | 'gcp.gemini';

/** How a request calls a model. */
export interface Call {
  operation: Operation;
  provider: Provider;
}

/** What each path that calls a model is; the first that matches. All other requests call none, unless the provider reports tokens. */
const PATHS: readonly (readonly [path: RegExp, operation: Operation, provider: Provider])[] = [
  [/\/chat\/completions$/, 'chat', 'openai'],
  [/\/responses(?:\/compact)?$/, 'chat', 'openai'],
  [/\/agents\/completions$/, 'chat', 'openai'],
  [/^\/v1\/messages$/, 'chat', 'anthropic'], // Messages of OpenAI threads are only stored, without a model call.
  [/^\/v1\/complete$/, 'text_completion', 'anthropic'],
  [/\/completions$/, 'text_completion', 'openai'],
  [/\/embeddings$/, 'embeddings', 'openai'],
  [/\/models\/[^/]+:(?:embedContent|batchEmbedContents)$/, 'embeddings', 'gcp.gemini'],
  [/\/models\/[^/]+:(?:generateContent|streamGenerateContent)$/, 'generate_content', 'gcp.gemini'],
  [/\/(?:audio|images)\/\w+$/, 'generate_content', 'openai'],
];

/** The same for connections that become a WebSocket, whose method is GET. Some paths have both. */
const WEBSOCKET_PATHS: typeof PATHS = [
  [/\/realtime$/, 'generate_content', 'openai'],
  [/\/responses$/, 'chat', 'openai'],
  [/BidiGenerateContent$/, 'generate_content', 'gcp.gemini'],
];
const SWITCHED_PROTOCOLS = 101;
const isOnlyWebSocket = (path: string) => /\/realtime$|BidiGenerateContent$/.test(path);

type CalledBy = Pick<RequestEventJson, 'method' | 'path' | 'status' | 'usage'>;

/** Null for requests that call no model, such as listing models or uploading a file. */
export function callIn({ method, path, status, usage }: CalledBy): Call | null {
  const isWebSocket = status === SWITCHED_PROTOCOLS || isOnlyWebSocket(path);
  if (!isWebSocket && !runsModel(method, path)) return null;
  const [, operation, provider] = (isWebSocket ? WEBSOCKET_PATHS : PATHS).find(([pattern]) => pattern.test(path)) ?? [];
  if (operation && provider) return { operation, provider };
  // A path that is not in the table. The tokens are paid for, so they are sent.
  return hasCounts(usage) ? { operation: 'generate_content', provider: 'openai' } : null;
}

const hasCounts = ({ prompt_tokens, completion_tokens, total_tokens }: UsageJson) =>
  (prompt_tokens ?? completion_tokens ?? total_tokens) !== null;

/** Why the request failed: the error code of llmp, the outcome, or the status (few different values); null if it succeeded. */
export function failureOf({ code, outcome, status }: RequestEventJson): string | null {
  if (code !== null) return code;
  if (outcome === 'upstream_refused' || outcome === 'upstream_error') return String(status);
  return outcome === 'ok' ? null : outcome;
}

/** Start and end in whole ms since the epoch. The time of an event is the end of its request. */
export function timesOf({ time, duration_ms }: RequestEventJson): { startMs: number; endMs: number } {
  const endMs = Date.parse(time);
  return { startMs: endMs - Math.round(Math.max(0, duration_ms)), endMs };
}

export type JsonObject = Record<string, unknown>;

/** The values that are known: an unknown one, such as a token count, is not sent as null or 0. */
export const known = <T extends object>(values: T): { [Name in keyof T]?: NonNullable<T[Name]> } =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)) as never;

/** @returns the JSON object in a body; null if the body is missing, cut, or not an object. */
export function objectIn(body: string | null): JsonObject | null {
  if (body === null) return null;
  try {
    const value: unknown = JSON.parse(body);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** @returns the objects in `value`; null if it is not a list. */
export const objectsIn = (value: unknown): JsonObject[] | null =>
  Array.isArray(value) ? value.filter(isObject) : null;
