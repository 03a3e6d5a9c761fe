/** WORKERS above 1: one daemon whose promises hold over all of its processes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { CONNECTIONS, SeveralWorkers, streaming } from '../support/several-workers.js';

/** LLMP_REVOCATION_ROUNDS sets how many tokens are revoked under load. */
const REVOCATIONS = Number(process.env.LLMP_REVOCATION_ROUNDS ?? 20);
const ALL = Array.from({ length: CONNECTIONS });

describe('several workers', function () {
  this.timeout(45_000 + REVOCATIONS * 2_000);
  const folder = temporaryFolder();
  const files = { global: join(folder, 'global'), address: join(folder, 'address') };
  let workers: SeveralWorkers;

  const setLimits = ({ global = 0, address = 0 }) => {
    writeFileSync(files.global, String(global));
    writeFileSync(files.address, String(address));
  };

  /** Limits the requests from now on. Resolves when every worker does. */
  async function limit(limits: Parameters<typeof setLimits>[0]): Promise<void> {
    setLimits(limits);
    const reloads = () => workers.daemon.logged.filter((line) => line.includes('settings reloaded')).length;
    const before = reloads();
    workers.daemon.signal('SIGHUP');
    await eventually('the settings are reloaded', () => reloads() > before);
    await workers.status(); // The workers hand over their counts after they have applied the settings.
  }

  beforeEach(async () => {
    setLimits({});
    workers = await SeveralWorkers.with({
      HTTP_CACHE_ENABLED: 'true',
      GLOBAL_RATE_LIMIT_FILE: files.global,
      IP_RATE_LIMIT_FILE: files.address,
      RATE_LIMIT_WINDOW: '1h',
      SHUTDOWN_GRACE: '20s',
    });
  });
  after(() => SeveralWorkers.stopRunning());

  it('after a revocation is answered, no worker forwards a request of the token', async () => {
    for (let round = 0; round < REVOCATIONS; round++) {
      const token = await workers.token();
      expect(await workers.callAll(token)).to.deep.equal(ALL.fill(200));
      const end = workers.load(token);
      const revoked = await workers.daemon.manage('DELETE', `/manage/tokens/${token.id}`);
      // What a worker sent before that may still wait in a connection of the provider, which is in this process.
      for (let turn = 0; turn < 3; turn++) await nextTurn();
      const reached = workers.fleet.reached(token.id);
      expect(revoked.status).to.equal(200);
      await end();
      expect(await workers.callAll(token)).to.deep.equal(ALL.fill(401));
      expect(workers.fleet.reached(token.id), `round ${round}`).to.equal(reached);
    }
  });

  it('a revocation ends the streams of all workers before it is answered', async () => {
    streaming(workers);
    const token = await workers.token();
    const streams = await Promise.all(ALL.map(() => workers.stream(token)));
    let ended = 0;
    for (const stream of streams) stream.once('close', () => (ended += 1));
    await workers.daemon.manage('DELETE', `/manage/tokens/${token.id}`);
    await eventually('all streams have ended', () => ended === CONNECTIONS);
  });

  it('after the response of a POST no worker replays what it made invalid', async () => {
    let version = 0;
    workers.fleet.provider.answer = (req, res) => {
      if (req.method === 'POST') version += 1;
      res.setHeader('cache-control', 'max-age=600');
      res.end(String(version));
    };
    const token = await workers.token();
    const ask = (method: string) => workers.text(method, `/v1/of/${token.id}`, token.token);
    for (let round = 0; round < 30; round++) {
      await Promise.all(ALL.map(() => ask('GET')));
      const posted = await ask('POST');
      const read = await Promise.all(ALL.map(() => ask('GET')));
      expect([...new Set(read)], `round ${round}`).to.deep.equal([posted]);
    }
  });

  it('a rate limit counts the requests to all workers together', async () => {
    await limit({ global: 50 });
    const token = await workers.token();
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => workers.callAll(token)))).flat();
    expect(statuses.filter((status) => status === 200)).to.have.length(50);
    expect(statuses.filter((status) => status === 429)).to.have.length(statuses.length - 50);
    await limit({});
    expect(await workers.callAll(token)).to.deep.equal(ALL.fill(200));
  });

  it('SIGHUP applies a setting in every worker, and in those that start later', async () => {
    const token = await workers.token();
    expect(await workers.callAll(token)).to.deep.equal(ALL.fill(200));
    await limit({ global: 1 });
    await workers.callAll(token);
    expect(await workers.callAll(token)).to.deep.equal(ALL.fill(429));
    const [first = 0] = await workers.pids();
    workers.kill(first);
    await workers.replaced(first);
    await workers.callAll(token); // The connections to the killed worker break.
    expect(await workers.callAll(token)).to.deep.equal(ALL.fill(429));
    await limit({});
  });

  it('SIGHUP while a worker starts applies in that worker too', async () => {
    const token = await workers.token();
    const [first = 0] = await workers.pids();
    const deaths = () => workers.daemon.logged.filter((line) => line.includes('has ended')).length;
    const before = deaths();
    workers.kill(first);
    await eventually('another one starts', () => deaths() > before);
    await new Promise((resolve) => setTimeout(resolve, 200));
    await limit({ address: 10 });
    await workers.replaced(first);
    const statuses = (await Promise.all(Array.from({ length: 4 }, () => workers.callAll(token)))).flat();
    expect(statuses.filter((status) => status === 200)).to.have.length(10);
    await limit({});
  });

  it('SIGTERM lets the requests of all workers finish, and loses no count', async () => {
    workers.useUp();
    workers.fleet.thinkMs = () => 500;
    const token = await workers.token(100);
    const answers = workers.callAll(token);
    await eventually('all are in flight', () => workers.fleet.reached(token.id) === CONNECTIONS);
    await workers.daemon.stop();
    expect(await answers).to.deep.equal(ALL.fill(200));
    const counted = await workers.fleet.counted(token.id);
    expect(counted).to.deep.equal({ requestCount: CONNECTIONS, reserved: CONNECTIONS, leased: 0 });
  });
});
