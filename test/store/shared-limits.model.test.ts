/** Random histories of instances that count limits in Redis, of which some lose it for a while. What was admitted is judged by a log of its own. */
import { expect } from 'chai';
import { KNOWN_IN_REDIS_WITHIN_MS, LimitShares } from '../../daemon/core/limit-shares.js';
import { Limiter } from '../../daemon/core/limiter.js';
import { type HeldClaim, StoreUnavailable } from '../../daemon/core/ports.js';
import { Refusal } from '../../daemon/core/refusal.js';
import { MemoryLimits } from '../../daemon/store/memory/limits.js';
import type { NewConnection, RedisConnection, Script } from '../../daemon/store/redis/connection.js';
import { RedisLimits } from '../../daemon/store/redis/limits.js';
import { SharedLimits } from '../../daemon/store/shared-limits.js';
import { TestClock } from '../support/clock.js';
import { recordingLog } from '../support/daemon.js';
import { enterSomewhere, mostInAMinute, randomFrom, scope } from '../support/limit-histories.js';
import { connectionTo, redisPerTest, type TestRedis, WITHOUT_REDIS } from '../support/redis.js';

const log = { ...recordingLog().log };

/** The connection of an instance to Redis, with the time of the test. */
class Line {
  readonly #connection: RedisConnection;
  readonly #atTime: (script: Script) => Script;
  readonly #listeners: ((connection: NewConnection) => Promise<void>)[] = [];
  isCut = false;
  /** The last command was executed, but its reply is lost. */
  losesReply = false;
  runId = 'first';

  constructor(connection: RedisConnection, atTime: (script: Script) => Script) {
    this.#connection = connection;
    this.#atTime = atTime;
  }

  onConnect(listener: (connection: NewConnection) => Promise<void>): void {
    this.#listeners.push(listener);
  }

  readonly run: NewConnection['run'] = async (script, args) => {
    if (this.isCut) throw new StoreUnavailable('cut');
    const reply = await this.#connection.run(this.#atTime(script), args);
    if (!this.losesReply) return reply;
    this.losesReply = false;
    throw new StoreUnavailable('the reply is lost');
  };

  async connect(runId: string): Promise<void> {
    this.isCut = false;
    this.runId = runId;
    const { run } = this;
    for (const listener of this.#listeners) await listener({ run, runId, subscribe: () => Promise.resolve() });
  }
}

interface Instance {
  line: Line;
  shares: LimitShares;
  limits: SharedLimits;
  limiter: Limiter;
}

/** What the database knows of an instance. */
interface Row {
  isApart: boolean;
  /** Its last heartbeat, if it was killed. */
  killedAtMs: number | null;
  expiredAtMs: number | null;
}

const DEAD_AFTER_MS = 30_000;
const APART_FOR_MS = 66_000;

/** Instances that share a database and Redis. */
class Fleet {
  readonly clock = new TestClock({ standsStill: true });
  readonly instances = new Map<string, Instance>();
  readonly #rows = new Map<string, Row>();
  readonly #connection: RedisConnection;
  runId = 'run 1';
  #beganAtMs = Date.now();

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  /** The scripts ask Redis for its time. Here they get the time of the test. */
  readonly #atTime = ({ name, lua }: Script): Script => {
    const nowMs = this.#beganAtMs + Math.floor(this.clock.monotonic());
    const time = `{ ${Math.floor(nowMs / 1_000)}, ${(nowMs % 1_000) * 1_000} }`;
    return { name, lua: lua.replace("redis.call('TIME')", time), keepsOrder: true };
  };

