import type { Migration } from './migration.js';
import { time } from './schema.js';

/**
 * Counts of requests that the upstream refused or failed, and of requests that were cut after they were forwarded. Usage from
 * before this migration has 0 for each, and so has usage that an older release adds; it continues to work.
 */
export const usageOutcomes: Migration = {
  name: '0006-usage-outcomes',
  minBuild: '0.1.0',
  async up({ schema }) {
    for (const table of ['usage_hourly', 'usage_sums']) {
      for (const column of ['upstream_refused', 'upstream_errors', 'cut']) {
        await schema.addColumn(table, column, { ...time, defaultValue: 0 });
      }
    }
  },
};
