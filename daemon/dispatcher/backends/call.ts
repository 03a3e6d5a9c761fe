/** Facts about a model call that the vendors' formats share: operation, model, times, failure and usage. */
import type { RequestEventJson, UsageJson } from '../../store/event-json.js';

/** Operation names of OpenTelemetry's GenAI conventions. */
export type Operation = 'chat' | 'text_completion' | 'embeddings' | 'generate_content';

const OPERATIONS: readonly (readonly [path: RegExp, Operation])[] = [
  [/\/chat\/completions$/, 'chat'],
  [/\/responses$/, 'chat'],
  [/^\/v1\/messages$/, 'chat'], // Anthropic. Messages of OpenAI threads are only stored, without a model call.
  [/\/completions$/, 'text_completion'],
  [/\/embeddings$/, 'embeddings'],
  // Gemini
  [/:(?:generateContent|streamGenerateContent)$/, 'generate_content'],
  [/:(?:embedContent|batchEmbedContents)$/, 'embeddings'],
  [/\/(?:audio|images)\/\w+$/, 'generate_content'],
];

/** The API format of a request, under the names of OpenTelemetry's GenAI conventions. */
export function providerOf({ path }: Pick<RequestEventJson, 'path'>): 'openai' | 'anthropic' | 'gcp.gemini' {
  if (path === '/v1/messages') return 'anthropic';
  return /\/models\/[^/]+:\w+$/.test(path) ? 'gcp.gemini' : 'openai';
}

/** Null for requests that call no model, such as listing models or uploading a file. */
export function operationOf({ method, path }: Pick<RequestEventJson, 'method' | 'path'>): Operation | null {
  if (method !== 'POST') return null;
  return OPERATIONS.find(([pattern]) => pattern.test(path))?.[1] ?? null;
}

/** Why the request failed: the error code of llmp, the outcome, or the status (few different values); null if it succeeded. */
export function failureOf({ code, outcome, status }: RequestEventJson): string | null {
  if (code !== null) return code;
  if (outcome === 'upstream_refused' || outcome === 'upstream_error') return String(status);
  // Older daemons report the outcome `ok` for a 4xx of the upstream.
  return outcome === 'ok' ? (status >= 400 ? String(status) : null) : outcome;
}

/** Start and end in whole ms since the epoch. The time of an event is the end of its request. */
export function timesOf({ time, duration_ms }: RequestEventJson): { startMs: number; endMs: number } {
  const endMs = Date.parse(time);
  return { startMs: endMs - Math.round(Math.max(0, duration_ms)), endMs };
}

/** The known token counts, under the names that the vendor uses. Undefined if none is known: an unknown count is never 0. */
export function countsOf<P extends string, C extends string>(
  { prompt_tokens, completion_tokens }: UsageJson,
  [prompt, completion]: readonly [P, C],
): Partial<Record<P | C, number>> | undefined {
  if (prompt_tokens === null && completion_tokens === null) return undefined;
  return {
    ...(prompt_tokens !== null && { [prompt]: prompt_tokens }),
    ...(completion_tokens !== null && { [completion]: completion_tokens }),
  } as Partial<Record<P | C, number>>;
}

/** The known token counts of the provider's prompt cache, under the names that the vendor uses. Events of older daemons have none. */
export function promptCacheOf<R extends string, W extends string>(
  { cache_read_tokens: read, cache_write_tokens: write }: UsageJson,
  [nameOfRead, nameOfWrite]: readonly [R, W],
): Partial<Record<R | W, number>> {
  return {
    ...(typeof read === 'number' && { [nameOfRead]: read }),
    ...(typeof write === 'number' && { [nameOfWrite]: write }),
  } as Partial<Record<R | W, number>>;
}

export type JsonObject = Record<string, unknown>;

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
