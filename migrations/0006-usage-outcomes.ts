import type { Migration } from './migration.js';
import { time } from './schema.js';

/**
 * Of the requests that usage counts: those that the upstream refused or failed, and those that were cut after they were forwarded.
 * What was counted before has 0 of each, and so has what a release that does not know them adds; it goes on as before.
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
