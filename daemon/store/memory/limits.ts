import { KNOWN_WITHIN_MS, type LimitShare, type LimitShares } from '../../core/limit-shares.js';
import { IN_WINDOW_MS, MinuteWindow, TokenWindow } from '../../core/limit-windows.js';
import type {
  Clock,
  HeldClaim,
  LimitClaim,
  LimitDecision,
  LimitedScope,
  Limits,
  LimitReached,
  LimitState,
  LimitStore,
} from '../../core/ports.js';

export interface MemoryLimitsOptions {
  clock: Pick<Clock, 'monotonic' | 'now'>;
  /** Null if there are no other instances. */
  shares: LimitShares | null;
  /** How long others may not know of this instance. Default: `KNOWN_WITHIN_MS`, or 0 if there are no others. */
  unknownForMs?: number;
}

const WHOLE: LimitShare = (limit) => limit;
const SWEEP_EVERY_MS = 60_000;
/** A slot is free when a request ends, which nobody knows in advance. */
export const SLOT_RETRY_MS = 1_000;

interface Scope {
  slots: number;
  requests: MinuteWindow | null;
  tokens: TokenWindow | null;
  tokenLimit: number;
  /** Until then requests may have been admitted in the last minute that this process does not know of. */
  blindUntilMs: number;
}

/**
 * Limits that this process alone enforces, or its share of them.
 *
 * What a former process admitted just before this one started is not known. The window that was running then counts as full, except for what is
 * new. If that process has written when tokens were last used, it begins with their last use.
 */
export class MemoryLimits implements LimitStore {
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>;
  readonly #shares: LimitShares | null;
  readonly #unknownForMs: number;
  readonly #scopes = new Map<string, Scope>();
  #sweptAtMs: number;
  #trustsLastUses = true;
  #startedAtMs = { monotonic: 0, wall: 0 };

  constructor({ clock, shares, unknownForMs = shares ? KNOWN_WITHIN_MS : 0 }: MemoryLimitsOptions) {
    this.#clock = clock;
    this.#shares = shares;
    this.#unknownForMs = unknownForMs;
    this.#sweptAtMs = clock.monotonic();
    this.#begin();
  }

  /** The former process has not written all that it counted. Call before the first request. */
  distrustLastUses(): void {
    this.#trustsLastUses = false;
  }

  /** This instance was taken for dead: if there are others, they may have used its part of the limits. */
  startAgain(): void {
    if (this.#shares) this.#begin();
  }

  #begin(): void {
    this.#startedAtMs = { monotonic: this.#clock.monotonic(), wall: this.#clock.now() };
    for (const scope of this.#scopes.values()) scope.blindUntilMs = this.#blindUntil();
  }

  get state(): LimitState {
    const isFull = this.#clock.monotonic() < this.#blindUntil();
    return this.#shares
      ? { mode: 'divided', instances: this.#shares.instances, isFull }
      : { mode: 'local', instances: 1, isFull };
  }

  /** Number of tokens and projects with a window that is not empty, or a slot that is not free. */
  get size(): number {
    this.#sweep(this.#clock.monotonic());
    return this.#scopes.size;
  }

  enter(claim: LimitClaim): LimitDecision {
    const share = this.#shares?.share() ?? WHOLE;
    const nowMs = this.#clock.monotonic();
    this.#sweepAtTimes(nowMs);
    const scopes = claim.scopes.map((scope) => this.#scopeOf(scope));
    const reached = this.#slotReached(claim, scopes, share, nowMs) ?? this.#rateReached(claim, scopes, share, nowMs);
    if (reached) return reached;
    const charged = scopes.map((scope, at) => take(scope, claim, claim.scopes[at]?.limits ?? {}, share, nowMs));
    return { isGranted: true, isShared: false, atMs: nowMs, charged };
  }

  /** A slot that was granted elsewhere. */
  hold(claim: LimitClaim): void {
    this.#sweepAtTimes(this.#clock.monotonic());
    if (claim.takesSlot) for (const scope of claim.scopes) this.#scopeOf(scope).slots += 1;
  }

  #slotReached(claim: LimitClaim, scopes: readonly Scope[], share: LimitShare, nowMs: number): LimitReached | null {
    if (!claim.takesSlot) return null;
    for (const [at, { policy, limits }] of claim.scopes.entries()) {
      if (limits.concurrent === undefined) continue;
      const quota = share(limits.concurrent);
      // Others may still hold slots that belong to this part.
      const isBlind = this.#shares !== null && (scopes[at]?.blindUntilMs ?? 0) > nowMs;
      if (isBlind || (scopes[at]?.slots ?? 0) >= quota) return reachedIn(policy, 'concurrent', quota, SLOT_RETRY_MS);
    }
    return null;
  }

  #rateReached(claim: LimitClaim, scopes: readonly Scope[], share: LimitShare, nowMs: number): LimitReached | null {
    for (const [at, { policy, limits }] of claim.scopes.entries()) {
      const scope = scopes[at];
      if (!scope) continue;
      const { requests_per_minute: requests, tokens_per_minute: tokens } = limits;
      const blindMs = scope.blindUntilMs - nowMs;
      if (claim.isRequest && requests !== undefined) {
        const quota = share(requests);
        const waitMs = scope.requests?.untilAtMost(quota - 1, nowMs) ?? 0;
        const retryMs = quota === 0 ? SLOT_RETRY_MS : Math.max(blindMs, waitMs);
        if (retryMs > 0) return reachedIn(policy, 'requests_per_minute', quota, retryMs);
      }
      if (claim.tokens > 0 && tokens !== undefined) {
        const quota = share(tokens);
        const waitMs = scope.tokens?.wait(estimateWithin(claim.tokens, quota), quota, nowMs) ?? 0;
        const retryMs = quota === 0 ? SLOT_RETRY_MS : Math.max(blindMs, waitMs);
        if (retryMs > 0) return reachedIn(policy, 'tokens_per_minute', quota, retryMs);
      }
    }
    return null;
  }

  settle({ scopes, grant: { atMs, charged } }: HeldClaim, tokens: number): void {
    const nowMs = this.#clock.monotonic();
    for (const [at, scope] of scopes.entries()) {
      const by = tokens - (charged[at] ?? 0);
      if (charged[at] === 0 || by === 0) continue;
      const { tokens: window, tokenLimit } = this.#scopeOf(scope);
      window?.correct(atMs, by, tokenLimit, nowMs);
    }
  }

  leave({ scopes }: HeldClaim): void {
    for (const scope of scopes) this.#scopeOf(scope).slots -= 1;
  }

  cancel(claim: HeldClaim): void {
    this.settle(claim, 0);
    if (claim.takesSlot) this.leave(claim);
    if (!claim.isRequest) return;
    const nowMs = this.#clock.monotonic();
    for (const scope of claim.scopes) this.#scopeOf(scope).requests?.correct(claim.grant.atMs, -1, nowMs);
  }

  left(scopes: readonly LimitedScope[]): Limits[] {
    const share = this.#shares?.share() ?? WHOLE;
    const nowMs = this.#clock.monotonic();
    return scopes.map((limited) => {
      const { requests_per_minute: requests, tokens_per_minute: tokens, concurrent } = limited.limits;
      const scope = this.#scopeOf(limited);
      const isBlind = scope.blindUntilMs > nowMs;
      const left = (limit: number, used: number, isRate = true) =>
        isRate && isBlind ? 0 : Math.max(0, share(limit) - used);
      return {
        ...(requests !== undefined && { requests_per_minute: left(requests, scope.requests?.sum(nowMs) ?? 0) }),
        ...(tokens !== undefined && {
          tokens_per_minute: left(tokens, scope.tokens?.used(share(tokens), nowMs) ?? 0),
        }),
        ...(concurrent !== undefined && { concurrent: left(concurrent, scope.slots, false) }),
      };
    });
  }

  #scopeOf({ id, createdAtMs, lastUsedAtMs }: LimitedScope): Scope {
    let scope = this.#scopes.get(id);
    if (!scope) {
      const blindUntilMs = this.#blindUntil(createdAtMs, lastUsedAtMs);
      scope = { slots: 0, requests: null, tokens: null, tokenLimit: 0, blindUntilMs };
      this.#scopes.set(id, scope);
    }
    return scope;
  }

