import { expect } from 'chai';
import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { launchDaemon } from '../support/process.js';
import { head } from '../support/raw.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { problemsWith } from '../support/settings.js';

describe('R: the environment of llmp', function () {
  this.timeout(60_000);

  for (const [name, value] of [
    ['NODE_TLS_REJECT_UNAUTHORIZED', '0'],
    ['NODE_OPTIONS', '--insecure-http-parser'],
    ['NODE_OPTIONS', '--inspect=127.0.0.1:0'],
  ] as const) {
    it(`R10 the daemon does not start with ${name}=${value}`, async () => {
      const daemon = launchDaemon({
        MANAGEMENT_TOKEN,
        DATABASE_URL: join(temporaryFolder(), 'llmp.db'),
        [name]: value,
      });
      expect(await daemon.exit).to.equal(78);
      expect(daemon.printed.stderr).to.include(value.replace(/=.*/, ''));
      expect(daemon.printed.stdout).to.equal('');
    });
  }
});

describe('R: hosts that are contacted', () => {
  let scene: ProxyFixture;
  let other: Server;
  let host: string;
  let visitors = 0;

  before(async () => {
    other = createServer((socket) => {
      visitors += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    host = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    scene = await ProxyFixture.open();
  });
  beforeEach(() => {
    visitors = 0;
    return scene.begin();
  });
  afterEach(() => scene.end());
  after(async () => {
    await scene.close();
    other.close();
  });

  it('R12 only the provider is contacted, whatever host a client names', async () => {
    const get = (target: string, fields = {}) => scene.send(head(`GET ${target}`, scene.secret, fields));
    const forwarded = [
      await get('/v1/models', { Host: host }),
      await get('/v1/models', { 'X-Forwarded-Host': host, Forwarded: `host=${host}` }),
      await get(`/v1/models?url=http://${host}/`),
    ];
    for (const { status } of forwarded) expect(status).to.equal(200);
    expect(scene.provider.received).to.have.length(3);
    for (const { headers } of scene.provider.received) expect(headers.host).not.to.equal(host);
    for (const target of [
      `http://${host}/v1/models`,
      `//${host}/v1/models`,
      `/v1/../../${host}`,
      `/v1/@${host}/../..`,
    ]) {
      expect((await get(target)).status, target).to.be.oneOf([400, 404]);
    }
    expect(scene.provider.received).to.have.length(3);
    expect(visitors).to.equal(0);
  });

  it('R12 redirects of the provider are not followed', async () => {
    scene.provider.answer = (_req, res) => {
      res.writeHead(307, { Location: `http://${host}/v1/models` }).end();
    };
    const { status } = await scene.get();
    expect(status).to.be.oneOf([307, 502]);
    expect(visitors).to.equal(0);
  });

  it('R12 no cloud metadata address is contacted, under any of its names', () => {
    for (const url of [
      'http://169.254.169.254',
      'http://2852039166',
      'http://[::ffff:a9fe:a9fe]',
      'http://[fd00:ec2::254]',
      'http://metadata.google.internal',
      'file:///etc/passwd',
      'gopher://example.com',
    ]) {
      const [problem, ...others] = problemsWith({ UPSTREAM_BASE_URL: url });
      expect(problem, url).to.match(/^UPSTREAM_BASE_URL must be/);
      expect(others).to.be.empty;
    }
  });
});
