/**
 * Counters of every request on /v1. Labels have few, fixed values, whatever clients and providers send. Recording a request takes
 * well under a microsecond: one array element per combination of labels, without allocation.
 */
import { OUTCOMES, type RequestEnded } from '../core/events.js';
import { Histogram } from '../core/histogram.js';
import type { Sample } from './family.js';

const OTHER = 'other';
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'OTHER'];
const CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx', OTHER];
const CACHE = ['miss', 'hit'];
/** Error codes of refusals on /v1; `none` for requests that were not refused. */
const CODES = [
  'none',
  'malformed_request',
  'unauthorized',
  'credential_in_query',
  'project_inactive',
  'method_not_allowed',
  'request_timeout',
  'body_too_large',
  'uri_too_long',
  'expectation_failed',
  'request_limit_reached',
  'route_not_allowed',
  'route_escapes',
  'model_not_allowed',
  'model_not_named',
  'model_not_checkable',
  'invalid_request',
  'unsupported_media_type',
  'rate_limited',
  'concurrency_limited',
  'budget_exhausted',
  'budget_reserved',
  'model_not_priced',
  'cost_not_bounded',
  'usage_not_requested',
  'headers_too_large',
  'not_supported',
  'loop_detected',
  'not_cached',
  'upstream_unreachable',
  'upstream_key_rejected',
  'upstream_malformed',
  'upstream_timeout',
  'unavailable',
  'internal',
  OTHER,
];

/** Codes of refusals because of the routes and models that a token may use, and of budgets. */
const POLICY_CODES = [
  'route_not_allowed',
  'route_escapes',
  'model_not_allowed',
  'model_not_named',
  'model_not_checkable',
  'budget_exhausted',
  'budget_reserved',
  'model_not_priced',
  'cost_not_bounded',
];

/** Kinds of upstream failure. `status_5xx` is a response of the upstream that was passed on; `reported` an error within a response. */
const UPSTREAM_FAILURES = [
  'unreachable',
  'key_rejected',
  'malformed',
  'timeout',
  'truncated',
  'status_5xx',
  'reported',
] as const;
type UpstreamFailure = (typeof UPSTREAM_FAILURES)[number];

// In ms. A model may take minutes; a cache hit takes less than 1 ms.
const REQUEST_BOUNDS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1e3, 2.5e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5];
const OVERHEAD_BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1e3, 2.5e3];

const indexesIn = (values: readonly string[]) => new Map(values.map((value, index) => [value, index]));
const METHOD_INDEXES = indexesIn(METHODS);
const CODE_INDEXES = indexesIn(CODES);

export class RequestMetrics {
  readonly #requests = new Float64Array(METHODS.length * CLASSES.length * CACHE.length * CODES.length);
  readonly outcomes: Record<string, number> = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0]));
  readonly upstreamFailures = Object.fromEntries(UPSTREAM_FAILURES.map((kind) => [kind, 0])) as Record<
    UpstreamFailure,
    number
  >;
  readonly duration = { miss: new Histogram(REQUEST_BOUNDS), hit: new Histogram(REQUEST_BOUNDS) };
  readonly firstByte = new Histogram(REQUEST_BOUNDS);
  readonly upstream = new Histogram(REQUEST_BOUNDS);
  readonly overhead = new Histogram(OVERHEAD_BOUNDS);
  bytesIn = 0;
  bytesOut = 0;

  record(ended: RequestEnded): void {
    const { firstByteMs, upstreamMs, outcome } = ended;
    const index = indexOf(ended);
    this.#requests[index] = (this.#requests[index] ?? 0) + 1;
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1;
    this.duration[ended.cache].observe(ended.durationMs);
    this.bytesIn += ended.bytesIn;
    this.bytesOut += ended.bytesOut;
    if (firstByteMs !== null) this.firstByte.observe(firstByteMs);
    if (firstByteMs !== null && upstreamMs !== null) {
      this.upstream.observe(upstreamMs);
      this.overhead.observe(firstByteMs - upstreamMs);
    }
    if (outcome !== 'ok') {
      const failure = upstreamFailureOf(ended);
      if (failure) this.upstreamFailures[failure] += 1;
    }
  }

  /** Refusals because of the routes and models that a token may use, and of budgets, by code. */
  policyRefusals(): Record<string, number> {
    const counts = Object.fromEntries(POLICY_CODES.map((code) => [code, 0]));
    for (const [index, value] of this.#requests.entries()) {
      const code = CODES[index % CODES.length] ?? '';
      const count = counts[code];
      if (count !== undefined) counts[code] = count + value;
    }
    return counts;
  }

  /** By method, status class, cache and code; only combinations that have occurred. */
  *requests(): Iterable<Sample> {
    for (const [index, value] of this.#requests.entries()) if (value > 0) yield { labels: labelsAt(index), value };
  }
}

function indexOf({ method, status, cache, outcome, code }: RequestEnded): number {
  const methodPlace = METHOD_INDEXES.get(method) ?? METHODS.length - 1;
  const classPlace = status >= 100 && status < 600 ? Math.floor(status / 100) - 1 : CLASSES.length - 1;
  // The code of the provider is none of a refusal.
  const codePlace = code === null || outcome === 'provider_error' ? 0 : (CODE_INDEXES.get(code) ?? CODES.length - 1);
  return (
    ((methodPlace * CLASSES.length + classPlace) * CACHE.length + (cache === 'hit' ? 1 : 0)) * CODES.length + codePlace
  );
}

function labelsAt(index: number): Record<string, string> {
  const [beforeCode, code] = divided(index, CODES.length);
  const [beforeCache, cache] = divided(beforeCode, CACHE.length);
  const [method, statusClass] = divided(beforeCache, CLASSES.length);
  return {
    method: METHODS[method] ?? '',
    status_class: CLASSES[statusClass] ?? '',
    cache: CACHE[cache] ?? '',
    code: CODES[code] ?? '',
  };
}

const divided = (index: number, by: number): [number, number] => [Math.floor(index / by), index % by];

/** Undefined if the upstream was not the cause. */
function upstreamFailureOf({ code, status, outcome }: RequestEnded): UpstreamFailure | undefined {
  if (outcome === 'provider_error') return 'reported';
  if (code !== null) {
    const kind = code.startsWith('upstream_') ? code.slice('upstream_'.length) : '';
    return UPSTREAM_FAILURES.find((it) => it === kind);
  }
  if (outcome === 'truncated' || outcome === 'timeout') return outcome;
  return outcome === 'upstream_error' && status >= 500 ? 'status_5xx' : undefined;
}
