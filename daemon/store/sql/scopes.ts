/** How statements leave out what a request may not concern. */
import type { Scope } from '../../core/ports.js';
import type { Bind } from './database.js';
import type { Dialect } from './dialect.js';
import type { Conditions } from './lists.js';

/** Condition that a column has one of these values; with none of them, nothing matches. The bind values are named after `prefix`. */
export function amongValues(column: string, values: readonly string[], prefix: string): [string, Bind] {
  const bind = Object.fromEntries(values.map((value, n) => [`${prefix}_${n}`, value]));
  const names = Object.keys(bind).map((name) => `$${name}`);
  return [names.length === 0 ? '1 = 0' : `${column} IN (${names.join(', ')})`, bind];
}

/** Adds the condition on projects, if there is one. */
export function inProjects(where: Conditions, column: string, projects: Scope['projects'] | undefined): Conditions {
  return projects ? where.and(...amongValues(column, projects, 'in_scope')) : where;
}

/** For the tokens of `issuedBy`: the index that has the IDs of each issuer. */
export const BY_ISSUER = 'tokens_issuer';

/** Query for the IDs of the tokens that `$issuedBy` has issued, as `issued_id`. */
const issuedIds = ({ indexHint }: Dialect) =>
  `SELECT i.id AS issued_id FROM tokens i ${indexHint(BY_ISSUER)} WHERE i.issued_by = $issuedBy`;

/** `FROM` clause for the rows of a table about tokens that `$issuedBy` has issued, found token by token. */
export function ofIssued(dialect: Dialect, table: string, index?: string): string {
  const from = `${table}${index === undefined ? '' : ` ${dialect.indexHint(index)}`}`;
  return `(${issuedIds(dialect)}) issued ${dialect.joinInOrder} ${from} ON token_id = issued.issued_id`;
}

/** Condition for few rows of a table about tokens: that `$issuedBy` has issued the token. */
export const IS_ISSUED = '(SELECT i.issued_by FROM tokens i WHERE i.id = token_id) = $issuedBy';

/**
 * Query for the first rows of each of several projects, so that an index by project and time serves them: with all projects in one condition,
 * the rows of all others are read too. They are in no order.
 *
 * @param where other conditions.
 * @param select makes the query for one project of all conditions.
 */
export function firstOfEach(
  projects: readonly string[],
  column: string,
  where: Conditions,
  select: (conditions: string) => string,
): { sql: string; bind: Bind } {
  const bind: Bind = { ...where.bind };
  const others = where.sql === '' ? '' : where.sql.replace(/^WHERE/, 'AND');
  const queries = projects.map((id, n) => {
    bind[`of_${n}`] = id;
    return `SELECT * FROM (${select(`WHERE ${column} = $of_${n} ${others}`)}) of_${n}`;
  });
  return { sql: queries.join(' UNION ALL '), bind };
}
