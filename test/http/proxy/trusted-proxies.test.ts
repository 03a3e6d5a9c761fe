import { expect } from 'chai';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { addressesBehind } from '../../../daemon/http/client-identity.js';
import { networks } from '../../../config/urls.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon, UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { auditOf, lastAuditOf } from '../../support/management.js';
import { head, type RawResponse, RawClient, WEBSOCKET } from '../../support/raw.js';
import { expectRefusal, RATE_LIMITED, UNAUTHORIZED } from '../../support/refusals.js';

type ForwardedFor = string | readonly string[];

const PROXIES = '127.0.0.1, 10.0.0.0/8, fd00::/8';
const OTHER_PEER = '127.0.0.2';

let daemon: TestDaemon;

async function sent(bytes: string, from?: string): Promise<RawResponse> {
  const client = await RawClient.to(daemon.url, from);
  client.send(bytes);
  return client.response().finally(() => {
    client.destroy();
  });
}

let projects = 0;

/** The client address of a change in its audit record. */
async function attributedTo(forwardedFor: ForwardedFor, from?: string): Promise<string | null> {
  const body = JSON.stringify({ name: `from a proxy ${++projects}`, api_key: UPSTREAM_KEY });
  const fields = { 'X-Forwarded-For': forwardedFor, 'Content-Type': 'application/json' };
  const length = { 'Content-Length': String(body.length) };
  const answer = await sent(head('POST /manage/projects', MANAGEMENT_TOKEN, { ...fields, ...length }) + body, from);
  expect(answer.status).to.equal(201);
  return (await lastAuditOf(daemon)).client_ip;
}

describe('X-Forwarded-For of trusted proxies', () => {
  before(async () => {
    daemon = await startDaemon({ env: { TRUSTED_PROXIES: PROXIES } });
  });
  after(() => daemon.stop());

  const READ: [what: string, forwardedFor: ForwardedFor, client: string][] = [
    ['has the client', '203.0.113.7', '203.0.113.7'],
    ['has the client in IPv6', '2001:db8::7', '2001:db8::7'],
    ['is read from the end, which the proxy wrote', '198.51.100.1, 203.0.113.7', '203.0.113.7'],
    ['is read further while it has trusted proxies', '198.51.100.1,203.0.113.7, 10.0.0.1,\t10.255.0.2', '203.0.113.7'],
    ['is read further past IPv6 proxies', '203.0.113.7, fd00::1, [fd00::2]:443', '203.0.113.7'],
    ['is one list if there are several headers', ['198.51.100.1', '203.0.113.7, 10.0.0.1', '10.0.0.2'], '203.0.113.7'],
    ['has the furthest proxy if there is no other address', '10.0.0.3, 10.0.0.2, 10.0.0.1', '10.0.0.3'],
    ['may have a port', '203.0.113.7:52100', '203.0.113.7'],
    ['may have a port in IPv6', '[2001:db8::7]:52100', '2001:db8::7'],
    ['may have brackets without a port', '[2001:db8::7]', '2001:db8::7'],
    ['may have IPv4 mapped to IPv6', '::ffff:203.0.113.7', '203.0.113.7'],
    ['trusts IPv4 mapped to IPv6', '203.0.113.7, ::ffff:10.0.0.1', '203.0.113.7'],
    ['ends with a word', '203.0.113.7, unknown, 10.0.0.1', '10.0.0.1'],
    ['ends with an empty entry', '203.0.113.7,, 10.0.0.1', '10.0.0.1'],
    ['ends with a name', '203.0.113.7, proxy.example, 10.0.0.1', '10.0.0.1'],
    ['ends with a zone', '203.0.113.7, fe80::1%eth0, 10.0.0.1', '10.0.0.1'],
    ['ends with an invalid IPv4 address', '203.0.113.7, 10.0.0.256, 10.0.0.1', '10.0.0.1'],
    ['ends with an ambiguous address', '203.0.113.7, 010.0.0.1, 10.0.0.1', '10.0.0.1'],
    ['is ignored if it has no address', '_hidden, <script>', '127.0.0.1'],
    ['is ignored if it is empty', '', '127.0.0.1'],
    ['is ignored if it has only commas', ',,,', '127.0.0.1'],
  ];
  for (const [what, forwardedFor, client] of READ) {
    it(what, async () => {
      expect(await attributedTo(forwardedFor)).to.equal(client);
    });
  }

  it('is ignored from other peers', async () => {
    expect(await attributedTo('203.0.113.7', OTHER_PEER)).to.equal(OTHER_PEER);
  });

  it('is not read from other headers', async () => {
    const fields = { 'X-Real-IP': '203.0.113.7', Forwarded: 'for=203.0.113.7', X_Forwarded_For: '203.0.113.7' };
    await sent(head('GET /manage/projects', 'a-wrong-guess', fields));
    const denied = async () => (await auditOf(daemon)).filter(({ action }) => action === 'management.denied');
    await eventually('the record of the attempt', async () => (await denied()).length === 1);
    expect((await denied())[0]).to.include({ client_ip: '127.0.0.1' });
  });

  it('identifies clients that guess the management token, which are slowed down separately', async () => {
    const guess = async (client: string) => {
      const fields = { 'X-Forwarded-For': client };
      return (await sent(head('GET /manage/projects', 'a-wrong-guess', fields))).status;
    };
    for (let i = 0; i < 10; i++) expect(await guess('203.0.113.7')).to.equal(401);
    expect(await guess('203.0.113.7')).to.equal(429);
    expect(await guess('203.0.113.8')).to.equal(401);
  });

  it('is read only as far as a chain of proxies is long', async () => {
    const chain = Array.from({ length: 2_000 }, (_, i) => `10.${i >> 8}.${i & 255}.1`);
    expect(await attributedTo(['203.0.113.7', ...chain].join())).to.match(/^10\./);
  });
});

