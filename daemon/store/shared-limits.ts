/**
 * The limits of instances that share a database and Redis: counted together in Redis, and divided among the instances while it is unreachable.
 *
 * An instance that has lost Redis tells the others so in the database, and waits until what was admitted before is over. Then it uses its part,
 * and the others have only the rest. When it is back, the window that is running counts as full for all.
 */
import { KNOWN_WITHIN_MS, type LimitShare, type LimitShares } from '../core/limit-shares.js';
import { IN_WINDOW_MS } from '../core/limit-windows.js';
import {
  type Clock,
  type HeldClaim,
  type LimitClaim,
  type LimitDecision,
  type LimitedScope,
  type Limits,
  type LimitState,
  type LimitStore,
  type Log,
  StoreUnavailable,
} from '../core/ports.js';
import { every } from '../core/timing.js';
import type { MemoryLimits } from './memory/limits.js';
import type { RedisLimits, Sharing } from './redis/limits.js';

/** A third of what the lease allows. */
const RENEW_EVERY_MS = 1_000;
/** Most outages are shorter. Until then there are only errors. */
const APART_AFTER_MS = 5_000;

export interface SharedLimitsOptions {
  redis: RedisLimits;
  divided: MemoryLimits;
  shares: LimitShares;
  /** Tells the others. Rejects with `StoreUnavailable`. */
  markApart: (isApart: boolean) => Promise<void>;
  clock: Pick<Clock, 'monotonic' | 'after'>;
  log: Pick<Log, 'info' | 'warn'>;
}

export class SharedLimits implements LimitStore {
  readonly #options: SharedLimitsOptions;
  readonly #startedAtMs: number;
  #isApart = false;
  /** What the others were told. */
  #marked = false;
  #failingSinceMs: number | null = null;
  #isTellingFailing = false;
  #stop: () => void = () => undefined;

  constructor(options: SharedLimitsOptions) {
    this.#options = options;
    this.#startedAtMs = options.clock.monotonic();
    options.redis.onJoined = () => {
      this.#failingSinceMs = null;
      if (!this.#isApart) return;
      this.#isApart = options.shares.isDivided = false;
      options.log.info('the limits of tokens and projects are counted in Redis again');
    };
  }

  /** Call when the instance is enrolled. */
  begin(): void {
    this.#stop();
    this.#stop = every(this.#options.clock, RENEW_EVERY_MS, () => this.#renew());
  }

  /** The others have taken this instance for dead. */
  startAgain(): void {
    this.#marked = false;
    this.#options.divided.startAgain();
  }

  get state(): LimitState {
    const { redis, divided, shares, clock } = this.#options;
    if (this.#isApart) return divided.state;
    const isFull = clock.monotonic() < redis.fullUntilMs || this.#fullMs > 0;
    return { mode: 'redis', instances: shares.instances, isFull };
  }

  /** How long others may have been admitting apart from Redis before this instance began, with another part. */
  get #fullMs(): number {
    const { shares, clock } = this.#options;
    if (shares.apart === 0) return 0;
    return Math.max(0, this.#startedAtMs + KNOWN_WITHIN_MS + IN_WINDOW_MS - clock.monotonic());
  }

  get #sharing(): Sharing {
    const { shares } = this.#options;
    return { share: shares.shareInRedis(), fullMs: this.#fullMs, hasOthers: shares.apart > 0 };
  }

  enter(claim: LimitClaim): LimitDecision | Promise<LimitDecision> {
    return this.#isApart ? this.#enterApart(claim) : this.#enterInRedis(claim);
  }

  #enterApart(claim: LimitClaim): LimitDecision {
    const decision = this.#options.divided.enter(claim);
    if (decision.isGranted) this.#options.redis.hold(claim);
    return decision;
  }

  async #enterInRedis(claim: LimitClaim): Promise<LimitDecision> {
    const decision = await this.#options.redis.enter(claim, this.#sharing);
    if (decision.isGranted) this.#options.divided.hold(claim);
    return decision;
  }

  settle(claim: HeldClaim, tokens: number): void {
    const { redis, divided } = this.#options;
    if (claim.grant.isShared) {
      redis.settle(claim, tokens, this.#shareForTokens);
      return;
    }
    divided.settle(claim, tokens);
    if (!this.#isApart) redis.owe(claim, tokens);
  }

  leave(claim: HeldClaim): void {
    this.#options.divided.leave(claim);
    this.#options.redis.leave(claim);
  }

  cancel(claim: HeldClaim): void {
    const { redis, divided } = this.#options;
    if (claim.grant.isShared) {
      if (claim.takesSlot) divided.leave(claim);
      redis.cancel(claim, this.#shareForTokens);
      return;
    }
    divided.cancel(claim);
    if (claim.takesSlot) redis.leave(claim);
  }

  left(scopes: readonly LimitedScope[]): Limits[] | Promise<Limits[]> {
    const { redis, divided } = this.#options;
    return this.#isApart ? divided.left(scopes) : redis.left(scopes, this.#sharing);
  }

  /** At shutdown, when all requests have ended. */
  async close(): Promise<void> {
    this.#stop();
    await this.#options.redis.close();
  }

  /** By which a debt is paid off. */
  get #shareForTokens(): LimitShare {
    try {
      return this.#options.shares.shareInRedis();
    } catch (error) {
      if (error instanceof StoreUnavailable) return (limit) => limit;
      throw error;
    }
  }

  async #renew(): Promise<void> {
    const { redis, clock, log } = this.#options;
    try {
      await redis.renew();
      this.#failingSinceMs = null;
    } catch {
      this.#failingSinceMs ??= clock.monotonic();
    }
    try {
      await this.#tell();
      this.#isTellingFailing = false;
    } catch (error) {
      if (this.#isTellingFailing) return;
      this.#isTellingFailing = true;
      log.warn('cannot tell other instances how the limits of tokens and projects are counted, retrying', { error });
    }
  }

  async #tell(): Promise<void> {
    const { redis, divided, shares, markApart, clock, log } = this.#options;
    const since = this.#failingSinceMs;
    const isApart = this.#isApart || (since !== null && clock.monotonic() >= since + APART_AFTER_MS);
    if (isApart !== this.#marked) {
      await markApart(isApart);
      this.#marked = isApart;
      if (this.#isApart) divided.startAgain();
    }
    // It may have joined the others meanwhile.
    if (!isApart || this.#isApart || this.#failingSinceMs === null) return;
    redis.part();
    divided.startAgain();
    this.#isApart = shares.isDivided = true;
    log.warn('Redis is unreachable: each limit of a token or project is divided among the live instances', {
      instances: shares.instances,
    });
  }
}
