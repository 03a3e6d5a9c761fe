import type { Migration } from './migration.js';

/**
 * The provider of each project: its base URL, and the header for the API key. The defaults are those of an older release, which does not
 * write these columns and continues to work.
 */
export const projectUpstream: Migration = {
  name: '0011-project-upstream',
  minBuild: '0.1.0',
  async up({ schema }) {
    await schema.addColumn('projects', 'upstream_base_url', { type: schema.text(500), allowNull: true });
    await schema.addColumn('projects', 'upstream_auth', {
      type: schema.text(20),
      allowNull: false,
      defaultValue: 'bearer',
    });
  },
};
