import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';

/** All migrations in order. A file that the migrator does not know is a migration that never runs. */
export const MIGRATIONS = readdirSync(resolve(import.meta.dirname, '../../migrations'))
  .filter((file) => /^\d{4}-.*\.js$/.test(file))
  .map((file) => file.replace(/\.js$/, ''))
  .sort();
export const LAST_MIGRATION = MIGRATIONS.at(-1);
