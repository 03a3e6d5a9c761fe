/** Builds the response of `GET /manage/status` from the parts of this instance. */
import { EVERYTHING } from '../core/authority.js';
import { populationOf } from '../core/population.js';
import type { EventBus, Scope } from '../core/ports.js';
import type { BusStatus, StatusReport } from '../core/status.js';
import { checkDependencies, type Probes } from '../http/server/probes.js';
import type { HealthSummary } from '../process/supervisor.js';
import type { BuildContext } from './context.js';
import type { Core } from './core.js';
import type { Storage } from './storage.js';
import type { Traffic } from './traffic.js';

/** The reports take little more than a second, even if the database and Redis are unavailable. */
export function statusReports(
  { settings, clock, version, instanceId }: BuildContext,
  { migrations, cache, costs }: Core,
  { proxy, upgrades, recentTraffic }: Traffic,
  { stores, shared, auditFiles, crew }: Storage,
  probes: Probes,
): (scope?: Scope) => Promise<StatusReport> {
  const startedAtMs = clock.now();
  const population = populationOf(stores.records, clock);
  return async (scope = EVERYTHING) => {
    const { missing, degraded, isDatabaseUp, isRedisUp } = await checkDependencies(probes);
    // Not read from a database that does not respond: the caller would have to wait.
    const schema = isDatabaseUp ? await migrations.status().catch(() => null) : null;
    const { http, websocket } = crew?.figures.gauges ?? { http: proxy.inFlight, websocket: upgrades.inFlight };
    return {
      version,
      instanceId,
      startedAtMs,
      uptimeMs: clock.monotonic() - probes.startedAtMs,
      missing,
      degraded,
      database: {
        driver: settings.databaseDriver,
        status: isDatabaseUp ? 'ok' : 'failing',
        schema: schema?.current ?? null,
        pendingMigrations: schema?.pending ?? [],
      },
      redis: isRedisUp === null ? 'off' : isRedisUp ? 'ok' : 'failing',
      bus: busStatus(shared.bus),
      audit: auditFiles.status,
      population: isDatabaseUp && schema?.current ? await population(scope) : null,
      inFlight: http + websocket,
      traffic: recentTraffic.report(),
      cache: cache?.backend ?? 'off',
      prices: costs.lists,
      workers: crew?.report ?? [],
    };
  };
}

/** A short summary of a status report. */
export function healthSummaryOf({
  missing,
  degraded,
  inFlight,
  traffic,
  population,
  bus,
}: StatusReport): HealthSummary {
  return {
    missing,
    degraded: bus.status === 'failing' && !degraded.includes('redis') ? [...degraded, 'event_bus'] : degraded,
    figures: [
      `${rounded(traffic.requestsPerSecond)} requests/s`,
      `${inFlight} in flight`,
      ...(population ? [`${population.tokens.active} active tokens`] : []),
    ],
  };
}

/** Rounded to two significant digits: with more, the summary would change all the time. */
const rounded = (value: number) => String(Number(value.toPrecision(2)));

function busStatus(bus: EventBus | null): BusStatus {
  if (!bus) return { kind: 'off', status: 'off', buffered: 0, published: 0, dropped: 0, lag: null };
  const { buffered, published, dropped, lag } = bus.counts;
  const kind = bus.backend === 'redis' ? 'redis-streams' : 'in-memory';
  return { kind, status: bus.isFailing ? 'failing' : 'ok', buffered, published, dropped, lag };
}
