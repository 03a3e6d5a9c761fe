/** Storage for the limits of tokens and projects: requests and tokens of models in a minute, and requests at the same time. */
import type { Limits } from '../../api/vocabulary.js';

export type { Limits };

export type LimitPolicy = 'token' | 'project';

/** A token or a project that has limits. */
export interface LimitedScope {
  policy: LimitPolicy;
  id: string;
  limits: Limits;
  createdAtMs: number;
  /** When a token was last used, as stored; null: never, or it is not known. */
  lastUsedAtMs: number | null;
}

/** What a request asks for in all of its scopes. */
export interface LimitClaim {
  id: string;
  scopes: readonly LimitedScope[];
  /** Whether it holds a slot of `concurrent` until `leave`. */
  takesSlot: boolean;
  /** Whether it counts as a request. */
  isRequest: boolean;
  /** Estimate of the model's tokens. */
  tokens: number;
}

/** What a claim has taken, in the terms of the store. */
export interface LimitGrant {
  isGranted: true;
  /** Whether it is counted where instances count together. */
  isShared: boolean;
  /** When it was taken. */
  atMs: number;
  /** The tokens that each scope was charged. */
  charged: readonly number[];
}

/** The first limit that refuses, in the order of checks. */
export interface LimitReached {
  isGranted: false;
  policy: LimitPolicy;
  limit: keyof Limits;
  /** The part of the limit that this process has. 0: it has none. */
  quota: number;
  retryMs: number;
}

export type LimitDecision = LimitGrant | LimitReached;

/** A claim that was granted. */
export interface HeldClaim extends LimitClaim {
  grant: LimitGrant;
}

/** Where the limits are counted now. */
export interface LimitState {
  /** `redis`: by all instances together. `divided`: each has its part. `local`: this instance is the only one. */
  mode: 'redis' | 'divided' | 'local';
  /** Number of live instances; null while it is not known. */
  instances: number | null;
  /** Whether requests may have been admitted in the last minute that are not known, so that the window counts as full. */
  isFull: boolean;
}

/** All or nothing: a claim that is refused takes nothing. */
export interface LimitStore {
  readonly state: LimitState;
  /** @throws {StoreUnavailable} (or rejects with it) if the limits cannot be enforced now. */
  enter(claim: LimitClaim): LimitDecision | Promise<LimitDecision>;
  /** The model has used that many tokens. Call it once for a claim with tokens. */
  settle(claim: HeldClaim, tokens: number): void;
  /** Returns the slot. Call it once for a claim with a slot. */
  leave(claim: HeldClaim): void;
  /** Instead of both: as if it had never entered. */
  cancel(claim: HeldClaim): void;
  /** What is left of each limit that is set, for each of these scopes. */
  left(scopes: readonly LimitedScope[]): Limits[] | Promise<Limits[]>;
}
