/** The schema of the database. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';

export const migrations = {
  readMigrations: {
    ...ROUTES.readMigrations,
    tag: 'Migrations',
    summary: 'Show migrations',
    description: 'Shows which migrations are applied and which are pending.',
    answer: schemas.migrations,
    refusals: [],
    example: { answer: schemas.migrationsExample },
  },
  migrateUp: {
    ...ROUTES.migrateUp,
    tag: 'Migrations',
    summary: 'Apply pending migrations',
    description: 'Applies the migrations that are pending, and answers with the state after it.',
    answer: schemas.migrations,
    refusals: ['schema_too_new'],
    example: { answer: schemas.migrationsExample },
  },
} as const satisfies Partial<Declared>;
