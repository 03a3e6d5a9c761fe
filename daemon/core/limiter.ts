/**
 * The limits of tokens and projects. Where and how they are counted is the matter of a store: in this process, in the primary of a worker, or
 * shared among instances.
 *
 * A request enters just before its use is drawn, and takes a slot and its place in the windows, all or nothing. It returns the slot when it has
 * ended. Tokens of models are estimated, and corrected as soon as the usage is known.
 */
import { randomUUID } from 'node:crypto';
import type { Limits } from '../api/vocabulary.js';
import type { HeldClaim, KnownToken, LimitClaim, LimitDecision, LimitedScope, LimitStore } from './ports.js';
import { StoreUnavailable } from './ports.js';
import { CountsByName } from './recent-counts.js';
import { limited, unavailable } from './refusal.js';

const MIN_ESTIMATE = 256;
const MAX_ESTIMATES = 10_000;

/** The scopes of a token; null if nothing limits it. */
export function scopesOf({ token, projectPolicies, projectCreatedAtMs }: KnownToken): readonly LimitedScope[] | null {
  if (token.limits === null && projectPolicies.limits === null) return null;
  const scopes: LimitedScope[] = [];
  const { id, projectId, createdAtMs, lastUsedAtMs } = token;
  if (token.limits)
    scopes.push({ policy: 'token', id, limits: token.limits, createdAtMs, lastUsedAtMs: lastUsedAtMs ?? 0 });
  if (projectPolicies.limits) {
    const { limits } = projectPolicies;
    scopes.push({ policy: 'project', id: projectId, limits, createdAtMs: projectCreatedAtMs, lastUsedAtMs: null });
  }
  return scopes;
}

/** What a request takes. */
export interface Wanted {
  scopes: readonly LimitedScope[];
  /** Whose usage its own is estimated from. */
  tokenId: string;
  takesSlot: boolean;
  isRequest: boolean;
  /** Whether a model runs. */
  runsModel: boolean;
}

export class Limiter {
  readonly #store: LimitStore;
  /** What the last requests of each token have used. */
  readonly #usages = new CountsByName(MAX_ESTIMATES);
  /** Requests refused. */
  readonly refusals = { rate: 0, concurrency: 0 };

  constructor(store: LimitStore) {
    this.#store = store;
  }

  /**
   * @returns a promise only if it has to wait.
   * @throws {Refusal} (or rejects with) `rate_limited`, `concurrency_limited`, `unavailable`.
   */
  enter({ scopes, tokenId, takesSlot, isRequest, runsModel }: Wanted): HeldClaim | Promise<HeldClaim> {
    const used = () => this.#usages.get(tokenId)?.percentile ?? 0;
    const tokens = runsModel && scopes.some(limitsTokens) ? Math.max(MIN_ESTIMATE, used()) : 0;
    const claim = { id: randomUUID(), scopes, takesSlot, isRequest, tokens };
    try {
      const decision = this.#store.enter(claim);
      if (!(decision instanceof Promise)) return this.#held(claim, decision);
      return decision.then(
        (it) => this.#held(claim, it),
        (error: unknown) => {
          throw refusalOf(error);
        },
      );
    } catch (error) {
      throw refusalOf(error);
    }
  }

  #held(claim: LimitClaim, decision: LimitDecision): HeldClaim {
    if (decision.isGranted) return { ...claim, grant: decision };
    const { policy, limit, quota, retryMs } = decision;
    // Another instance has all of it.
    if (quota === 0) throw unavailable();
    const refusal = limited({ policy, limit: quota, windowMs: 60_000, resetMs: Math.min(retryMs, 60_000) }, limit);
    this.refusals[limit === 'concurrent' ? 'concurrency' : 'rate'] += 1;
    throw refusal;
  }

  /** @param tokens what the model has used; null if that is not known, so that the estimate stays. */
  settle(claim: HeldClaim, tokenId: string, tokens: number | null): void {
    if (claim.tokens === 0 || tokens === null) return;
    if (tokens > 0) this.#usages.add(tokens, tokenId);
    this.#store.settle(claim, tokens);
  }

  leave(claim: HeldClaim): void {
    this.#store.leave(claim);
  }

  cancel(claim: HeldClaim): void {
    this.#store.cancel(claim);
  }

  /** @throws {Refusal} (rejects with) `unavailable` */
  async left(scopes: readonly LimitedScope[]): Promise<Limits[]> {
    try {
      return await this.#store.left(scopes);
    } catch (error) {
      throw refusalOf(error);
    }
  }
}

const limitsTokens = ({ limits }: LimitedScope) => limits.tokens_per_minute !== undefined;

const refusalOf = (error: unknown) => (error instanceof StoreUnavailable ? unavailable(error) : error);
