/** Limits of tokens and projects over several processes. The judge is the log of the provider. */
import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { DaemonGroup } from '../support/daemon-group.js';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type Arrival, arrivalOf, mostOnTheWayInAMinute, randomFrom, sentAt } from '../support/limit-histories.js';
import { type Provider, startProvider } from '../support/provider.js';
import { LENIENT_REDIS_TIMEOUT_MS, TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { hasCountedLimits, moveRedisTime } from '../support/redis-time.js';

const asked = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"model":"gpt-5-mini"}' };

/** @returns how often each status was the response. */
async function askedAtOnce(daemons: readonly TestDaemon[], { token }: WireTokenCreated, times: number) {
  const statuses = await Promise.all(
    Array.from({ length: times }, async (_, n) => {
      const target = sentAt('/v1/chat/completions', daemons[0]!.clock.monotonic());
      const response = await daemons[n % daemons.length]!.call(token, target, asked);
      await response.arrayBuffer();
      return response.status;
    }),
  );
  return (status: number) => statuses.filter((each) => each === status).length;
}

/** Counts what is at the provider at the same time. */
function concurrencyAt(provider: Provider) {
  const seen = { most: 0, open: 0 };
  provider.answer = (_req, res) => {
    seen.open += 1;
    seen.most = Math.max(seen.most, seen.open);
    setTimeout(() => {
      seen.open -= 1;
      res.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    }, 20);
  };
  return seen;
}

/** @returns whether all slots of a token are free, as each instance knows. */
async function areAllFree(daemons: readonly TestDaemon[], { token }: WireTokenCreated): Promise<boolean> {
  const answers = await Promise.all(daemons.map(async (daemon) => (await daemon.call(token, '/token/self')).json()));
  const slots = answers.map((it) => (it as { limits: { concurrent: { limit: number; remaining: number } } }).limits);
  return slots.every(({ concurrent }) => concurrent.remaining === concurrent.limit);
}

/** When requests reach the provider, by the clock of a test. */
function arrivalsAt(provider: Provider, { clock }: TestDaemon): Arrival[] {
  const arrivals: Arrival[] = [];
  provider.onHead = ({ url }) => {
    arrivals.push(arrivalOf(url, clock.monotonic()));
  };
  return arrivals;
}

/** Asks for more than a limit in some minutes of the clocks. */
async function expectNeverMoreInAMinute(
  daemons: readonly TestDaemon[],
  provider: Provider,
  token: WireTokenCreated,
  limit: number,
  pass: (ms: number) => void,
): Promise<void> {
  const random = randomFrom(5);
  const arrivals = arrivalsAt(provider, daemons[0]!);
  for (let passedMs = 0; passedMs < 4 * 62_000;) {
    await askedAtOnce(daemons, token, Math.ceil(random() * 6));
    const ms = 1_000 * Math.ceil(random() * 3);
    passedMs += ms;
    pass(ms);
  }
  expect(mostOnTheWayInAMinute(arrivals)).to.be.at.most(limit);
  expect(arrivals.length).to.be.at.least(4 * limit);
}

describe('limits with three workers', function () {
  this.timeout(60_000);
  let provider: Provider;
  let daemon: TestDaemon;
  let project: WireProject;

  before(async () => {
    provider = await startProvider();
    daemon = await startDaemon({ upstream: provider.url, env: { WORKERS: '3' } });
    project = await daemon.createProject();
  });
  beforeEach(() => {
    provider.received.length = 0;
    provider.answer = provider.onHead = undefined;
  });
  after(async () => {
    await daemon.stop();
    await provider.stop();
  });

  it('admits exactly the requests of a minute', async () => {
    const token = await daemon.createToken(project.id, { limits: { requests_per_minute: 10 } });
    const count = await askedAtOnce([daemon], token, 60);
    expect({ ok: count(200), refused: count(429) }).to.deep.equal({ ok: 10, refused: 50 });
    expect(provider.received).to.have.length(10);
  });

  it('admits no more than the limit in any 60 s, and the next one at most a second late', async () => {
    const token = await daemon.createToken(project.id, { limits: { requests_per_minute: 12 } });
    await expectNeverMoreInAMinute([daemon], provider, token, 12, (ms) => {
      daemon.clock.advance(ms);
    });
  });

  it('never exceeds a number of concurrent requests, and frees all slots', async () => {
    const token = await daemon.createToken(project.id, { limits: { concurrent: 3 } });
    const seen = concurrencyAt(provider);
    for (let round = 0; round < 20; round++) await askedAtOnce([daemon], token, 9);
    expect(seen.most).to.equal(3);
    await eventually('all slots are free', () => areAllFree([daemon], token));
  });
});

