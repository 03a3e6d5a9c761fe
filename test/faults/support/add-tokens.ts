import type { TestDaemon } from '../../support/daemon.js';
import { ADD_PURSES } from '../../support/many-tokens.js';
import { write } from '../../support/management.js';

/**
 * Inserts tokens with unknown secrets directly into the database.
 *
 * @param modelsKey SQL for the key of the list of models of the token `i`.
 */
export async function addTokens(
  daemon: TestDaemon,
  projectId: string,
  count: number,
  { modelsKey = "''" } = {},
): Promise<number> {
  const added = await write(
    daemon,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $count)
     INSERT INTO tokens (id, digest, project_id, name, name_folded, is_active, expires_at, created_at, max_requests, models_key, obfuscated)
     SELECT printf('%08x-0000-4000-8000-%012x', i, i), printf('%064x', i), $projectId, 'crowd', 'crowd', TRUE, 4102444800000, i, 0,
       ${modelsKey}, 'sk-wt-0000…0000' FROM n`,
    { count, projectId },
  );
  await write(daemon, ADD_PURSES);
  return added;
}
