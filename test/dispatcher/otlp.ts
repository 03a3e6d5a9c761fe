/** The parts of OTLP messages that the tests read. */
import { replies } from '../support/provider.js';
import { Vendor } from './vendor.js';

export const TRACES = '/v1/traces';
export const METRICS_PATH = '/v1/metrics';

export interface Value {
  stringValue?: string;
  intValue?: number;
}
export interface Attribute {
  key: string;
  value: Value;
}
export interface Span {
  traceId: string;
  spanId: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code: number };
  attributes: Attribute[];
}
export interface Traces {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: Span[] }[] }[];
}
export interface Point {
  attributes: Attribute[];
  count: number;
  sum: number;
  explicitBounds: number[];
  bucketCounts: number[];
}
export interface Metrics {
  resourceMetrics: {
    resource: { attributes: Attribute[] };
    scopeMetrics: {
      metrics: { name: string; unit: string; histogram: { aggregationTemporality: number; dataPoints: Point[] } }[];
    }[];
  }[];
}

export const valuesOf = (attributes: Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));

/** The backend with a collector that accepts everything. */
export async function openCollector(): Promise<Vendor> {
  const vendor = new Vendor();
  await vendor.open('otlp');
  vendor.receiver.answer = replies(200, {});
  return vendor;
}
