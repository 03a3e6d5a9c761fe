/**
 * The backend `lunary`: reports one run for each request, with a `start` and an `end` or `error` as its SDK does. The run has the ID of the event.
 * So Lunary refuses a run that it already has, which counts as delivered. README.md in this folder lists the sources.
 */
import type { RequestEventJson, UsageJson } from '../../store/event-json.js';
import type { Delivery, CreateBackend, DeliveryResult } from './backend.js';
import { HttpClient, sameResultFor } from '../http.js';
import { callIn, failureOf, isObject, type JsonObject, known, objectIn, objectsIn, timesOf } from './call.js';
import { addressUnder, deliverRequests } from './vendor.js';

const PATH = '/v1/runs/ingest';
const BATCH = { maxEvents: 100, maxBytes: 4 * 1024 * 1024, gatherMs: 500 }; // The server accepts 20 MB, and the SDK waits 500 ms.

export const createBackend: CreateBackend = (options) => {
  const url = addressUnder(options.endpoint, PATH);
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${options.apiKey ?? ''}` };
  const http = new HttpClient(options.clock);

  async function send(events: readonly RequestEventJson[], signal: AbortSignal) {
    const posted = await http.post({ url, headers, body: JSON.stringify({ events: events.flatMap(runOf) }), signal });
    if (posted.kind === 'rejected') return posted;
    return posted.kind === 'accepted' ? readResults(posted.body, events) : sameResultFor(posted, events.length);
  }

  return {
    batch: BATCH,
    // Lunary accepts custom events only within a chat thread, so changes are not sent.
    deliver: (deliveries: readonly Delivery[], signal: AbortSignal) =>
      deliverRequests(deliveries, (events) => send(events, signal)),
    close: () => http.close(),
  };
};

/** The two events of a run. Undefined fields are not sent. */
function runOf(event: RequestEventJson): JsonObject[] {
  const operation = callIn(event)?.operation ?? null;
  const { startMs, endMs } = timesOf(event);
  const failure = failureOf(event);
  const run = {
    type: operation === null ? 'tool' : operation === 'embeddings' ? 'embed' : 'llm',
    runId: event.id,
    runtime: 'llmp',
  };
  const name = operation === null ? `${event.method} ${event.path}` : (event.model ?? undefined);
  const start = {
    ...run,
    event: 'start',
    timestamp: startMs,
    name,
    ...inputOf(event),
    userId: event.token_id ?? undefined,
    metadata: metadataOf(event),
  };
  if (failure !== null) {
    return [start, { ...run, event: 'error', timestamp: endMs, error: { message: failure } }];
  }
  return [
    start,
    { ...run, event: 'end', timestamp: endMs, name, output: outputOf(event), tokensUsage: tokensUsageOf(event.usage) },
  ];
}

function tokensUsageOf({ prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens }: UsageJson) {
  if ((prompt_tokens ?? completion_tokens) === null) return undefined;
  const promptCached = (cache_read_tokens ?? 0) + (cache_write_tokens ?? 0) || null; // As the SDK adds them up.
  return known({ prompt: prompt_tokens, completion: completion_tokens, promptCached });
}

/** The members of a request body that are parameters, as listed in the SDK and in its order. */
const PARAMETERS = [
  ...[
    'temperature',
    'top_p',
    'top_k',
    'stop',
    'audio',
    'prediction',
    'modalities',
    'presence_penalty',
    'frequency_penalty',
  ],
  ...[
    'seed',
    'function_call',
    'service_tier',
    'parallel_tool_calls',
    'functions',
    'tools',
    'tool_choice',
    'top_logprobs',
  ],
  ...['logprobs', 'response_format', 'max_tokens', 'max_completion_tokens', 'logit_bias'],
];

function inputOf({ request_body }: RequestEventJson): { input?: unknown; params?: JsonObject } {
  if (request_body === null) return {};
  const request = objectIn(request_body);
  if (!request) return { input: request_body };
  const params = Object.fromEntries(PARAMETERS.filter((it) => request[it]).map((it) => [it, request[it]]));
  return {
    input: objectsIn(request['messages'])?.map(messageOf) ?? request['input'] ?? request['prompt'] ?? request,
    params,
  };
}

function outputOf({ response_body }: RequestEventJson): unknown {
  if (response_body === null) return undefined;
  const response = objectIn(response_body);
  if (!response) return response_body;
  const choice = objectsIn(response['choices'])?.[0];
  if (isObject(choice?.['message'])) return messageOf(choice['message']);
  return choice?.['text'] ?? response['output'] ?? response;
}

/** The members of a message that Lunary supports. */
function messageOf({
  role,
  content,
  audio,
  refusal,
  name,
  function_call,
  tool_calls,
  tool_call_id,
}: JsonObject): JsonObject {
  return { role, content, audio, refusal, function_call, tool_calls, tool_call_id, name };
}

/** Lunary stores strings, numbers and booleans on one level, with camelCase names. */
function metadataOf(event: RequestEventJson): JsonObject {
  return known({
    requestId: event.request_id,
    upstreamRequestId: event.upstream_request_id,
    projectId: event.project_id,
    instance: event.instance,
    method: event.method,
    path: event.path,
    status: event.status,
    outcome: event.outcome,
    code: event.code,
    cache: event.cache,
    streamed: event.streamed,
    upstreamMs: event.upstream_ms,
    firstByteMs: event.first_byte_ms,
    costUsd: event.cost_usd === null ? null : Number(event.cost_usd),
  });
}

/**
 * The response has a result for each event of each run: `{results: [{id, success, error?}]}`. Only the text of `error` shows that a run exists
 * already. Nothing else of that text is used or passed on.
 */
function readResults(responseBody: string, events: readonly RequestEventJson[]): DeliveryResult[] {
  const results = objectsIn(objectIn(responseBody)?.['results']);
  if (!results) return events.map(() => ({ kind: 'retry', why: 'accepted, but the response has no results' }));
  return events.map(({ id }) => {
    const ofRun = results.filter((result) => result['id'] === id);
    if (ofRun.length === 0) return { kind: 'retry', why: 'accepted, but the response has no result for the event' };
    return ofRun.every((it) => it['success'] === true || existsAlready(it))
      ? { kind: 'delivered' }
      : { kind: 'rejected', why: 'refused in an accepted batch' };
  });
}

const existsAlready = ({ error }: JsonObject): boolean =>
  typeof error === 'string' && /already exists|duplicate key/i.test(error);
