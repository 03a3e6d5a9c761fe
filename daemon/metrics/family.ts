/**
 * Metrics that are kept elsewhere, in plain numbers, and handed to prom-client when they are asked for. Its own counters look their
 * labels up by a text made anew each time, which takes microseconds of every request.
 */
import { type Metric, Registry } from 'prom-client';
import type { Histogram } from '../core/histogram.js';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  /** Where it is not the family's own. */
  metricName?: string;
  labels: Labels;
  value: number;
}

/** One number, or many; null is what cannot be said now. */
type Value = number | null | Iterable<Sample>;
type Ask = () => Value | Promise<Value>;

/** All that is served, by name. */
export class Families {
  readonly registry = new Registry();
  readonly #preparations: (() => void)[] = [];

  counter(name: string, help: string, ask: Ask): void {
    this.#add(name, help, 'counter', ask);
  }

  gauge(name: string, help: string, ask: Ask): void {
    this.#add(name, help, 'gauge', ask);
  }

  /** Of times in ms, served in seconds. @param byLabels one, or one for each set of labels. */
  histogram(name: string, help: string, byLabels: Histogram | readonly (readonly [Labels, Histogram])[]): void {
    const all = Array.isArray(byLabels) ? (byLabels as [Labels, Histogram][]) : [[{}, byLabels as Histogram] as const];
    this.#add(name, help, 'histogram', () => all.flatMap(([labels, it]) => samplesOf(name, labels, it)));
  }

  /** Has `action` run before everything is asked for: what several are made of is found out once. */
  beforeEach(action: () => void): void {
    this.#preparations.push(action);
  }

  async render(): Promise<string> {
    for (const prepare of this.#preparations) prepare();
    return this.registry.metrics();
  }

  #add(name: string, help: string, type: 'counter' | 'gauge' | 'histogram', ask: Ask): void {
    const metric = {
      name,
      help,
      type,
      aggregator: 'sum',
      get: async () => ({ name, help, type, aggregator: 'sum', values: [...(await answerOf(ask))] }),
      reset: () => undefined,
    };
    // prom-client's type knows its own classes only; what it calls is `get`.
    this.registry.registerMetric(metric as unknown as Metric);
  }
}

async function answerOf(ask: Ask): Promise<Iterable<Sample>> {
  try {
    const value = await ask();
    if (value === null) return [];
    return typeof value === 'number' ? [{ labels: {}, value }] : value;
  } catch {
    // What one family is made of may be away; that must not take the others with it.
    return [];
  }
}

/** A number for each value of one label. */
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
