/** Random histories of requests against the limits of tokens and projects. What was admitted is judged by a log of its own. */
import { expect } from 'chai';
import { type LimitShares, LimitShares as Shares } from '../../daemon/core/limit-shares.js';
import { Limiter } from '../../daemon/core/limiter.js';
import type { HeldClaim, LimitedScope } from '../../daemon/core/ports.js';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import { Refusal } from '../../daemon/core/refusal.js';
import { MemoryLimits } from '../../daemon/store/memory/limits.js';
import { TestClock } from '../support/clock.js';
import { MINUTE_MS, mostInAMinute, randomFrom, scope } from '../support/limit-histories.js';

function enter(limiter: Limiter, scopes: readonly LimitedScope[], runsModel = false): HeldClaim | Refusal {
  try {
    const wanted = { scopes, tokenId: 'token', takesSlot: true, isRequest: true, runsModel };
    const claim = limiter.enter(wanted);
    if (claim instanceof Promise) throw new Error('memory does not wait');
    return claim;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

describe('limits of tokens and projects in one process', () => {
  let clock: TestClock;
  let limits: MemoryLimits;
  let limiter: Limiter;

  beforeEach(() => {
    clock = new TestClock({ standsStill: true });
    limits = new MemoryLimits({ clock, shares: null });
    limiter = new Limiter(limits);
  });

  it('admits no more than the limit in any 60 s, and the next one at most a second late', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = randomFrom(seed);
      const quota = 1 + Math.floor(random() * 40);
      const scopes = [scope('token', { requests_per_minute: quota })];
      limits = new MemoryLimits({ clock, shares: null });
      limiter = new Limiter(limits);
      const admitted: number[] = [];
      for (let step = 0; step < 3_000; step++) {
        clock.advance(random() < 0.02 ? random() * 90_000 : random() * ((2 * MINUTE_MS) / quota));
        const nowMs = clock.monotonic();
        const result = enter(limiter, scopes);
        if (result instanceof Refusal) {
          const recent = admitted.filter((atMs) => atMs > nowMs - MINUTE_MS - 1_000).length;
          expect(recent, 'refused too early').to.be.at.least(quota);
          expect(result.kind).to.equal('rate_limited');
          expect(result.retryAfterSeconds).to.be.within(1, 60);
        } else {
          admitted.push(nowMs);
          limiter.leave(result);
        }
      }
      expect(mostInAMinute(admitted), `seed ${seed}`).to.be.at.most(quota);
      expect(admitted.length).to.be.above(100);
    }
  });

  it('says when the next one is admitted', () => {
    const random = randomFrom(7);
    const scopes = [scope('token', { requests_per_minute: 5 }), scope('project', { requests_per_minute: 7 })];
    for (let step = 0; step < 500; step++) {
      const result = enter(limiter, scopes);
      if (!(result instanceof Refusal)) {
        limiter.leave(result);
        clock.advance(random() * 12_000);
        continue;
      }
      clock.advance(1_000 * result.retryAfterSeconds! + 1_000);
      expect(enter(limiter, scopes)).not.to.be.instanceOf(Refusal);
    }
  });

  it('never exceeds a number of concurrent requests, and frees every slot after 10,000 random endings', () => {
    const random = randomFrom(3);
    const scopes = [
      scope('token', { concurrent: 4, requests_per_minute: 1_000_000 }),
      scope('project', { concurrent: 6 }),
    ];
    const open: HeldClaim[] = [];
    let [endings, refused] = [0, 0];
    while (endings < 10_000) {
      clock.advance(random() * 10);
      if (random() < 0.5) {
        const result = enter(limiter, random() < 0.5 ? scopes : scopes.slice(1));
        if (result instanceof Refusal) refused += 1;
        else open.push(result);
        const ofToken = open.filter((claim) => claim.scopes.length === 2).length;
        expect(ofToken).to.be.at.most(4);
        expect(open.length).to.be.at.most(6);
      } else {
        const [claim] = open.splice(Math.floor(random() * open.length), 1);
        if (!claim) continue;
        if (random() < 0.5) limiter.leave(claim);
        else limiter.cancel(claim);
        endings += 1;
      }
    }
    expect(refused).to.be.above(1_000);
    for (const claim of open) limiter.leave(claim);
    expect(limits.left(scopes).map(({ concurrent }) => concurrent)).to.deep.equal([4, 6]);
    clock.advance(2 * MINUTE_MS);
    expect(limits.size).to.equal(0);
  });

  it('takes nothing of any limit for a request that one of them refuses', () => {
    const token = scope('token', { requests_per_minute: 100, concurrent: 100, tokens_per_minute: 100_000 });
    for (const limit of ['requests_per_minute', 'tokens_per_minute', 'concurrent'] as const) {
      limits = new MemoryLimits({ clock, shares: null });
      limiter = new Limiter(limits);
      const scopes = [token, scope('project', { [limit]: 1 })];
      expect(enter(limiter, scopes, true)).not.to.be.instanceOf(Refusal);
      const before = limits.left(scopes);
      const result = enter(limiter, scopes, true) as Refusal;
      expect(result.kind).to.equal(limit === 'concurrent' ? 'concurrency_limited' : 'rate_limited');
      expect(result.rateLimit?.policy).to.equal('project');
      expect(limits.left(scopes)).to.deep.equal(before);
    }
  });

  it('gives back everything of a request that is not forwarded after all', () => {
    const scopes = [scope('token', { requests_per_minute: 3, concurrent: 3, tokens_per_minute: 1_000 })];
    const before = limits.left(scopes);
    const claim = enter(limiter, scopes, true) as HeldClaim;
    expect(limits.left(scopes)).to.deep.equal([{ requests_per_minute: 2, concurrent: 2, tokens_per_minute: 744 }]);
    clock.advance(5_000);
    limiter.cancel(claim);
    expect(limits.left(scopes)).to.deep.equal(before);
  });

  it('keeps the mean of tokens below the limit, and one minute below it plus what was in flight', () => {
    for (let seed = 1; seed <= 10; seed++) {
      const random = randomFrom(seed);
      const perMinute = 2_000 + Math.floor(random() * 20_000);
      const scopes = [scope('token', { tokens_per_minute: perMinute })];
      limits = new MemoryLimits({ clock, shares: null });
      limiter = new Limiter(limits);
      const open: { claim: HeldClaim; atMs: number; tokens: number }[] = [];
      const used: { atMs: number; tokens: number }[] = [];
      const begunAtMs = clock.monotonic();
      let overshoot = 0;
      for (let step = 0; step < 4_000; step++) {
        clock.advance(random() * 3_000);
        const result = enter(limiter, scopes, true);
        const tokens = Math.floor(random() < 0.01 ? 3 * perMinute * random() : 1_500 * random() ** 3);
        if (!(result instanceof Refusal)) {
          open.push({ claim: result, atMs: clock.monotonic(), tokens });
          used.push({ atMs: clock.monotonic(), tokens });
          overshoot = Math.max(
            overshoot,
            open.reduce((sum, each) => sum + each.tokens, 0),
          );
        }
        while (open.length > 6 || (open.length > 0 && random() < 0.5)) {
          const [ended] = open.splice(Math.floor(random() * open.length), 1);
          limiter.leave(ended!.claim);
          limiter.settle(ended!.claim, 'token', ended!.tokens);
        }
      }
      const minutes = (clock.monotonic() - begunAtMs) / MINUTE_MS;
      const total = used.reduce((sum, { tokens }) => sum + tokens, 0);
      expect(total, `mean, seed ${seed}`).to.be.at.most(perMinute * (minutes + 1) + overshoot);
      expect(total, `use, seed ${seed}`).to.be.at.least(perMinute * minutes * 0.3);
      for (const { atMs } of used) {
        const minute = used.filter((other) => other.atMs > atMs - MINUTE_MS && other.atMs <= atMs);
        const sum = minute.reduce((all, { tokens }) => all + tokens, 0);
        expect(sum, `a minute, seed ${seed}`).to.be.at.most(perMinute + overshoot);
      }
    }
  });

  it('pays off a debt at the limit in a minute', () => {
    const scopes = [scope('token', { tokens_per_minute: 1_000 })];
    const claim = enter(limiter, scopes, true) as HeldClaim;
    limiter.leave(claim);
    limiter.settle(claim, 'token', 10_000);
    clock.advance(8 * MINUTE_MS);
    expect((enter(limiter, scopes, true) as Refusal).retryAfterSeconds).to.equal(60);
    clock.advance(3 * MINUTE_MS);
    expect(enter(limiter, scopes, true)).not.to.be.instanceOf(Refusal);
  });

  it('estimates a request from what those before it have used', () => {
    const scopes = [scope('token', { tokens_per_minute: 100_000 })];
    expect((enter(limiter, scopes, true) as HeldClaim).tokens).to.equal(256);
    for (let n = 1; n <= 32; n++) {
      const claim = enter(limiter, scopes, true) as HeldClaim;
      limiter.leave(claim);
      limiter.settle(claim, 'token', n === 32 ? 9_000 : 1_000 + n);
      clock.advance(MINUTE_MS);
    }
    expect((enter(limiter, scopes, true) as HeldClaim).tokens).to.equal(1_031);
    expect((enter(limiter, scopes, false) as HeldClaim).tokens).to.equal(0);
  });

  it('takes the minute before its start for full, except of what is new or was not used', () => {
    const used = { ...scope('token', { requests_per_minute: 5 }, 0), lastUsedAtMs: clock.now() - 30_000 };
    expect((enter(limiter, [used]) as Refusal).retryAfterSeconds).to.equal(31);
    const idle = { ...used, id: 'idle', lastUsedAtMs: clock.now() - 62_000 };
    expect(enter(limiter, [idle])).not.to.be.instanceOf(Refusal);
    expect(enter(limiter, [{ ...used, id: 'new', createdAtMs: clock.now() }])).not.to.be.instanceOf(Refusal);
    expect(enter(limiter, [scope('project', { requests_per_minute: 5 }, 0)])).to.be.instanceOf(Refusal);
    clock.advance(31_000);
    expect(enter(limiter, [used])).not.to.be.instanceOf(Refusal);
    limits = new MemoryLimits({ clock, shares: null });
    limits.distrustLastUses();
    limiter = new Limiter(limits);
    expect((enter(limiter, [idle]) as Refusal).retryAfterSeconds).to.equal(60);
  });
});

