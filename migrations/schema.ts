import type { ModelAttributeColumnOptions, QueryInterface, Transaction } from 'sequelize';
import { DataTypes, QueryTypes } from 'sequelize';

type Columns = Record<string, ModelAttributeColumnOptions>;

/**
 * Changes to the tables, the same on every database.
 *
 * Each can be made again where it was made already: MySQL commits them one by one, so that whoever is killed in the middle leaves some
 * of a migration behind. And whatever is a text is compared and put in order byte by byte, as SQLite does by itself: an id in
 * other letters is another id, whatever language the server speaks.
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

  /** A type for texts of up to so many characters. */
  text(length: number): string {
    return this.dialect === 'postgres' ? `VARCHAR(${length}) COLLATE "C"` : `VARCHAR(${length})`;
  }

  async createTable(name: string, columns: Columns): Promise<void> {
    const binary = this.isMysql ? { charset: 'utf8mb4', collate: 'utf8mb4_bin' } : {};
    await this.#queryInterface.createTable(name, columns, { transaction: this.#transaction, ...binary });
  }

  /** @param more such as how the table is kept, behind the columns. */
  async createTableAs(name: string, columns: string, more = ''): Promise<void> {
    const binary = this.isMysql ? 'CHARACTER SET utf8mb4 COLLATE utf8mb4_bin' : '';
    await this.run(`CREATE TABLE IF NOT EXISTS ${name} (${columns}) ${more} ${binary}`);
  }

  async addColumn(table: string, name: string, column: ModelAttributeColumnOptions): Promise<void> {
    if (this.isMysql && (await this.#hasColumn(table, name))) return;
    await this.#queryInterface.addColumn(table, name, column, { transaction: this.#transaction });
  }

  /** @param more `where`: of those rows alone, on databases that can do that; on others of all. */
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

  async removeIndex(table: string, name: string): Promise<void> {
    if (this.isMysql && !(await this.#hasIndex(table, name))) return;
    await this.#queryInterface.removeIndex(table, name, { transaction: this.#transaction });
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

  async run(sql: string, bind: Record<string, string | number | null> = {}): Promise<void> {
    await this.#queryInterface.sequelize.query(sql, { bind, transaction: this.#transaction });
  }
}

// All times are ms since the epoch: one type that sorts, compares and never meets a session's time zone.
export const time = { type: DataTypes.BIGINT, allowNull: false } as const;
