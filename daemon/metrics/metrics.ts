/** What an instance says of itself to Prometheus. No label holds anything that clients or operators named but models. */
import type { RequestEnded } from '../core/events.js';
import { SingleRun } from '../core/single-run.js';
import { byLabel, Families } from './family.js';
import { ModelMetrics } from './models.js';
import { addProcess } from './process.js';
import { RequestMetrics } from './requests.js';
import { addSources, type Sources } from './sources.js';

export class Metrics {
  readonly #families = new Families();
  readonly #requests = new RequestMetrics();
  readonly #models = new ModelMetrics();
  readonly #rendering = new SingleRun<string>();

  constructor(sources: Sources) {
    addRequests(this.#families, this.#requests);
    addModels(this.#families, this.#models);
    addSources(this.#families, sources);
    addProcess(this.#families);
  }

  get contentType(): string {
    return this.#families.registry.contentType;
  }

  /** Part of every request: it neither waits nor throws. */
  record(ended: RequestEnded): void {
    this.#requests.record(ended);
    this.#models.record(ended);
  }

  /** The text that Prometheus reads. Those who ask at the same time get the same one. */
  render(): Promise<string> {
    return this.#rendering.run(() => this.#families.render());
  }
}

function addRequests(families: Families, requests: RequestMetrics): void {
  families.counter(
    'llmp_requests_total',
    'Requests on /v1 that are over. The code `none` stands for those that were not refused.',
    () => requests.requests(),
  );
  families.counter('llmp_request_outcomes_total', 'Requests on /v1 that are over, by how they ended.', () =>
    byLabel('outcome', requests.outcomes),
  );
  families.counter('llmp_upstream_failures_total', 'Requests that failed because of the upstream.', () =>
    byLabel('kind', requests.upstreamFailures),
  );
  families.counter('llmp_request_bytes_total', 'Bytes of bodies read from clients.', () => requests.bytesIn);
  families.counter('llmp_response_bytes_total', 'Bytes of bodies sent to clients.', () => requests.bytesOut);
  families.histogram('llmp_request_duration_seconds', 'From the beginning of a request to its end.', [
    [{ cache: 'miss' }, requests.duration.miss],
    [{ cache: 'hit' }, requests.duration.hit],
  ]);
  families.histogram(
    'llmp_time_to_first_byte_seconds',
    'From the beginning of a request until its answer began, unless it was refused.',
    requests.firstByte,
  );
  families.histogram(
    'llmp_upstream_duration_seconds',
    "From forwarding a request until the upstream's answer began.",
    requests.upstream,
  );
  families.histogram(
    'llmp_overhead_seconds',
    'What the proxy adds until the answer of a forwarded request begins: its time to first byte less that of the upstream. The arrival of a small body is part of it.',
    requests.overhead,
  );
}

function addModels(families: Families, models: ModelMetrics): void {
  families.counter(
    'llmp_model_tokens_total',
    'Model tokens as providers counted them, answers from the cache left out.',
    () => models.tokens(),
  );
  families.counter(
    'llmp_model_usage_missing_total',
    'Answers of models that did not say how many tokens they took.',
    () => models.missing,
  );
}