  async start(id: string, isCut = false): Promise<Instance> {
    const { clock } = this;
    const row: Row = { isApart: false, killedAtMs: null, expiredAtMs: null };
    const line = new Line(this.#connection, this.#atTime);
    const shares = new LimitShares(clock, log, false);
    const redis = new RedisLimits({ connection: line, clock, instanceId: id });
    const limits = new SharedLimits({
      redis,
      divided: new MemoryLimits({ clock, shares, unknownForMs: KNOWN_IN_REDIS_WITHIN_MS }),
      shares,
      markApart: (isApart) => {
        row.isApart = isApart;
        return Promise.resolve();
      },
      clock,
      log,
    });
    const instance = { line, shares, limits, limiter: new Limiter(limits) };
    this.#rows.set(id, row);
    line.isCut = isCut;
    if (!isCut) await line.connect(this.runId);
    this.instances.set(id, instance);
    this.poll(id);
    limits.begin();
    return instance;
  }

  poll(id: string): void {
    const { shares } = this.instances.get(id)!;
    const nowMs = this.clock.monotonic();
    const [live, apart]: [string[], string[]] = [[], []];
    for (const [other, row] of [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (row.killedAtMs !== null && nowMs > row.killedAtMs + DEAD_AFTER_MS) row.expiredAtMs ??= nowMs;
      if (row.expiredAtMs === null) live.push(other);
      const isRecent = row.expiredAtMs === null || row.expiredAtMs > nowMs - APART_FOR_MS;
      if (other !== id && row.isApart && isRecent) apart.push(other);
    }
    const peers = {
      live: live.length,
      isFirst: live[0] === id,
      isLive: true,
      apart: apart.length,
      isFirstApart: apart[0] !== undefined && apart[0] <= live[0]!,
    };
    shares.observe(peers, this.clock.monotonic(), this.clock.now());
  }

  /** Lets time pass, with the renewals and polls that are due. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 500) {
      this.clock.advance(Math.min(500, ms - passed));
      for (const id of this.instances.keys()) this.poll(id);
      await this.settled();
    }
  }

  /** It ends, by itself or with a kill. */
  async end(id: string, isKilled: boolean): Promise<void> {
    const { line, limits } = this.instances.get(id)!;
    const row = this.#rows.get(id)!;
    this.instances.delete(id);
    if (isKilled) line.isCut = true;
    await limits.close();
    if (isKilled) row.killedAtMs = this.clock.monotonic();
    else if (row.isApart) row.expiredAtMs = this.clock.monotonic();
    else this.#rows.delete(id);
  }

  /** Commands that were sent have their replies, and what follows from these. */
  async settled(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) {
      await this.#connection.ping();
      await new Promise(setImmediate);
    }
  }

  async flush(): Promise<void> {
    await this.#connection.call('FLUSHALL', []);
  }
}

describe(`limits that instances count in Redis${WITHOUT_REDIS}`, function () {
  this.timeout(120_000);
  let connection: RedisConnection | undefined;
  const redis: TestRedis = redisPerTest(() => connection?.close());

  async function newFleet(): Promise<Fleet> {
    connection?.close();
    connection = connectionTo(redis, new TestClock());
    await connection.open();
    const fleet = new Fleet(connection);
    await fleet.flush();
    return fleet;
  }

  it('counts all three together, and corrects them', async () => {
    const fleet = await newFleet();
    const a = await fleet.start('a');
    const b = await fleet.start('b');
    await fleet.pass(62_000);
    const scopes = [scope('token', { requests_per_minute: 5, concurrent: 3, tokens_per_minute: 1_000 }, 0)];
    const held: HeldClaim[] = [];
    for (const { limiter } of [a, b, a]) {
      const it = await enterSomewhere(limiter, scopes, true);
      expect(it, String((it as Refusal).stack)).not.to.be.instanceOf(Refusal);
      held.push(it as HeldClaim);
    }
    expect(await a.limiter.left(scopes)).to.deep.equal([
      { requests_per_minute: 2, concurrent: 0, tokens_per_minute: 232 },
    ]);
    expect(((await enterSomewhere(b.limiter, scopes)) as Refusal).kind).to.equal('concurrency_limited');
    a.limiter.cancel(held[0]!);
    b.limiter.leave(held[1]!);
    b.limiter.settle(held[1]!, 'token', 900);
    await fleet.settled();
    expect(await b.limiter.left(scopes)).to.deep.equal([
      { requests_per_minute: 3, concurrent: 2, tokens_per_minute: 0 },
    ]);
    expect(((await enterSomewhere(b.limiter, scopes, true)) as Refusal).kind).to.equal('rate_limited');
    await fleet.pass(62_000);
    expect(await b.limiter.left(scopes)).to.deep.equal([
      { requests_per_minute: 5, concurrent: 2, tokens_per_minute: 877 },
    ]);
  });

  it('never exceeds them, whoever begins, is killed, loses replies or Redis, and whatever Redis loses', async () => {
    const counts = { inRedis: 0, apart: 0, ended: 0, lost: 0 };
    for (let seed = 1; seed <= 6; seed++) {
      const random = randomFrom(seed);
      const quota = [1, 3, 7, 30][seed % 4]!;
      const concurrent = 1 + (seed % 3);
      const fleet = await newFleet();
      const { clock, instances } = fleet;
      const scopes = [scope('token', { requests_per_minute: quota, concurrent }, 0)];
      const admitted: number[] = [];
      let open: { id: string; claim: HeldClaim; atMs: number; untilMs: number }[] = [];
      let started = 0;
      const startOne = (isCut = false) =>
        fleet.start(String.fromCharCode(97 + Math.floor(random() * 26)) + String(started++), isCut);
      await startOne();
      for (let step = 0; step < 4_000; step++) {
        clock.advance(200);
        const nowMs = clock.monotonic();
        const ended = open.filter(({ id, untilMs }) => untilMs <= nowMs || !instances.has(id));
        open = open.filter((each) => !ended.includes(each));
        for (const { id, claim, atMs } of ended) {
          const limits = instances.get(id)?.limiter;
          if (limits && random() < 0.2) {
            limits.cancel(claim);
            admitted.splice(admitted.indexOf(atMs), 1);
          } else limits?.leave(claim);
        }
        if (random() < 0.002 && instances.size < 4) await startOne(random() < 0.3);
        if (random() < 0.001 && instances.size > 1) {
          const id = [...instances.keys()][Math.floor(random() * instances.size)]!;
          await fleet.end(id, random() < 0.5);
          counts.ended += 1;
        }
        if (random() < 0.0007) {
          await fleet.flush();
          counts.lost += 1;
        }
        if (random() < 0.001) for (const { line } of instances.values()) line.isCut = true;
        for (const [id, { line, limiter }] of instances) {
          if (step % 3 === 0) fleet.poll(id);
          if (random() < 0.001) line.isCut = true;
          if (random() < 0.01) line.losesReply = true;
          if (line.isCut && random() < 0.001) await line.connect(fleet.runId).catch(() => undefined);
          if (random() > 0.2) continue;
          const result = await enterSomewhere(limiter, scopes);
          if (result instanceof Refusal) continue;
          admitted.push(nowMs);
          counts[result.grant.isShared ? 'inRedis' : 'apart'] += 1;
          open.push({ id, claim: result, atMs: nowMs, untilMs: nowMs + random() * 20_000 });
          expect(open.length, `concurrent, seed ${seed}, step ${step}`).to.be.at.most(concurrent);
        }
        await fleet.settled();
      }
      expect(mostInAMinute(admitted), `seed ${seed}`).to.be.at.most(quota);
      for (const { limits } of instances.values()) await limits.close();
    }
    for (const [what, count] of Object.entries(counts)) expect(count, what).to.be.above(5);
  });
});
