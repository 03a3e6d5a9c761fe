/** Filters of the list of tokens by what they were used for in the last days. They read the daily sums of tokens. */
import type { TokenFilter } from '../../core/ports.js';
import { DAY_MS } from '../../core/usage.js';
import type { Bind } from './database.js';
import type { Dialect } from './dialect.js';
import { FAILURES_IN_SUM, type SumKind } from './tables.js';

/** Days of UTC, with the current one: with more, a page would take longer than a second for a hundred thousand tokens. */
const DAYS = 2;

interface Query {
  sql: string;
  bind: Bind;
}

type UseFilter = Pick<TokenFilter, 'errorsOver' | 'models'>;

const firstDayMs = (nowMs: number) => nowMs - (nowMs % DAY_MS) - (DAYS - 1) * DAY_MS;
const KIND: SumKind = 'token_day';

/** Condition on the model of `usage_sums u`. */
function modelCondition({ among }: NonNullable<TokenFilter['models']>, dialect: Dialect): Query {
  const bind = Object.fromEntries(among.map((part, i) => [`model_${i}`, part.toLowerCase()]));
  const anyOf = Object.keys(bind).map((name) => dialect.contains('LOWER(u.model)', `$${name}`));
  return { sql: anyOf.join(' OR '), bind };
}

/** Queries for the IDs of tokens, of which each must contain a match, or must not. */
export function useQueries(
  { errorsOver, models }: UseFilter,
  nowMs: number,
  dialect: Dialect,
): (Query & { isExcluded: boolean })[] {
  const sums = `SELECT u.token_id AS id FROM usage_sums u WHERE u.kind = '${KIND}' AND u.from_ms >= ${firstDayMs(nowMs)}`;
  const queries = [];
  if (errorsOver !== undefined) {
    const sql = `${sums} AND ${FAILURES_IN_SUM} > 0 GROUP BY u.token_id HAVING SUM(${FAILURES_IN_SUM}) > $errorsOver`;
    queries.push({ sql, bind: { errorsOver }, isExcluded: false });
  }
  if (models !== undefined) {
    const { sql, bind } = modelCondition(models, dialect);
    queries.push({ sql: `${sums} AND (${sql})`, bind, isExcluded: models.isExcluded });
  }
  return queries;
}

/** The same as a condition on one token, `t`, of a project: a few lookups by primary key. Null for a filter without use. */
export function useCondition({ errorsOver, models }: UseFilter, nowMs: number, dialect: Dialect): Query | null {
  // With a day that has begun only by the clock of another instance.
  const days = Array.from({ length: DAYS + 1 }, (_, day) => firstDayMs(nowMs) + day * DAY_MS);
  // One subquery for each day: for several days in one, MariaDB reads all tokens of these days.
  const own = (day: number) => `FROM usage_sums u WHERE u.kind = '${KIND}' AND u.from_ms = ${day}
    AND u.project_id = t.project_id AND u.token_id = t.id`;
  const conditions: string[] = [];
  const bind: Bind = {};
  if (errorsOver !== undefined) {
    const errors = days.map((day) => `COALESCE((SELECT SUM(${FAILURES_IN_SUM}) ${own(day)}), 0)`);
    conditions.push(`${errors.join(' + ')} > $errorsOver`);
    bind.errorsOver = errorsOver;
  }
  if (models !== undefined) {
    const { sql, bind: parts } = modelCondition(models, dialect);
    // Not EXISTS, which MariaDB turns into a list of all tokens.
    const anyDay = days.map((day) => `(SELECT COUNT(*) ${own(day)} AND (${sql})) > 0`).join(' OR ');
    conditions.push(models.isExcluded ? `NOT (${anyDay})` : `(${anyDay})`);
    Object.assign(bind, parts);
  }
  return conditions.length === 0 ? null : { sql: conditions.join(' AND '), bind };
}
