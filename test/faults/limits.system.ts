/** Limits of instances that are killed. The judge is the provider, which knows how many requests are open. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Fleet } from '../support/fleet.js';
import { json } from '../support/provider.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { hasCountedLimits } from '../support/redis-time.js';

const LIMIT = 6;
const LEASE_MS = 10_000;

const why = WITHOUT.postgres || WITHOUT_REDIS;
describe(`limits of three instances on PostgreSQL and Redis${why}`, function () {
  this.timeout(120_000);
  let redis: TestRedis;
  let fleet: Fleet;

  before(async function () {
    if (why) this.skip();
    redis = await TestRedis.start();
    await hasCountedLimits(redis);
    fleet = await Fleet.start(await DatabaseServer.shared('postgres'), {
      count: 3,
      env: { REDIS_ADDR: redis.address },
    });
  });
  after(async () => {
    if (why) return;
    await fleet.stop();
    await redis.stop();
  });

  it('are not exceeded when one is killed, and its slots are free after its lease', async () => {
    const project = await fleet.createProject();
    const token = await fleet.createToken(project.id, 0, { limits: { concurrent: LIMIT } });
    const seen = { open: 0, most: 0 };
    let hangs = true;
    fleet.provider.answer = (_req, res) => {
      seen.open += 1;
      seen.most = Math.max(seen.most, seen.open);
      res.on('close', () => (seen.open -= 1));
      if (hangs) return;
      setTimeout(() => {
        json(res, 200, {});
      }, 50 * Math.random());
    };
    const [killed, ...others] = [fleet.at(0), fleet.at(1), fleet.at(2)];
    const held = Array.from({ length: LIMIT }, () => killed.call(token));
    await eventually('it has all slots', () => seen.open === LIMIT);
    hangs = false;
    let firstAtMs: number | null = null;
    const isOver = { value: false };
    const load = others.flatMap((member) =>
      Array.from({ length: LIMIT }, async () => {
        while (!isOver.value) {
          if ((await member.call(token)) === 200) firstAtMs ??= performance.now();
          await sleep(20);
        }
      }),
    );
    await sleep(2_000);
    expect(firstAtMs, 'admitted while all slots were taken').to.equal(null);
    const killedAtMs = performance.now();
    await killed.kill();
    expect(await Promise.all(held)).to.deep.equal(Array(LIMIT).fill(null));
    await eventually('its slots are free', () => firstAtMs !== null, LEASE_MS + 1_000);
    expect(firstAtMs! - killedAtMs).to.be.within(LEASE_MS - 3_000, LEASE_MS + 500);
    await eventually('all of them', () => seen.most === LIMIT && seen.open > 0);
    await sleep(1_000);
    isOver.value = true;
    await Promise.all(load);
    expect(seen.most).to.equal(LIMIT);
    await eventually('all slots are free', async () => {
      const headers = { authorization: `Bearer ${token.token}` };
      const answers = await Promise.all(others.map(({ url }) => fetch(`${url}/token/self`, { headers })));
      const left = (await Promise.all(answers.map((it) => it.json()))) as {
        limits?: { concurrent: { remaining: number } };
      }[];
      // An error of a database that is busy has none.
      return left.every(({ limits }) => limits?.concurrent.remaining === LIMIT);
    });
  });
});
