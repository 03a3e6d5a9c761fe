import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type Provider, startProvider } from '../support/provider.js';
import { ask, head, type RawResponse, RawClient, WEBSOCKET } from '../support/raw.js';
import { LENIENT_REDIS_TIMEOUT_MS, redisPerTest, WITHOUT_REDIS } from '../support/redis.js';
import { itInOneProcess } from '../support/test-workers.js';
import { expectRefusal, RATE_LIMITED, UNAUTHORIZED, UNAVAILABLE } from '../support/refusals.js';

interface Instance {
  daemon: TestDaemon;
  secret: string;
  tokenId: string;
}

describe(`E: limits that instances share through Redis${WITHOUT_REDIS}`, function () {
  this.timeout(30_000);
  let provider: Provider;
  let instances: Instance[];

  const redis = redisPerTest(async () => {
    for (const { daemon } of instances) await daemon.stop();
    await provider.stop();
  });
  beforeEach(async () => {
    provider = await startProvider();
    instances = [];
  });

  /** An instance with a separate database. */
  async function open(env: Record<string, string>): Promise<Instance> {
    const daemon = await startDaemon({
      upstream: provider.url,
      env: { REDIS_ADDR: redis.address, RATE_LIMIT_WINDOW: '10m', ...env },
      redisCommandMs: LENIENT_REDIS_TIMEOUT_MS,
    });
    const project = await daemon.createProject();
    const { token: secret, id: tokenId } = await daemon.createToken(project.id);
    const instance = { daemon, secret, tokenId };
    instances.push(instance);
    return instance;
  }

  const get = ({ daemon, secret }: Instance): Promise<RawResponse> => ask(daemon.url, head('GET /v1/models', secret));

  function letThrough(answers: readonly RawResponse[]): number {
    const refused = answers.filter(({ status }) => status !== 200);
    for (const answer of refused) {
      expectRefusal(answer, RATE_LIMITED);
      expect(Number(answer.header('retry-after'))).to.be.within(1, 600);
    }
    expect(provider.received).to.have.length(answers.length - refused.length);
    return answers.length - refused.length;
  }

  for (const name of ['GLOBAL_RATE_LIMIT', 'IP_RATE_LIMIT']) {
    it(`E12 200 requests at the same moment to two instances: ${name} lets exactly the limit through`, async () => {
      const LIMIT = 50;
      const env = { [name]: String(LIMIT), RATE_LIMIT_ON_REDIS_FAILURE: 'deny' };
      const both = [await open(env), await open(env)];
      const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => get(both[i % 2]!)));
      expect(letThrough(answers)).to.equal(LIMIT);
    });
  }

  it('E12 K07 while Redis is unreachable, each instance counts by itself and no request fails', async () => {
    const env = { GLOBAL_RATE_LIMIT: '5' };
    const both = [await open(env), await open(env)];
    await redis.kill();
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => get(both[i % 2]!)));
    expect(letThrough(answers)).to.equal(10);
  });

  it('E12 K07 with RATE_LIMIT_ON_REDIS_FAILURE=deny no request passes uncounted, until Redis is reachable again', async () => {
    const instance = await open({ IP_RATE_LIMIT: '1000', RATE_LIMIT_ON_REDIS_FAILURE: 'deny' });
    expect((await get(instance)).status).to.equal(200);
    await redis.kill();
    for (let i = 0; i < 5; i++) {
      const answer = await get(instance);
      expectRefusal(answer, UNAVAILABLE);
      expect(answer.header('retry-after')).to.equal('1');
    }
    expect(provider.received).to.have.length(1);
    expect((await instance.daemon.manage('GET', '/manage/projects')).status).to.equal(200);
    await redis.begin();
    await eventually('requests pass again', async () => (await get(instance)).status === 200, 10_000);
  });

  /** Blocks counting from now on. @returns how many requests wait, and a function that lets them continue. */
  function holdCounts({ daemon }: Instance) {
    const windows = daemon.daemon.shared.rateWindows!;
    const take = windows.take.bind(windows);
    const waiting: (() => void)[] = [];
    windows.take = (key, window) =>
      new Promise((resolve) => {
        waiting.push(() => {
          resolve(take(key, window));
        });
      });
    return {
      waiting,
      release: async () => {
        for (const goOn of waiting) goOn();
        await turn();
        await turn();
      },
    };
  }

  for (const [what, env] of [
    ['its address', { IP_RATE_LIMIT: '9' }],
    ['its use', { GLOBAL_RATE_LIMIT: '9' }],
  ] as const) {
    for (const [which, fields] of [
      ['', {}],
      [' with its handshake', WEBSOCKET],
    ] as const) {
      itInOneProcess(
        `D04 a client${which} disconnects while ${what} is counted: nothing is forwarded, and no admission stays open`,
        async () => {
          const instance = await open(env);
          const { daemon, secret } = instance;
          const { waiting, release } = holdCounts(instance);
          const client = await RawClient.to(daemon.url);
          client.send(head('GET /v1/models', secret, fields));
          await eventually('it is being counted', () => waiting.length === 1);
          client.destroy();
          await eventually('it has ended', () => daemon.ended.length === 1);
          expect(daemon.ended[0]).to.include({ outcome: 'client_closed', status: 499 });
          await release();
          expect(daemon.daemon.admission.size.inFlight).to.equal(0);
          expect(provider.received).to.deep.equal([]);
        },
      );
    }
  }

  for (const [which, fields] of [
    ['request', {}],
    ['handshake', WEBSOCKET],
  ] as const) {
    itInOneProcess(
      `a ${which} whose token is revoked while it is being counted is refused and not forwarded`,
      async () => {
        const instance = await open({ GLOBAL_RATE_LIMIT: '9' });
        const { daemon, secret } = instance;
        const { waiting, release } = holdCounts(instance);
        const client = await RawClient.to(daemon.url);
        client.send(head('GET /v1/models', secret, fields));
        await eventually('it is being counted', () => waiting.length === 1);
        await daemon.manage('DELETE', `/manage/tokens/${instance.tokenId}`);
        expectRefusal(await client.response(), UNAUTHORIZED);
        await release();
        expect(provider.received).to.deep.equal([]);
        client.destroy();
      },
    );
  }
});
