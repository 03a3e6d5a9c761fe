/** What restricts a token or a project, and what it has spent, in words. */
import type { WireToken } from '../../daemon/api/contract.js';
import { counted, exact } from '../../daemon/api/formats.js';
import { nanoOf, usdShown } from '../../daemon/api/money.js';
import type { Allow, Budget, BudgetMode, BudgetPeriod, Limits } from '../../daemon/api/vocabulary.js';
import { type Cell, cost } from './column.js';

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

/** Such as `$25 a month, soft` or `$1.50 and 2,000,000 model tokens, hard`. */
export function budgetShown(budget: Budget | null): string {
  return budget === null ? 'none' : `${amountsShown(budget)}, ${budget.mode}`;
}

/** Such as `$25 a month`. */
export function amountsShown({ usd, tokens, period }: Budget): string {
  const amounts = [
    usd !== undefined && dollarsShown(usd),
    tokens !== undefined && counted(tokens, 'model token'),
  ].filter(Boolean);
  return `${amounts.join(' and ')}${A_PERIOD[period]}`;
}

const A_PERIOD: Readonly<Record<BudgetPeriod, string>> = { none: '', day: ' a day', month: ' a month' };

/** The limit itself, which is not rounded: `$25`, `$1,000.50`. @param usd as in `Budget`. */
export function dollarsShown(usd: string): string {
  const [whole = '', part = ''] = usd.replace(/\.00$/, '').split('.');
  return `$${exact(Number(whole))}${part === '' ? '' : `.${part}`}`;
}

/** The choices of forms. */
export const PERIOD_TITLES: Readonly<Record<BudgetPeriod, string>> = {
  none: 'in all',
  day: 'each day (UTC)',
  month: 'each month (UTC)',
};
export const MODE_TITLES: Readonly<Record<BudgetMode, string>> = {
  hard: 'hard: refuses what could exceed it',
  soft: 'soft: refuses what comes after it',
  shadow: 'shadow: refuses nothing, but reports',
};

const UNTIL: Readonly<Record<BudgetPeriod, string>> = {
  none: '',
  day: ' until the next day (UTC)',
  month: ' until the next month (UTC)',
};

/** What happens with requests at the limit of the budget. */
export function atLimitShown({ mode, period }: Budget): string {
  switch (mode) {
    case 'hard':
      return `requests that could cost more than is left are refused with 402${UNTIL[period]}`;
    case 'soft':
      return `new requests are refused with 402${UNTIL[period]}; those under way go on, and may exceed it`;
    case 'shadow':
      return 'nothing is refused; an event reports what would be';
  }
}

/** A token or a project, or what its holder is told about it. */
export type Spender = Pick<WireToken, 'budget' | 'spent'>;

const PERIOD_NAMES = { none: '', day: ' today', month: ' this month' } as const satisfies Record<BudgetPeriod, string>;

/** Such as `$12.35`: nothing is known if no request has a known cost. */
export const spentCost = ({ usd, unpriced_requests }: Spender['spent']): Cell =>
  cost({ cost_usd: unpriced_requests > 0 && nano(usd) === 0 ? null : usd, unpriced_requests });

/** Such as `$12.35 and 1,204,310 model tokens this month, $0.05 reserved, 2 requests of unknown cost`. */
export function spentShown({ budget, spent }: Spender): string {
  const { usd, tokens, reserved_usd: reserved, unpriced_requests: unpriced } = spent;
  const more = [
    ...(nanoOf(reserved) === 0 ? [] : [`${usdShown(reserved)} reserved`]),
    ...(unpriced === 0 ? [] : [`${counted(unpriced, 'request')} of unknown cost`]),
  ];
  const sum = `${usdShown(usd)} and ${counted(tokens, 'model token')}${PERIOD_NAMES[budget?.period ?? 'none']}`;
  return [sum, ...more].join(', ');
}

/** What is left of the scarcer unit of a budget, from 0 to 1; null without a budget. What is reserved is not left. */
export function shareLeft({ budget, spent }: Spender): number | null {
  if (budget === null) return null;
  const shares = [
    budget.usd === undefined ? 1 : 1 - (nano(spent.usd) + nano(spent.reserved_usd)) / nano(budget.usd),
    budget.tokens === undefined ? 1 : 1 - spent.tokens / budget.tokens,
  ];
  return Math.max(0, Math.min(...shares));
}

const nano = (usd: string): number => nanoOf(usd) ?? Infinity;
