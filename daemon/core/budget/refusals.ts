/** The refusals of budgets. Each message says what is wrong, and its hint what to do. */
import { usdOf } from '../../api/money.js';
import type { BudgetUnit } from '../../api/vocabulary.js';
import { type BudgetShortage, Refusal, wholeSeconds } from '../refusal.js';
import type { OwnedBudget } from './owned-budget.js';
import type { Amount } from './counts.js';
import type { Spent } from './spending.js';

/** A request that does not fit a budget. */
export interface Misfit {
  budget: OwnedBudget;
  spent: Spent;
  needed: Amount;
  /** For a hard budget: the largest maximum of output tokens that would fit; null for other modes. */
  fittingOutput: number | null;
  nowMs: number;
}

export const modelNotPriced = (model: string, { owner }: OwnedBudget) =>
  new Refusal('model_not_priced', `the model has no price, and the hard budget of the ${owner} needs one`, {
    hint: `ask the operator to add a price for ${model}, or use another model`,
  });

export const costNotBounded = (why: string, { owner }: OwnedBudget) =>
  new Refusal(
    'cost_not_bounded',
    `the cost of this request has no bound: ${why}; the hard budget of the ${owner} needs one`,
  );

/** The request does not fit, even if all reservations are released. */
export function exhausted(misfit: Misfit): Refusal {
  const { budget, spent, needed, fittingOutput, nowMs } = misfit;
  const unit = unitOf(misfit, false);
  const isUsedUp = unit.used >= unit.limit;
  const message = isUsedUp
    ? `the budget of the ${budget.owner} is used up`
    : `the request may cost ${shown(unit.unit, unit.needed)}, more than the ${shown(unit.unit, unit.limit - unit.used)} that are left of the budget of the ${budget.owner}`;
  const isFitting = fittingOutput !== null && fittingOutput > 0;
  const endsMs = fitsAlone(budget, needed) ? spent.endsMs : null;
  const hints = [
    ...(isFitting ? [`it fits with a maximum of ${fittingOutput} output tokens`] : []),
    ...(endsMs === null ? [] : [`the budget resets at ${new Date(endsMs).toISOString().replace('.000Z', 'Z')}`]),
    ...(isFitting || endsMs !== null ? [] : [`ask for a larger budget`]),
  ];
  return new Refusal('budget_exhausted', message, {
    budget: shortage(unit, fittingOutput),
    hint: hints.join('; '),
    ...(endsMs !== null && { retryAfterSeconds: wholeSeconds(endsMs - nowMs) }),
  });
}

/** The request fits after requests in flight have ended. */
export function reserved(misfit: Misfit): Refusal {
  const { owner } = misfit.budget;
  return new Refusal('budget_reserved', `requests in flight have reserved the rest of the budget of the ${owner}`, {
    budget: shortage(unitOf(misfit, true), null),
    retryAfterSeconds: 1,
  });
}

interface UnitState {
  unit: BudgetUnit;
  limit: number;
  used: number;
  reserved: number;
  needed: number;
}

/** The first unit that is short; if none is, the first one with a limit. */
function unitOf({ budget, spent, needed }: Misfit, withReserved: boolean): UnitState {
  const units: UnitState[] = [];
  const add = (unit: BudgetUnit, limit: number | null, name: keyof Amount) => {
    if (limit === null) return;
    units.push({ unit, limit, used: spent[name], reserved: spent.reserved[name], needed: needed[name] });
  };
  add('usd', budget.limitNano, 'nano');
  add('tokens', budget.limitTokens, 'tokens');
  const isShort = (unit: UnitState) => {
    const taken = unit.used + (withReserved ? unit.reserved : 0);
    return taken >= unit.limit || (budget.mode === 'hard' && taken + unit.needed > unit.limit);
  };
  const found = units.find(isShort) ?? units[0];
  if (!found) throw new Error('a budget has a limit');
  return found;
}

const fitsAlone = ({ mode, limitNano, limitTokens }: OwnedBudget, { nano, tokens }: Amount) =>
  mode !== 'hard' || (nano <= (limitNano ?? Infinity) && tokens <= (limitTokens ?? Infinity));

function shortage({ unit, limit, used, reserved: held, needed }: UnitState, fitting: number | null): BudgetShortage {
  const amount = (value: number) => (unit === 'usd' ? usdOf(value) : value);
  return {
    unit,
    limit: amount(limit),
    used: amount(used),
    reserved: amount(held),
    needed: amount(needed),
    ...(fitting !== null && { maxOutputTokens: Math.max(0, fitting) }),
  };
}

const shown = (unit: BudgetUnit, value: number) => (unit === 'usd' ? `${usdOf(value)} USD` : `${value} model tokens`);
