import type { Population } from '../../core/ports.js';
import type { Reader } from './database.js';

type Counts = Record<
  'projects' | 'active' | 'revoked' | 'expired' | 'alive' | 'spent' | 'off' | 'off_spent',
  number | string
>;

const ALIVE = 't.is_active = $yes AND t.expires_at > $now';
const SPENT = 't.max_requests > 0 AND t.request_count >= t.max_requests';

/** How many there are of each state, as `stateOf` tells them apart. Everything is counted in indexes, in one statement. */
export async function population(on: Reader, nowMs: number): Promise<Population> {
  const { by } = on.dialect;
  const tokens = `SELECT COUNT(*) FROM tokens t ${by('tokens_state')} WHERE`;
  // Those of the few projects that are inactive are looked for by project: to look for the project of each token takes longer than all else.
  const ofInactive = `SELECT COUNT(*) FROM tokens t ${by('tokens_project')}
    WHERE t.project_id IN (SELECT id FROM projects WHERE is_active = $no) AND`;
  const [row] = await on.select<Counts>(
    `SELECT (SELECT COUNT(*) FROM projects) AS projects,
       (SELECT COUNT(*) FROM projects WHERE is_active = $yes) AS active,
       (${tokens} t.is_active = $no) AS revoked,
       (${tokens} t.is_active = $yes AND t.expires_at <= $now) AS expired,
       (${tokens} ${ALIVE}) AS alive,
       (${tokens} ${ALIVE} AND ${SPENT}) AS spent,
       (${ofInactive} ${ALIVE}) AS off,
       (${ofInactive} ${ALIVE} AND ${SPENT}) AS off_spent`,
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
