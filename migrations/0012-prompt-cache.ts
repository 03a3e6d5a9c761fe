import type { Migration } from './migration.js';
import { time } from './schema.js';

/**
 * Counts of prompt tokens that providers read from their prompt caches or wrote to them. Usage from before this migration has 0 for both,
 * and so has usage that an older release adds; it continues to work.
 */
export const promptCache: Migration = {
  name: '0012-prompt-cache',
  minBuild: '0.1.0',
  async up({ schema }) {
    for (const table of ['usage_hourly', 'usage_sums']) {
      for (const column of ['cache_read_tokens', 'cache_write_tokens']) {
        await schema.addColumn(table, column, { ...time, defaultValue: 0 });
      }
    }
  },
};
