/**
 * A collector, over OTLP/HTTP with JSON: a span for each request and metrics of the calls, by OpenTelemetry's GenAI conventions.
 *
 * Its exporters' serializers write the bodies, but we post them: the exporters retry by themselves and then tell neither status
 * nor `Retry-After`, know of no abort, and log what a collector refuses of a batch instead of telling it. Sources: README.md
 * beside this file.
 */
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import type { EventJson, RequestEventJson } from '../../store/event-json.js';
import type { Delivery, CreateBackend } from './backend.js';
import { HttpClient, verdictsOf } from '../http.js';
import { isObject, objectIn } from './call.js';
import { CallMetrics } from './otlp-metrics.js';
import { spansOf } from './otlp-spans.js';
import { addressUnder, deliverEach, sendInParts } from './vendor.js';

const BATCH = { mostEvents: 512, mostBytes: 2 * 1024 * 1024, gatherMs: 1000 };

export const createBackend: CreateBackend = ({ endpoint, apiKey, clock, log, version }) => {
  const http = new HttpClient(clock);
  const base = endpoint.replace(/\/v1\/(?:traces|metrics)\/*$/, ''); // Both signals have the same.
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
    if (posted.kind === 'retry') return verdictsOf(posted, events.length);
    const refused = refusedSpans(posted.body);
    if (refused >= events.length)
      return events.map(() => ({ kind: 'rejected' as const, why: 'refused in an accepted batch' }));
    // Which ones it was is not told, and the batch must not be sent again: so says the protocol.
    if (refused > 0) log.warn('the collector refused some of the spans of a batch', { refused, of: events.length });
    metrics.record(events);
    return verdictsOf(posted, events.length);
  }

  return {
    batch: BATCH,
    deliver: (deliveries: readonly Delivery[], signal: AbortSignal) =>
      deliverEach(deliveries, isRequest, (events) => sendInParts(events, (some) => send(some, signal))),
    async close() {
      await metrics.close();
      await http.close();
    },
  };
};

// Neither spans nor these metrics have a place for changes.
const isRequest = (event: EventJson): event is RequestEventJson => event.kind === 'request.completed';

/** Of the answer `{"partialSuccess":{"rejectedSpans":"3"}}`: JSON has 64-bit numbers as text. */
function refusedSpans(answer: string): number {
  const partial = objectIn(answer)?.['partialSuccess'];
  const count = isObject(partial) ? Number(partial['rejectedSpans']) : 0;
  return Number.isSafeInteger(count) ? count : 0;
}
