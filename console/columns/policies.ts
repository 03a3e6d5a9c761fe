/** What restricts a token or a project, and what it has spent, in words. */
import type { WireToken } from '../../daemon/api/contract.js';
import { counted, exact } from '../../daemon/api/formats.js';
import { type Cost, costShown, nanoOf, usdOf, usdShown } from '../../daemon/api/money.js';
import type { Allow, Budget, BudgetMode, BudgetPeriod, Limits } from '../../daemon/api/vocabulary.js';
import { type Cell, type Column, cost, ON_REQUEST, text } from './column.js';

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
  const [whole = '', part = ''] = usd.replace(/\.0+$/, '').split('.');
  return `$${exact(Number(whole))}${part === '' ? '' : `.${part.padEnd(2, '0')}`}`;
}

/** The choices of forms: when a budget resets, and what happens at its limit. */
export const PERIOD_TITLES: Readonly<Record<BudgetPeriod, string>> = {
  none: 'never',
  day: 'each day (UTC)',
  month: 'each month (UTC)',
};
export const MODE_TITLES: Readonly<Record<BudgetMode, string>> = {
  hard: 'hard: refuses what could exceed the budget',
  soft: 'soft: refuses new requests once it is spent',
  shadow: 'shadow: refuses nothing, only reports',
};

const UNTIL: Readonly<Record<BudgetPeriod, string>> = {
  none: '',
  day: ' until the next day (UTC)',
  month: ' until the next month (UTC)',
};

/** What happens at the limit of the budget. Completes `At the limit, …`. */
export function atLimitShown({ mode, period }: Budget): string {
  switch (mode) {
    case 'hard':
      return `requests that could cost more than is left are refused with 402${UNTIL[period]}`;
    case 'soft':
      return `new requests are refused with 402${UNTIL[period]}; requests in flight finish, and may exceed the budget`;
    case 'shadow':
      return 'nothing is refused; events report what would have been';
  }
}

/** Such as `$25 a month, soft; at the limit, new requests are refused …`. */
export const budgetInFull = (budget: Budget | null): string =>
  budget === null ? budgetShown(budget) : `${budgetShown(budget)}; at the limit, ${atLimitShown(budget)}`;

/** The budget and the spending of a token or a project. */
export type Spender = Pick<WireToken, 'budget' | 'spent'>;

const PERIOD_NAMES = { none: '', day: ' today', month: ' this month' } as const satisfies Record<BudgetPeriod, string>;

/** The cost is unknown if no request with a known cost cost anything. */
const costOf = ({ usd, unpriced_requests }: Spender['spent']): Cost => ({
  cost_usd: unpriced_requests > 0 && nano(usd) === 0 ? null : usd,
  unpriced_requests,
});

/** Such as `$12.35`. */
export const spentCost = (spent: Spender['spent']): Cell => cost(costOf(spent));

/** Such as `$12.35+ and 1,204,310 model tokens this month, $0.05 reserved, 2 requests of unknown cost`. */
export function spentShown({ budget, spent }: Spender): string {
  const { tokens, reserved_usd: reserved, unpriced_requests: unpriced, since } = spent;
  const more = [
    ...(nano(reserved) === 0 ? [] : [`${usdShown(reserved)} reserved`]),
    ...(unpriced === 0 ? [] : [`${counted(unpriced, 'request')} of unknown cost`]),
  ];
  const period = PERIOD_NAMES[budget?.period ?? 'none'] || ` since ${since.slice(0, 10)}`;
  return [`${costShown(costOf(spent))} and ${counted(tokens, 'model token')}${period}`, ...more].join(', ');
}

/** One unit of a budget. */
export interface BudgetPart {
  /** Such as `$12.35`. */
  spent: string;
  /** Such as `$25`. */
  limit: string;
  /** What is neither spent nor reserved. */
  left: string;
  /** How much of it is spent: from 0 to 1, and more if it is exceeded. */
  share: number;
}

/** The units of a budget: dollars, model tokens or both. The one with the largest share spent comes first. */
export function budgetParts({ budget, spent }: Spender): BudgetPart[] {
  const { usd, tokens } = budget ?? {};
  const parts: BudgetPart[] = [];
  if (usd !== undefined) {
    const left = Math.max(0, nano(usd) - nano(spent.usd) - nano(spent.reserved_usd));
    const share = nano(spent.usd) / nano(usd);
    parts.push({ spent: costShown(costOf(spent)), limit: dollarsShown(usd), left: usdShown(usdOf(left)), share });
  }
  if (tokens !== undefined) {
    const left = exact(Math.max(0, tokens - spent.tokens));
    parts.push({
      spent: exact(spent.tokens),
      limit: counted(tokens, 'model token'),
      left,
      share: spent.tokens / tokens,
    });
  }
  return parts.sort((one, other) => other.share - one.share);
}

/** Such as `$12.35 of $25 this month (49%)`. */
export const useShown = ({ spent, limit, share }: BudgetPart, { period }: Pick<Budget, 'period'>): string =>
  `${spent} of ${limit}${PERIOD_NAMES[period]} (${exact(Math.floor(share * 100))}%)`;

/** Such as `$12.35 of $25 this month (49%), $12.65 left`. */
export const partShown = (part: BudgetPart, budget: Pick<Budget, 'period'>): string =>
  `${useShown(part, budget)}, ${part.left} left`;

/** A budget is nearly spent from this share on. */
export const NEARLY_SPENT = 0.8;

/** The share that is left of the scarcer unit of a budget, from 0 to 1; null without a budget. What is reserved counts as left, because it may be released. */
export function shareLeft({ budget, spent }: Spender): number | null {
  if (budget === null) return null;
  const shares = [
    budget.usd === undefined ? 1 : 1 - nano(spent.usd) / nano(budget.usd),
    budget.tokens === undefined ? 1 : 1 - spent.tokens / budget.tokens,
  ];
  return Math.max(0, Math.min(...shares));
}

const nano = (usd: string): number => nanoOf(usd) ?? Infinity;

type Declared = Omit<Column<Spender>, 'id' | 'rank'>;

/** The columns that lists of tokens and of projects have in common. */
export const SPENT_COLUMN = {
  title: 'Spent',
  what: 'US dollars spent in the current period of its budget, or in total',
  width: [7, 14],
  isWhole: true,
  alignRight: true,
  isSummarized: true,
  cell: ({ spent }) => spentCost(spent),
} satisfies Declared;
export const LEFT_COLUMN = {
  title: 'Left',
  what: 'share of its budget that is left',
  shownBy: ['tui', 'admin'],
  width: 4,
  alignRight: true,
  cell: (spender) => ({ kind: 'share', share: shareLeft(spender) ?? Infinity }),
} satisfies Declared;
export const BUDGET_COLUMN = {
  title: 'Budget',
  what: 'what it may spend',
  shownBy: ON_REQUEST,
  width: [10, 60],
  isSummarized: true,
  cell: ({ budget }) => text(budget === null ? null : budgetShown(budget)),
} satisfies Declared;
