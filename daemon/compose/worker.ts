/** What a worker does for its primary. */
import type { Clock, Log } from '../core/ports.js';
import type { Figures } from '../store/ipc/figures.js';
import { EndedRecords } from '../store/ipc/records.js';
import type { PrimaryLink } from '../store/ipc/primary-link.js';
import type { Core } from './core.js';
import type { Traffic } from './traffic.js';

/** The records of completed requests on their way to the primary. */
export const recordsTo = ({ channel }: PrimaryLink, clock: Clock, log: Log): EndedRecords =>
  new EndedRecords({ send: (batch) => channel.call('ended', batch), clock, log });

/** Answers the questions of the primary. */
export function serveThePrimary(link: PrimaryLink, core: Core, traffic: Traffic, records: EndedRecords): void {
  const { channel } = link;
  const { admission, cache } = core;
  link.onInvalidated = (projectId, resource) => {
    cache?.coalescing.closeResource(projectId, resource);
  };
  channel.handle('purge', async (selection) => (await cache?.purge(selection)) ?? 0);
  channel.handle('count', async (selection) => (await cache?.count(selection)) ?? 0);
  channel.handle('size', async () => (await cache?.size()) ?? { entries: 0, bytes: 0 });
  // The records are sent before the reply, so they arrive before it.
  const handOver = () => {
    traffic.bounds.scheduler.publishAll();
    records.flush();
  };
  channel.handle('report', () => {
    handOver();
    return figuresOf(core, traffic);
  });
  channel.handle('settle', async () => {
    handOver();
    await admission.readBetweenTicks(() => Promise.resolve());
    return figuresOf(core, traffic);
  });
}

function figuresOf({ admission, cache, rateLimits, limiter, readiness }: Core, traffic: Traffic): Figures {
  const { proxy, upgrades, heap, bounds } = traffic;
  const { durations, failed } = admission.settling;
  return {
    counters: {
      addressRefusals: rateLimits.refusals.address,
      globalRefusals: rateLimits.refusals.global,
      selfRefusals: rateLimits.refusals.self,
      rateRefusals: limiter.refusals.rate,
      concurrencyRefusals: limiter.refusals.concurrency,
      failOpens: rateLimits.failOpens,
      hits: cache?.hits ?? 0,
      misses: cache?.misses ?? 0,
      shed: heap.refused,
      dropped: bounds.memory.dropped,
      failedTicks: failed,
      budgetOverruns: admission.budgets.overruns,
    },
    gauges: { http: proxy.inFlight, websocket: upgrades.inFlight, ...admission.size },
    histograms: {
      ticks: { counts: durations.counts, sum: durations.sum },
      propagation: { counts: admission.propagation.counts, sum: admission.propagation.sum },
    },
    missing: [...readiness.missing, ...(heap.isFull ? ['memory'] : [])],
  };
}
