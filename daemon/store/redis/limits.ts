/**
 * The limits of tokens and projects that instances share in Redis. limit-scripts.ts describes the keys.
 *
 * **Slots.** Redis knows how many slots of each token and project this instance has. A reply that is lost leaves that number in doubt, so it
 * is set again with the next renewal of the lease, and all of them when the connection is a new one.
 */
import { ReplyError } from 'ioredis';
import { IN_WINDOW_MS } from '../../core/limit-windows.js';
import type { LimitShare } from '../../core/limit-shares.js';
import {
  type Clock,
  type HeldClaim,
  type LimitClaim,
  type LimitDecision,
  type LimitedScope,
  type Limits,
  StoreUnavailable,
} from '../../core/ports.js';
import { reachedIn, SLOT_RETRY_MS } from '../memory/limits.js';
import type { Argument, NewConnection, RedisConnection } from './connection.js';
import { CORRECT, ENTER, JOIN, LEASE_MS, QUIT, RENEW, USED } from './limit-scripts.js';

/** In one call, so that Redis is not blocked. */
const SCOPES_PER_CALL = 250;
const REPORT_ALL_EVERY_MS = 600_000;
const LIMITS = ['concurrent', 'requests_per_minute', 'tokens_per_minute'] as const;

/** How the instances share the limits now. */
export interface Sharing {
  share: LimitShare;
  /** For so long other instances may have admitted what Redis does not count. */
  fullMs: number;
  /** Whether instances that do not reach Redis may still serve requests whose slots are here. */
  hasOthers: boolean;
}

export interface RedisLimitsOptions {
  connection: Pick<RedisConnection, 'run' | 'onConnect'>;
  clock: Pick<Clock, 'monotonic' | 'now'>;
  instanceId: string;
}

export class RedisLimits {
  readonly #options: RedisLimitsOptions;
  #joined = 0;
  /** Its name in Redis; null until it has joined the others. */
  #holder: string | null = null;
  #former = '';
  #runId: string | null = null;
  /** Whether this instance may have admitted something that Redis does not count. */
  #hasMissed = false;
  /** Slots of this instance, however they were granted. */
  readonly #slots = new Map<string, number>();
  /** Claims of slots that Redis has not decided. */
  readonly #asked = new Map<string, number>();
  /** Where Redis may have another number of slots. */
  readonly #doubtful = new Set<string>();
  /** Tokens that must still be charged. */
  readonly #owed = new Map<string, { tokens: number; limit: number }>();
  #reportedAllAtMs: number;
  #fullUntilMs = -Infinity;
  /** Called when it shares the limits (again). */
  onJoined: () => void = () => undefined;

  constructor(options: RedisLimitsOptions) {
    this.#options = options;
    this.#reportedAllAtMs = options.clock.monotonic();
    options.connection.onConnect(async (connection) => {
      try {
        await this.#join(connection);
      } catch (error) {
        // The rest can use a server that refuses these commands.
        if (!(error instanceof ReplyError)) throw error;
      }
    });
  }

  /** When the windows count no longer as full (monotonic). */
  get fullUntilMs(): number {
    return this.#fullUntilMs;
  }

