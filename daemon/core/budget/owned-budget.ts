import { nanoOf } from '../../api/money.js';
import type { Budget, BudgetOwner } from '../../api/vocabulary.js';
import type { KnownToken } from '../ports.js';
import type { Amount } from './counts.js';
import type { PurseBudget, Reservation } from './purse.js';

/** A budget that requests must fit, of a token or of its project. */
export interface OwnedBudget extends PurseBudget {
  owner: BudgetOwner;
  /** Of the token or the project. */
  id: string;
}

/** The budgets of a token: its own first, then that of its project. Null without any. */
export function budgetsOf({ token, projectPolicies }: KnownToken): readonly OwnedBudget[] | null {
  if (token.budget === null && projectPolicies.budget === null) return null;
  const budgets: OwnedBudget[] = [];
  if (token.budget) budgets.push(owned(token.budget, 'token', token.id));
  if (projectPolicies.budget) budgets.push(owned(projectPolicies.budget, 'project', token.projectId));
  return budgets;
}

const owned = ({ usd, tokens, period, mode }: Budget, owner: BudgetOwner, id: string): OwnedBudget => ({
  owner,
  id,
  limitNano: usd === undefined ? null : nanoOf(usd),
  limitTokens: tokens ?? null,
  period,
  mode,
});

/** What is charged for a request whose usage is unknown. */
export interface Assumed {
  /** Null: the cost is unknown. */
  nano: number | null;
  tokens: number;
}

/** What a request may cost, as one budget sees it. */
export interface ExpectedCost {
  /** What is reserved. */
  needed: Amount;
  /** Whether it is known to ask for several answers: a usage that came with the end of one of them is not that of all. */
  hasSeveral: boolean;
  /** Charged for a complete response without a usage. */
  ifUnreported: Assumed;
  /** Charged for a response that was cut. */
  ifCut: Assumed;
}

/** What one budget has reserved for a request. */
export interface HeldPart {
  budget: OwnedBudget;
  cost: ExpectedCost;
  /** Null for a shadow budget that would have refused the request. */
  reservation: Reservation | null;
}

/** What is reserved for one request, until it is settled. */
export interface BudgetHold {
  admittedAtMs: number;
  /** As the client names it. The usual sizes of its requests are learned; null: they are not needed. */
  learns: { model: string } | null;
  parts: readonly HeldPart[];
}
