/** What restricts a token or a project, in words. */
import { exact } from '../../daemon/api/formats.js';
import type { Allow, Budget, BudgetPeriod, Limits } from '../../daemon/api/vocabulary.js';

/** Such as `routes inference; models gpt-5-mini, claude-*`. */
export function allowShown(allow: Allow | null): string {
  if (allow === null) return 'everything';
  const lists = [
    allow.routes && `routes ${allow.routes.join(', ')}`,
    allow.models && `models ${allow.models.join(', ')}`,
  ];
  return lists.filter((list) => list !== undefined).join('; ');
}

/** The limits, in the order in which they are shown. */
export const LIMIT_UNITS = {
  requests_per_minute: 'requests/min',
  tokens_per_minute: 'model tokens/min',
  concurrent: 'at a time',
} as const satisfies Record<keyof Limits, string>;
export const LIMIT_NAMES = Object.keys(LIMIT_UNITS) as (keyof Limits)[];

/** Such as `60 requests/min, 4 at a time`. */
export function limitsShown(limits: Limits | null): string {
  const set = LIMIT_NAMES.flatMap((name) => {
    const limit = limits?.[name];
    return limit === undefined ? [] : [`${exact(limit)} ${LIMIT_UNITS[name]}`];
  });
  return set.length === 0 ? 'unlimited' : set.join(', ');
}

const PERIODS = { none: '', day: ' a day', month: ' a month' } as const satisfies Record<BudgetPeriod, string>;

/** Such as `$25.00, 2,000,000 model tokens a month (soft)`. */
export function budgetShown(budget: Budget | null): string {
  if (budget === null) return 'none';
  const { usd, tokens, period, mode } = budget;
  const amounts = [usd && `$${usd}`, tokens && `${exact(tokens)} model tokens`];
  return `${amounts.filter(Boolean).join(', ')}${PERIODS[period]} (${mode})`;
}
