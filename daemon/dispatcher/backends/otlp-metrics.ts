/**
 * Metrics of the calls that are delivered, sent to a collector from time to time.
 *
 * They are cumulative since this process began, under an instance id of its own. So each sending says all that came before: one that
 * fails is made good by the next, and one that is repeated counts nothing twice. What a kill costs is at most what was not sent
 * yet; an event that is delivered again counts again.
 */
import { randomUUID } from 'node:crypto';
import type { Histogram } from '@opentelemetry/api';
import { JsonMetricsSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import type { Clock, Log } from '../../core/ports.js';
import type { RequestEventJson } from '../../store/event-json.js';
import type { Posted } from '../http.js';
import { failureOf, operationOf } from './call.js';
import { ATTRIBUTES, METRICS } from './otlp-names.js';
import { callAttributes } from './otlp-spans.js';

const SEND_EVERY_MS = 10_000;
const LAST_SENDING_MS = 3_000; // At the end nobody waits longer for a collector.

class OnDemand extends MetricReader {
  protected override onForceFlush = () => Promise.resolve();
  protected override onShutdown = () => Promise.resolve();
}

export interface MetricsOptions {
  clock: Clock;
  log: Log;
  version: string;
  post: (body: Buffer, signal: AbortSignal) => Promise<Posted>;
}

export class CallMetrics {
  readonly #options: MetricsOptions;
  readonly #reader = new OnDemand();
  readonly #tokens: Histogram;
  readonly #duration: Histogram;
  #cancelNext: (() => void) | null = null;
  #sending: Promise<void> = Promise.resolve();
  #isUnsent = false;
  #isFailing = false;
  readonly #closing = new AbortController();

  constructor(options: MetricsOptions) {
    this.#options = options;
    const resource = resourceFromAttributes({ [ATTRIBUTES.service]: 'llmp', [ATTRIBUTES.instance]: randomUUID() });
    // The SDK keeps at most 2,000 series of each, and counts what is beyond them as one.
    const meter = new MeterProvider({ resource, readers: [this.#reader] }).getMeter('llmp', options.version);
    const histogram = ({ name, unit, description, boundaries }: (typeof METRICS)[keyof typeof METRICS]) =>
      meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...boundaries] } });
    this.#tokens = histogram(METRICS.tokenUsage);
    this.#duration = histogram(METRICS.duration);
  }

  /** Counts calls whose spans were accepted, and sees to it that they are sent. */
  record(events: readonly RequestEventJson[]): void {
    for (const event of events) this.#recordOne(event);
    this.#sendSoon();
  }

  /** Sends what was not sent. */
  async close(): Promise<void> {
    this.#cancelNext?.();
    this.#closing.abort();
    await this.#sending;
    if (!this.#isUnsent) return;
    const late = new AbortController();
    const cancel = this.#options.clock.after(LAST_SENDING_MS, () => {
      late.abort();
    });
    await this.#send(late.signal);
    cancel();
  }

  #recordOne(event: RequestEventJson): void {
    const operation = operationOf(event);
    if (operation === null || event.cache === 'hit') return; // No model was asked.
    const attributes = callAttributes(event, operation);
    const failure = failureOf(event);
    this.#duration.record(event.duration_ms / 1000, {
      ...attributes,
      ...(failure && { [ATTRIBUTES.errorType]: failure }),
    });
    const { prompt_tokens: input, completion_tokens: output } = event.usage;
    if (input !== null) this.#tokens.record(input, { ...attributes, [ATTRIBUTES.tokenType]: 'input' });
    if (output !== null) this.#tokens.record(output, { ...attributes, [ATTRIBUTES.tokenType]: 'output' });
    this.#isUnsent = true;
  }

  #sendSoon(): void {
    if (!this.#isUnsent || this.#closing.signal.aborted) return;
    this.#cancelNext ??= this.#options.clock.after(SEND_EVERY_MS, () => {
      this.#cancelNext = null;
      this.#sending = this.#sending
        .then(() => this.#send(this.#closing.signal))
        .then(() => {
          this.#sendSoon();
        });
    });
  }

  /** Never fails: the spans are delivered, whatever becomes of the metrics. */
  async #send(signal: AbortSignal): Promise<void> {
    if (!this.#isUnsent) return;
    this.#isUnsent = false;
    const { resourceMetrics } = await this.#reader.collect();
    const body = Buffer.from(JsonMetricsSerializer.serializeRequest(resourceMetrics) ?? []);
    const why = await this.#options.post(body, signal).then(
      (posted) => (posted.kind === 'accepted' ? null : posted.why),
      (error: unknown) => (error as Error).message, // Of Unauthorized: a status.
    );
    if (why !== null) this.#isUnsent = true;
    if (signal === this.#closing.signal && signal.aborted) return; // Once more, at the end.
    if (why !== null && !this.#isFailing) this.#options.log.warn('the collector does not take our metrics', { why });
    this.#isFailing = why !== null;
  }
}
