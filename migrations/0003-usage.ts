import type { Migration } from './migration.js';

/**
 * Usage of tokens per hour, and the sums for reports. On SQLite these tables have no row ID: they are stored in the order of their
 * keys, so that a time span is one contiguous part of the file, and no key is stored twice.
 */
export const usage: Migration = {
  name: '0003-usage',
  minBuild: '0.1.0',
  async up({ schema }) {
    const inKeyOrder = schema.dialect === 'sqlite' ? 'WITHOUT ROWID' : '';
    const text = (length: number) => `${schema.text(length)} NOT NULL`;
    const counts = ['requests', 'hits', 'prompt_tokens', 'completion_tokens'];
    const counted = (names: readonly string[]) => names.map((name) => `${name} BIGINT NOT NULL`).join(', ');
    // In text columns '' means "none", because a key cannot contain NULL. An ID begins with its hour and is built from what the row
    // counts, see daemon/core/usage.ts.
    await schema.createTableAs(
      'usage_hourly',
      `id ${text(64)} PRIMARY KEY, hour_ms BIGINT NOT NULL, token_id ${text(64)},
       project_id ${text(64)}, outcome ${text(16)}, code ${text(64)},
       model ${text(200)}, ${counted([...counts, 'with_tokens'])}`,
      inKeyOrder,
    );
    await schema.addIndex('usage_hourly', ['token_id', 'hour_ms'], 'usage_hourly_token');
    await schema.addIndex('usage_hourly', ['project_id', 'hour_ms'], 'usage_hourly_project');
    // For each kind of sum (token_day, project_hour, project_day): the start of its time, and its project and token.
    await schema.createTableAs(
      'usage_sums',
      `kind ${text(16)}, from_ms BIGINT NOT NULL, project_id ${text(64)},
       token_id ${text(64)}, model ${text(200)}, ${counted([...counts, 'refused', 'errors'])},
       PRIMARY KEY (kind, from_ms, project_id, token_id, model)`,
      inKeyOrder,
    );
    await schema.addIndex('usage_sums', ['project_id', 'kind', 'from_ms'], 'usage_sums_project');
    // The last committed flush of each instance.
    await schema.createTableAs(
      'usage_flushes',
      `instance_id ${text(64)} PRIMARY KEY, seq BIGINT NOT NULL, flushed_at BIGINT NOT NULL`,
    );
  },
};