/** Instances that share a database, each with its part of the limits. */
class Fleet {
  readonly clock = new TestClock({ standsStill: true });
  readonly instances = new Map<
    string,
    { shares: LimitShares; limits: MemoryLimits; limiter: Limiter; isLive: boolean }
  >();

  start(id: string): void {
    const shares = new Shares(this.clock, { warn: () => undefined });
    const limits = new MemoryLimits({ clock: this.clock, shares });
    this.instances.set(id, { shares, limits, limiter: new Limiter(limits), isLive: true });
    this.poll(id);
  }

  poll(id: string): void {
    const live = [...this.instances].filter(([, { isLive }]) => isLive).map(([other]) => other);
    const { shares, isLive } = this.instances.get(id)!;
    const peers = { live: live.length, isFirst: [...live].sort()[0] === id, isLive, apart: 0, isFirstApart: false };
    shares.observe(peers, this.clock.monotonic(), this.clock.now());
  }
}

describe('limits divided among instances', () => {
  it('never exceeds them, whoever begins, ends, is paused or is taken for dead', () => {
    for (let seed = 1; seed <= 30; seed++) {
      const random = randomFrom(seed);
      const quota = [1, 2, 3, 7, 30][seed % 5]!;
      const concurrent = 1 + (seed % 4);
      const fleet = new Fleet();
      const { clock, instances } = fleet;
      const scopes = [scope('token', { requests_per_minute: quota, concurrent }, 0)];
      const admitted: number[] = [];
      const open: { id: string; claim: HeldClaim; untilMs: number }[] = [];
      const paused = new Map<string, number>();
      let started = 0;
      const refused = { unavailable: 0, rate: 0 };
      const startOne = () => {
        fleet.start(String.fromCharCode(97 + Math.floor(random() * 26)) + String(started++));
      };
      startOne();
      for (let step = 0; step < 12_000; step++) {
        clock.advance(100);
        const nowMs = clock.monotonic();
        for (let at = open.length - 1; at >= 0; at--) {
          const { id, claim, untilMs } = open[at]!;
          if (untilMs > nowMs && instances.has(id)) continue;
          instances.get(id)?.limiter.leave(claim);
          open.splice(at, 1);
        }
        if (random() < 0.001 && instances.size < 4) startOne();
        for (const [id, instance] of instances) {
          const pausedAtMs = paused.get(id);
          if (pausedAtMs !== undefined) {
            // The others take it for dead after 30 s.
            if (nowMs - pausedAtMs > 30_000) instance.isLive = false;
            if (random() < 0.004) paused.delete(id);
            continue;
          }
          if (random() < 0.0005) {
            if (random() < 0.5) instances.delete(id);
            else paused.set(id, nowMs);
            continue;
          }
          if (step % 5 === 0) {
            fleet.poll(id);
            if (!instance.isLive && random() < 0.2) {
              instance.isLive = true;
              instance.limits.startAgain();
            }
          }
          if (random() > 0.2) continue;
          const result = enter(instance.limiter, scopes);
          if (result instanceof Refusal) {
            refused[result.kind === 'unavailable' ? 'unavailable' : 'rate'] += 1;
            continue;
          }
          admitted.push(nowMs);
          open.push({ id, claim: result, untilMs: nowMs + random() * 20_000 });
          expect(open.length, `concurrent, seed ${seed}, step ${step}`).to.be.at.most(concurrent);
        }
        if (instances.size === 0) startOne();
      }
      expect(mostInAMinute(admitted), `seed ${seed}`).to.be.at.most(quota);
      expect(admitted.length, `seed ${seed}`).to.be.above(2);
      expect(refused.rate).to.be.above(0);
    }
  });

  it('refuses while it is not known how many share them', () => {
    const fleet = new Fleet();
    fleet.start('a');
    const { shares } = fleet.instances.get('a')!;
    fleet.clock.advance(5_000);
    expect(shares.share()(7)).to.equal(7);
    fleet.clock.advance(1);
    expect(() => shares.share()).to.throw(StoreUnavailable);
  });
});
