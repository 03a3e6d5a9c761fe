/** Limits of tokens and projects over several processes. The judge is the log of the provider. */
import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { DaemonGroup } from '../support/daemon-group.js';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { type Provider, startProvider } from '../support/provider.js';

const asked = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"model":"gpt-5-mini"}' };

/** @returns how often each status was the response. */
async function askedAtOnce(daemons: readonly TestDaemon[], { token }: WireTokenCreated, times: number) {
  const statuses = await Promise.all(
    Array.from({ length: times }, async (_, n) => {
      const response = await daemons[n % daemons.length]!.call(token, '/v1/chat/completions', asked);
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
    provider.answer = undefined;
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

  it('never exceeds a number of concurrent requests, and frees all slots', async () => {
    const token = await daemon.createToken(project.id, { limits: { concurrent: 3 } });
    const seen = concurrencyAt(provider);
    for (let round = 0; round < 20; round++) await askedAtOnce([daemon], token, 9);
    expect(seen.most).to.equal(3);
    const left = async () => (await (await daemon.call(token.token, '/token/self')).json()) as object;
    await eventually('all slots are free', async () => {
      const { limits } = (await left()) as { limits: { concurrent: { remaining: number } } };
      return limits.concurrent.remaining === 3;
    });
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
