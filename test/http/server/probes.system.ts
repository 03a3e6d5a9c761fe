import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { MANAGEMENT_TOKEN, daemonForSuite, startDaemon, temporaryFolder, UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { type ListeningDaemon, spawnDaemon } from '../../support/process.js';
import { json, type Provider, startProvider } from '../../support/provider.js';
import { ask, head, type RawResponse, RawClient } from '../../support/raw.js';
import { expectRefusal, UNAVAILABLE } from '../../support/refusals.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

const SECOND_MS = 1000;
const PROBES = ['/live', '/ready', '/health'];

const probe = (daemon: { url: string }, path: string): Promise<RawResponse> =>
  ask(daemon.url, head(`GET ${path}`, null));

async function expectProbe(daemon: { url: string }, path: string, status: number, fields: object): Promise<void> {
  const answer = await probe(daemon, path);
  expect(answer.status, `${path} ${answer.text}`).to.equal(status);
  expect(answer.json).to.deep.include(fields);
}

describe('the health endpoints', () => {
  const daemon = daemonForSuite();

  it('return the uptime of the daemon', async () => {
    daemon.clock.advance(90 * SECOND_MS);
    await expectProbe(daemon, '/health', 200, { uptime_s: 90 });
  });

  it('H17 contain no version, secret, project or token, and must not be cached', async () => {
    const project = await daemon.createProject({ name: 'Ministry of Truth' });
    const token = await daemon.createToken(project.id);
    const records = [project.id, project.name, token.id, token.obfuscated];
    const secrets = [MANAGEMENT_TOKEN, UPSTREAM_KEY, 'sk-'];
    for (const path of PROBES) {
      const answer = await probe(daemon, path);
      const shown = JSON.stringify([answer.fields, answer.text]);
      for (const hidden of [...records, ...secrets, '0.1.0', 'Express', process.version, daemon.dir]) {
        expect(shown, path).not.to.include(hidden);
      }
      expect(answer.header('cache-control')).to.equal('no-store');
    }
  });
});

describe('a daemon that is stopping', () => {
  let scene: ProxyFixture;
  let stopped: Promise<void>;

  beforeEach(async () => {
    scene = await ProxyFixture.open({ SHUTDOWN_DELAY: '5s', SHUTDOWN_GRACE: '30s', CLIENT_BODY_TIMEOUT: '300s' });
  });
  afterEach(async () => {
    await scene.end();
    scene.daemon.clock.advance(5 * SECOND_MS);
    await stopped;
    await scene.provider.stop();
  });

  const stop = () => {
    stopped = scene.daemon.daemon.stop();
  };
  const delayPasses = async () => {
    scene.daemon.clock.advance(5 * SECOND_MS);
    await eventually('it stops listening', () => !scene.daemon.daemon.server.listening);
  };

  it('M01 is immediately not ready, but live', async () => {
    stop();
    await expectProbe(scene.daemon, '/ready', 503, { status: 'not ready', missing: ['draining'] });
    await expectProbe(scene.daemon, '/live', 200, {});
  });

  it('M03 serves requests for SHUTDOWN_DELAY, with Connection: close', async () => {
    stop();
    scene.provider.answer = (_req, res) => {
      json(res, 200, {}, { 'x-repeated': ['a=1', 'b=2'] as unknown as string });
    };
    const answer = await scene.get();
    expect(answer.status).to.equal(200);
    expect(answer.header('connection')).to.equal('close');
    expect(answer.all('x-repeated')).to.deep.equal(['a=1', 'b=2']);
    expect(answer.all('x-proxy-cache')).to.deep.equal(['miss']);
  });

  it('then accepts no more connections, and closes idle ones', async () => {
    const idle = await scene.client(head('GET /live', null));
    await idle.response();
    stop();
    await delayPasses();
    await idle.closed;
    await stopped;
    const refused = await RawClient.to(scene.daemon.url).catch((error: unknown) => error);
    expect(refused).to.have.property('code', 'ECONNREFUSED');
  });

  it('is not delayed by connections on which nothing was sent', async () => {
    const silent = await RawClient.to(scene.daemon.url);
    stop();
    await delayPasses();
    scene.daemon.clock.advance(2 * SECOND_MS);
    await silent.closed;
    await stopped;
  });

  it('lets requests in flight finish, and stops immediately afterwards', async () => {
    const { client, upstream } = await scene.midStream();
    stop();
    await delayPasses();
    upstream.end('data: last\n\n');
    expect((await client.response()).text).to.equal('data: first\n\ndata: last\n\n');
    await stopped;
    expect(scene.daemon.ended).to.have.lengthOf(1);
    expect(scene.daemon.ended[0]).to.include({ outcome: 'ok' });
  });

  it('M01 cuts the remaining requests after SHUTDOWN_GRACE, with the outcome drained', async () => {
    const { client } = await scene.midStream();
    stop();
    await delayPasses();
    scene.daemon.clock.advance(29 * SECOND_MS);
    expect(scene.daemon.ended, 'not yet over').to.be.empty;
    scene.daemon.clock.advance(SECOND_MS);
    await client.closed;
    await stopped;
    await scene.aborted();
    expect(await client.response().catch(() => 'not whole')).to.equal('not whole');
    expect(scene.daemon.ended).to.have.lengthOf(1);
    expect(scene.daemon.ended[0]).to.include({ outcome: 'drained', status: 200 });
  });

  it('ends an upload and a request without a response with 503', async () => {
    scene.provider.answer = () => undefined;
    const waiting = await scene.client(head('GET /v1/models', scene.secret));
    const sending = await scene.client(scene.post({ 'Transfer-Encoding': 'chunked' }, '5\r\nfirst\r\n'));
    await scene.reached(2);
    stop();
    await delayPasses();
    scene.daemon.clock.advance(30 * SECOND_MS);
    for (const cut of [waiting, sending]) expectRefusal(await cut.response(), UNAVAILABLE);
    await stopped;
    expect(scene.daemon.ended.map(({ outcome }) => outcome)).to.deep.equal(['drained', 'drained']);
  });

  it('is not delayed by a client that sent CONNECT and keeps its connection open', async () => {
    const tunnel = connect({ port: Number(new URL(scene.daemon.url).port), allowHalfOpen: true });
    tunnel.write(head('CONNECT provider.example:443', null));
    await once(tunnel, 'data');
    stop();
    await delayPasses();
    await stopped;
    tunnel.destroy();
  });

  it('writes every counted use to the database', async () => {
    await scene.get();
    await scene.get();
    stop();
    await delayPasses();
    await stopped;
    const next = await startDaemon({ dir: scene.daemon.dir });
    expect((await next.token(scene.token.id)).request_count).to.equal(2);
    await next.stop();
  });
});

describe('a daemon process', () => {
  let provider: Provider;
  let daemon: ListeningDaemon;

  before(async () => {
    provider = await startProvider();
  });
  after(() => provider.stop());
  afterEach(() => daemon.kill());

  const start = async (env: Record<string, string>) => {
    daemon = await spawnDaemon({
      MANAGEMENT_TOKEN,
      UPSTREAM_BASE_URL: provider.url,
      DATABASE_URL: `${temporaryFolder()}/llmp.db`,
      ...env,
    });
    const exited = once(daemon.child, 'exit') as Promise<[code: number | null, signal: string | null]>;
    return { exited };
  };

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`M01 exits with 0 on ${signal}`, async () => {
      const { exited } = await start({ SHUTDOWN_DELAY: '0' });
      daemon.child.kill(signal);
      expect(await exited).to.deep.equal([0, null]);
    });

    it(`M02 exits within a second on a second ${signal}`, async () => {
      const { exited } = await start({ SHUTDOWN_DELAY: '60s' });
      daemon.child.kill(signal);
      await eventually('it drains', async () => (await probe(daemon, '/ready')).status === 503);
      // Sent repeatedly: two pending signals count as one.
      const isGone = () => !daemon.child.kill(signal) || daemon.child.exitCode !== null;
      await eventually('it is gone', isGone, SECOND_MS);
      expect(await exited).to.deep.equal([signal === 'SIGTERM' ? 143 : 130, null]);
    });
  }
});
