/** Migrations of the database schema. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';

export const migrations = {
  readMigrations: {
    ...ROUTES.readMigrations,
    tag: 'Migrations',
    summary: 'List migrations',
    description: 'Returns the applied and the pending migrations of the database.',
    response: schemas.migrations,
    refusals: [],
    example: { response: schemas.migrationsExample },
  },
  migrateUp: {
    ...ROUTES.migrateUp,
    tag: 'Migrations',
    summary: 'Apply pending migrations',
    description: 'Returns the state after the migration.',
    response: schemas.migrations,
    refusals: ['schema_too_new'],
    example: { response: schemas.migrationsExample },
  },
} as const satisfies Partial<Declared>;
