/**
 * The backend `helicone`: posts one log for each request and each change, in the format of the manual logger of the Helicone SDK. README.md in
 * this folder lists the sources.
 */
import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { ConcurrencyLimit } from '../../core/concurrency-limit.js';
import type { Clock } from '../../core/ports.js';
import type { EventJson, RequestEventJson } from '../../store/event-json.js';
import type { Delivery, CreateBackend, DeliveryResult } from './backend.js';
import { HttpClient, limitedSignal } from '../http.js';
import { callIn, failureOf, type JsonObject, known, objectIn, timesOf } from './call.js';
import { addressUnder, deliverEach } from './vendor.js';

const PATH = '/custom/v1/log';
const BATCH = { maxEvents: 256, maxBytes: 16 * 1024 * 1024 };
const MAX_CONCURRENT = 32; // Helicone accepts one log per request: 500 logs per second if each takes 60 ms.
// For a whole batch: if Helicone does not respond, the timeouts of single logs would add up.
const DELIVER_WITHIN_MS = 25_000;
const CANCELLED_STATUS = -3; // The status that the SDK logs if the caller disconnected.
const FAILED_STATUS = 500; // The status that the SDK logs if a call failed without an error status.

export const createBackend: CreateBackend = (options) => {
  const url = addressUnder(options.endpoint, PATH);
  const authorization = `Bearer ${options.apiKey ?? ''}`;
  const http = new HttpClient(options.clock, { connections: MAX_CONCURRENT });

  async function send(event: EventJson, signal: AbortSignal): Promise<DeliveryResult> {
    const labels = labelsOf(event);
    const headers = { 'content-type': 'application/json', authorization, ...labels };
    const posted = await http.post({ url, headers, body: JSON.stringify(logOf(event, labels)), signal });
    if (posted.kind !== 'accepted') return posted;
    // Helicone responds with 200 and an error in the body if it could not store the log.
    const error = objectIn(posted.body)?.['error'] ?? null;
    return error === null ? { kind: 'delivered' } : { kind: 'retry', why: 'accepted, but the response has an error' };
  }

  return {
    batch: BATCH,
    deliver: (deliveries: readonly Delivery[], signal: AbortSignal) =>
      deliverEach(deliveries, isAnyEvent, (events) => sendAll(events, { send, signal, clock: options.clock })),
    close: () => http.close(),
  };
};

const isAnyEvent = (_event: EventJson): _event is EventJson => true;

interface Sending {
  send: (event: EventJson, signal: AbortSignal) => Promise<DeliveryResult>;
  signal: AbortSignal;
  clock: Clock;
}

/** Sends up to `MAX_CONCURRENT` logs at a time. Gives up after `DELIVER_WITHIN_MS`, or when the credential is refused. */
async function sendAll(events: readonly EventJson[], { send, signal, clock }: Sending): Promise<DeliveryResult[]> {
  const limited = limitedSignal(clock, DELIVER_WITHIN_MS, signal);
  // Each log in flight adds a listener. Node warns of a leak above ten.
  setMaxListeners(MAX_CONCURRENT, limited.signal);
  const turns = new ConcurrencyLimit(MAX_CONCURRENT);
  const sendOne = (event: EventJson) =>
    send(event, limited.signal).catch((error: unknown) => {
      limited.abort();
      throw error;
    });
  const sent = await Promise.allSettled(events.map((event) => turns.run(() => sendOne(event))));
  limited.end();
  return sent.map((it) => {
    if (it.status === 'rejected') throw it.reason;
    return it.value;
  });
}

/**
 * The labels that Helicone indexes a log by. It reads them from the request headers; older self-hosted servers read them from `meta` in the log.
 * So they are sent as both.
 */
function labelsOf(event: EventJson): Record<string, string> {
  const isCall = event.kind === 'request.completed';
  const labels = {
    'Helicone-Request-Id': logId(event.id),
    'Helicone-User-Id': event.token_id,
    'Helicone-Property-Event': event.id,
    'Helicone-Property-Kind': event.kind,
    'Helicone-Property-Project': event.project_id,
    'Helicone-Property-Instance': event.instance,
    'Helicone-Property-Request': event.request_id,
    'Helicone-Property-Path': isCall ? event.path : null,
    'Helicone-Property-Outcome': isCall ? event.outcome : null,
    'Helicone-Property-Code': isCall ? event.code : null,
    'Helicone-Property-Cache': isCall ? event.cache : null,
  };
  return Object.fromEntries(
    Object.entries(known(labels)).map(([name, value]) => [name, value.replace(/[^\x20-\x7e]/g, '?')]),
  );
}

