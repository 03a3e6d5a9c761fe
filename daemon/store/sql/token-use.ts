/** Filters of the list of tokens by what they were used for in the last days. They read the daily sums of tokens. */
import type { TokenFilter } from '../../core/ports.js';
import { DAY_MS } from '../../core/usage.js';
import type { Bind } from './database.js';
import type { Dialect } from './dialect.js';
import type { SumKind } from './tables.js';

/** Days of UTC, with the current one: with more, a page would take longer than a second for a hundred thousand tokens. */
const DAYS = 2;
// As in the usage report: refused by llmp, refused by the provider, failed, and cut off by a revocation.
const ERRORS = 'u.refused + u.upstream_refused + u.errors + u.cut';

interface Query {
  sql: string;
  bind: Bind;
}

/** Queries for the IDs of tokens, of which each must contain a match, or must not. */
export function useQueries(
  { errorsOver, models }: TokenFilter,
  nowMs: number,
  dialect: Dialect,
): (Query & { isExcluded: boolean })[] {
  const kind: SumKind = 'token_day';
  const since = nowMs - (nowMs % DAY_MS) - (DAYS - 1) * DAY_MS;
  const sums = `SELECT u.token_id AS id FROM usage_sums u WHERE u.kind = '${kind}' AND u.from_ms >= ${since}`;
  const queries = [];
  if (errorsOver !== undefined) {
    const sql = `${sums} AND ${ERRORS} > 0 GROUP BY u.token_id HAVING SUM(${ERRORS}) > $errorsOver`;
    queries.push({ sql, bind: { errorsOver }, isExcluded: false });
  }
  if (models !== undefined) {
    const bind = Object.fromEntries(models.among.map((part, i) => [`model_${i}`, part.toLowerCase()]));
    const anyOf = Object.keys(bind).map((name) => dialect.contains('LOWER(u.model)', `$${name}`));
    const sql = `${sums} AND (${anyOf.join(' OR ')})`;
    queries.push({ sql, bind, isExcluded: models.isExcluded });
  }
  return queries;
}
