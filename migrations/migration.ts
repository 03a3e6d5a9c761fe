import type { QueryInterface, Transaction } from 'sequelize';
import type { Schema } from './schema.js';

export interface MigrationContext {
  schema: Schema;
  queryInterface: QueryInterface;
  transaction: Transaction;
}

export interface Migration {
  /** Sorts in the order of application; never changes once released. */
  name: string;
  /** The oldest build that still works on the schema after this migration. */
  minBuild: string;
  /** Can be run again where it ran before, or was killed on the way. */
  up(context: MigrationContext): Promise<void>;
}