  /** @throws {StoreUnavailable} (rejects with it) */
  async enter(claim: LimitClaim, { share, fullMs, hasOthers }: Sharing): Promise<LimitDecision> {
    const { scopes, takesSlot, isRequest, tokens } = claim;
    const quotas = scopes.map(({ limits }) => LIMITS.map((name) => quotaOf(limits[name], share)));
    const reached = (at: number, which: number, retryMs: number) => {
      const [policy, quota] = [scopes[at]?.policy ?? 'token', quotas[at]?.[which]];
      return reachedIn(policy, LIMITS[which] ?? 'concurrent', Number(quota), retryMs || SLOT_RETRY_MS);
    };
    const isAsked = [takesSlot, isRequest, tokens > 0];
    for (const [at, each] of quotas.entries())
      for (const [which, quota] of each.entries()) if (quota === 0 && isAsked[which]) return reached(at, which, 0);
    const holder = this.#holder;
    if (holder === null) throw new StoreUnavailable('the limits in Redis are unavailable');
    const args: Argument[] = [
      holder,
      graceOf(hasOthers),
      Math.ceil(fullMs),
      Number(takesSlot),
      Number(isRequest),
      tokens,
    ];
    for (const [at, scope] of scopes.entries()) args.push(scope.id, this.#ageOf(scope), ...(quotas[at] ?? []));
    const asking = takesSlot ? scopes : [];
    addTo(this.#asked, asking, 1);
    try {
      const [isGranted, second = 0, ...rest] = (await this.#options.connection.run(ENTER, args)) as [
        number,
        number?,
        ...number[],
      ];
      if (isGranted === 2) throw new StoreUnavailable('this instance has not renewed its lease in Redis');
      if (isGranted === 0) return reached(second - 1, Number(rest[0]) - 1, Number(rest[1]));
      addTo(this.#slots, asking, 1);
      if (holder !== this.#holder) this.#doubt(asking);
      return { isGranted: true, isShared: true, atMs: second * 1_000, charged: rest };
    } catch (error) {
      this.#doubt(asking);
      throw error;
    } finally {
      addTo(this.#asked, asking, -1);
    }
  }

  /** A slot that was granted elsewhere. */
  hold(claim: LimitClaim): void {
    if (!claim.takesSlot) return;
    addTo(this.#slots, claim.scopes, 1);
    this.#doubt(claim.scopes);
  }

  leave({ scopes }: HeldClaim): void {
    addTo(this.#slots, scopes, -1);
    this.#correct(scopes, { returnsSlot: true });
  }

  settle(claim: HeldClaim, tokens: number, share: LimitShare): void {
    this.#correct(claim.scopes, { claim, tokens, share });
  }

  cancel(claim: HeldClaim, share: LimitShare): void {
    if (claim.takesSlot) addTo(this.#slots, claim.scopes, -1);
    this.#correct(claim.scopes, {
      claim,
      tokens: 0,
      share,
      returnsSlot: claim.takesSlot,
      isTakenBack: claim.isRequest,
    });
  }

  /** A charge that is missing. */
  owe({ scopes, grant }: HeldClaim, tokens: number): void {
    for (const [at, { id, limits }] of scopes.entries()) {
      const { tokens_per_minute: limit } = limits;
      const by = tokens - (grant.charged[at] ?? 0);
      if (limit === undefined || by <= 0) continue;
      this.#owed.set(id, { tokens: (this.#owed.get(id)?.tokens ?? 0) + by, limit });
    }
  }

  #correct(
    scopes: readonly LimitedScope[],
    how: { claim?: HeldClaim; tokens?: number; share?: LimitShare; returnsSlot?: boolean; isTakenBack?: boolean },
  ): void {
    const { claim, tokens = 0, share, returnsSlot = false, isTakenBack = false } = how;
    const fail = () => {
      if (returnsSlot) this.#doubt(scopes);
      if (claim) this.owe(claim, tokens);
    };
    if (this.#holder === null) {
      fail();
      return;
    }
    const second = claim ? Math.floor(claim.grant.atMs / 1_000) : '';
    const args: Argument[] = [returnsSlot ? this.#holder : '', second, Number(isTakenBack)];
    for (const [at, { id, limits }] of scopes.entries()) {
      const charged = claim?.grant.charged[at] ?? 0;
      const limit = limits.tokens_per_minute;
      args.push(id, charged === 0 ? 0 : tokens - charged, limit === undefined || !share ? 0 : share(limit));
    }
    this.#options.connection.run(CORRECT, args).catch(fail);
  }

  /** @throws {StoreUnavailable} (rejects with it) */
  async left(scopes: readonly LimitedScope[], { share, fullMs, hasOthers }: Sharing): Promise<Limits[]> {
    const args: Argument[] = [graceOf(hasOthers)];
    for (const scope of scopes)
      args.push(scope.id, this.#ageOf(scope), Number(quotaOf(scope.limits.tokens_per_minute, share)));
    const used = (await this.#options.connection.run(USED, args)) as number[];
    return scopes.map(({ limits }, at) => {
      const [full = 0, slots = 0, requests = 0, tokens = 0] = used.slice(at * 4);
      const isFull = Math.max(full, fullMs) > 0;
      const left = (limit: number, taken: number) => Math.max(0, share(limit) - taken);
      return {
        ...(limits.requests_per_minute !== undefined && {
          requests_per_minute: isFull ? 0 : left(limits.requests_per_minute, requests),
        }),
        ...(limits.tokens_per_minute !== undefined && {
          tokens_per_minute: isFull ? 0 : left(limits.tokens_per_minute, tokens),
        }),
        ...(limits.concurrent !== undefined && { concurrent: left(limits.concurrent, slots) }),
      };
    });
  }

  // ---- the lease

  /** Renews the lease, or joins the others again. @throws {StoreUnavailable} (rejects with it) if that fails. */
  async renew(): Promise<void> {
    const { connection, clock } = this.#options;
    const run: NewConnection['run'] = (script, args) => connection.run(script, args);
    if (this.#holder === null) {
      await this.#join({ run, runId: this.#runId });
      return;
    }
    if (clock.monotonic() - this.#reportedAllAtMs >= REPORT_ALL_EVERY_MS) this.#doubtAll();
    if (!(await this.#report(run, this.#holder, SCOPES_PER_CALL))) {
      await this.#join({ run, runId: this.#runId });
      return;
    }
    for (const [id, { tokens, limit }] of [...this.#owed].slice(0, SCOPES_PER_CALL)) {
      await connection.run(CORRECT, ['', '', 0, id, tokens, limit]);
      const more = (this.#owed.get(id)?.tokens ?? 0) - tokens;
      if (more > 0) this.#owed.set(id, { tokens: more, limit });
      else this.#owed.delete(id);
    }
  }

  /** From now on this instance admits requests that Redis does not count, until it joins the others again. */
  part(): void {
    this.#former = this.#holder ?? this.#former;
    this.#holder = null;
    this.#hasMissed = true;
  }

  /** At shutdown, when all requests have ended. */
  async close(): Promise<void> {
    if (this.#holder !== null) await this.#options.connection.run(QUIT, [this.#holder]).catch(() => undefined);
    this.#holder = null;
  }

  async #join({ run, runId }: Pick<NewConnection, 'run' | 'runId'>): Promise<void> {
    this.#former = this.#holder ?? this.#former;
    this.#holder = null;
    this.#runId = runId;
    const holder = `${this.#options.instanceId}:${++this.#joined}`;
    await run(JOIN, [runId ?? '', Number(this.#hasMissed)]);
    this.#doubtAll();
    await this.#report(run, holder, Infinity, true);
    this.#holder = holder;
    this.#former = '';
    this.#hasMissed = false;
    this.#doubtAll(); // It may have joined twice at the same time.
    this.onJoined();
  }

  /** @returns false if its lease has ended. */
  async #report(run: NewConnection['run'], holder: string, most: number, isNew = false): Promise<boolean> {
    const { clock } = this.#options;
    const ids = [...this.#doubtful].slice(0, most);
    for (let from = 0; from === 0 || from < ids.length; from += SCOPES_PER_CALL) {
      const page = ids.slice(from, from + SCOPES_PER_CALL);
      for (const id of page) if (!this.#asked.has(id)) this.#doubtful.delete(id);
      const slots = page.flatMap((id) => [id, (this.#slots.get(id) ?? 0) + (this.#asked.get(id) ?? 0)]);
      // The former holder ends when all slots are reported.
      const former = from + SCOPES_PER_CALL >= ids.length ? this.#former : '';
      const askedAtMs = clock.monotonic();
      try {
        const args = [holder, Number(isNew && from === 0), former, ...slots];
        const [isRenewed, fullMs] = (await run(RENEW, args)) as [number, number];
        if (isRenewed === 0) return false;
        this.#fullUntilMs = askedAtMs + fullMs;
      } catch (error) {
        for (const id of page) this.#doubtful.add(id);
        throw error;
      }
    }
    return true;
  }

  #doubt(scopes: readonly LimitedScope[]): void {
    for (const { id } of scopes) this.#doubtful.add(id);
  }

  #doubtAll(): void {
    this.#reportedAllAtMs = this.#options.clock.monotonic();
    for (const id of this.#slots.keys()) this.#doubtful.add(id);
  }

  #ageOf({ createdAtMs }: LimitedScope): number {
    return Math.max(0, Math.floor(this.#options.clock.now() - createdAtMs));
  }
}

const quotaOf = (limit: number | undefined, share: LimitShare) => (limit === undefined ? '' : share(limit));

/** What instances apart from Redis admit for as long may still be under way. */
const graceOf = (hasOthers: boolean) => (hasOthers ? IN_WINDOW_MS + LEASE_MS : 0);

function addTo(counts: Map<string, number>, scopes: readonly LimitedScope[], by: number): void {
  for (const { id } of scopes) {
    const count = (counts.get(id) ?? 0) + by;
    if (count > 0) counts.set(id, count);
    else counts.delete(id);
  }
}