  /** Until then the window may contain requests of others, or of a former process. */
  #blindUntil(createdAtMs = 0, lastUsedAtMs: number | null = null): number {
    const { monotonic, wall } = this.#startedAtMs;
    if (createdAtMs >= wall + this.#unknownForMs) return -Infinity;
    const isLastUseKnown = this.#unknownForMs === 0 && this.#trustsLastUses && lastUsedAtMs !== null;
    const unusedForMs = isLastUseKnown ? Math.max(0, wall - lastUsedAtMs) : 0;
    return monotonic + this.#unknownForMs + IN_WINDOW_MS - unusedForMs;
  }

  #sweepAtTimes(nowMs: number): void {
    if (nowMs >= this.#sweptAtMs + SWEEP_EVERY_MS) this.#sweep(nowMs);
  }

  #sweep(nowMs: number): void {
    this.#sweptAtMs = nowMs;
    for (const [id, { slots, requests, tokens, tokenLimit, blindUntilMs }] of this.#scopes) {
      const isIdle = slots === 0 && (requests?.sum(nowMs) ?? 0) === 0 && (tokens?.used(tokenLimit, nowMs) ?? 0) === 0;
      if (isIdle && blindUntilMs <= nowMs) this.#scopes.delete(id);
    }
  }
}

/** An estimate above the limit would never fit. */
const estimateWithin = (tokens: number, limit: number) => Math.min(tokens, limit);

export const reachedIn = (
  policy: LimitReached['policy'],
  limit: LimitReached['limit'],
  quota: number,
  retryMs: number,
): LimitReached => ({ isGranted: false, policy, limit, quota, retryMs });

/** @returns the tokens that were charged. */
function take(
  scope: Scope,
  { takesSlot, isRequest, tokens: estimate }: LimitClaim,
  { requests_per_minute: requests, tokens_per_minute: tokens }: Limits,
  share: LimitShare,
  nowMs: number,
): number {
  // Also without a limit: one that is set later holds for all that is in flight then.
  if (takesSlot) scope.slots += 1;
  if (isRequest && requests !== undefined) (scope.requests ??= new MinuteWindow()).add(nowMs, 1);
  if (estimate === 0 || tokens === undefined) return 0;
  scope.tokenLimit = share(tokens);
  const charged = estimateWithin(estimate, scope.tokenLimit);
  (scope.tokens ??= new TokenWindow()).add(charged, scope.tokenLimit, nowMs);
  return charged;
}
