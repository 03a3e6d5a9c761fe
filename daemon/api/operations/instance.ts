/** The health of an instance, the schema of its database, and the description of this API. */
import * as z from 'zod';
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';

const STATUS_DESCRIPTION = `Returns the health of this instance. Rates, \`hit_ratio\` and the upstream's latencies cover the last minute on this instance.
\`hit_ratio\` is the share of requests served from the cache, not counting refused requests; it is null if there were no requests, as are the latencies.
\`errors_per_second\` are failures, as in usage reports. Tokens and projects are counted across all instances.
Large numbers of them are not counted again for each request: \`counted_at\` is the time of the count. The counts are null while the database is unavailable.
A caller who may not see all projects gets the counts of what the caller may see, and null for what is counted over all requests.
\`published\`, \`dropped\`, \`records\` and \`failures\` are counted since this instance started.`;

export const instance = {
  readStatus: {
    ...ROUTES.readStatus,
    permission: 'read the status',
    parts: [{ what: 'the figures of all requests', permission: 'read all figures' }],
    tag: 'Status',
    summary: 'Get the status',
    description: STATUS_DESCRIPTION,
    response: schemas.status,
    refusals: [],
  },
  readMigrations: {
    ...ROUTES.readMigrations,
    permission: 'read migrations',
    tag: 'Migrations',
    summary: 'List migrations',
    description: 'Returns the applied and the pending migrations of the database.',
    response: schemas.migrations,
    refusals: [],
    example: { response: schemas.migrationsExample },
  },
  migrateUp: {
    ...ROUTES.migrateUp,
    permission: 'apply migrations',
    tag: 'Migrations',
    summary: 'Apply pending migrations',
    description: 'Returns the state after the migration.',
    response: schemas.migrations,
    refusals: ['schema_too_new'],
    example: { response: schemas.migrationsExample },
  },
  describeApi: {
    ...ROUTES.describeApi,
    permission: 'know the API',
    tag: 'Description',
    summary: 'Get the OpenAPI description',
    description: 'Returns the description of the management API as OpenAPI 3.1.',
    response: z.record(z.string(), z.unknown()),
    refusals: [],
  },
} as const satisfies Partial<Declared>;
