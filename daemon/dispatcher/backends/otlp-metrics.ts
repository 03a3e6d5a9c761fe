/**
 * Metrics of delivered model calls, exported to a collector every 10 seconds.
 *
 * They are cumulative since this process started, under its own instance ID. So the next export makes up for one that failed, and a repeated export
 * counts nothing twice. If the process is killed, only measurements since the last export are lost. An event that is delivered twice counts twice.
 */
import { randomUUID } from 'node:crypto';
import type { Histogram } from '@opentelemetry/api';
import { JsonMetricsSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import type { Clock, Log } from '../../core/ports.js';
import type { RequestEventJson } from '../../store/event-json.js';
import type { PostResult } from '../http.js';
import { callIn, failureOf } from './call.js';
import { ATTRIBUTES, METRICS } from './otlp-names.js';
import { callAttributes } from './otlp-spans.js';

const EXPORT_EVERY_MS = 10_000;
const LAST_EXPORT_MS = 3_000; // Shutdown does not wait longer for the collector.

class OnDemandReader extends MetricReader {
  protected override onForceFlush = () => Promise.resolve();
  protected override onShutdown = () => Promise.resolve();
}

export interface MetricsOptions {
  clock: Clock;
  log: Log;
  version: string;
  post: (body: Buffer, signal: AbortSignal) => Promise<PostResult>;
}

export class CallMetrics {
  readonly #options: MetricsOptions;
  readonly #reader = new OnDemandReader();
  readonly #tokens: Histogram;
  readonly #duration: Histogram;
  #cancelNext: (() => void) | null = null;
  #lastExport: Promise<void> = Promise.resolve();
  #isUnsent = false;
  #isFailing = false;
  readonly #closing = new AbortController();

  constructor(options: MetricsOptions) {
    this.#options = options;
    const resource = resourceFromAttributes({ [ATTRIBUTES.service]: 'llmp', [ATTRIBUTES.instance]: randomUUID() });
    // The SDK keeps up to 2,000 series of each metric, and combines all others in one.
    const meter = new MeterProvider({ resource, readers: [this.#reader] }).getMeter('llmp', options.version);
    const histogram = ({ name, unit, description, boundaries }: (typeof METRICS)[keyof typeof METRICS]) =>
      meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...boundaries] } });
    this.#tokens = histogram(METRICS.tokenUsage);
    this.#duration = histogram(METRICS.duration);
  }

  /** Records calls whose spans were accepted, and schedules an export. */
  record(events: readonly RequestEventJson[]): void {
    for (const event of events) this.#recordOne(event);
    this.#scheduleExport();
  }

  /** Exports measurements that were not exported yet. */
  async close(): Promise<void> {
    this.#cancelNext?.();
    this.#closing.abort();
    await this.#lastExport;
    if (!this.#isUnsent) return;
    const late = new AbortController();
    const cancel = this.#options.clock.after(LAST_EXPORT_MS, () => {
      late.abort();
    });
    await this.#export(late.signal);
    cancel();
  }

  #recordOne(event: RequestEventJson): void {
    const call = callIn(event);
    if (call === null || event.cache === 'hit') return; // No model was called.
    const attributes = callAttributes(event, call);
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

  #scheduleExport(): void {
    if (!this.#isUnsent || this.#closing.signal.aborted) return;
    this.#cancelNext ??= this.#options.clock.after(EXPORT_EVERY_MS, () => {
      this.#cancelNext = null;
      this.#lastExport = this.#lastExport
        .then(() => this.#export(this.#closing.signal))
        .then(() => {
          this.#scheduleExport();
        });
    });
  }

  /** Never rejects: a failed export must not affect the delivery of spans. */
  async #export(signal: AbortSignal): Promise<void> {
    if (!this.#isUnsent) return;
    this.#isUnsent = false;
    const { resourceMetrics } = await this.#reader.collect();
    const body = Buffer.from(JsonMetricsSerializer.serializeRequest(resourceMetrics) ?? []);
    const why = await this.#options.post(body, signal).then(
      (posted) => (posted.kind === 'accepted' ? null : posted.why),
      (error: unknown) => (error as Error).message, // The message of Unauthorized is a status.
    );
    if (why !== null) this.#isUnsent = true;
    if (signal === this.#closing.signal && signal.aborted) return; // `close` exports them again.
    if (why !== null && !this.#isFailing)
      this.#options.log.warn('cannot export metrics to the collector, retrying', { why });
    this.#isFailing = why !== null;
  }
}
