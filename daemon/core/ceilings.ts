/** Ceilings: the most that a token issued by an operator or a person may have. What is above one is refused, and never lowered. */
import { MAX_NANO, nanoOf } from '../api/money.js';
import {
  type Allow,
  type Budget,
  BUDGET_MODES,
  type BudgetPeriod,
  type Ceilings,
  type Limits,
  MS_PER_UNIT,
  type Policies,
  type PolicyChanges,
} from '../api/vocabulary.js';
import type { Authority } from './authority.js';
import { notPermitted } from './authority.js';
import { Pattern } from './policy/pattern.js';
import { coversRoute } from './policy/routes.js';
import type { ChangeTransaction } from './ports.js';
import { Refusal } from './refusal.js';

/** Who issues a token; null: the holder of the management token. A trust has no `source`, and counts its tokens itself. */
export type Issuer =
  (Pick<Authority, 'actor' | 'name' | 'ceilings'> & Partial<Pick<Authority, 'projects' | 'source'>>) | null;

/** What a new token has. */
export interface IssuedTerms extends Policies {
  lifetimeMs: number;
  /** 0: no cap. */
  maxRequests: number;
}

const beyond = (ceiling: string, why: string) =>
  new Refusal('beyond_ceiling', `beyond your ceiling ${ceiling}: ${why}`);

/** @throws {Refusal} `beyond_ceiling`, which names the ceiling. */
export function checkTerms(ceilings: Ceilings, { lifetimeMs, maxRequests, ...policies }: IssuedTerms): void {
  const { hours, requests } = ceilings;
  if (hours !== undefined && lifetimeMs > hours * MS_PER_UNIT.h)
    throw beyond('hours', `a token may last ${hours} h at most, and this one would last ${spanOf(lifetimeMs)}`);
  if (requests !== undefined && (maxRequests === 0 || maxRequests > requests)) {
    const would = maxRequests === 0 ? 'no cap' : String(maxRequests);
    throw beyond('requests', `a token may have a cap of ${requests} at most, and this one would have ${would}`);
  }
  checkPolicies(ceilings, policies);
}

const spanOf = (ms: number) => (ms % MS_PER_UNIT.h === 0 ? `${ms / MS_PER_UNIT.h} h` : `${ms / MS_PER_UNIT.m} min`);

/** @param policies undefined ones are not checked. @throws {Refusal} as `checkTerms` does. */
export function checkPolicies(ceilings: Ceilings, { allow, limits, budget }: PolicyChanges): void {
  if (allow !== undefined) {
    checkList('routes', ceilings, allow, coversRoute);
    checkList('models', ceilings, allow, coversModel);
    checkEscapes(ceilings, allow);
  }
  if (ceilings.limits && limits !== undefined) checkLimits(ceilings.limits, limits);
  if (ceilings.budget && budget !== undefined) checkBudget(ceilings.budget, budget);
}

function checkList(
  name: 'routes' | 'models',
  { [name]: ceiling }: Ceilings,
  allow: Allow | null,
  covers: (list: readonly string[], entry: string) => boolean,
): void {
  if (ceiling === undefined) return;
  const entries = allow?.[name];
  if (entries === undefined) throw beyond(name, `a token must have a list of ${name}`);
  const outside = entries.find((entry) => !covers(ceiling, entry));
  if (outside !== undefined) throw beyond(name, `it does not cover ${outside}`);
}

/** A token may name an escape in its own list of routes. What it starts then is not held by the other ceilings. */
function checkEscapes({ routes, requests, models, limits, budget }: Ceilings, allow: Allow | null): void {
  if (routes !== undefined || [requests, models, limits, budget].every((ceiling) => ceiling === undefined)) return;
  const escape = allow?.routes?.find((entry) => !coversRoute(['all'], entry));
  if (escape !== undefined) throw beyond('routes', `${escape} is an escape, so a ceiling of routes must name it`);
}

const coversModel = (list: readonly string[], entry: string) =>
  list.some((outer) => new Pattern(outer).covers(new Pattern(entry)));

function checkLimits(ceiling: Limits, limits: Limits | null): void {
  for (const [name, most] of Object.entries(ceiling) as [keyof Limits, number][]) {
    const given = limits?.[name];
    if (given === undefined) throw beyond('limits', `a token must have ${name} of ${most} at most`);
    if (given > most) throw beyond('limits', `${name} may be ${most} at most, not ${given}`);
  }
}

const nano = (usd: string) => nanoOf(usd) ?? MAX_NANO;

/** From the least to the most that can be spent of the same amount. */
const PERIODS: readonly BudgetPeriod[] = ['none', 'month', 'day'];

function checkBudget(ceiling: Budget, budget: Budget | null): void {
  if (budget === null) throw beyond('budget', 'a token must have a budget');
  const { usd, tokens, period, mode } = ceiling;
  if (usd !== undefined && (budget.usd === undefined || nano(budget.usd) > nano(usd)))
    throw beyond('budget', `usd may be ${usd} at most, not ${budget.usd ?? 'absent'}`);
  if (tokens !== undefined && (budget.tokens === undefined || budget.tokens > tokens))
    throw beyond('budget', `tokens may be ${tokens} at most, not ${budget.tokens ?? 'absent'}`);
  if (PERIODS.indexOf(budget.period) > PERIODS.indexOf(period))
    throw beyond(
      'budget',
      `period may be ${PERIODS.slice(0, PERIODS.indexOf(period) + 1).join(' or ')}, not ${budget.period}`,
    );
  if (BUDGET_MODES.indexOf(budget.mode) > BUDGET_MODES.indexOf(mode))
    throw beyond(
      'budget',
      `mode may be ${BUDGET_MODES.slice(0, BUDGET_MODES.indexOf(mode) + 1).join(' or ')}, not ${budget.mode}`,
    );
}

/**
 * Locks who issues a token until the end of the transaction, so that none is committed after the issuer has lost its authority. Must come
 * first in the transaction.
 *
 * @throws {Refusal} `not_permitted` if the issuer was changed or has logged out since it was authenticated.
 */
export async function lockIssuer(issuer: Issuer, tx: ChangeTransaction): Promise<void> {
  if (!issuer?.source) return;
  const { operator, sessionId } = issuer.source;
  const isSame = operator
    ? (await tx.access.lockOperator(operator.id))?.updatedAtMs === operator.updatedAtMs
    : (await tx.access.lockSessionsOf(issuer.actor)).some(
        ({ id, endedAtMs }) => id === sessionId && endedAtMs === null,
      );
  if (!isSame) throw notPermitted('what you may do has changed meanwhile');
}

/** After `lockIssuer`: of two creations at the same time, the second one counts the token of the first. @throws {Refusal} `beyond_ceiling` */
export async function checkActiveTokens(issuer: Issuer, tx: ChangeTransaction, nowMs: number): Promise<void> {
  const most = issuer?.ceilings?.active_tokens;
  if (!issuer || most === undefined) return;
  const count = await tx.access.countActiveTokensOf(issuer.actor, nowMs);
  if (count >= most) throw beyond('active_tokens', `you may have ${most} active at most, and have ${count}`);
}
