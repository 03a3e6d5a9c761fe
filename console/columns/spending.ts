/** What tokens and projects have spent, and what is left of their budgets, in words. */
import type { WireToken } from '../../daemon/api/contract.js';
import { counted, exact } from '../../daemon/api/formats.js';
import { MAX_NANO, nanoOf, usdOf, usdShown } from '../../daemon/api/money.js';
import type { Budget, BudgetPeriod } from '../../daemon/api/vocabulary.js';
import { dollarsShown } from './policies.js';

/** As in responses with tokens and projects. */
export type Spent = WireToken['spent'];

export type Spender = Pick<WireToken, 'budget' | 'spent'>;

/** From this share on a budget is nearly spent. */
export const NEARLY_SPENT = 0.8;

/** One unit of a budget. */
export interface BudgetPart {
  /** Such as `$12.35`. */
  spent: string;
  /** Such as `$25`. */
  limit: string;
  /** Less what is reserved. */
  left: string;
  /** How much of it is spent: from 0 to 1, and more if it is exceeded. */
  share: number;
}

const nano = (usd: string) => nanoOf(usd) ?? MAX_NANO;

/** The units of a budget: dollars, model tokens or both. */
export function budgetParts({ usd, tokens }: Budget, spent: Spent): BudgetPart[] {
  const parts: BudgetPart[] = [];
  if (usd !== undefined) {
    const left = Math.max(0, nano(usd) - nano(spent.usd) - nano(spent.reserved_usd));
    parts.push({
      spent: usdShown(spent.usd),
      limit: dollarsShown(usd),
      left: usdShown(usdOf(left)),
      share: nano(spent.usd) / nano(usd),
    });
  }
  if (tokens !== undefined)
    parts.push({
      spent: exact(spent.tokens),
      limit: counted(tokens, 'model token'),
      left: exact(Math.max(0, tokens - spent.tokens)),
      share: spent.tokens / tokens,
    });
  return parts;
}

/** How much of a budget is spent, of the unit of which most is; null without a budget. */
export const spentShare = ({ budget, spent }: { budget: Budget | null; spent: Spent }): number | null =>
  budget === null ? null : Math.max(...budgetParts(budget, spent).map(({ share }) => share));

const A_PERIOD: Readonly<Record<BudgetPeriod, string>> = { none: '', day: ' today', month: ' this month' };

/** Such as `$12.35 of $25 this month (49%), $12.65 left`. */
export const partShown = ({ spent, limit, left, share }: BudgetPart, { period }: Budget): string =>
  `${spent} of ${limit}${A_PERIOD[period]} (${Math.floor(share * 100)}%), ${left} left`;

/** Such as `$12.35 ($0.12 reserved, 3 requests of unknown cost), 4,211 model tokens since 2026-11-01`. */
export function spentShown({ spent }: Spender): string {
  const { usd, tokens, reserved_usd: reserved, unpriced_requests: unpriced, since } = spent;
  // What is not known is not nothing.
  const known = nano(usd) === 0 && unpriced > 0 ? 'unknown cost' : usdShown(usd);
  const more = [
    ...(nano(reserved) === 0 ? [] : [`${usdShown(reserved)} reserved`]),
    ...(unpriced === 0 ? [] : [`${counted(unpriced, 'request')} of unknown cost`]),
  ];
  const inParentheses = more.length === 0 ? '' : ` (${more.join(', ')})`;
  return `${known}${inParentheses}, ${counted(tokens, 'model token')} since ${since.slice(0, 10)}`;
}
