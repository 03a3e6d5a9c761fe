/** GET /token/self: what a client is told about its own token. */
import { expect } from 'chai';
import type { Environment } from '../../../config/settings.js';
import type { TokenSelf } from '../../../daemon/api/token-self.js';
import { mintSecret } from '../../../daemon/core/token.js';
import { OTHER_CARRIERS, VARY_BY_CARRIER } from '../../../daemon/http/request-head.js';
import { type DatabaseOutage, makeDatabaseUnreachable } from '../../support/database-outage.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { ask, type Fields, head, type RawResponse } from '../../support/raw.js';
import {
  BODY_TOO_LARGE,
  CREDENTIAL_IN_URL,
  expectRefusal,
  MALFORMED,
  METHOD_NOT_ALLOWED,
  PROJECT_INACTIVE,
  RATE_LIMITED,
  UNAUTHORIZED,
  UNAVAILABLE,
} from '../../support/refusals.js';

let scene: ProxyFixture;
const open = async (env: Environment = {}) => {
  scene = await ProxyFixture.open(env);
};
const self = (secret: string | null = scene.secret, fields: Fields = {}, method = 'GET', query = '') =>
  scene.send(head(`${method} /token/self${query}`, secret, fields), method);
const shown = async (secret = scene.secret): Promise<TokenSelf> => {
  const answer = await self(secret);
  expect(answer.status, answer.text).to.equal(200);
  return answer.json as unknown as TokenSelf;
};
const issue = async (fields: Record<string, unknown>) => {
  scene.token = await scene.daemon.createToken(scene.project.id, fields);
};

/** Headers without those that differ between any two responses. */
const comparable = ({ fields }: RawResponse) => fields.filter(([name]) => !/^(?:date|x-request-id)$/i.test(name));

