/** Metrics whose values other parts of the instance count. */
import type { Budgets } from '../core/budget/budgets.js';
import type { Admission } from '../core/admission.js';
import type { ResponseCache } from '../core/cache/response-cache.js';
import type { Limiter } from '../core/limiter.js';
import type { EventBus } from '../core/ports.js';
import type { RateLimits } from '../core/rate-limit.js';
import type { AuditStatus } from '../core/status.js';
import { byLabel, type Families } from './family.js';

export interface Sources {
  /** Requests on /v1 in flight, by kind. */
  inFlight: () => Record<'http' | 'websocket', number>;
  admission: Pick<Admission, 'size' | 'settling' | 'propagation'>;
  rateLimits: Pick<RateLimits, 'failOpens' | 'refusals'>;
  limiter: Pick<Limiter, 'refusals'>;
  budgets: Pick<Budgets, 'overruns'>;
  /** Refusals because of routes, models and budgets, by code. */
  policyRefusals: () => Record<string, number>;
  /** Null when caching is disabled. */
  cache: Pick<ResponseCache, 'backend' | 'hits' | 'misses' | 'size'> | null;
  /** Null when events are disabled. */
  bus: Pick<EventBus, 'counts'> | null;
  audit: () => AuditStatus;
  /** Time since the last synchronisation with other instances, in ms; null if the database is not shared. */
  clusterSyncAgeMs: (() => number) | null;
  /** Exchanges of JWTs, by outcome. */
  exchanges: Readonly<Record<string, number>>;
  /** Requests to the management API that a role or a ceiling did not allow, by code. */
  managementRefusals: Readonly<Record<string, number>>;
  /** Requests refused because the heap was almost full. */
  shed: () => number;
  /** Connections closed because clients held too much memory. */
  dropped: () => number;
}

export function addSources(families: Families, sources: Sources): void {
  const {
    inFlight,
    admission,
    rateLimits,
    limiter,
    budgets,
    policyRefusals,
    cache,
    bus,
    audit,
    clusterSyncAgeMs,
    exchanges,
    managementRefusals,
    shed,
    dropped,
  } = sources;
  families.gauge('llmp_in_flight_requests', 'Requests on /v1 in flight, by kind.', () => byLabel('kind', inFlight()));
  families.counter('llmp_ratelimit_refusals_total', 'Requests refused by a rate limit.', () =>
    byLabel('policy', { ...rateLimits.refusals }),
  );
  families.counter(
    'llmp_policy_refusals_total',
    'Requests refused because of the routes, models, limits or budgets of a token or project, by code.',
    () =>
      byLabel('code', {
        ...policyRefusals(),
        rate_limited: limiter.refusals.rate,
        concurrency_limited: limiter.refusals.concurrency,
      }),
  );
  families.counter(
    'llmp_budget_overruns_total',
    'Requests with a hard budget for which the provider has billed more than their bound.',
    () => budgets.overruns,
  );
  families.counter(
    'llmp_ratelimit_failopen_total',
    'Requests counted by this instance alone because Redis was unavailable.',
    () => rateLimits.failOpens,
  );
  families.counter('llmp_token_exchanges_total', 'Exchanges of JWTs for tokens, by outcome.', () =>
    byLabel('outcome', { ...exchanges }),
  );
  families.counter(
    'llmp_management_refusals_total',
    'Requests to the management API that the role or a ceiling of the caller did not allow, by code.',
    () => byLabel('code', { ...managementRefusals }),
  );
  families.counter('llmp_requests_shed_total', 'Requests refused because the heap was more than 90 % full.', shed);
  families.counter(
    'llmp_connections_dropped_total',
    'Connections closed because they held too much memory: requests waiting to be served, or responses that the client did not read.',
    dropped,
  );
  addAdmission(families, admission);
  families.gauge(
    'llmp_cluster_sync_age_seconds',
    'Time since this instance last read the changes of other instances from the database. Normally half a second or less.',
    () => clusterSyncAgeMs && clusterSyncAgeMs() / 1000,
  );
  if (cache) addCache(families, cache);
  if (bus) addEvents(families, bus);
  families.counter('llmp_audit_records_total', 'Lines written to the audit files.', () => audit().records);
  families.counter(
    'llmp_audit_write_failures_total',
    'How often writing to an audit file has started to fail.',
    () => audit().failures,
  );
  families.counter(
    'llmp_audit_use_lines_dropped_total',
    'Lines of token uses dropped because the audit file could not be written for too long.',
    () => audit().usesDropped,
  );
  families.gauge('llmp_audit_failing', '1 while an audit file cannot be written, or after it was tampered with.', () =>
    Number(audit().status === 'failing'),
  );
}

