/** Metrics of a primary: the sums of its workers. */
import { Histogram } from '../core/histogram.js';
import type { Sources } from '../metrics/sources.js';
import type { Crew } from '../store/ipc/crew.js';
import type { HistogramCounts } from '../store/ipc/figures.js';
import type { Core } from './core.js';

export function machineSources(crew: Crew, { admission, cache }: Core): Partial<Sources> & Pick<Sources, 'inFlight'> {
  const ticks = new Histogram(admission.settling.durations.bounds);
  const propagation = new Histogram(admission.propagation.bounds);
  crew.onFigures = () => {
    const { histograms } = crew.figures;
    copy(histograms.ticks, ticks);
    copy(histograms.propagation, propagation);
  };
  const counters = () => crew.figures.counters;
  return {
    inFlight: () => {
      const { http, websocket } = crew.figures.gauges;
      return { http, websocket };
    },
    admission: {
      get size() {
        return crew.figures.gauges;
      },
      get settling() {
        return { durations: ticks, failed: counters().failedTicks };
      },
      propagation,
    },
    rateLimits: {
      get failOpens() {
        return counters().failOpens;
      },
      get refusals() {
        const { addressRefusals: address, globalRefusals: global, selfRefusals: self } = counters();
        return { address, global, self };
      },
    },
    budgets: {
      get overruns() {
        return counters().budgetOverruns;
      },
    },
    limiter: {
      get refusals() {
        const { rateRefusals, concurrencyRefusals } = counters();
        return { rate: rateRefusals, concurrency: concurrencyRefusals };
      },
    },
    cache: cache && {
      backend: cache.backend,
      get hits() {
        return counters().hits;
      },
      get misses() {
        return counters().misses;
      },
      size: () => cache.size(),
    },
    shed: () => counters().shed,
    dropped: () => counters().dropped,
  };
}

function copy({ counts, sum }: HistogramCounts, into: Histogram): void {
  for (let at = 0; at < into.counts.length; at++) into.counts[at] = counts[at] ?? 0;
  into.sum = sum;
}
