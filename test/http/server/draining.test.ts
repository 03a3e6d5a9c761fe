import { expect } from 'chai';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { type Provider, startProvider } from '../../support/provider.js';
import { head, RawClient } from '../../support/raw.js';

describe('a request in flight while the daemon is stopping', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let stopped: Promise<void> | undefined;

  beforeEach(async () => {
    provider = await startProvider();
    const env = { SHUTDOWN_GRACE: '30s', MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0' };
    daemon = await startDaemon({ upstream: provider.url, env });
    stopped = undefined;
  });
  afterEach(async () => {
    await (stopped ?? daemon.stop());
    await provider.stop();
  });

  it('gets Connection: close, and then the connection is closed', async () => {
    const { token } = await daemon.createToken((await daemon.createProject()).id);
    let answer: () => void = () => undefined;
    provider.answer = (_req, res) => {
      answer = () => res.end('late');
    };
    const client = await RawClient.to(daemon.url);
    client.send(head('GET /v1/models', token));
    await eventually('it is at the provider', () => provider.received.length === 1);
    stopped = daemon.stop();
    answer();
    const last = await client.response();
    expect(last).to.include({ status: 200, text: 'late' });
    expect(last.header('connection')).to.equal('close');
    await client.closed;
    expect(client.wasReset).to.equal(false);
  });

  it('gets the same on the management listener', async () => {
    const client = await RawClient.to(daemon.managementUrl);
    const body = JSON.stringify({ name: 'late', api_key: 'sk-none-of-anybody' });
    const fields = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
    let begun = 0;
    daemon.daemon.managementServer?.on('request', () => (begun += 1));
    client.send(head('POST /manage/projects', MANAGEMENT_TOKEN, fields) + body.slice(0, 5));
    await eventually('it has begun', () => begun === 1);
    stopped = daemon.stop();
    client.send(body.slice(5));
    const last = await client.response();
    expect(last.status).to.equal(201);
    expect(last.header('connection')).to.equal('close');
    await client.closed;
    expect(client.wasReset).to.equal(false);
  });
});