// The UUID namespace of llmp event IDs.
const NAMESPACE = Buffer.from('2d9f0f6c5b0e4c1f9a3a6e1d7b8c4f20', 'hex');

/**
 * A UUID of version 5 (RFC 9562), derived from the ID of the event. Helicone accepts UUIDs of versions 1 to 5 as request IDs, and replaces all
 * others with a random one, so that an event that is delivered twice would create two logs.
 */
function logId(eventId: string): string {
  const id = createHash('sha1').update(NAMESPACE).update(eventId).digest().subarray(0, 16);
  id.writeUInt8((id.readUInt8(6) & 0x0f) | 0x50, 6);
  id.writeUInt8((id.readUInt8(8) & 0x3f) | 0x80, 8);
  return id.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function logOf(event: EventJson, meta: Record<string, string>): JsonObject {
  const isCall = event.kind === 'request.completed';
  const { startMs, endMs } = isCall
    ? timesOf(event)
    : { startMs: Date.parse(event.time), endMs: Date.parse(event.time) };
  const { request, response, status } = isCall && callIn(event) ? callOf(event) : dataOf(event);
  return {
    providerRequest: { url: 'custom-model-nopath', json: request, meta },
    providerResponse: {
      headers: {},
      status,
      ...(typeof response === 'string' ? { json: {}, textBody: response } : { json: response }),
    },
    timing: {
      startTime: instantOf(startMs),
      endTime: instantOf(endMs),
      timeToFirstToken: isCall && event.streamed ? (event.first_byte_ms ?? undefined) : undefined,
    },
  };
}

const instantOf = (ms: number) => ({ seconds: Math.floor(ms / 1000), milliseconds: ms % 1000 });

interface Log {
  request: JsonObject;
  response: JsonObject | string;
  status: number;
}

/** A model call. Without bodies it contains the model and the usage, if known. */
function callOf(event: RequestEventJson): Log {
  const { request_body, response_body, model } = event;
  const named = model === null ? {} : { model };
  const { prompt_tokens, completion_tokens, total_tokens, cache_read_tokens, cache_write_tokens } = event.usage;
  const cached = known({ cached_tokens: cache_read_tokens, cache_write_tokens });
  const usage = {
    ...known({ prompt_tokens, completion_tokens, total_tokens }),
    ...(Object.keys(cached).length > 0 && { prompt_tokens_details: cached }),
  };
  const isCounted = (prompt_tokens ?? completion_tokens) !== null;
  // The SDK logs a stream as text, with a line for each chunk; the assembled content of a stream is one chunk.
  const response = event.streamed ? response_body : (objectIn(response_body) ?? response_body);
  return {
    request: objectIn(request_body) ?? (request_body === null ? named : { ...named, text: request_body }),
    response: response ?? { ...named, ...(isCounted && { usage }) },
    status: statusOf(event),
  };
}

function statusOf(event: RequestEventJson): number {
  if (event.outcome === 'client_closed') return CANCELLED_STATUS;
  return failureOf(event) !== null && event.status < 400 ? FAILED_STATUS : event.status;
}

/** A request that calls no model, or a change: a custom operation in Helicone. */
function dataOf(event: EventJson): Log {
  const isCall = event.kind === 'request.completed';
  const name = isCall ? `${event.method} ${event.path}` : event.kind;
  const own = { _type: 'data', name };
  const failed = isCall && failureOf(event) !== null;
  return {
    request: { ...own, ...(isCall ? { method: event.method, path: event.path } : changeOf(event)) },
    response: { ...own, status: failed ? 'error' : 'success' },
    status: isCall ? statusOf(event) : 200,
  };
}

const changeOf = (event: Exclude<EventJson, RequestEventJson>): JsonObject => {
  const { actor, count, project_id, token_id } = event;
  return { ...known({ actor, count, project_id, token_id }), ...('budget' in event && { budget: event.budget }) };
};
