/** `GET /token/self`: what the holder of a token is told about it. It is not part of the management API: the token is the credential. */
import type { WireToken } from './contract.js';
import type { Dialect } from './providers.js';
import type { Allow, Budget, BudgetOwner, Limits, TokenState } from './vocabulary.js';

export const TOKEN_SELF_PATH = '/token/self';

/** The lower of two limits, and the lower of what is left of them. */
export interface SelfLimit {
  limit: number;
  remaining: number;
}

type Spent = WireToken['spent'];

/** A budget, what was spent in its current period, and what is left of each of its units. */
export interface SelfBudget extends Budget {
  owner: BudgetOwner;
  spent: Spent;
  left: { usd?: string; tokens?: number };
}

export interface TokenSelf {
  id: string;
  /** Null if the token has no name. */
  name: string | null;
  /** A revoked or expired token, and one of an inactive project, gets an error instead. */
  state: Extract<TokenState, 'active' | 'rate_limited'>;
  /** RFC 3339; also `expires_at` and `server_time`. */
  created_at: string;
  expires_at: string;
  /** Whole seconds until then, by the daemon's clock, rounded down. */
  expires_in_s: number;
  /** 0: no cap. */
  max_requests: number;
  request_count: number;
  /** Null without a cap. */
  requests_remaining: number | null;
  /** Lists of routes and models of the token and of its project: a request must be allowed by each. Empty: everything is. */
  allow: Allow[];
  /** The limits in force, of the token and its project: null for one that neither has. */
  limits: Required<{ [Name in keyof Limits]: SelfLimit | null }> | null;
  /** What the token has spent in the current period of its budget; without a budget or period, since its creation. */
  spent: Spent;
  /** The budgets of the token and of its project. A request must fit both. Empty without a budget. */
  budget: SelfBudget[];
  server_time: string;
  /** The API of the token's project. */
  dialect: Dialect;
}
