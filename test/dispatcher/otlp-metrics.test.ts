/* eslint-disable @typescript-eslint/no-deprecated -- the constants of the GenAI conventions have moved to a repository without a package */
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import * as conventions from '@opentelemetry/semantic-conventions/incubating';
import { expect } from 'chai';
import { METRICS } from '../../daemon/dispatcher/backends/otlp-names.js';
import type { RequestEventJson } from '../../daemon/store/event-json.js';
import { deliveriesOf, NO_USAGE, requestEvent } from '../support/event-json.js';
import { eventually } from '../support/eventually.js';
import { json, replies } from '../support/provider.js';
import { type Attribute, type Metrics, METRICS_PATH, openCollector, TRACES, valuesOf } from './otlp.js';
import { Vendor } from './vendor.js';

describe('the metrics that a collector gets', () => {
  let vendor: Vendor;

  beforeEach(async () => {
    vendor = await openCollector();
  });
  afterEach(() => vendor.close());

  /** The metrics of the next export. */
  async function metricsAfter(...events: RequestEventJson[]): Promise<Metrics> {
    await vendor.deliver(...deliveriesOf(...events));
    const before = vendor.bodies(METRICS_PATH).length;
    vendor.clock.advance(10_000);
    await eventually('metrics are sent', () => vendor.bodies(METRICS_PATH).length > before);
    return vendor.bodies<Metrics>(METRICS_PATH).at(-1)!;
  }

  const pointsOf = (sent: Metrics, metric: { name: string }) =>
    sent.resourceMetrics[0]!.scopeMetrics[0]!.metrics.find(({ name }) => name === metric.name)?.histogram.dataPoints ??
    [];

  it('equal what the SDK and its exporter send for the same measurements', async () => {
    const ours = await metricsAfter(requestEvent());
    const exporter = new OTLPMetricExporter({ url: vendor.receiver.url + METRICS_PATH });
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
    const provider = new MeterProvider({
      resource: resourceFromAttributes({ 'service.name': 'llmp', 'service.instance.id': 'theirs' }),
      readers: [reader],
    });
    const meter = provider.getMeter('llmp', '1.2.3');
    const call = {
      [conventions.ATTR_GEN_AI_OPERATION_NAME]: 'chat',
      [conventions.ATTR_GEN_AI_PROVIDER_NAME]: 'openai',
      [conventions.ATTR_GEN_AI_REQUEST_MODEL]: 'gpt-test',
      [conventions.ATTR_GEN_AI_RESPONSE_MODEL]: 'gpt-test',
    };
    const type = conventions.ATTR_GEN_AI_TOKEN_TYPE;
    const advised = ({ unit, description, boundaries }: (typeof METRICS)[keyof typeof METRICS]) => ({
      unit,
      description,
      advice: { explicitBucketBoundaries: [...boundaries] },
    });
    const { tokenUsage, duration } = METRICS;
    const tokens = meter.createHistogram(conventions.METRIC_GEN_AI_CLIENT_TOKEN_USAGE, advised(tokenUsage));
    meter.createHistogram(conventions.METRIC_GEN_AI_CLIENT_OPERATION_DURATION, advised(duration)).record(1.5, call);
    tokens.record(3, { ...call, [type]: conventions.GEN_AI_TOKEN_TYPE_VALUE_INPUT });
    tokens.record(2, { ...call, [type]: conventions.GEN_AI_TOKEN_TYPE_VALUE_OUTPUT });
    await reader.forceFlush();
    await provider.shutdown();
    const theirs = vendor.bodies<Metrics>(METRICS_PATH)[1];
    expect(comparable(ours)).to.deep.equal(comparable(theirs!));
  });

  /** Removes the times and the instance, which differ. */
  const comparable = (sent: Metrics) =>
    JSON.parse(
      JSON.stringify(sent, (key, value: unknown) =>
        /UnixNano$/.test(key) || (value as Attribute | null)?.key === 'service.instance.id' ? null : value,
      ),
    ) as unknown;

  it('are cumulative, with the units and buckets of the conventions', async () => {
    const sent = await metricsAfter(requestEvent());
    const metrics = sent.resourceMetrics[0]!.scopeMetrics[0]!.metrics;
    expect(metrics.map(({ name, unit }) => ({ name, unit }))).to.have.deep.members([
      { name: 'gen_ai.client.token.usage', unit: '{token}' },
      { name: 'gen_ai.client.operation.duration', unit: 's' },
    ]);
    expect(metrics.map(({ histogram }) => histogram.aggregationTemporality)).to.deep.equal([2, 2]);
    expect(pointsOf(sent, METRICS.duration)[0]!.explicitBounds).to.deep.equal([
      ...[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
    ]);
    expect(pointsOf(sent, METRICS.tokenUsage)[0]!.explicitBounds).to.deep.equal([
      ...[1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
    ]);
  });

  it('do not count unknown usage, and count failures by type', async () => {
    const failed = requestEvent({ usage: NO_USAGE, status: 503, outcome: 'upstream_error', model: null });
    const sent = await metricsAfter(failed, requestEvent({ method: 'GET', path: '/v1/models', model: null }));
    expect(pointsOf(sent, METRICS.tokenUsage)).to.be.empty;
    const [point, ...more] = pointsOf(sent, METRICS.duration);
    expect(more).to.be.empty;
    expect(valuesOf(point!.attributes)).to.deep.equal({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'error.type': '503',
    });
  });

  it('make up for a failed export with the next one, and no span is sent again', async () => {
    vendor.receiver.answer = (_req, res, { url }) => {
      json(res, url === METRICS_PATH ? 503 : 200, {});
    };
    await metricsAfter(requestEvent());
    await eventually('a warning in the log', () => vendor.logged.length === 1);
    vendor.receiver.answer = replies(200, {});
    const sent = await metricsAfter(requestEvent());
    expect(pointsOf(sent, METRICS.duration)[0]).to.include({ count: 2, sum: 3 });
    expect(vendor.bodies(TRACES)).to.have.length(2);
  });

  it('do not affect spans if the collector refuses metrics, which is logged once', async () => {
    vendor.receiver.answer = (_req, res, { url }) => {
      json(res, url === METRICS_PATH ? 401 : 200, {});
    };
    for (let i = 0; i < 3; i++) await metricsAfter(requestEvent());
    await vendor.backend.close(); // Waits for the responses.
    expect(vendor.logged).to.have.length(1);
    expect(vendor.bodies(TRACES)).to.have.length(3);
  });

  it('do not count responses from the cache, because no model was called', async () => {
    const sent = await metricsAfter(requestEvent({ cache: 'hit', duration_ms: 1 }), requestEvent());
    expect(pointsOf(sent, METRICS.duration)[0]).to.include({ count: 1, sum: 1.5 });
    expect(pointsOf(sent, METRICS.tokenUsage).map(({ count }) => count)).to.deep.equal([1, 1]);
  });

  it('count only delivered events', async () => {
    const [good, bad] = [requestEvent({ duration_ms: 1000 }), requestEvent({ duration_ms: 9000 })];
    vendor.receiver.answer = (_req, res, { body, url }) => {
      json(res, url === TRACES && body.includes(bad.id.replaceAll('-', '')) ? 400 : 200, {});
    };
    const sent = await metricsAfter(good, bad);
    expect(pointsOf(sent, METRICS.duration)[0]).to.include({ count: 1, sum: 1 });
  });

  it('have a limited number of series, however many models there are', async () => {
    const events = Array.from({ length: 3000 }, (_, i) => requestEvent({ model: `model-${i}` }));
    const sent = await metricsAfter(...events);
    const points = pointsOf(sent, METRICS.duration);
    expect(points).to.have.length.within(1, 2000);
    expect(points.reduce((sum, { count }) => sum + count, 0)).to.equal(3000);
  });

  it('go to the collector of the spans if the endpoint is that of traces', async () => {
    const other = new Vendor();
    await other.open('otlp', `/collector${TRACES}/`);
    other.receiver.answer = replies(200, {});
    await other.deliver(...deliveriesOf(requestEvent()));
    await other.close();
    expect(other.receiver.received.map(({ url }) => url)).to.deep.equal([
      `/collector${TRACES}`,
      `/collector${METRICS_PATH}`,
    ]);
  });

  it('are exported on close', async () => {
    await vendor.deliver(...deliveriesOf(requestEvent()));
    expect(vendor.bodies(METRICS_PATH)).to.be.empty;
    await vendor.backend.close();
    expect(vendor.bodies(METRICS_PATH)).to.have.length(1);
  });

  it('are exported again on close if an export was in flight', async () => {
    await vendor.deliver(...deliveriesOf(requestEvent()));
    vendor.receiver.answer = (_req, res) => {
      if (vendor.bodies(METRICS_PATH).length > 1) json(res, 200, {});
    };
    vendor.clock.advance(10_000);
    await eventually('an export in flight', () => vendor.bodies(METRICS_PATH).length === 1);
    await vendor.backend.close();
    const [first, second] = vendor.bodies<Metrics>(METRICS_PATH);
    expect(pointsOf(second!, METRICS.duration)[0]).to.include({ count: 1 });
    expect(pointsOf(first!, METRICS.duration)[0]).to.include({ count: 1 });
    expect(vendor.logged).to.be.empty;
  });

  it('do not delay close for more than 3 s if the collector does not respond', async () => {
    await vendor.deliver(...deliveriesOf(requestEvent()));
    vendor.receiver.answer = () => undefined;
    const closed = vendor.backend.close();
    await eventually('metrics are sent', () => vendor.bodies(METRICS_PATH).length === 1);
    vendor.clock.advance(3_000);
    await closed;
  });
});