describe('GET /token/self', () => {
  afterEach(() => scene.close());

  it('shows the terms and the counts of the token, and is no use of it', async () => {
    await open();
    await issue({ name: 'batch job', duration_minutes: 60, max_requests: 10 });
    for (let i = 0; i < 3; i++) expect((await scene.get()).status).to.equal(200);
    const answer = await self();
    expect(answer.header('cache-control')).to.equal('no-store');
    expect(answer.header('content-type')).to.equal('application/json; charset=utf-8');
    expect(answer.header('vary')).to.equal(VARY_BY_CARRIER);
    const token = answer.json as unknown as TokenSelf;
    const { expires_in_s: left, server_time: now, created_at: created, ...rest } = token;
    expect(Date.parse(token.expires_at) - Date.parse(created)).to.equal(3_600_000);
    expect(rest).to.deep.equal({
      id: scene.token.id,
      name: 'batch job',
      state: 'active',
      expires_at: scene.token.expires_at,
      max_requests: 10,
      limits: null,
      request_count: 3,
      requests_remaining: 7,
      dialect: 'openai',
      allow: [],
      spent: rest.spent,
      budget: [],
    });
    expect(left).to.equal(Math.floor((Date.parse(scene.token.expires_at) - Date.parse(now)) / 1000));
    expect(left).to.be.within(3590, 3600);
    scene.daemon.clock.advance(600_000);
    expect((await shown()).expires_in_s).to.be.within(2990, 3000);
    await scene.expectSpent(3);
    expect(scene.daemon.ended, 'records of requests').to.have.lengthOf(3);
  });

  it('counts uses that are not yet in the database, and those that are written meanwhile', async () => {
    await open();
    for (let uses = 1; uses <= 5; uses++) {
      expect((await scene.get()).status).to.equal(200);
      expect((await shown()).request_count, 'before a tick').to.equal(uses);
      if (uses % 2 === 0) scene.daemon.clock.advance(250);
      expect((await shown()).request_count, 'after a tick').to.equal(uses);
    }
    const { max_requests: cap, requests_remaining: remaining } = await shown();
    expect({ cap, remaining }).to.deep.equal({ cap: 0, remaining: null });
  });

  it("tells the API of the token's project, also after a change", async () => {
    await open();
    expect((await shown()).dialect).to.equal('openai');
    for (const [auth, dialect] of [
      ['x-api-key', 'anthropic'],
      ['x-goog-api-key', 'gemini'],
      ['api-key', 'azure'],
      ['bearer', 'openai'],
    ]) {
      const change = { upstream_auth: auth };
      const { status } = await scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, change);
      expect(status).to.equal(200);
      expect((await shown()).dialect).to.equal(dialect);
    }
  });

  it('answers for a token whose cap is used up', async () => {
    await open();
    await issue({ max_requests: 2 });
    for (const status of [200, 200, 429]) expect((await scene.get()).status).to.equal(status);
    const { state, request_count: count, requests_remaining: remaining } = await shown();
    expect({ state, count, remaining }).to.deep.equal({ state: 'rate_limited', count: 2, remaining: 0 });
  });

  it('refuses unknown, revoked and expired tokens, and other credentials, exactly as /v1 does', async () => {
    await open();
    const revoked = (await scene.daemon.createToken(scene.project.id)).token;
    const { id } = (await scene.daemon.manage('POST', '/manage/tokens/lookup', { token: revoked })).body as {
      id: string;
    };
    await scene.daemon.manage('DELETE', `/manage/tokens/${id}`);
    const expired = (await scene.daemon.createToken(scene.project.id, { duration_minutes: 1 })).token;
    scene.daemon.clock.advance(60_000);
    for (const secret of [mintSecret(), revoked, expired, 'sk-proj-0123456789', null]) {
      for (const fields of [{}, { 'Anthropic-Version': '2023-06-01' }, { 'OpenAI-Beta': 'x' }]) {
        const ours = await self(secret, { 'X-Request-ID': 'same', ...fields });
        const theirs = await scene.get(secret, { 'X-Request-ID': 'same', ...fields });
        expect(ours.status).to.equal(401);
        expect(ours.text).to.equal(theirs.text);
        expect(comparable(ours)).to.deep.equal(comparable(theirs));
      }
    }
    expectRefusal(await self(mintSecret()), UNAUTHORIZED);
  });

  it('refuses a token of an inactive project', async () => {
    await open();
    expect((await self()).status).to.equal(200);
    await scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, { is_active: false });
    expectRefusal(await self(), PROJECT_INACTIVE);
    await scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, { is_active: true });
    expect((await self()).status).to.equal(200);
  });

  it('takes the token from every carrier, and from no URL', async () => {
    await open();
    for (const carrier of OTHER_CARRIERS) expect((await self(null, { [carrier]: scene.secret })).status).to.equal(200);
    const other = (await scene.daemon.createToken(scene.project.id)).token;
    expectRefusal(await self(scene.secret, { 'x-api-key': other }), MALFORMED);
    expectRefusal(await self(scene.secret, {}, 'GET', `?key=${scene.secret}`), CREDENTIAL_IN_URL);
    expect((await self(scene.secret, {}, 'GET', '?verbose=1')).status).to.equal(200);
  });

  it('answers HEAD without a body and OPTIONS, and no other method or body', async () => {
    await open();
    const known = await self(scene.secret, {}, 'HEAD');
    expect({ status: known.status, text: known.text }).to.deep.equal({ status: 200, text: '' });
    expect(Number(known.header('content-length'))).to.be.greaterThan(100);
    expect((await self(null, {}, 'OPTIONS')).status).to.equal(204);
    for (const method of ['POST', 'PUT', 'PATCH']) {
      const refused = await self(scene.secret, {}, method);
      expectRefusal(refused, METHOD_NOT_ALLOWED);
      expect(refused.header('allow')).to.equal('GET, HEAD, DELETE, OPTIONS');
    }
    expectRefusal(
      await scene.send(head('GET /token/self', scene.secret, { 'Content-Length': '5' }) + 'hello'),
      BODY_TOO_LARGE,
    );
    expect((await scene.send(head('GET /token/selfish', scene.secret))).status).to.equal(404);
  });

  it('ends the token on DELETE, at once and for good', async () => {
    await open();
    expectRefusal(await self(mintSecret(), {}, 'DELETE'), UNAUTHORIZED);
    const ended = await self(scene.secret, {}, 'DELETE');
    expect({ status: ended.status, text: ended.text }).to.deep.equal({ status: 204, text: '' });
    expect((await scene.get()).status).to.equal(401);
    expectRefusal(await self(scene.secret, {}, 'DELETE'), UNAUTHORIZED);
    const { id } = scene.token;
    const token = await scene.daemon.token(id);
    expect(token).to.deep.include({ state: 'revoked', revoked_by: 'token', revoke_reason: 'ended by its holder' });
    const query = `/manage/audit?token_id=${id}&action=token.revoke`;
    const records = (await scene.daemon.manage('GET', query)).body as object[];
    expect(records).to.have.lengthOf(1);
    expect(records[0]).to.deep.include({ actor: 'token', outcome: 'success', client_ip: '127.0.0.1' });
  });

  it('answers 60 times a minute for each token, and then says when to ask again', async () => {
    await open();
    const answers = [];
    for (let i = 0; i < 60; i++) answers.push((await self()).status);
    expect(new Set(answers)).to.deep.equal(new Set([200]));
    const refused = await self();
    expectRefusal(refused, RATE_LIMITED);
    expect(Number(refused.header('retry-after'))).to.be.within(50, 60);
    expect(refused.header('ratelimit-policy')).to.equal('"self";q=60;w=60');
    expect((await scene.get()).status, 'on /v1').to.equal(200);
    await issue({});
    await shown();
    scene.daemon.clock.advance(60_000);
    expect((await self(scene.secret)).status).to.equal(200);
  });

  it('counts towards the limit of the address, not towards the total', async () => {
    await open({ IP_RATE_LIMIT: '4', GLOBAL_RATE_LIMIT: '1' });
    for (const secret of [mintSecret(), scene.secret, scene.secret]) await self(secret);
    expect((await scene.get()).status).to.equal(200);
    const refused = await self();
    expectRefusal(refused, RATE_LIMITED);
    expect(refused.header('ratelimit-policy')).to.contain('"address"');
  });

  it('can be read by pages of allowed origins', async () => {
    await open({ CORS_ALLOWED_ORIGINS: 'https://app.example' });
    const answer = await self(scene.secret, { Origin: 'https://app.example' });
    expect(answer.header('access-control-allow-origin')).to.equal('https://app.example');
    expect(answer.header('vary')).to.equal(`Origin, ${VARY_BY_CARRIER}`);
    const preflight = await self(
      null,
      { Origin: 'https://app.example', 'Access-Control-Request-Headers': 'authorization' },
      'OPTIONS',
    );
    expect(preflight.header('access-control-allow-headers')).to.equal('authorization');
    expect(
      (await self(mintSecret(), { Origin: 'https://app.example' })).header('access-control-allow-origin'),
    ).to.equal('https://app.example');
    expect(
      (await self(scene.secret, { Origin: 'https://evil.example' })).header('access-control-allow-origin'),
    ).to.equal(undefined);
  });

  it('is served where /v1 is, not where only /manage is', async () => {
    await open({ MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0' });
    await shown();
    const elsewhere = await ask(scene.daemon.managementUrl, head('GET /token/self', scene.secret));
    expect(elsewhere.status).to.equal(404);
  });

  it('is answered by the workers themselves, which count its limit together', async () => {
    await open({ WORKERS: '2' });
    await issue({ max_requests: 100 });
    for (let i = 0; i < 4; i++) expect((await scene.get()).status).to.equal(200);
    await scene.expectSpent(4); // This makes all workers write their counts.
    for (let i = 0; i < 59; i++) expect((await self()).status).to.equal(200);
    expect((await shown()).request_count).to.equal(4);
    for (let i = 0; i < 2; i++) expectRefusal(await self(), RATE_LIMITED);
    scene.daemon.clock.advance(60_000);
    expect((await self()).status).to.equal(200);
  });

  it('answers from memory while the database is unavailable, within the stale limit', async () => {
    await open({ TOKEN_STALE_LIMIT: '10m' });
    expect((await scene.get()).status).to.equal(200);
    await shown();
    const outage: DatabaseOutage = makeDatabaseUnreachable(scene.daemon);
    expect((await scene.get()).status).to.equal(200);
    expect((await shown()).request_count).to.equal(2);
    expectRefusal(await self(mintSecret()), UNAVAILABLE);
    scene.daemon.clock.advance(700_000);
    expectRefusal(await self(), UNAVAILABLE);
    outage.end();
  });
});
