import type { Migration } from './migration.js';

/**
 * The times of creation and of the last use, in the indexes that lists of tokens are read and counted in: so tokens that were not used
 * for a month are found among a million without reading their rows. The indexes keep their names, which older releases give to the
 * database, and their first columns.
 */
export const tokenTimes: Migration = {
  name: '0009-token-times',
  minBuild: '0.1.0',
  async up({ schema }) {
    const ofState = ['is_active', 'expires_at', 'project_id', 'max_requests', 'request_count'];
    const without = (known: string) => ofState.filter((column) => column !== known);
    const indexes: Record<string, string[]> = {
      created_at: ['created_at', 'id', ...ofState, 'last_used_at'],
      expires_at: ['expires_at', 'id', ...without('expires_at'), 'created_at', 'last_used_at'],
      last_used_at: ['last_used_at', 'id', ...ofState, 'created_at'],
      project: ['project_id', 'created_at', 'id', ...without('project_id'), 'last_used_at'],
      state: [...ofState, 'id', 'name_folded', 'created_at', 'last_used_at'],
    };
    for (const [name, columns] of Object.entries(indexes)) {
      await schema.replaceIndex('tokens', columns, `tokens_${name}`);
    }
  },
};
