import type { ModelAttributeColumnOptions, QueryInterface, Transaction } from 'sequelize';
import { DataTypes, QueryTypes } from 'sequelize';

type Columns = Record<string, ModelAttributeColumnOptions>;

/**
 * Schema changes that work alike on every database.
 *
 * Each change can be repeated: MySQL commits every one on its own, so a killed process may leave part of a migration behind. Texts
 * are compared and sorted byte by byte, as SQLite does by default: IDs are case-sensitive, whatever the locale of the server.
 */
export class Schema {
  readonly #queryInterface: QueryInterface;
  readonly #transaction: Transaction;
  readonly isMysql: boolean;

  constructor(queryInterface: QueryInterface, transaction: Transaction) {
    this.#queryInterface = queryInterface;
    this.#transaction = transaction;
    this.isMysql = this.dialect === 'mysql';
  }

  get dialect(): string {
    return this.#queryInterface.sequelize.getDialect();
  }

  /** Column type for texts of up to `length` characters. */
  text(length: number): string {
    return this.dialect === 'postgres' ? `VARCHAR(${length}) COLLATE "C"` : `VARCHAR(${length})`;
  }

  async createTable(name: string, columns: Columns): Promise<void> {
    const binary = this.isMysql ? { charset: 'utf8mb4', collate: 'utf8mb4_bin' } : {};
    await this.#queryInterface.createTable(name, columns, { transaction: this.#transaction, ...binary });
  }

  /** @param more table options, placed after the columns. */
  async createTableAs(name: string, columns: string, more = ''): Promise<void> {
    const binary = this.isMysql ? 'CHARACTER SET utf8mb4 COLLATE utf8mb4_bin' : '';
    await this.run(`CREATE TABLE IF NOT EXISTS ${name} (${columns}) ${more} ${binary}`);
  }

  async addColumn(table: string, name: string, column: ModelAttributeColumnOptions): Promise<void> {
    if (this.isMysql && (await this.#hasColumn(table, name))) return;
    await this.#queryInterface.addColumn(table, name, column, { transaction: this.#transaction });
  }

  /** @param more `where`: only index these rows, on databases that support it; others index all rows. */
  async addIndex(
    table: string,
    columns: string[],
    name: string,
    { isUnique = false, where = '' }: { isUnique?: boolean; where?: string } = {},
  ): Promise<void> {
    if (this.isMysql && (await this.#hasIndex(table, name))) return;
    const only = where === '' || this.isMysql ? '' : `WHERE ${where}`;
    await this.run(`CREATE ${isUnique ? 'UNIQUE' : ''} INDEX ${name} ON ${table} (${columns.join(', ')}) ${only}`);
  }

  async #hasIndex(table: string, name: string): Promise<boolean> {
    const found = await this.#queryInterface.sequelize.query(`SHOW INDEX FROM ${table} WHERE Key_name = $name`, {
      bind: { name },
      transaction: this.#transaction,
      type: QueryTypes.SELECT,
    });
    return found.length > 0;
  }

  async #hasColumn(table: string, name: string): Promise<boolean> {
    const found = await this.#queryInterface.sequelize.query(`SHOW COLUMNS FROM ${table} WHERE Field = $name`, {
      bind: { name },
      transaction: this.#transaction,
      type: QueryTypes.SELECT,
    });
    return found.length > 0;
  }

  async run(sql: string): Promise<void> {
    await this.#queryInterface.sequelize.query(sql, { transaction: this.#transaction });
  }
}

// All times are ms since the epoch: a type that sorts and compares correctly and is independent of a session's time zone.
export const time = { type: DataTypes.BIGINT, allowNull: false } as const;
