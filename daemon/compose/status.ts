/** Builds the response of `GET /manage/status` from the parts of this instance. */
import type { ResponseCache } from '../core/cache/response-cache.js';
import type { CountPopulation } from '../core/population.js';
import type { Clock, EventBus } from '../core/ports.js';
import type { RecentTraffic } from '../core/recent-traffic.js';
import type { AuditStatus, BusStatus, StatusReport, WorkerReport } from '../core/status.js';
import { checkDependencies, type Probes } from '../http/server/probes.js';
import type { HealthSummary } from '../process/supervisor.js';

export interface StatusSources {
  version: string;
  instanceId: string;
  startedAtMs: number;
  clock: Clock;
  probes: Probes;
  databaseDriver: string;
  migrations: () => Promise<{ current: string | null; pending: readonly string[] }>;
  population: CountPopulation;
  recentTraffic: RecentTraffic;
  /** Null if the cache is disabled. */
  cache: Pick<ResponseCache, 'backend'> | null;
  inFlight: () => number;
  /** Null if events are not published. */
  bus: Pick<EventBus, 'backend' | 'isFailing' | 'counts'> | null;
  audit: () => AuditStatus;
  workers: () => WorkerReport[];
}

/** Takes little more than a second, even if the database and Redis are unavailable. */
export async function statusOf(sources: StatusSources): Promise<StatusReport> {
  const { probes, clock, recentTraffic, migrations } = sources;
  const { missing, degraded, isDatabaseUp, isRedisUp } = await checkDependencies(probes);
  // Not read from a database that does not respond: the caller would have to wait.
  const schema = isDatabaseUp ? await migrations().catch(() => null) : null;
  return {
    version: sources.version,
    instanceId: sources.instanceId,
    startedAtMs: sources.startedAtMs,
    uptimeMs: clock.monotonic() - probes.startedAtMs,
    missing,
    degraded,
    database: {
      driver: sources.databaseDriver,
      status: isDatabaseUp ? 'ok' : 'failing',
      schema: schema?.current ?? null,
      pendingMigrations: schema?.pending ?? [],
    },
    redis: isRedisUp === null ? 'off' : isRedisUp ? 'ok' : 'failing',
    bus: busStatus(sources.bus),
    audit: sources.audit(),
    population: isDatabaseUp && schema?.current ? await sources.population() : null,
    inFlight: sources.inFlight(),
    traffic: recentTraffic.report(),
    cache: sources.cache?.backend ?? 'off',
    workers: sources.workers(),
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

function busStatus(bus: StatusSources['bus']): BusStatus {
  if (!bus) return { kind: 'off', status: 'off', buffered: 0, published: 0, dropped: 0, lag: null };
  const { buffered, published, dropped, lag } = bus.counts;
  const kind = bus.backend === 'redis' ? 'redis-streams' : 'in-memory';
  return { kind, status: bus.isFailing ? 'failing' : 'ok', buffered, published, dropped, lag };
}
