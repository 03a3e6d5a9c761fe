import type { QueryInterface, Transaction } from 'sequelize';

export interface MigrationContext {
  queryInterface: QueryInterface;
  transaction: Transaction;
}

export interface Migration {
  /** Sorts in the order of application; never changes once released. */
  name: string;
  /** The oldest build that still works on the schema after this migration. */
  minBuild: string;
  up(context: MigrationContext): Promise<void>;
}
