/** What the parts of an instance count by themselves, and serve when they are asked for. */
import type { Admission } from '../core/admission.js';
import type { ResponseCache } from '../core/cache.js';
import type { RateLimits } from '../core/rate-limit.js';
import { byLabel, type Families } from './family.js';

export interface Sources {
  version: string;
  /** Requests on /v1 that are not over, by kind. */
  inFlight: () => Record<'http' | 'websocket', number>;
  admission: Pick<Admission, 'size' | 'settling' | 'propagation'>;
  rateLimits: Pick<RateLimits, 'failOpens' | 'refusals'>;
  /** Null when nothing is cached. */
  cache: Pick<ResponseCache, 'backend' | 'hits' | 'misses' | 'size'> | null;
}

export function addSources(families: Families, { version, inFlight, admission, rateLimits, cache }: Sources): void {
  families.gauge('llmp_info', 'Always 1; the version is its label.', () => byLabel('version', { [version]: 1 }));
  families.gauge('llmp_in_flight_requests', 'Requests on /v1 that are not over.', () => byLabel('kind', inFlight()));
  families.counter('llmp_ratelimit_refusals_total', 'Requests refused because a window was full.', () =>
    byLabel('policy', { ...rateLimits.refusals }),
  );
  families.counter(
    'llmp_ratelimit_failopen_total',
    'Requests that were counted by this instance alone because Redis was away.',
    () => rateLimits.failOpens,
  );
  addAdmission(families, admission);
  if (cache) addCache(families, cache);
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
