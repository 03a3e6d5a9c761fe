import type { Migration } from './migration.js';

/**
 * What happens with streamed chat completions that do not ask for their usage, for each project. The default is what an older release
 * does, which does not write this column and continues to work.
 */
export const missingUsage: Migration = {
  name: '0013-missing-usage',
  minBuild: '0.1.0',
  async up({ schema }) {
    await schema.addColumn('projects', 'missing_usage', {
      type: schema.text(20),
      allowNull: false,
      defaultValue: 'off',
    });
  },
};
