/**
 * The backend `otlp`: an OpenTelemetry collector over OTLP/HTTP with JSON. It sends a span for each request and metrics of the model calls, by the
 * GenAI conventions.
 *
 * The OpenTelemetry serializers write the bodies, but the exporters do not post them: they retry by themselves, hide the status and `Retry-After`,
 * cannot be aborted, and only log which part of a batch a collector refused. README.md in this folder lists the sources.
 */
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import type { RequestEventJson } from '../../store/event-json.js';
import type { Delivery, CreateBackend } from './backend.js';
import { HttpClient, sameResultFor } from '../http.js';
import { isObject, objectIn } from './call.js';
import { CallMetrics } from './otlp-metrics.js';
import { spansOf } from './otlp-spans.js';
import { addressUnder, deliverRequests } from './vendor.js';

const BATCH = { maxEvents: 512, maxBytes: 2 * 1024 * 1024, gatherMs: 1000 };

export const createBackend: CreateBackend = ({ endpoint, apiKey, clock, log, version }) => {
  const http = new HttpClient(clock);
  const base = endpoint.replace(/\/v1\/(?:traces|metrics)\/*$/, ''); // Traces and metrics have the same base.
  const headers = {
    'content-type': 'application/json',
    'user-agent': `llmp/${version}`,
    ...(apiKey && { authorization: `Bearer ${apiKey}` }),
  };
  const post = (path: string) => (body: Buffer, signal: AbortSignal) =>
    http.post({ url: addressUnder(base, path), headers, body, signal });
  const postTraces = post('/v1/traces');
  const metrics = new CallMetrics({ clock, log, version, post: post('/v1/metrics') });

  async function send(events: readonly RequestEventJson[], signal: AbortSignal) {
    const posted = await postTraces(
      Buffer.from(JsonTraceSerializer.serializeRequest(spansOf(events, version)) ?? []),
      signal,
    );
    if (posted.kind === 'rejected') return posted;
    if (posted.kind === 'retry') return sameResultFor(posted, events.length);
    const refused = refusedSpans(posted.body);
    if (refused >= events.length)
      return events.map(() => ({ kind: 'rejected' as const, why: 'refused in an accepted batch' }));
    // The response does not say which spans, and the protocol forbids sending the batch again.
    if (refused > 0) log.warn('the collector refused some spans of a batch', { refused, of: events.length });
    metrics.record(events);
    return sameResultFor(posted, events.length);
  }

  return {
    batch: BATCH,
    // Changes cannot be expressed as spans or as these metrics.
    deliver: (deliveries: readonly Delivery[], signal: AbortSignal) =>
      deliverRequests(deliveries, (events) => send(events, signal)),
    async close() {
      await metrics.close();
      await http.close();
    },
  };
};

/** Reads the response `{"partialSuccess":{"rejectedSpans":"3"}}`. OTLP writes 64-bit numbers as strings in JSON. */
function refusedSpans(responseBody: string): number {
  const partial = objectIn(responseBody)?.['partialSuccess'];
  const count = isObject(partial) ? Number(partial['rejectedSpans']) : 0;
  return Number.isSafeInteger(count) ? count : 0;
}
