/**
 * Metric families whose values are plain numbers stored elsewhere and read at each scrape. prom-client's own counters look up labels
 * by a string that they build each time, which would cost microseconds per request.
 */
import { type Metric, Registry } from 'prom-client';
import type { Histogram } from '../core/histogram.js';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  /** Set if it differs from the family's name. */
  metricName?: string;
  labels: Labels;
  value: number;
}

/** One number or several samples; null if the value is not available now. */
type Value = number | null | Iterable<Sample>;
type ReadValue = () => Value | Promise<Value>;

/** All metric families that are served. */
export class Families {
  readonly registry = new Registry();
  readonly #preparations: (() => void)[] = [];

  counter(name: string, help: string, ask: ReadValue): void {
    this.#add(name, help, 'counter', ask);
  }

  gauge(name: string, help: string, ask: ReadValue): void {
    this.#add(name, help, 'gauge', ask);
  }

  /** A histogram of times in ms, served in seconds. @param byLabels one histogram, or one for each set of labels. */
  histogram(name: string, help: string, byLabels: Histogram | readonly (readonly [Labels, Histogram])[]): void {
    const all = Array.isArray(byLabels) ? (byLabels as [Labels, Histogram][]) : [[{}, byLabels as Histogram] as const];
    this.#add(name, help, 'histogram', () => all.flatMap(([labels, it]) => samplesOf(name, labels, it)));
  }

  /** Runs `action` before each scrape, to compute values that several families share. */
  beforeScrape(action: () => void): void {
    this.#preparations.push(action);
  }

  async render(): Promise<string> {
    for (const prepare of this.#preparations) prepare();
    return this.registry.metrics();
  }

  #add(name: string, help: string, type: 'counter' | 'gauge' | 'histogram', ask: ReadValue): void {
    const metric = {
      name,
      help,
      type,
      aggregator: 'sum',
      get: async () => ({ name, help, type, aggregator: 'sum', values: [...(await samplesFrom(ask))] }),
      reset: () => undefined,
    };
    // prom-client's type only allows its own classes, but it only calls `get`.
    this.registry.registerMetric(metric as unknown as Metric);
  }
}

async function samplesFrom(ask: ReadValue): Promise<Iterable<Sample>> {
  try {
    const value = await ask();
    if (value === null) return [];
    return typeof value === 'number' ? [{ labels: {}, value }] : value;
  } catch {
    // The source of one family may be unavailable; the others must still be served.
    return [];
  }
}

/** One sample for each value of a label. */
export const byLabel = (label: string, values: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));

function samplesOf(name: string, labels: Labels, { bounds, counts, sum }: Histogram): Sample[] {
  let upTo = 0;
  const buckets = Array.from(counts, (count, index) => {
    upTo += count;
    const bound = bounds[index];
    const le = bound === undefined ? '+Inf' : String(bound / 1000);
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: upTo };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum / 1000 },
    { metricName: `${name}_count`, labels, value: upTo },
  ];
}