describe(`limits of two instances on PostgreSQL${WITHOUT.postgres}`, function () {
  this.timeout(90_000);
  let several: DaemonGroup;
  let project: WireProject;

  before(async function () {
    if (WITHOUT.postgres) this.skip();
    several = await DaemonGroup.start(await DatabaseServer.shared('postgres'));
    project = await several.daemons[0]!.createProject();
  });
  beforeEach(() => {
    several.provider.received.length = 0;
    several.provider.answer = undefined;
  });
  after(async () => {
    if (!WITHOUT.postgres) await several.stop();
  });

  it('are divided, after an instance has waited for the minute before its start', async () => {
    const { daemons, provider } = several;
    const token = await daemons[0]!.createToken(project.id, { limits: { requests_per_minute: 10, concurrent: 5 } });
    const early = await askedAtOnce(daemons, token, 20);
    expect(early(200)).to.be.at.most(10);
    for (const { clock } of daemons) clock.advance(70_000);
    provider.received.length = 0;
    const seen = concurrencyAt(provider);
    await eventually('both admit their part', async () => {
      await askedAtOnce(daemons, token, 4);
      return provider.received.length === 10;
    });
    expect((await askedAtOnce(daemons, token, 20))(200)).to.equal(0);
    expect(seen.most).to.be.at.most(4);
  });

  it('below the number of instances belong to one of them', async () => {
    const { daemons, provider } = several;
    const token = await daemons[0]!.createToken(project.id, { limits: { requests_per_minute: 1 } });
    for (const { clock } of daemons) clock.advance(70_000);
    await eventually('one admits it', async () => {
      const count = await askedAtOnce(daemons, token, 2);
      expect(count(200)).to.be.at.most(1);
      return provider.received.length === 1;
    });
    const count = await askedAtOnce(daemons, token, 10);
    expect(count(200)).to.equal(0);
    expect(count(503)).to.equal(5);
  });
});

for (const [kind, name] of [
  ['postgres', 'PostgreSQL'],
  ['mysql', 'MariaDB'],
] as const) {
  const why = WITHOUT[kind] || WITHOUT_REDIS;
  describe(`limits of two instances on ${name} and Redis${why}`, function () {
    this.timeout(90_000);
    let redis: TestRedis;
    let several: DaemonGroup;
    let project: WireProject;

    before(function () {
      if (why) this.skip();
    });
    const time = moveRedisTime();
    before(async () => {
      redis = await TestRedis.start();
      await hasCountedLimits(redis);
      several = await DaemonGroup.start(await DatabaseServer.shared(kind), {
        env: { REDIS_ADDR: redis.address },
        redisCommandMs: LENIENT_REDIS_TIMEOUT_MS,
      });
      project = await several.at(0).createProject();
    });
    beforeEach(() => {
      several.provider.received.length = 0;
      several.provider.answer = several.provider.onHead = undefined;
    });
    after(async () => {
      if (why) return;
      await several.stop();
      await redis.stop();
    });

    const pass = (ms: number) => {
      time.aheadMs += ms;
      for (const { clock } of several.daemons) clock.advance(ms);
    };
    const tokenWith = (limits: object) => several.at(0).createToken(project.id, { limits });
    const health = async ({ url }: TestDaemon) =>
      ((await (await fetch(`${url}/health`)).json()) as { limits: { mode: string; instances: number; window: string } })
        .limits;

    it('admit exactly the requests of a minute', async () => {
      const { daemons, provider } = several;
      const token = await tokenWith({ requests_per_minute: 11 });
      const count = await askedAtOnce(daemons, token, 60);
      expect({ ok: count(200), refused: count(429) }).to.deep.equal({ ok: 11, refused: 49 });
      expect(provider.received).to.have.length(11);
      await eventually('each knows the other', async () => (await health(daemons[0]!)).instances === 2);
      for (const daemon of daemons)
        expect(await health(daemon)).to.deep.equal({ mode: 'redis', instances: 2, window: 'counted' });
    });

    it('admit no more than the limit in any 60 s, and the next one at most a second late', async () => {
      const { daemons, provider } = several;
      await expectNeverMoreInAMinute(daemons, provider, await tokenWith({ requests_per_minute: 11 }), 11, pass);
    });

    it('never exceed a number of concurrent requests, and free all slots', async () => {
      const { daemons, provider } = several;
      const token = await tokenWith({ concurrent: 3 });
      const seen = concurrencyAt(provider);
      for (let round = 0; round < 20; round++) await askedAtOnce(daemons, token, 10);
      expect(seen.most).to.equal(3);
      await eventually('all slots are free', () => areAllFree(daemons, token));
    });

    it('never exceed them while Redis is stopped and started, and say how they are counted', async () => {
      const { daemons, provider } = several;
      const token = await tokenWith({ requests_per_minute: 9, concurrent: 5 });
      const seen = concurrencyAt(provider);
      const arrivals = arrivalsAt(provider, daemons[0]!);
      /** Some seconds of requests, or until all say so. @returns whether they do. */
      const load = async (seconds: number, mode = '', window = '') => {
        for (let second = 0; second < seconds; second++) {
          await askedAtOnce(daemons, token, 4);
          const states = await Promise.all(daemons.map(health));
          if (states.every((it) => it.mode === mode && it.window === window)) return true;
          pass(1_000);
        }
        return false;
      };
      await load(5);
      expect(arrivals).to.have.length(9);
      await redis.kill();
      expect(await load(20, 'divided', 'full'), 'divided').to.equal(true);
      const warning = 'Redis is unreachable: each limit of a token or project is divided';
      for (const { logged } of daemons) expect(logged.join('')).to.include(warning);
      expect(arrivals).to.have.length(9);
      expect(await load(120, 'divided', 'counted'), 'divided and counted').to.equal(true);
      await load(5);
      expect(arrivals).to.have.length(9 + 8);
      await redis.begin();
      expect(await load(20, 'redis', 'full'), 'in Redis').to.equal(true);
      expect(await load(65, 'redis', 'counted'), 'in Redis and counted').to.equal(true);
      await load(15);
      expect(arrivals).to.have.length(9 + 8 + 9);
      expect(mostOnTheWayInAMinute(arrivals)).to.be.at.most(9);
      expect(seen.most).to.be.at.most(5);
      await eventually('all slots are free', () => areAllFree(daemons, token));
    });
  });
}
