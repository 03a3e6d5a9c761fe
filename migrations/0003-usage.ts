import type { Migration } from './migration.js';

/**
 * What tokens were used for, by the hour, and the sums of it that reports go by. None of these tables has a row number of its
 * own on SQLite: they lie in the order of their keys, so that a span of time is one stretch of the file, and no key is
 * stored twice.
 */
export const usage: Migration = {
  name: '0003-usage',
  minBuild: '0.1.0',
  async up({ queryInterface: { sequelize }, transaction }) {
    const inKeyOrder = sequelize.getDialect() === 'sqlite' ? 'WITHOUT ROWID' : '';
    const counts = ['requests', 'hits', 'prompt_tokens', 'completion_tokens'];
    const counted = (names: readonly string[]) => names.map((name) => `${name} BIGINT NOT NULL`).join(', ');
    const statements = [
      // '' stands for "none" in texts here, for a key holds no null. An id begins with its hour and is made of what the
      // row counts, see daemon/core/usage.ts.
      `CREATE TABLE usage_hourly (
         id VARCHAR(64) NOT NULL PRIMARY KEY, hour_ms BIGINT NOT NULL, token_id VARCHAR(64) NOT NULL,
         project_id VARCHAR(64) NOT NULL, outcome VARCHAR(16) NOT NULL, code VARCHAR(64) NOT NULL,
         model VARCHAR(200) NOT NULL, ${counted([...counts, 'with_tokens'])}) ${inKeyOrder}`,
      'CREATE INDEX usage_hourly_token ON usage_hourly (token_id, hour_ms)',
      'CREATE INDEX usage_hourly_project ON usage_hourly (project_id, hour_ms)',
      // Of each kind of sum (token_day, project_hour, project_day): from when on it counts, and for whom.
      `CREATE TABLE usage_sums (
         kind VARCHAR(16) NOT NULL, from_ms BIGINT NOT NULL, project_id VARCHAR(64) NOT NULL,
         token_id VARCHAR(64) NOT NULL, model VARCHAR(200) NOT NULL, ${counted([...counts, 'refused', 'errors'])},
         PRIMARY KEY (kind, from_ms, project_id, token_id, model)) ${inKeyOrder}`,
      'CREATE INDEX usage_sums_project ON usage_sums (project_id, kind, from_ms)',
      // The last flush of each instance that was committed.
      `CREATE TABLE usage_flushes (
         instance_id VARCHAR(64) NOT NULL PRIMARY KEY, seq BIGINT NOT NULL, flushed_at BIGINT NOT NULL)`,
    ];
    for (const sql of statements) await sequelize.query(sql, { transaction });
  },
};
