/** A request as the vendors' formats look at it: what was asked of which model, how it went, when. */
import type { RequestEventJson, UsageJson } from '../../store/event-json.js';

/** What was asked, in the words of OpenTelemetry's GenAI conventions. */
export type Operation = 'chat' | 'text_completion' | 'embeddings' | 'generate_content';

const OPERATIONS: readonly (readonly [path: RegExp, Operation])[] = [
  [/\/chat\/completions$/, 'chat'],
  [/\/responses$/, 'chat'],
  [/^\/v1\/messages$/, 'chat'], // Of Anthropic; those of threads are stored, no model is asked.
  [/\/completions$/, 'text_completion'],
  [/\/embeddings$/, 'embeddings'],
  [/\/(?:audio|images)\/\w+$/, 'generate_content'],
];

/** Null for what is not asked of a model: the list of models, a file. */
export function operationOf({ method, path }: Pick<RequestEventJson, 'method' | 'path'>): Operation | null {
  if (method !== 'POST') return null;
  return OPERATIONS.find(([pattern]) => pattern.test(path))?.[1] ?? null;
}

/** Why it failed, of few different values: our code, how it ended, or the status; null when it did not. */
export function failureOf({ code, outcome, status }: RequestEventJson): string | null {
  if (code !== null) return code;
  if (outcome === 'upstream_refused' || outcome === 'upstream_error') return String(status);
  // Of a daemon that calls the upstream's 4xx `ok`.
  return outcome === 'ok' ? (status >= 400 ? String(status) : null) : outcome;
}

/** In whole ms since the epoch. An event's time is that of the request's end. */
export function timesOf({ time, duration_ms }: RequestEventJson): { startMs: number; endMs: number } {
  const endMs = Date.parse(time);
  return { startMs: endMs - Math.round(Math.max(0, duration_ms)), endMs };
}

/** The counts that are known, under the names the vendor has for them. Undefined when none is: unknown is never 0. */
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

export type JsonObject = Record<string, unknown>;

/** @returns the object that the text spells; null for a body that is missing, cut, or something else. */
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

/** @returns `value` if it is a list, with its objects only. */
export const objectsIn = (value: unknown): JsonObject[] | null =>
  Array.isArray(value) ? value.filter(isObject) : null;