function addAdmission(families: Families, admission: Sources['admission']): void {
  let { size } = admission;
  families.beforeScrape(() => {
    ({ size } = admission);
  });
  families.gauge('llmp_admission_tokens', 'Tokens cached in memory.', () => size.accounts);
  families.gauge('llmp_admission_unknown', 'Unknown token secrets cached in memory.', () => size.missing);
  families.gauge('llmp_leases_held', 'Capped tokens for which this instance holds leased units.', () => size.leases);
  families.gauge('llmp_leases_units', 'Leased units of caps that are not used yet.', () => size.leasedUnits);
  families.histogram(
    'llmp_settle_duration_seconds',
    'Duration of successful settlements: writes of request counts to the database.',
    admission.settling.durations,
  );
  families.counter(
    'llmp_settle_failures_total',
    'Failed settlements. They are retried.',
    () => admission.settling.failed,
  );
  families.histogram(
    'llmp_revocation_propagation_seconds',
    'Time from recording a revocation or deactivation until this instance refuses the tokens.',
    admission.propagation,
  );
}

function addCache(families: Families, cache: NonNullable<Sources['cache']>): void {
  const { backend } = cache;
  let size: Promise<{ entries: number; bytes: number }> | null = null;
  families.beforeScrape(() => {
    size = cache.size();
    size.catch(() => undefined); // The families that use it handle the error.
  });
  const shared = 'With the backend redis, all instances report the same value: use max, not sum.';
  families.gauge('llmp_cache_entries', `Responses in the cache. ${shared}`, async () =>
    byLabel('backend', { [backend]: (await size)?.entries ?? 0 }),
  );
  families.gauge('llmp_cache_bytes', `Size of the cache in bytes. ${shared}`, async () =>
    byLabel('backend', { [backend]: (await size)?.bytes ?? 0 }),
  );
  families.counter('llmp_cache_hits_total', 'Requests served from the cache.', () => cache.hits);
  families.counter(
    'llmp_cache_misses_total',
    'Cacheable requests that were not served from the cache.',
    () => cache.misses,
  );
}

function addEvents(families: Families, bus: NonNullable<Sources['bus']>): void {
  families.counter('llmp_events_published_total', 'Events accepted by the event bus.', () => bus.counts.published);
  families.counter(
    'llmp_events_dropped_total',
    'Events dropped because the buffer was full, or the daemon stopped, while the event bus accepted none.',
    () => bus.counts.dropped,
  );
  families.counter(
    'llmp_events_failed_total',
    'Batches of events that the event bus did not accept. They are sent again.',
    () => bus.counts.failed,
  );
  families.gauge(
    'llmp_events_buffered',
    'Events buffered in this instance until the event bus accepts them.',
    () => bus.counts.buffered,
  );
  families.gauge(
    'llmp_events_lag',
    'Events in the stream that no dispatcher has read yet. All instances report the same value: use max, not sum.',
    () => bus.counts.lag,
  );
  families.counter(
    'llmp_events_trimmed_unread_total',
    'Events removed from the stream before a dispatcher read them. All instances count the same events: use max, not sum.',
    () => bus.counts.trimmedUnread,
  );
}
