/** A very large number of tokens, in the SQLite database of a daemon that is not running. */
import { digestOf } from '../../daemon/core/token.js';
import { openStores } from '../../daemon/store/open.js';
import { TestClock } from './clock.js';

const DAY_MS = 86_400_000;
const COLUMNS =
  'id, digest, project_id, name, name_folded, last_used_at, is_active, expires_at, created_at, max_requests, request_count, reserved, obfuscated';

/** SQL for the purses of tokens that were inserted without one. */
export const ADD_PURSES = `INSERT INTO purses (id, period) SELECT t.id, 'none' FROM tokens t
  WHERE NOT EXISTS (SELECT 1 FROM purses u WHERE u.id = t.id)`;

interface MadeTokens {
  projectId?: string;
  secrets?: readonly string[];
  everyMs?: number;
}

/**
 * Of all states, over twenty days, a third of them capped, over all projects in turn. Their names are `CI job N`, from 0: each was
 * created `everyMs` before the one before it.
 * @param secrets of more tokens, of the project.
 */
export async function makeTokens(
  path: string,
  count: number,
  { projectId = '', secrets = [], everyMs = 500 }: MadeTokens = {},
): Promise<void> {
  const stores = await openStores(
    { database: { driver: 'sqlite', path }, encryptionKey: undefined },
    { clock: new TestClock() },
  );
  const nowMs = Date.now();
  await stores.database.transact(async (tx) => {
    await tx.execute(
      `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < $last),
         p(nr, id) AS (SELECT ROW_NUMBER() OVER (ORDER BY id) - 1, id FROM projects)
       INSERT INTO tokens (${COLUMNS})
       SELECT LOWER(HEX(RANDOMBLOB(4)) || '-' || HEX(RANDOMBLOB(2)) || '-4000-a000-' || HEX(RANDOMBLOB(6))),
         LOWER(HEX(RANDOMBLOB(32))), p.id, 'CI job ' || i, 'ci job ' || i, $nowMs - ABS(RANDOM()) % $span, i % 7 <> 0,
         $nowMs - $span / 2 + ABS(RANDOM()) % $span, $nowMs - i * $everyMs, CASE WHEN i % 3 = 0 THEN 100 ELSE 0 END,
         ABS(RANDOM()) % 101, 0, 'sk-wt-0000…0000'
       FROM n JOIN p ON p.nr = n.i % (SELECT COUNT(*) FROM projects)`,
      { last: count - 1, nowMs, span: 20 * DAY_MS, everyMs },
    );
    for (const [n, secret] of secrets.entries()) {
      await tx.execute(
        `INSERT INTO tokens (${COLUMNS}) VALUES ($id, $digest, $projectId, '', '', 0, $yes, $expiresAtMs, $nowMs, 0, 0, 0, '')`,
        {
          id: `known-${n}`,
          digest: digestOf(secret),
          projectId,
          yes: true,
          expiresAtMs: nowMs + DAY_MS,
          nowMs,
        },
      );
    }
    await tx.execute(ADD_PURSES);
  });
  await stores.close();
}
