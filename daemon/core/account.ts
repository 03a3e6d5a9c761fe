import { InFlight, Member } from './in-flight.js';
import type { KnownToken } from './ports.js';
import type { Refusal } from './refusal.js';
import { digestOf } from './token.js';

/** What a read of the database said about a token. Replaced whole, never edited. */
export interface Known extends KnownToken {
  /** From here on (monotonic) it must be read again before it is believed. */
  recheckAtMs: number;
  /** The token's end in RFC 3339, made when it is first asked for: every answer carries it. */
  expiresAt: string | null;
  /** Made when it is first asked for: every look into the cache takes it. */
  upstreamKeyDigest: string | null;
}

/**
 * What this instance holds of one token. The remembered state (`known`), the lease and the unsettled uses
 * are three things: forgetting touches the first only.
 */
export class Account {
  readonly digest: string;
  readonly tokenId: string;
  readonly projectId: string;
  /** A token's cap never changes, so it may outlive what is remembered. */
  readonly isCapped: boolean;
  known: Known | null = null;

  // The lease: units of a cap that the database has set aside for this instance.
  /** Units in hand, not yet drawn. */
  units = 0;
  /** Units asked for in the tick that is under way. */
  taking = 0;
  /** Whether the next tick shall ask for units. */
  wantsUnits = false;
  /** Whether the next tick shall give the unspent units back. */
  givesBack = false;
  /** Since when (monotonic) it waits for units that other instances hold; null while it does not. */
  contendsSinceMs: number | null = null;
  /** Ends the pause until it asks for them again. */
  cancelAsking: (() => void) | null = null;
  /** Uses in the time between two ticks, as last seen. */
  pace = 0;
  /** When its uses were last collected (monotonic). */
  collectedAtMs = -Infinity;
  /** Units the database had left to give when last heard of. */
  left = 0;
  /** Until then (monotonic) the database need not be asked: it had none left. */
  exhaustedUntilMs = 0;
  waiters: { resolve: () => void; reject: (reason: Error) => void }[] = [];

  // Counted here, not yet in the database.
  uses = 0;
  hits = 0;
  /** Part of a tick whose commit is not known yet. */
  settlingUses = 0;
  settlingHits = 0;
  lastUsedAtMs = 0;

  readonly inFlight = new InFlight<Pass>();
  /** Set by each use, cleared by the eviction's hand when it passes by. */
  recentlyUsed = true;

  constructor(digest: string, tokenId: string, projectId: string, isCapped: boolean) {
    this.digest = digest;
    this.tokenId = tokenId;
    this.projectId = projectId;
    this.isCapped = isCapped;
  }

  /** Holding units, counts or requests that would be lost with it. */
  get isBusy(): boolean {
    return (
      this.units > 0 ||
      this.taking > 0 ||
      this.uses > 0 ||
      this.hits > 0 ||
      this.settlingUses > 0 ||
      this.settlingHits > 0 ||
      this.inFlight.size > 0 ||
      this.waiters.length > 0
    );
  }

  wake(): void {
    const { waiters } = this;
    this.waiters = [];
    for (const waiter of waiters) waiter.resolve();
  }

  fail(reason: Error): void {
    const { waiters } = this;
    this.waiters = [];
    this.contendsSinceMs = null;
    for (const waiter of waiters) waiter.reject(reason);
  }
}

/** Permission for one request, from its admission to its end. */
export class Pass extends Member {
  readonly account: Account;
  readonly #known: Known;
  readonly tokenId: string;
  readonly projectId: string;
  readonly obfuscated: string;
  readonly upstreamKey: string;
  /** Whether its use was counted. */
  isDrawn = false;
  /** Whether its request is over; then it can be drawn no more. */
  isFinished = false;
  /** Set when the token was revoked, or the project deactivated, while the request was in flight. */
  ended: Refusal | null = null;
  /**
   * The last change that what let the request in had seen: it is none of those that a change up to then ends, whenever that is
   * heard of. Negative when the numbers do not count any more.
   */
  changeSeq: number;
  /** Told at that moment; set by whoever carries the request. */
  onEnded: ((refusal: Refusal) => void) | null = null;

  constructor(account: Account, known: Known) {
    super();
    this.account = account;
    this.#known = known;
    this.tokenId = account.tokenId;
    this.projectId = account.projectId;
    this.obfuscated = known.token.obfuscated;
    this.upstreamKey = known.upstreamKey;
    this.changeSeq = known.changeSeq;
  }

  /** The same permission once more. */
  again(): Pass {
    const pass = new Pass(this.account, this.#known);
    pass.changeSeq = this.changeSeq;
    return pass;
  }

  /** Tells upstream keys apart where the key itself has no place. */
  get upstreamKeyDigest(): string {
    return (this.#known.upstreamKeyDigest ??= digestOf(this.upstreamKey));
  }

  /** Since the epoch. */
  get expiresAtMs(): number {
    return this.#known.token.expiresAtMs;
  }

  /** The same in RFC 3339. */
  get expiresAt(): string {
    return (this.#known.expiresAt ??= new Date(this.#known.token.expiresAtMs).toISOString());
  }

  /** Uses of the cap that are left, at least; null when unlimited. */
  get remaining(): number | null {
    return this.account.isCapped ? this.account.units + this.account.left : null;
  }
}

const USUALLY_LEASED = 256;
const SHARE_OF_REST = 16;
// Of what a busy token may have beyond the usual: a small share of much.
const SHARE_OF_MUCH = 256;

/**
 * How many units an instance may hold of a cap of which `left` are free: few when few are left, so that
 * what a kill costs, and what other instances cannot have, stays a small share. A token that uses up more between two ticks may hold
 * what it uses in that time, so that it is written no more often than an unlimited one.
 */
export function leaseTarget(left: number, pace: number): number {
  const most = Math.max(USUALLY_LEASED, Math.min(pace, left / SHARE_OF_MUCH));
  return Math.max(1, Math.floor(Math.min(most, left / SHARE_OF_REST)));
}
