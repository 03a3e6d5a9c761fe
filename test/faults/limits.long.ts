/** Limits in real time, and after very many requests. The judge is the log of the provider. */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { DaemonGroup } from '../support/daemon-group.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Fleet } from '../support/fleet.js';
import { type Arrival, arrivalOf, mostOnTheWayInAMinute, randomFrom, sentAt } from '../support/limit-histories.js';
import { json, type Provider, type Received, startProvider } from '../support/provider.js';
import { LENIENT_REDIS_TIMEOUT_MS, TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { hasCountedLimits } from '../support/redis-time.js';

const LIMIT = 30;
const RUN_MS = 95_000;
const ENDINGS = 10_000;
const SLOTS = 4;
const asked = { method: 'POST', body: '{"model":"gpt-5-mini"}', headers: { 'content-type': 'application/json' } };
/** Large enough to be forwarded before all of it was read. */
const FORBIDDEN = `{"input":"${'a'.repeat(200_000)}","model":"gpt-5"}`;

const why = WITHOUT.postgres || WITHOUT.mysql || WITHOUT_REDIS;

/** Two instances on a database server and Redis, or three workers on SQLite, for as long as a test runs. */
async function admittedIn(kind: ServerKind | null): Promise<Arrival[]> {
  const redis = kind && (await TestRedis.start());
  if (redis) await hasCountedLimits(redis);
  const server = kind && (await DatabaseServer.shared(kind));
  const env: Record<string, string> = redis ? { REDIS_ADDR: redis.address } : { WORKERS: '3' };
  const fleet = await Fleet.start(server, { count: kind ? 2 : 1, env });
  try {
    const project = await fleet.createProject();
    const token = await fleet.createToken(project.id, 0, { limits: { requests_per_minute: LIMIT } });
    const arrivals: Arrival[] = [];
    fleet.onReached = (url) => arrivals.push(arrivalOf(url, performance.now()));
    const endsAtMs = performance.now() + RUN_MS;
    for (let n = 0; performance.now() < endsAtMs; n++) {
      const query = sentAt('', performance.now());
      await Promise.all([fleet.at(n).call(token, query), fleet.at(n + 1).call(token, query)]);
      await sleep(100);
    }
    return arrivals;
  } finally {
    await fleet.stop();
    await redis?.stop();
  }
}

describe(`limits in real time${why}`, function () {
  this.timeout(RUN_MS + 60_000);

  it('are not exceeded in any 60 s, and admit the next request at most a second late', async function () {
    if (why) this.skip();
    const kinds = ['postgres', 'mysql', null] as const;
    const runs = await Promise.all(kinds.map(admittedIn));
    for (const [n, arrivals] of runs.entries()) {
      const where = kinds[n] ?? 'three workers';
      expect(mostOnTheWayInAMinute(arrivals), where).to.be.at.most(LIMIT);
      // What Redis admits too late for the request counts too.
      expect(arrivals.length, where).to.be.within(2 * LIMIT - (kinds[n] ? 4 : 0), 2 * LIMIT);
    }
  });
});

/** What is at the provider: from when a request arrives until the provider or its client ends it. Only then may its slot be free. */
class AtProvider {
  readonly #open = new Set<string>();
  readonly #left = new Set<string>();
  arrived = 0;
  most = 0;

  arrives({ url }: Pick<Received, 'url'>): void {
    this.arrived += 1;
    if (!this.#left.has(url)) this.#open.add(url);
    this.most = Math.max(this.most, this.#open.size);
  }

  ends({ url }: Pick<Received, 'url'>): void {
    this.#open.delete(url);
  }

  isLeft(url: string): void {
    this.#left.add(url);
    this.#open.delete(url);
  }
}

/** Requests that end in all ways, until so many have reached the provider. @returns how they ended for the clients, and how many were there at once. */
async function endRandomly(daemons: readonly TestDaemon[], provider: Provider, secret: string) {
  const random = randomFrom(1);
  const there = new AtProvider();
  provider.onHead = (received) => {
    there.arrives(received);
  };
  provider.answer = async (_req, res, received) => {
    await sleep(random() * 5);
    const ending = random();
    if (ending >= 0.2 && ending < 0.4) {
      res.writeHead(200, { 'content-length': '100' }).write('x');
      await sleep(2);
    }
    there.ends(received);
    if (ending < 0.4) res.destroy();
    else json(res, ending < 0.6 ? 500 : 200, {});
  };
  const endings: Record<string, number> = {};
  let sent = 0;
  const client = async () => {
    while (there.arrived < ENDINGS) {
      const n = sent++;
      const url = `/v1/chat/completions?n=${n}`;
      const isForbidden = random() < 0.05;
      // It may be aborted and its slot be free before the provider knows.
      if (isForbidden) there.isLeft(url);
      const signal = !isForbidden && random() < 0.3 ? AbortSignal.timeout(1 + Math.floor(random() * 8)) : null;
      // Before fetch knows.
      signal?.addEventListener('abort', () => {
        there.isLeft(url);
      });
      const request = { ...asked, ...(isForbidden && { body: FORBIDDEN }), signal };
      const ending = await daemons[n % daemons.length]!.call(secret, url, request).then(
        async (response) =>
          response.arrayBuffer().then(
            () => String(response.status),
            () => (signal?.aborted ? 'left' : 'cut'),
          ),
        () => (signal?.aborted ? 'left' : 'lost'),
      );
      endings[ending] = (endings[ending] ?? 0) + 1;
      if (ending === '429') await sleep(5);
    }
  };
  await Promise.all(Array.from({ length: 2 * SLOTS }, client));
  return { endings, most: there.most };
}

/** Each instance says that all slots are free, and as many requests at once reach the provider, and no more. */
async function expectAllFree(daemons: readonly TestDaemon[], provider: Provider, secret: string): Promise<void> {
  await eventually('all slots are free', async () => {
    const answers = await Promise.all(daemons.map(async (daemon) => (await daemon.call(secret, '/token/self')).json()));
    return answers.every(
      (it) => (it as { limits: { concurrent: { remaining: number } } }).limits.concurrent.remaining === SLOTS,
    );
  });
  const held: ServerResponse[] = [];
  provider.answer = (_req, res) => void held.push(res);
  let refused = 0;
  const responses = Array.from({ length: 2 * SLOTS }, async (_, n) => {
    const response = await daemons[n % daemons.length]!.call(secret, '/v1/chat/completions', asked);
    await response.arrayBuffer();
    if (response.status === 429) refused += 1;
    return response.status;
  });
  await eventually('each is there or refused', () => held.length + refused === 2 * SLOTS);
  expect(held).to.have.length(SLOTS);
  for (const res of held) json(res, 200, {});
  const statuses = await Promise.all(responses);
  expect(statuses.filter((status) => status === 200)).to.have.length(SLOTS);
}

describe(`${ENDINGS} requests that end in all ways`, function () {
  this.timeout(400_000);

  const leaveAllFree = async (daemons: readonly TestDaemon[], provider: Provider) => {
    const project = await daemons[0]!.createProject();
    const limits = { concurrent: SLOTS, requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000 };
    const { token } = await daemons[0]!.createToken(project.id, { limits, allow: { models: ['gpt-5-mini'] } });
    const { endings, most } = await endRandomly(daemons, provider, token);
    expect(most).to.equal(SLOTS);
    expect(endings)
      .to.include.all.keys('200', '403', '429', '500', '502', 'cut', 'left')
      .and.not.to.have.property('lost');
    await expectAllFree(daemons, provider, token);
  };

  it('leave all slots free with three workers', async () => {
    const provider = await startProvider();
    const daemon = await startDaemon({ upstream: provider.url, env: { WORKERS: '3' } });
    await leaveAllFree([daemon], provider);
    await daemon.stop();
    await provider.stop();
  });

  it(`leave all slots free with two instances on PostgreSQL and Redis${why}`, async function () {
    if (why) this.skip();
    const redis = await TestRedis.start();
    await hasCountedLimits(redis);
    const several = await DaemonGroup.start(await DatabaseServer.shared('postgres'), {
      env: { REDIS_ADDR: redis.address },
      redisCommandMs: LENIENT_REDIS_TIMEOUT_MS,
    });
    await leaveAllFree(several.daemons, several.provider);
    await several.stop();
    await redis.stop();
  });
});
