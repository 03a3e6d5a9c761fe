import * as z from 'zod';
import { CACHE_BACKENDS, EVENT_BUS_KINDS, PART_STATES, type TokenState } from '../vocabulary.js';
import { count, measure, nullable, string, timestamp } from './fields.js';

const partStatus = z.enum(PART_STATES);

export const status = z
  .strictObject({
    status: z.enum(['ready', 'not ready']).describe('Whether this instance can do its work.'),
    missing: z.array(z.string()).describe('What it lacks to do its work; empty when it is ready.'),
    degraded: z.array(z.string()).describe('Which parts do not work at the moment. The instance works without them.'),
    version: string('Which release of llmp it is.'),
    instance: string('The name of this instance.'),
    started_at: timestamp('When this instance started.'),
    uptime_s: count('How long it has been running, in seconds.'),
    database: z
      .strictObject({
        driver: string('Which kind of database it is.'),
        status: partStatus.exclude(['off']).describe('Whether it answers.'),
        schema: nullable(string('The last migration that was applied; null if it is not known.')),
        pending_migrations: z.array(z.string()).describe('The migrations that are not applied yet.'),
      })
      .describe('The database.'),
    redis: partStatus.describe('Whether Redis answers; `off` if it is not used.'),
    event_bus: z
      .strictObject({
        kind: z.enum(EVENT_BUS_KINDS).describe('Where events are published.'),
        status: partStatus.describe('Whether it takes them.'),
        buffered: count('How many events wait here to be published.'),
        published: count('How many events this instance has published since it started.'),
        dropped: count('How many events this instance has dropped since it started, for want of room.'),
        lag: nullable(count('How many published events no dispatcher has taken yet; null if it is not known.')),
      })
      .describe('Where events go.'),
    audit: z
      .strictObject({
        status: partStatus.describe('Whether the audit file takes what is written; `off` if there is none.'),
        records: count('How many records this instance has written since it started.'),
        failures: count('How many it could not write since it started.'),
      })
      .describe('The audit log.'),
    projects: z
      .strictObject({ active: count('How many projects are active.'), all: count('How many projects there are.') })
      .nullable()
      .describe('The projects of all instances; null while the database does not answer.'),
    tokens: z
      .strictObject({
        active: count('How many tokens can be used.'),
        expired: count('How many tokens are expired.'),
        revoked: count('How many tokens are revoked.'),
        rate_limited: count('How many tokens have reached their cap.'),
        project_inactive: count('How many tokens belong to a project that is deactivated.'),
      } satisfies Record<TokenState, z.ZodType>)
      .nullable()
      .describe('The tokens of all instances by their state; null while the database does not answer.'),
    counted_at: nullable(timestamp('When projects and tokens were counted; null while the database does not answer.')),
    requests: z
      .strictObject({
        in_flight: count('How many requests are being answered.'),
        per_second: measure('How many requests there were in a second, over the last minute.'),
        errors_per_second: measure('How many of them failed: with 500 or above, or broken off by the upstream.'),
      })
      .describe('The requests of this instance.'),
    cache: z
      .strictObject({
        backend: z.enum(CACHE_BACKENDS).describe('Where answers are kept; `off` if none are.'),
        hit_ratio: nullable(
          z
            .number()
            .min(0)
            .max(1)
            .describe(
              'Which share of the requests of the last minute was answered from the cache, refused ones left out; null if there were none.',
            ),
        ),
      })
      .describe('The response cache.'),
    upstream: z
      .strictObject({
        p50_ms: nullable(
          measure(
            'The time, in milliseconds, within which half of the responses of the last minute began; null if there were none.',
          ),
        ),
        p95_ms: nullable(
          measure(
            'The time, in milliseconds, within which 95 % of the responses of the last minute began; null if there were none.',
          ),
        ),
      })
      .describe('The upstream, as this instance sees it.'),
  })
  .describe('How an instance is, at a glance.');

export const appliedMigration = z
  .strictObject({ name: string('The name of the migration.'), applied_at: timestamp('When it was applied.') })
  .describe('A migration that was applied.');

export const migrations = z
  .strictObject({
    current: nullable(string('The last migration that was applied; null if there was none.')),
    pending: z.array(z.string()).describe('The migrations that are not applied yet, in their order.'),
    applied: z.array(appliedMigration).describe('The migrations that were applied, in their order.'),
  })
  .describe('The state of the database schema.');

export const migrationsExample: z.input<typeof migrations> = {
  current: '0001-initial',
  pending: [],
  applied: [{ name: '0001-initial', applied_at: '2030-01-31T11:59:00.000Z' }],
};
