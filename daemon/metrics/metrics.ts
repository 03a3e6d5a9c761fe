/** Prometheus metrics of an instance. Except for names of models, and names of projects in the metric of costs, no label contains text chosen by clients or operators. */
import { FAILED_OUTCOMES } from '../api/vocabulary.js';
import type { RequestEnded } from '../core/events.js';
import { SingleRun } from '../core/single-run.js';
import { CostMetrics } from './cost.js';
import { byLabel, Families } from './family.js';
import { ModelMetrics } from './models.js';
import { addProcess } from './process.js';
import { RequestMetrics } from './requests.js';
import { addSources, type Sources } from './sources.js';

export class Metrics {
  readonly #families = new Families();
  readonly #requests = new RequestMetrics();
  readonly #models = new ModelMetrics();
  readonly #cost = new CostMetrics();
  readonly #rendering = new SingleRun<string>();

  constructor(sources: Omit<Sources, 'policyRefusals'>) {
    addRequests(this.#families, this.#requests);
    addModels(this.#families, this.#models);
    addCost(this.#families, this.#cost);
    addSources(this.#families, { ...sources, policyRefusals: () => this.#requests.policyRefusals() });
    addProcess(this.#families);
  }

  get contentType(): string {
    return this.#families.registry.contentType;
  }

  /** Called for every request: does not block or throw. */
  record(ended: RequestEnded): void {
    this.#requests.record(ended);
    this.#models.record(ended);
    this.#cost.record(ended);
  }

  /** Renders the text for Prometheus. Concurrent scrapes share one result. */
  render(): Promise<string> {
    return this.#rendering.run(() => this.#families.render());
  }
}

function addRequests(families: Families, requests: RequestMetrics): void {
  families.counter(
    'llmp_requests_total',
    'Completed requests on /v1. The code `none` marks requests that were not refused.',
    () => requests.requests(),
  );
  families.counter(
    'llmp_request_outcomes_total',
    `Completed requests on /v1, by outcome. Failures are ${FAILED_OUTCOMES.join(', ')}.`,
    () => byLabel('outcome', requests.outcomes),
  );
  families.counter(
    'llmp_upstream_failures_total',
    'Requests that failed because of the upstream, by kind of failure.',
    () => byLabel('kind', requests.upstreamFailures),
  );
  families.counter('llmp_request_bytes_total', 'Bytes of request bodies read from clients.', () => requests.bytesIn);
  families.counter('llmp_response_bytes_total', 'Bytes of response bodies sent to clients.', () => requests.bytesOut);
  families.histogram('llmp_request_duration_seconds', 'Duration of requests on /v1.', [
    [{ cache: 'miss' }, requests.duration.miss],
    [{ cache: 'hit' }, requests.duration.hit],
  ]);
  families.histogram(
    'llmp_time_to_first_byte_seconds',
    'Time from the start of a request until its response begins, except for refused requests.',
    requests.firstByte,
  );
  families.histogram(
    'llmp_upstream_duration_seconds',
    "Time from forwarding a request until the upstream's response begins.",
    requests.upstream,
  );
  families.histogram(
    'llmp_overhead_seconds',
    'Latency that the proxy adds to a forwarded request: time to first byte minus the time of the upstream. Includes the arrival of a small request body.',
    requests.overhead,
  );
}

function addModels(families: Families, models: ModelMetrics): void {
  families.counter(
    'llmp_model_tokens_total',
    'Model tokens as counted by the provider, without responses from the cache.',
    () => models.tokens(),
  );
  families.counter(
    'llmp_model_prompt_cache_tokens_total',
    "Prompt tokens that were read from the provider's prompt cache or written to it. They are also part of the prompt tokens.",
    () => models.promptCacheTokens(),
  );
  families.counter(
    'llmp_model_usage_missing_total',
    'Model responses that did not report their token usage.',
    () => models.missing,
  );
}

function addCost(families: Families, cost: CostMetrics): void {
  families.counter(
    'llmp_cost_usd_total',
    'What requests cost by the prices in force when they were served, in US dollars, by the name of the project. Projects after the first 50 are `other`.',
    () => cost.usd(),
  );
  families.counter(
    'llmp_unpriced_requests_total',
    'Requests that ran a model and whose cost is unknown, because the model has no price or the provider did not report its usage.',
    () => cost.unpriced,
  );
}
