import type { QueryInterface, Transaction } from 'sequelize';
import type { Schema } from './schema.js';

export interface MigrationContext {
  schema: Schema;
  queryInterface: QueryInterface;
  transaction: Transaction;
}

export interface Migration {
  /** Names sort in the order of application. A name never changes once released. */
  name: string;
  /** The oldest build that still works with the schema after this migration. */
  minBuild: string;
  /** Must be repeatable: it may have run before, completely or in part. */
  up(context: MigrationContext): Promise<void>;
}
