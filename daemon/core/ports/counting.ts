/** Storage for admission and settlement: tokens, counts and leases. */
import type { MissingUsage, Policies, UpstreamAuth } from '../../api/vocabulary.js';
import type { Amount, DayCharge, LeasedAmount, PurseCounts, PurseTake } from '../budget/counts.js';
import type { Token } from '../token.js';

/** A token with everything needed to admit a request. */
export interface KnownToken {
  token: Token;
  /** Units of the cap that are used or leased, across all instances. Meaningless without a cap. */
  reserved: number;
  projectIsActive: boolean;
  projectName: string;
  upstreamKey: string;
  /** Null: UPSTREAM_BASE_URL. */
  upstreamBaseUrl: string | null;
  upstreamAuth: UpstreamAuth;
  missingUsage: MissingUsage;
  /** Those of the project, which hold in addition to those of the token. */
  projectPolicies: Policies;
  projectCreatedAtMs: number;
  /** Number of the last committed change when this was read: the state includes it and all earlier ones. */
  changeSeq: number;
}

export interface TokenLookup {
  /** @throws {StoreUnavailable} */
  byDigest(digest: string): Promise<KnownToken | null>;
  /** What these tokens and projects have spent. @throws {StoreUnavailable} */
  purses(ids: readonly string[]): Promise<ReadonlyMap<string, PurseCounts>>;
}

/** One token's part of a tick. */
export interface TickRow {
  tokenId: string;
  /** Uses drawn since the last tick. If `leased`, they come out of this instance's lease. */
  uses: number;
  hits: number;
  lastUsedAtMs: number;
  leased: boolean;
  /** Units to add to the lease; fewer may be granted. */
  take: number;
  /** Undrawn units to remove from the lease. */
  giveBack: number;
}

/** The row of one purse in a tick. */
export interface PurseTickRow {
  /** Of its token or project. */
  purseId: string;
  /** What requests were charged, by the start of the UTC day of their admission. */
  charges: readonly DayCharge[];
  /** What leaves the leases of this instance, by the start of their period: what was charged, and what is returned. */
  returns: readonly LeasedAmount[];
  /** The lease to take; null: none. */
  take: PurseTake | null;
  /** Whether the tick reports the counts. Only budgets need them. */
  isReported: boolean;
}

/** The counts of a purse after a tick, and what the tick granted. */
export interface PurseReport {
  counts: PurseCounts;
  /** Null if no lease was requested, or the database has another budget than the instance knows. */
  grant: LeasedAmount | null;
  /** The grant is too small for the waiting requests, but other instances have leases, and are asked to return them. */
  isHeldElsewhere: boolean;
}

export interface Tick {
  instanceId: string;
  /** 1, 2, 3 …: the transaction advances the instance's stored number from `seq - 1`, so it is applied at most once. */
  seq: number;
  nowMs: number;
  rows: readonly TickRow[];
  purses: readonly PurseTickRow[];
}

export interface TickReport {
  /** Of the tokens that took units. */
  units: Map<string, LeaseGrant>;
  /** By ID, for the purses whose counts are reported. Purses that do not exist are missing. */
  purses: Map<string, PurseReport>;
}

/** Result of taking units for one token. */
export interface LeaseGrant {
  granted: number;
  /** Units still free in the database afterwards. */
  left: number;
  /** None were granted, but other instances hold undrawn units and are asked to give them back. */
  isHeldElsewhere: boolean;
}

/** This instance was expired by the others: the units it had leased were counted as used. */
export class InstanceExpired extends Error {
  override name = 'InstanceExpired';
}

/** Storage of counts and leases; daemon/core/settlement.ts describes the protocol. */
export interface Ledger {
  /**
   * Registers the instance with `seq` 0. Idempotent. If no other instance can be alive, units held by former ones count as used.
   *
   * @returns whether it found such a one, which has not written all that it counted.
   */
  enrol(instanceId: string, nowMs: number): Promise<boolean>;
  /** Commits a tick; even an empty one is a heartbeat. After another error its outcome is unknown until `lastSeq` is read. @throws {InstanceExpired} */
  commit(tick: Tick): Promise<TickReport>;
  /** `seq` of the last committed tick. @throws {InstanceExpired} */
  lastSeq(instanceId: string): Promise<number>;
  /** Units of these tokens leased by the instance, including those drawn but not yet settled. */
  held(instanceId: string, tokenIds: readonly string[]): Promise<Map<string, number>>;
  /** What the instance has leased of these purses, including charges that are not settled. */
  heldOfPurses(instanceId: string, purseIds: readonly string[]): Promise<Map<string, Amount>>;
  /** Registers an expired instance again, without units. Idempotent. @returns the `seq` of its last tick. */
  rejoin(instanceId: string, nowMs: number): Promise<number>;
  /** Deregisters the instance: units that it still has leased count as used, and leased amounts as spent. */
  retire(instanceId: string): Promise<void>;
}
