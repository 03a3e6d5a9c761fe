/** What admission asks of the database: tokens, counts and leases. */
import type { Token } from '../token.js';

/** A token with all that admitting a request takes. */
export interface KnownToken {
  token: Token;
  /** Units of the cap that are used or leased, over all instances. Meaningless when unlimited. */
  reserved: number;
  projectIsActive: boolean;
  upstreamKey: string;
  /** The number of the last change that had been committed when this was read: this shows it and all before it. */
  changeSeq: number;
}

export interface TokenLookup {
  /** @throws {StoreUnavailable} */
  byDigest(digest: string): Promise<KnownToken | null>;
}

/** One token's part of a tick. */
export interface TickRow {
  tokenId: string;
  /** Uses drawn since the last tick. Where `leased`, they come out of this instance's lease. */
  uses: number;
  hits: number;
  lastUsedAtMs: number;
  leased: boolean;
  /** Units wanted into the lease; fewer may be granted. */
  take: number;
  /** Unspent units that leave the lease. */
  giveBack: number;
}

export interface Tick {
  instanceId: string;
  /** 1, 2, 3 …: the transaction advances the instance's stored number from `seq - 1`, and so happens once or not at all. */
  seq: number;
  nowMs: number;
  rows: readonly TickRow[];
}

/** What a take brought. */
export interface TakeReport {
  granted: number;
  /** How many the database still has to give after it. */
  left: number;
  /** Nothing was granted, but other instances hold units. They are asked for them. */
  isHeldElsewhere: boolean;
}

/** The database takes this instance for dead: what it had leased was counted as used. */
export class InstanceBuried extends Error {
  override name = 'InstanceBuried';
}

/** Counts and leases, as daemon/core/settlement.ts describes them. */
export interface Ledger {
  /** Makes the instance known with `seq` 0; can be repeated. Where no other can be alive, what the dead ones held counts as used. */
  enrol(instanceId: string, nowMs: number): Promise<void>;
  /** Commits a tick, which says that the instance lives, be it empty. After another error its outcome is unknown until `lastSeq` is read. @throws {InstanceBuried} */
  commit(tick: Tick): Promise<Map<string, TakeReport>>;
  /** The `seq` of the last tick that was committed. @throws {InstanceBuried} */
  lastSeq(instanceId: string): Promise<number>;
  /** The units of each of these tokens that the instance holds, those included that it has drawn and not settled. */
  held(instanceId: string, tokenIds: readonly string[]): Promise<Map<string, number>>;
  /** Makes a buried instance known again, with nothing in its hands. Can be repeated. @returns the `seq` of its last tick. */
  rejoin(instanceId: string, nowMs: number): Promise<number>;
  /** Ends the instance: what it still holds counts as used. */
  retire(instanceId: string): Promise<void>;
}
