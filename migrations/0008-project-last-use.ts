import type { Migration } from './migration.js';

/** An index to find when any token of a project was last used. Without it the database reads all tokens of the project. */
export const projectLastUse: Migration = {
  name: '0008-project-last-use',
  minBuild: '0.1.0',
  async up({ schema }) {
    await schema.addIndex('tokens', ['project_id', 'last_used_at'], 'tokens_project_last_used');
  },
};
