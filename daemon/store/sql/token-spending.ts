/**
 * Filters and sort order of the token list by budgets and what was spent. Each token has a purse: `purses u`. All amounts are those of the
 * current period of its budget.
 */
import { dayOf, monthOf } from '../../core/budget/period.js';
import type { Position, TokenFilter } from '../../core/ports.js';
import type { Bind } from './database.js';
import type { Dialect } from './dialect.js';
import { afterPosition, Conditions, orderOf } from './lists.js';

interface Query {
  sql: string;
  bind: Bind;
}

type PurseFilter = Pick<TokenFilter, 'spentOverNano' | 'spentUnderNano' | 'leftOverPercent' | 'leftUnderPercent'>;
type SpendingFilter = PurseFilter & Pick<TokenFilter, 'budget'>;

/** The part of a filter that is about purses, and the rest. */
export function purseFilterIn<F extends TokenFilter>(filter: F): [purses: PurseFilter, others: F] {
  const { spentOverNano, spentUnderNano, leftOverPercent, leftUnderPercent, ...others } = filter;
  return [{ spentOverNano, spentUnderNano, leftOverPercent, leftUnderPercent }, others as F];
}

export const PURSE_OF_TOKEN = 'JOIN purses u ON u.id = t.id';

/** An amount in the current period. Counts of another day or month are old: nothing was spent since. */
const spentOf = (unit: 'nano' | 'tokens', nowMs: number) =>
  `CASE WHEN u.period = 'none' THEN u.life_${unit}
    WHEN u.period = 'month' THEN CASE WHEN u.month_from = ${monthOf(nowMs)} THEN u.month_${unit} ELSE 0 END
    ELSE CASE WHEN u.day_from = ${dayOf(nowMs)} THEN u.day_${unit} ELSE 0 END END`;

/** Nano-USD that a token has spent, for sorting. */
export const spentNano = (nowMs: number): string => spentOf('nano', nowMs);

/** Condition on `purses u`; null for a filter that has none. */
function purseCondition(filter: PurseFilter, nowMs: number): Query | null {
  const { spentOverNano, spentUnderNano, leftOverPercent, leftUnderPercent } = filter;
  const conditions: string[] = [];
  if (spentOverNano !== undefined) conditions.push(`${spentOf('nano', nowMs)} > $spentOver`);
  if (spentUnderNano !== undefined) conditions.push(`${spentOf('nano', nowMs)} < $spentUnder`);
  const left = (unit: 'nano' | 'tokens', compared: string) =>
    `(u.limit_${unit} - (${spentOf(unit, nowMs)})) * 100 ${compared}`;
  // Of the scarcer unit: it is less than a share if one of them is.
  if (leftUnderPercent !== undefined) {
    conditions.push(
      `${left('nano', '< u.limit_nano * $leftUnder')} OR ${left('tokens', '< u.limit_tokens * $leftUnder')}`,
    );
  }
  if (leftOverPercent !== undefined) {
    const over = (unit: 'nano' | 'tokens') =>
      `(u.limit_${unit} IS NULL OR ${left(unit, `> u.limit_${unit} * $leftOver`)})`;
    conditions.push(`COALESCE(u.limit_nano, u.limit_tokens) IS NOT NULL AND ${over('nano')} AND ${over('tokens')}`);
  }
  if (conditions.length === 0) return null;
  const bind = {
    spentOver: spentOverNano,
    spentUnder: spentUnderNano,
    leftOver: leftOverPercent,
    leftUnder: leftUnderPercent,
  };
  return {
    sql: conditions.map((condition) => `(${condition})`).join(' AND '),
    bind: Object.fromEntries(Object.entries(bind).filter(([, value]) => value !== undefined)) as Bind,
  };
}

/**
 * Conditions on `tokens t`.
 *
 * @param isOfFew whether they are compared with few tokens, or with all.
 */
export function spendingConditions(
  filter: SpendingFilter,
  nowMs: number,
  dialect: Dialect,
  isOfFew: boolean,
): [string, Bind][] {
  const conditions: [string, Bind][] = [];
  const { budget } = filter;
  if (budget === 'yes' || budget === 'no') {
    const condition = 't.budget IS NOT NULL OR t.project_id IN (SELECT id FROM projects WHERE budget IS NOT NULL)';
    conditions.push([budget === 'yes' ? condition : `NOT (${condition})`, {}]);
  } else if (budget !== undefined) {
    // What is in the column was written by JSON.stringify.
    const hasMode = (column: string) => dialect.contains(column, '$mode');
    const ofProject = `SELECT id FROM projects WHERE budget IS NOT NULL AND ${hasMode('budget')}`;
    conditions.push([
      `t.budget IS NOT NULL AND ${hasMode('t.budget')} OR t.project_id IN (${ofProject})`,
      { mode: `"mode":"${budget}"` },
    ]);
  }
  const purse = purseCondition(filter, nowMs);
  if (!purse) return conditions;
  // Not EXISTS, which MariaDB turns into a list of all tokens.
  const own = `(SELECT COUNT(*) FROM purses u WHERE u.id = t.id AND ${purse.sql}) > 0`;
  conditions.push([isOfFew ? own : `t.id IN (SELECT u.id FROM purses u WHERE ${purse.sql})`, purse.bind]);
  return conditions;
}

/** The query for the first `most` purses, with what was spent, in this order and after this position. Some are of projects. */
export function firstBySpent(descending: boolean, after: Position | null, most: number, nowMs: number): Query {
  const ordered = { sortColumn: spentNano(nowMs), idColumn: 'u.id', descending };
  const where = afterPosition(new Conditions(), ordered, after);
  const sql = `SELECT u.id, ${ordered.sortColumn} AS spent FROM purses u ${where.sql} ${orderOf(ordered)} LIMIT ${most}`;
  return { sql, bind: where.bind };
}

/** The query for the IDs of up to `most` tokens, and some projects; null for a filter that is not about purses. */
export function idsOfSpending(filter: PurseFilter, nowMs: number, most: number): Query | null {
  const purse = purseCondition(filter, nowMs);
  return purse && { sql: `SELECT u.id FROM purses u WHERE ${purse.sql} LIMIT ${most}`, bind: purse.bind };
}

/** The number of tokens, for a filter of purses alone: all matching purses, minus those of projects, which are few. */
export function countOfSpending(filter: PurseFilter, nowMs: number): Query | null {
  const purse = purseCondition(filter, nowMs);
  if (!purse) return null;
  const count = (from: string) => `(SELECT COUNT(*) FROM ${from} WHERE ${purse.sql})`;
  return {
    sql: `SELECT ${count('purses u')} - ${count('projects p JOIN purses u ON u.id = p.id')} AS total`,
    bind: purse.bind,
  };
}
