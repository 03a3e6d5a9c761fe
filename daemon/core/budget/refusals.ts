/** Why a request is refused because of a budget. */
import { usdOf } from '../../api/money.js';
import type { BudgetUnit } from '../../api/vocabulary.js';
import { type BudgetShortage, Refusal, wholeSeconds } from '../refusal.js';
import type { OwnedBudget } from './owned-budget.js';
import type { Amount, PurseState } from './purse.js';

/** A request that does not fit a budget. */
export interface Misfit {
  budget: OwnedBudget;
  state: PurseState;
  needed: Amount;
  /** For a hard budget: with at most that many tokens of output it would fit; null for others. */
  fittingOutput: number | null;
  nowMs: number;
}

export const modelNotPriced = (model: string, { owner }: OwnedBudget) =>
  new Refusal('model_not_priced', `the model has no price, and the budget of the ${owner} needs one`, {
    hint: `ask for a price of ${model} in PRICES_FILE, or use another model`,
  });

export const costNotBounded = (why: string, { owner }: OwnedBudget) =>
  new Refusal(
    'cost_not_bounded',
    `the cost of this request has no bound: ${why}; the budget of the ${owner} needs one`,
  );

/** It does not fit, however others settle. */
export function exhausted(misfit: Misfit): Refusal {
  const { budget, state, needed, fittingOutput, nowMs } = misfit;
  const unit = unitOf(misfit, false);
  const isUsedUp = unit.used >= unit.limit;
  const message = isUsedUp
    ? `the budget of the ${budget.owner} is used up`
    : `the request may need ${shown(unit.unit, unit.needed)}, and ${shown(unit.unit, unit.limit - unit.used)} of the budget of the ${budget.owner} are left`;
  const isFitting = fittingOutput !== null && fittingOutput > 0;
  const endsMs = state.endsMs !== null && fitsAlone(budget, needed) ? state.endsMs : null;
  const hints = [
    ...(isFitting ? [`it fits with at most ${fittingOutput} output tokens`] : []),
    ...(endsMs === null ? [] : [`the budget begins again at ${new Date(endsMs).toISOString().replace('.000Z', 'Z')}`]),
    ...(isFitting || endsMs !== null ? [] : [`ask for a larger budget`]),
  ];
  return new Refusal('budget_exhausted', message, {
    budget: shortage(unit, fittingOutput),
    hint: hints.join('; '),
    ...(endsMs !== null && { retryAfterSeconds: wholeSeconds(endsMs - nowMs) }),
  });
}

/** It fits once others have settled. */
export function reserved(misfit: Misfit): Refusal {
  const { owner } = misfit.budget;
  return new Refusal('budget_reserved', `requests under way have reserved the rest of the budget of the ${owner}`, {
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

/** The unit that is short, or else the first one that is limited. */
function unitOf({ budget, state: { used, reserved: held }, needed }: Misfit, withReserved: boolean): UnitState {
  const units: UnitState[] = [];
  const add = (unit: BudgetUnit, limit: number | null, name: keyof Amount) => {
    if (limit === null) return;
    units.push({ unit, limit, used: used[name], reserved: held[name], needed: needed[name] });
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

const shown = (unit: BudgetUnit, value: number) => (unit === 'usd' ? `${usdOf(value)} USD` : `${value} tokens`);