describe('X-Forwarded-For without trusted proxies', () => {
  before(async () => {
    daemon = await startDaemon();
  });
  after(() => daemon.stop());

  it('is ignored', async () => {
    expect(await attributedTo('203.0.113.7')).to.equal('127.0.0.1');
  });
});

describe('a limit for each address behind trusted proxies', () => {
  beforeEach(async () => {
    daemon = await startDaemon({ env: { TRUSTED_PROXIES: PROXIES, IP_RATE_LIMIT: '1' } });
  });
  afterEach(() => daemon.stop());

  const from = (forwardedFor: ForwardedFor, fields = {}, peer?: string) =>
    sent(head('GET /v1/models', null, { 'X-Forwarded-For': forwardedFor, ...fields }), peer);

  it('uses it for WebSockets too', async () => {
    expectRefusal(await from('203.0.113.7', WEBSOCKET), UNAUTHORIZED);
    expectRefusal(await from('203.0.113.7', WEBSOCKET), RATE_LIMITED);
    expectRefusal(await from('203.0.113.8', WEBSOCKET), UNAUTHORIZED);
  });
});

describe('clients of a Unix socket', () => {
  let path: string;
  const open = async (env: Record<string, string>) => {
    path = join(temporaryFolder(), 'llmp.sock');
    daemon = await startDaemon({
      env: { LISTEN_ADDR: `unix:${path}`, MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0', IP_RATE_LIMIT: '1', ...env },
    });
  };
  afterEach(() => daemon.stop());

  const statusFor = async (forwardedFor: string) => {
    const headers = { host: 'llmp', 'x-forwarded-for': forwardedFor };
    const asked = request({ socketPath: path, path: '/v1/models', headers, agent: false }).end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    answer.resume();
    return answer.statusCode;
  };

  it('are distinguished by X-Forwarded-For if there are trusted proxies, since only a local proxy can reach the socket', async () => {
    await open({ TRUSTED_PROXIES: '10.0.0.0/8' });
    expect(await statusFor('203.0.113.7')).to.equal(401);
    expect(await statusFor('203.0.113.7, 10.0.0.1')).to.equal(429);
    expect(await statusFor('203.0.113.8')).to.equal(401);
  });

  it('count as one client otherwise', async () => {
    await open({});
    expect(await statusFor('203.0.113.7')).to.equal(401);
    expect(await statusFor('203.0.113.8')).to.equal(429);
  });

  it('are not confused with a reset connection, which is not trusted', () => {
    const addressOf = addressesBehind(networks.parse('10.0.0.0/8'));
    const reset = { remoteAddress: undefined, localAddress: '127.0.0.1', destroyed: false };
    const gone = { remoteAddress: undefined, localAddress: undefined, destroyed: true };
    for (const socket of [reset, gone]) {
      expect(addressOf(socket as Parameters<typeof addressOf>[0], '203.0.113.7')).to.equal(null);
    }
  });
});
