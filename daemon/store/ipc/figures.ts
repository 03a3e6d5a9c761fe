/** Counts of a worker that its primary adds up for metrics and the status. */

/** Counted since the worker started. */
export const COUNTERS = [
  'addressRefusals',
  'globalRefusals',
  'selfRefusals',
  'rateRefusals',
  'concurrencyRefusals',
  'failOpens',
  'hits',
  'misses',
  'shed',
  'dropped',
  'failedTicks',
  'budgetOverruns',
] as const;
/** At the moment. */
export const GAUGES = ['http', 'websocket', 'accounts', 'missing', 'inFlight', 'leases', 'leasedUnits'] as const;
export const HISTOGRAMS = ['ticks', 'propagation'] as const;

/** The counts of a histogram (core/histogram.ts). */
export interface HistogramCounts {
  counts: ArrayLike<number>;
  sum: number;
}

export interface Figures {
  counters: Record<(typeof COUNTERS)[number], number>;
  gauges: Record<(typeof GAUGES)[number], number>;
  histograms: Record<(typeof HISTOGRAMS)[number], HistogramCounts>;
  /** What the worker lacks to serve requests. */
  missing: readonly string[];
}

export const NO_FIGURES: Figures = {
  counters: zeros(COUNTERS),
  gauges: zeros(GAUGES),
  histograms: { ticks: { counts: [], sum: 0 }, propagation: { counts: [], sum: 0 } },
  missing: [],
};

function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}

/** The sum of two workers' figures. */
export function plus(one: Figures, other: Figures): Figures {
  const sums = <Name extends string>(names: readonly Name[], a: Record<Name, number>, b: Record<Name, number>) =>
    Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as Record<Name, number>;
  return {
    counters: sums(COUNTERS, one.counters, other.counters),
    gauges: sums(GAUGES, one.gauges, other.gauges),
    histograms: {
      ticks: bothOf(one.histograms.ticks, other.histograms.ticks),
      propagation: bothOf(one.histograms.propagation, other.histograms.propagation),
    },
    missing: [],
  };
}

function bothOf(one: HistogramCounts, other: HistogramCounts): HistogramCounts {
  const length = Math.max(one.counts.length, other.counts.length);
  const counts = Array.from({ length }, (_, at) => (one.counts[at] ?? 0) + (other.counts[at] ?? 0));
  return { counts, sum: one.sum + other.sum };
}

/** What remains of the figures of a worker that has ended. */
export const countersOf = ({ counters, histograms }: Figures): Figures => ({ ...NO_FIGURES, counters, histograms });
