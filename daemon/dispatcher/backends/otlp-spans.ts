import { type Attributes, type HrTime, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import type { RequestEventJson } from '../../store/event-json.js';
import { countsOf, failureOf, objectIn, type Operation, operationOf, timesOf } from './call.js';
import { inputMessagesOf, outputMessagesOf } from './otlp-messages.js';
import { ATTRIBUTES, OWN_ATTRIBUTES } from './otlp-names.js';

export type Span = Parameters<typeof JsonTraceSerializer.serializeRequest>[0][number];

const NOT_SENT_STATUS = 499; // Of a client that left before it had an answer.

/** A span for each request, of the daemon that served it. */
export function spansOf(events: readonly RequestEventJson[], version: string): Span[] {
  const resources = new Map<string, Resource>();
  return events.map((event) => {
    const { instance } = event;
    const resource =
      resources.get(instance) ??
      resourceFromAttributes({ [ATTRIBUTES.service]: 'llmp', [ATTRIBUTES.instance]: instance });
    resources.set(instance, resource);
    return spanOf(event, resource, version);
  });
}

/**
 * The ids come from the event's, a UUIDv7: all of it is the trace's, its random half the span's. So a repeated delivery repeats them,
 * and whoever has the event finds the trace.
 */
function spanOf(event: RequestEventJson, resource: Resource, version: string): Span {
  const traceId = event.id.replaceAll('-', '');
  const operation = operationOf(event);
  const { startMs, endMs } = timesOf(event);
  const failure = failureOf(event);
  return {
    name: operation === null ? event.method : [operation, requestModelOf(event)].filter(Boolean).join(' '),
    kind: SpanKind.CLIENT,
    spanContext: () => ({ traceId, spanId: traceId.slice(16), traceFlags: TraceFlags.SAMPLED }),
    startTime: instantOf(startMs),
    endTime: instantOf(endMs),
    duration: instantOf(endMs - startMs),
    ended: true,
    status: { code: failure === null ? SpanStatusCode.UNSET : SpanStatusCode.ERROR },
    attributes: known({ ...(operation !== null && callOf(event, operation)), ...requestOf(event) }),
    resource,
    instrumentationScope: { name: 'llmp', version },
    links: [],
    events: [],
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** What spans and metrics of a call have in common. */
export function callAttributes(event: RequestEventJson, operation: Operation): Attributes {
  return known({
    [ATTRIBUTES.operation]: operation,
    [ATTRIBUTES.provider]: event.path === '/v1/messages' ? 'anthropic' : 'openai',
    [ATTRIBUTES.requestModel]: requestModelOf(event),
    [ATTRIBUTES.responseModel]: failureOf(event) === null ? event.model : null,
  });
}

/** As the client asked for it, where that is known; an event's model is the one that the provider named, if it did. */
function requestModelOf({ request_body, model }: RequestEventJson): string | null {
  const asked = objectIn(request_body)?.['model'];
  return typeof asked === 'string' ? asked : model;
}

function callOf(event: RequestEventJson, operation: Operation): Record<string, unknown> {
  const isChat = operation === 'chat' || operation === 'text_completion';
  return {
    ...callAttributes(event, operation),
    ...countsOf(event.usage, [ATTRIBUTES.inputTokens, ATTRIBUTES.outputTokens]),
    [ATTRIBUTES.inputMessages]: isChat ? jsonOf(inputMessagesOf(event.request_body)) : null,
    [ATTRIBUTES.outputMessages]: isChat ? jsonOf(outputMessagesOf(event.response_body)) : null,
  };
}

// An attribute of a span is a scalar or a list of them: what has more to it is told as JSON, as the conventions say.
const jsonOf = (value: object | undefined): string | null => (value ? JSON.stringify(value) : null);

function requestOf(event: RequestEventJson): Record<string, unknown> {
  return {
    [ATTRIBUTES.method]: event.method,
    [ATTRIBUTES.path]: event.path,
    [ATTRIBUTES.status]: event.status === NOT_SENT_STATUS ? null : event.status,
    [ATTRIBUTES.errorType]: failureOf(event),
    [OWN_ATTRIBUTES.project]: event.project_id,
    [OWN_ATTRIBUTES.token]: event.token_id,
    [OWN_ATTRIBUTES.request]: event.request_id,
    [OWN_ATTRIBUTES.upstreamRequest]: event.upstream_request_id,
    [OWN_ATTRIBUTES.outcome]: event.outcome,
    [OWN_ATTRIBUTES.cache]: event.cache,
  };
}

const known = (attributes: Record<string, unknown>): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== null)) as Attributes;

const instantOf = (ms: number): HrTime => [Math.floor(ms / 1000), (ms % 1000) * 1_000_000];
