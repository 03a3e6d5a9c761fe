import { type Attributes, type HrTime, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import type { RequestEventJson } from '../../store/event-json.js';
import { type Call, callIn, failureOf, known, objectIn, timesOf } from './call.js';
import { inputMessagesOf, outputMessagesOf } from './otlp-messages.js';
import { ATTRIBUTES, OWN_ATTRIBUTES } from './otlp-names.js';

export type Span = Parameters<typeof JsonTraceSerializer.serializeRequest>[0][number];

const NOT_SENT_STATUS = 499; // The client disconnected before it got a response.

/** Converts each request to a span, whose resource is the daemon that served it. */
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
 * The trace ID is the ID of the event (a UUIDv7), and the span ID is its random half. So they are the same if the event is delivered again, and the
 * trace can be found by the event ID.
 */
function spanOf(event: RequestEventJson, resource: Resource, version: string): Span {
  const traceId = event.id.replaceAll('-', '');
  const call = callIn(event);
  const { startMs, endMs } = timesOf(event);
  const failure = failureOf(event);
  return {
    name: call === null ? event.method : [call.operation, requestModelOf(event)].filter(Boolean).join(' '),
    kind: SpanKind.CLIENT,
    spanContext: () => ({ traceId, spanId: traceId.slice(16), traceFlags: TraceFlags.SAMPLED }),
    startTime: instantOf(startMs),
    endTime: instantOf(endMs),
    duration: instantOf(endMs - startMs),
    ended: true,
    status: { code: failure === null ? SpanStatusCode.UNSET : SpanStatusCode.ERROR },
    attributes: known({ ...(call !== null && callOf(event, call)), ...requestOf(event) }) as Attributes,
    resource,
    instrumentationScope: { name: 'llmp', version },
    links: [],
    events: [],
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Attributes that the spans and the metrics of a call share. */
export function callAttributes(event: RequestEventJson, { operation, provider }: Call): Attributes {
  return known({
    [ATTRIBUTES.operation]: operation,
    [ATTRIBUTES.provider]: provider,
    [ATTRIBUTES.requestModel]: requestModelOf(event),
    [ATTRIBUTES.responseModel]: failureOf(event) === null ? event.model : null,
  });
}

/** The model that the client requested, if the body is known; otherwise the model of the event, which is the one that the provider reported. */
function requestModelOf({ request_body, model }: RequestEventJson): string | null {
  const asked = objectIn(request_body)?.['model'];
  return typeof asked === 'string' ? asked : model;
}

function callOf(event: RequestEventJson, call: Call): Record<string, unknown> {
  const { operation } = call;
  const isChat = operation === 'chat' || operation === 'text_completion';
  return {
    ...callAttributes(event, call),
    [ATTRIBUTES.inputTokens]: event.usage.prompt_tokens,
    [ATTRIBUTES.outputTokens]: event.usage.completion_tokens,
    [ATTRIBUTES.cacheReadTokens]: event.usage.cache_read_tokens,
    [ATTRIBUTES.cacheWriteTokens]: event.usage.cache_write_tokens,
    [OWN_ATTRIBUTES.cost]: event.cost_usd === null ? null : Number(event.cost_usd),
    [ATTRIBUTES.inputMessages]: isChat ? jsonOf(inputMessagesOf(event.request_body)) : null,
    [ATTRIBUTES.outputMessages]: isChat ? jsonOf(outputMessagesOf(event.response_body)) : null,
  };
}

// A span attribute is a scalar or a list of scalars. The conventions require JSON for other values.
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

const instantOf = (ms: number): HrTime => [Math.floor(ms / 1000), (ms % 1000) * 1_000_000];
