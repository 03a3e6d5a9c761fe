import type { Population } from '../../core/ports.js';
import type { Reader } from './database.js';
import { by } from './dialect.js';

type Counts = Record<
  'projects' | 'active' | 'revoked' | 'expired' | 'alive' | 'spent' | 'off' | 'off_spent',
  number | string
>;

const TOKENS = `SELECT COUNT(*) FROM tokens t ${by('tokens_state')} WHERE`;
const ALIVE = 't.is_active = $yes AND t.expires_at > $now';
const SPENT = 't.max_requests > 0 AND t.request_count >= t.max_requests';
// Those of the few projects that are inactive are looked for by project: to look for the project of each token takes longer than all else.
const OF_INACTIVE = `SELECT COUNT(*) FROM projects p CROSS JOIN tokens t ${by('tokens_project')}
  ON t.project_id = p.id WHERE p.is_active = $no AND`;

/** How many there are of each state, as `stateOf` tells them apart. Everything is counted in indexes, in one statement. */
export async function population(on: Reader, nowMs: number): Promise<Population> {
  const [row] = await on.select<Counts>(
    `SELECT (SELECT COUNT(*) FROM projects) AS projects,
       (SELECT COUNT(*) FROM projects WHERE is_active = $yes) AS active,
       (${TOKENS} t.is_active = $no) AS revoked,
       (${TOKENS} t.is_active = $yes AND t.expires_at <= $now) AS expired,
       (${TOKENS} ${ALIVE}) AS alive,
       (${TOKENS} ${ALIVE} AND ${SPENT}) AS spent,
       (${OF_INACTIVE} ${ALIVE}) AS off,
       (${OF_INACTIVE} ${ALIVE} AND ${SPENT}) AS off_spent`,
    { yes: true, no: false, now: nowMs },
  );
  const count = (name: keyof Counts) => Number(row?.[name] ?? 0);
  const limited = count('spent') - count('off_spent');
  return {
    projects: { active: count('active'), all: count('projects') },
    tokens: {
      active: count('alive') - count('off') - limited,
      expired: count('expired'),
      revoked: count('revoked'),
      rate_limited: limited,
      project_inactive: count('off'),
    },
  };
}
