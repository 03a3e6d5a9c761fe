/** Where a client may send its token: every subset of the carriers with every kind of credential, on requests and WebSocket handshakes. */
import { expect } from 'chai';
import { mintSecret } from '../../../daemon/core/token.js';
import { OTHER_CARRIERS } from '../../../daemon/http/request-head.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { type Fields, head, type RawResponse, WEBSOCKET } from '../../support/raw.js';

const CARRIERS = ['authorization', ...OTHER_CARRIERS] as const;
type Carrier = (typeof CARRIERS)[number];

/** What a carrier of a request has. */
const CREDENTIALS = ['nothing', 'the token', 'another token', 'a foreign key'] as const;
type Credential = (typeof CREDENTIALS)[number];
type Row = Record<Carrier, Credential>;

const FOREIGN = 'sk-proj-foreign-key-canary-0123456789';
/** All of them: each carrier has each kind of credential. */
function rows(): Row[] {
  let all: Partial<Row>[] = [{}];
  for (const carrier of CARRIERS) {
    all = all.flatMap((row) => CREDENTIALS.map((credential) => ({ ...row, [carrier]: credential })));
  }
  return all as Row[];
}

function expectedStatus(row: Row): number {
  const credentials = Object.values(row);
  const hasToken = credentials.includes('the token');
  const hasOther = credentials.includes('another token');
  if (hasToken && hasOther) return 400;
  return hasToken || hasOther ? 200 : 401;
}

describe('the carriers of a token', () => {
  let other: string;

  const scene = ProxyFixture.forSuite();
  before(async () => {
    other = (await scene.daemon.createToken(scene.project.id)).token;
  });

  const valueOf = (credential: Credential): string =>
    credential === 'the token' ? scene.secret : credential === 'another token' ? other : FOREIGN;

  function fieldsOf(row: Row): Fields {
    const fields: Record<string, string> = {};
    for (const carrier of CARRIERS) {
      if (row[carrier] === 'nothing') continue;
      const value = valueOf(row[carrier]);
      fields[carrier] = carrier === 'authorization' ? `Bearer ${value}` : value;
    }
    return fields;
  }

  /** The provider got the project's key in `Authorization`, and nothing that any carrier had. */
  function expectOnlyProjectKey(): void {
    const received = scene.provider.received.at(-1);
    expect(received?.headers.authorization).to.equal(`Bearer ${UPSTREAM_KEY}`);
    for (const carrier of OTHER_CARRIERS) expect(received?.headers).not.to.have.property(carrier);
    const sent = JSON.stringify(received?.rawHeaders);
    for (const secret of [scene.secret, other, FOREIGN]) expect(sent).not.to.include(secret);
  }

  async function check(row: Row, ask: (fields: Fields) => Promise<RawResponse>): Promise<void> {
    const expected = expectedStatus(row);
    const before = scene.provider.received.length;
    const answer = await ask(fieldsOf(row));
    expect(answer.status, JSON.stringify(row)).to.equal(expected);
    expect(scene.provider.received.length - before, JSON.stringify(row)).to.equal(expected === 200 ? 1 : 0);
    if (expected === 200) expectOnlyProjectKey();
    if (expected === 400) expect(answer.text).to.include('two different tokens');
    for (const secret of [scene.secret, other, FOREIGN, UPSTREAM_KEY]) {
      expect(answer.text + JSON.stringify(answer.fields)).not.to.include(secret);
    }
  }

  it(`take one token in any of them, the same in several, and something else beside it: all ${4 ** CARRIERS.length} combinations`, async () => {
    for (const row of rows()) await check(row, (fields) => scene.get(null, fields));
    const recorded = JSON.stringify(scene.daemon.ended) + scene.daemon.logged.join('');
    for (const secret of [scene.secret, other, FOREIGN, UPSTREAM_KEY]) expect(recorded).not.to.include(secret);
  }).timeout(60_000);

  it('are the same for WebSocket handshakes', async () => {
    scene.provider.server.on('upgrade', (req, socket) => {
      const { url = '', method = '', rawHeaders, headers } = req;
      scene.provider.received.push({ url, method, rawHeaders, headers, body: Buffer.alloc(0), wasAborted: false });
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}');
    });
    for (const row of rows()) {
      // With Authorization and one other carrier; the reading of the others is the same code.
      if (row['api-key'] !== 'nothing' || row['xi-api-key'] !== 'nothing') continue;
      await check(row, (fields) => scene.send(head('GET /v1/realtime', null, { ...WEBSOCKET, ...fields })));
    }
    scene.provider.server.removeAllListeners('upgrade');
  }).timeout(60_000);

  for (const carrier of CARRIERS) {
    it(`refuse ${carrier} twice, even with the same token`, async () => {
      const value = carrier === 'authorization' ? `Bearer ${scene.secret}` : scene.secret;
      const answer = await scene.get(null, { [carrier]: [value, value] });
      expect(answer.status).to.equal(400);
      expect(answer.text).to.include(`more than one ${carrier} header`);
      expect(scene.provider.received).to.have.lengthOf(0);
    });
  }

  it('take no token with a scheme where none belongs, and none without one in Authorization', async () => {
    expect((await scene.get(null, { 'x-api-key': `Bearer ${scene.secret}` })).status).to.equal(401);
    expect((await scene.get(null, { Authorization: scene.secret })).status).to.equal(401);
  });

  it('do not mix up the requests of one connection that present different carriers', async () => {
    const client = await scene.client();
    for (const [fields, status] of [
      [{ 'x-api-key': scene.secret }, 200],
      [{ Authorization: `Bearer ${scene.secret}` }, 200],
      [{ 'x-api-key': `Bearer ${scene.secret}` }, 401],
      [{ 'x-goog-api-key': other }, 200],
      [{ 'x-goog-api-key': FOREIGN }, 401],
    ] as const) {
      client.send(head('GET /v1/models', null, fields));
      expect((await client.response()).status, JSON.stringify(Object.keys(fields))).to.equal(status);
    }
  });

  it('get the usual 401 if an unknown token is beside another one in a place that does not count', async () => {
    for (const target of ['/v1/models', '/token/self']) {
      for (const carrier of CARRIERS) {
        const unknown = mintSecret();
        const answer = await scene.send(
          head(`GET ${target}`, null, {
            [carrier]: carrier === 'authorization' ? `Bearer ${unknown}` : unknown,
            'Sec-WebSocket-Protocol': `openai-insecure-api-key.${mintSecret()}`,
          }),
        );
        expect(answer.status, `${target} ${carrier}`).to.equal(401);
      }
    }
  });

  it('of a request in flight do not matter when its token is revoked: all of them end', async () => {
    scene.provider.answer = () => undefined;
    const clients = [];
    for (let n = 0; n < 3; n++) {
      const fields = { 'Sec-WebSocket-Protocol': `openai-insecure-api-key.${mintSecret()}` };
      clients.push(await scene.client(head('GET /v1/models', scene.secret, fields)));
    }
    await scene.inFlight(3);
    const revoked = await scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
    expect(revoked.status).to.equal(200);
    for (const client of clients) expect((await client.response()).status).to.equal(401);
  });
});
