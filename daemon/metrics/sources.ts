/** What the parts of an instance count by themselves, and serve when they are asked for. */
import type { Admission } from '../core/admission.js';
import type { ResponseCache } from '../core/cache/response-cache.js';
import type { EventBus } from '../core/ports.js';
import type { RateLimits } from '../core/rate-limit.js';
import type { AuditStatus } from '../core/status.js';
import { byLabel, type Families } from './family.js';

export interface Sources {
  /** Requests on /v1 that are not over, by kind. */
  inFlight: () => Record<'http' | 'websocket', number>;
  admission: Pick<Admission, 'size' | 'settling' | 'propagation'>;
  rateLimits: Pick<RateLimits, 'failOpens' | 'refusals'>;
  /** Null when nothing is cached. */
  cache: Pick<ResponseCache, 'backend' | 'hits' | 'misses' | 'size'> | null;
  /** Null when nothing is published. */
  bus: Pick<EventBus, 'counts'> | null;
  audit: () => AuditStatus;
  /** For how long it has not been known what other instances changed, in ms; null where there are none. */
  unheardMs: (() => number) | null;
  /** Requests refused because the heap was almost full. */
  shed: () => number;
  /** Connections ended because clients held too much memory. */
  dropped: () => number;
}

export function addSources(families: Families, sources: Sources): void {
  const { inFlight, admission, rateLimits, cache, bus, audit, unheardMs, shed, dropped } = sources;
  families.gauge('llmp_in_flight_requests', 'Requests on /v1 that are not over.', () => byLabel('kind', inFlight()));
  families.counter('llmp_ratelimit_refusals_total', 'Requests refused because a window was full.', () =>
    byLabel('policy', { ...rateLimits.refusals }),
  );
  families.counter(
    'llmp_ratelimit_failopen_total',
    'Requests that were counted by this instance alone because Redis was away.',
    () => rateLimits.failOpens,
  );
  families.counter('llmp_requests_shed_total', 'Requests refused because nine tenths of the heap were full.', shed);
  families.counter(
    'llmp_connections_dropped_total',
    'Connections ended because of what was sent on them and could not be served yet, or answered and was not read.',
    dropped,
  );
  addAdmission(families, admission);
  families.gauge(
    'llmp_neighbours_unheard_seconds',
    'For how long this instance has not heard what others that share its database changed. Half a second or less is usual.',
    () => unheardMs && unheardMs() / 1000,
  );
  if (cache) addCache(families, cache);
  if (bus) addEvents(families, bus);
  families.counter('llmp_audit_records_total', 'Lines written to the audit files.', () => audit().records);
  families.counter(
    'llmp_audit_write_failures_total',
    'Writes that an audit file did not take.',
    () => audit().failures,
  );
  families.counter(
    'llmp_audit_use_lines_dropped_total',
    'Lines of uses there was no room for while their audit file took none.',
    () => audit().usesDropped,
  );
  families.gauge('llmp_audit_failing', '1 while an audit file cannot be written.', () =>
    Number(audit().status === 'failing'),
  );
}

function addAdmission(families: Families, admission: Sources['admission']): void {
  let { size } = admission;
  families.beforeEach(() => {
    ({ size } = admission);
  });
  families.gauge('llmp_admission_tokens', 'Tokens that are remembered.', () => size.accounts);
  families.gauge('llmp_admission_unknown', "Secrets that are remembered to be no token's.", () => size.missing);
  families.gauge('llmp_leases_held', 'Capped tokens of which units are in hand.', () => size.leases);
  families.gauge('llmp_leases_units', 'Units of caps in hand, not yet used.', () => size.leasedUnits);
  families.histogram(
    'llmp_settle_duration_seconds',
    'Writing a tick of counted uses, of those that the database took.',
    admission.settling.durations,
  );
  families.counter(
    'llmp_settle_failures_total',
    'Ticks of counted uses that the database did not take; they are sent again.',
    () => admission.settling.failed,
  );
  families.histogram(
    'llmp_revocation_propagation_seconds',
    'From when a revocation or deactivation was recorded until this instance refused.',
    admission.propagation,
  );
}

function addCache(families: Families, cache: NonNullable<Sources['cache']>): void {
  const { backend } = cache;
  let size: Promise<{ entries: number; bytes: number }> | null = null;
  families.beforeEach(() => {
    size = cache.size();
    size.catch(() => undefined); // Whoever asks for it hears of it.
  });
  const shared = 'With the backend redis all instances say the same: do not add it up.';
  families.gauge('llmp_cache_entries', `Answers in the cache. ${shared}`, async () =>
    byLabel('backend', { [backend]: (await size)?.entries ?? 0 }),
  );
  families.gauge('llmp_cache_bytes', `Bytes in the cache. ${shared}`, async () =>
    byLabel('backend', { [backend]: (await size)?.bytes ?? 0 }),
  );
  families.counter('llmp_cache_hits_total', 'Requests answered from the cache.', () => cache.hits);
  families.counter(
    'llmp_cache_misses_total',
    'Requests that might have been answered from the cache, and were not.',
    () => cache.misses,
  );
}

function addEvents(families: Families, bus: NonNullable<Sources['bus']>): void {
  families.counter('llmp_events_published_total', 'Events that the bus took.', () => bus.counts.published);
  families.counter(
    'llmp_events_dropped_total',
    'Events there was no room for while the bus took none.',
    () => bus.counts.dropped,
  );
  families.counter(
    'llmp_events_failed_total',
    'Batches of events that the bus did not take; they are sent again.',
    () => bus.counts.failed,
  );
  families.gauge('llmp_events_buffered', 'Events that wait here for the bus.', () => bus.counts.buffered);
  families.gauge(
    'llmp_events_lag',
    'Events in the stream that no dispatcher has read, for all instances: do not add it up.',
    () => bus.counts.lag,
  );
  families.counter(
    'llmp_events_trimmed_unread_total',
    'Events that were gone from the stream before a dispatcher read them, as each instance saw it: do not add it up.',
    () => bus.counts.trimmedUnread,
  );
}
