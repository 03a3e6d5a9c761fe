import * as z from 'zod';
import { CACHE_BACKENDS, EVENT_BUS_KINDS, COMPONENT_STATES, type TokenState } from '../vocabulary.js';
import { FAILURES_ARE } from './failures.js';
import { priceLists } from './prices.js';
import { count, measure, nullable, string, timestamp } from './fields.js';

const partStatus = z.enum(COMPONENT_STATES);

/** What is counted over all requests. */
const ofAll = <Value extends z.ZodType>(value: Value) =>
  value.nullable().describe(`${value.description ?? ''} Null for a caller who may not see all projects.`);

export const status = z
  .strictObject({
    status: z.enum(['ready', 'not ready']).describe('Whether this instance can serve requests.'),
    missing: z.array(z.string()).describe('What this instance needs to become ready; empty when it is ready.'),
    degraded: z
      .array(z.string())
      .describe('Parts that are failing, although the instance can serve requests without them.'),
    version: string('Version of llmp.'),
    instance: string('Name of this instance.'),
    started_at: timestamp('Start time of this instance.'),
    uptime_s: count('Time since the start, in seconds.'),
    database: z
      .strictObject({
        driver: string('Type of the database.'),
        status: partStatus.exclude(['off']).describe('Whether the database is available.'),
        schema: nullable(string('Name of the last applied migration; null if unknown.')),
        pending_migrations: z.array(z.string()).describe('Names of the migrations that are not applied yet.'),
      })
      .describe('The database.'),
    redis: partStatus.describe('Whether Redis is available; `off` if it is not configured.'),
    event_bus: z
      .strictObject({
        kind: z.enum(EVENT_BUS_KINDS).describe('Where events are published.'),
        status: partStatus.describe('Whether events can be published.'),
        buffered: ofAll(count('Number of events that wait on this instance to be published.')),
        published: ofAll(count('Number of events that this instance has published since it started.')),
        dropped: ofAll(
          count('Number of events that this instance has dropped since it started, because its buffer was full.'),
        ),
        lag: nullable(count('Number of published events that no dispatcher has read yet; null if unknown.')),
      })
      .describe('The event bus.'),
    audit: z
      .strictObject({
        status: partStatus.describe('Whether the audit file can be written; `off` if there is none.'),
        records: ofAll(count('Number of records that this instance has written since it started.')),
        failures: ofAll(count('Number of records that it failed to write since it started.')),
      })
      .describe('The audit log.'),
    projects: z
      .strictObject({ active: count('Number of active projects.'), all: count('Number of all projects.') })
      .nullable()
      .describe('Number of projects, across all instances; null while the database is unavailable.'),
    tokens: z
      .strictObject({
        active: count('Number of tokens that can be used.'),
        expired: count('Number of expired tokens.'),
        revoked: count('Number of revoked tokens.'),
        rate_limited: count('Number of tokens that have reached their cap.'),
        project_inactive: count('Number of tokens of inactive projects.'),
      } satisfies Record<TokenState, z.ZodType>)
      .nullable()
      .describe('Number of tokens by state, across all instances; null while the database is unavailable.'),
    counted_at: nullable(
      timestamp('Time when projects and tokens were counted; null while the database is unavailable.'),
    ),
    requests: ofAll(
      z
        .strictObject({
          in_flight: count('Number of requests in flight.'),
          per_second: measure('Requests per second, over the last minute.'),
          errors_per_second: measure(`Failures per second, over the last minute: ${FAILURES_ARE}.`),
        })
        .describe('The requests of this instance.'),
    ),
    cache: z
      .strictObject({
        backend: z.enum(CACHE_BACKENDS).describe('Where responses are stored; `off` if the cache is disabled.'),
        hit_ratio: nullable(
          z
            .number()
            .min(0)
            .max(1)
            .describe(
              'Share of the requests of the last minute that were served from the cache, not counting refused requests; null if there were none.',
            ),
        ),
      })
      .describe('The response cache.'),
    upstream: z
      .strictObject({
        p50_ms: nullable(
          measure(
            'Median time until a response started over the last minute, in milliseconds; null if there were none.',
          ),
        ),
        p95_ms: nullable(
          measure(
            '95th percentile of the time until a response started over the last minute, in milliseconds; null if there were none.',
          ),
        ),
      })
      .describe('The upstream, as this instance sees it.'),
    prices: priceLists,
    workers: z
      .array(
        z
          .strictObject({
            number: count('Number of the worker.'),
            pid: count('ID of its process.'),
            started_at: timestamp('Start time of the process.'),
            missing: z.array(z.string()).describe('What it needs to serve requests; empty when it is ready.'),
            in_flight: ofAll(count('Number of requests in flight in this worker.')),
          })
          .describe('A worker.'),
      )
      .describe('The processes that serve /v1 for this instance; empty with WORKERS=1.'),
  })
  .describe('Health of an instance.');

export const appliedMigration = z
  .strictObject({ name: string('Name of the migration.'), applied_at: timestamp('Time when it was applied.') })
  .describe('An applied migration.');

export const migrations = z
  .strictObject({
    current: nullable(string('Name of the last applied migration; null if there is none.')),
    pending: z.array(z.string()).describe('Names of the migrations that are not applied yet, in order.'),
    applied: z.array(appliedMigration).describe('The applied migrations, in order.'),
  })
  .describe('The state of the database schema.');

export const migrationsExample: z.input<typeof migrations> = {
  current: '0001-first-schema',
  pending: [],
  applied: [{ name: '0001-first-schema', applied_at: '2030-01-31T11:59:00.000Z' }],
};
