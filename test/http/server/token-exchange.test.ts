/** POST /token/exchange: a JWT of a trusted issuer in, a token out; and what must not give one. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { exportSPKI, importJWK } from 'jose';
import type { Environment } from '../../../config/settings.js';
import type { WireAuditRecord, WireToken, WireTrust } from '../../../daemon/api/contract.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../../support/daemon.js';
import { createTrust, exchange, type ExchangeAnswer } from '../../support/exchanges.js';
import { signed, signingKey, StandInIssuer } from '../../support/jwt-issuer.js';
import { bodyOf, pagesOf } from '../../support/management.js';
import { type Provider, startProvider } from '../../support/provider.js';
import { scraped, sumOf } from '../../support/scrape.js';

const WEB = { repository: 'acme/web', ref: 'refs/heads/main', run_id: '17' };

let issuer: StandInIssuer;
let provider: Provider;
let daemon: TestDaemon;
let projectId: string;

async function open(env: Environment = {}): Promise<void> {
  provider = await startProvider();
  daemon = await startDaemon({ upstream: provider.url, env });
  projectId = (await daemon.createProject()).id;
}

const trust = (fields: Record<string, unknown> = {}): Promise<WireTrust> =>
  createTrust(daemon, issuer.url, projectId, fields);
const jwt = (claims: Record<string, unknown> = {}, header: object = {}) =>
  issuer.jwt({ ...WEB, ...claims }, daemon.clock.now(), header);
const tokens = async () => (await pagesOf<WireToken>(daemon, '/manage/tokens?limit=100')).flat();
const audited = async (query = '') =>
  (await pagesOf<WireAuditRecord>(daemon, `/manage/audit?limit=100&action=token.exchange${query}`)).flat();
const secondsFromNow = (seconds: number) => Math.floor(daemon.clock.now() / 1000) + seconds;

function expectRefused({ status, headers, body }: ExchangeAnswer, expected: [number, string, string]): void {
  const { error, code, error_description: description, request_id: requestId, ...rest } = body;
  expect([status, error, code], String(description)).to.deep.equal(expected);
  expect(rest).to.deep.equal({});
  expect(description).to.match(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
  expect(requestId).to.equal(headers.get('x-request-id'));
  expect(headers.get('cache-control')).to.equal('no-store');
}
const INVALID_GRANT: [number, string, string] = [400, 'invalid_grant', 'invalid_grant'];
const TOKEN_USED: [number, string, string] = [400, 'invalid_grant', 'token_used'];
const NO_TRUST: [number, string, string] = [403, 'unauthorized_client', 'no_trust'];
const AMBIGUOUS: [number, string, string] = [403, 'unauthorized_client', 'ambiguous_trust'];
const LIMIT_REACHED: [number, string, string] = [429, 'temporarily_unavailable', 'trust_limit_reached'];
const UNAVAILABLE: [number, string, string] = [503, 'temporarily_unavailable', 'unavailable'];

describe('POST /token/exchange', () => {
  before(async () => {
    issuer = await StandInIssuer.start();
  });
  after(() => issuer.stop());
  afterEach(async () => {
    issuer.answer = undefined;
    await daemon.stop();
    await provider.stop();
  });

  it('issues a token with the terms of the trust, named after the job', async () => {
    await open();
    const { id } = await trust({ max_requests: 3, allow: { models: ['gpt-*'] } });
    const { status, headers, body } = await exchange(daemon, await jwt());
    expect(status, JSON.stringify(body)).to.equal(200);
    const { access_token: secret, ...rest } = body;
    expect(rest).to.deep.equal({
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: 1800,
    });
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(headers.get('access-control-allow-origin')).to.equal(null);
    expect((await daemon.call(String(secret))).status).to.equal(200);
    const [token] = await tokens();
    expect(token).to.deep.include({
      name: 'gha acme/web#17',
      project_id: projectId,
      max_requests: 3,
      allow: { models: ['gpt-*'] },
      issued_by: `trust:${id}`,
      issued_by_name: 'gha',
    });
    const [record] = await audited();
    expect(record).to.deep.include({
      actor: `trust:${id}`,
      outcome: 'success',
      project_id: projectId,
      token_id: token?.id,
      obfuscated: token?.obfuscated,
      client_ip: '127.0.0.1',
    });
    expect(record?.details).to.deep.include({
      trust: id,
      issuer: issuer.url,
      claims: { repository: 'acme/web', run_id: '17' },
    });
  });

  it('accepts RS256, ES256 and EdDSA, and an ID token by its type', async () => {
    await open();
    await trust();
    for (const algorithm of ['RS256', 'EdDSA', 'ES256'] as const) {
      await issuer.rotate(algorithm);
      daemon.clock.advance(60_000);
      const id = { subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' };
      expect((await exchange(daemon, await jwt(), id)).status, algorithm).to.equal(200);
    }
  });

  it('masks secrets in names, and drops what disturbs a list', async () => {
    await open();
    await trust({ name: '{branch}' });
    const secret = `sk-wt-${'a'.repeat(49)}`;
    const branch = `a\u001b[31m${secret}\n\u202e${'x'.repeat(500)}`;
    expect((await exchange(daemon, await jwt({ branch }))).status).to.equal(200);
    const [token] = await tokens();
    expect(token?.name)
      .to.match(/^a \[31m\*{8} x+$/)
      .and.have.lengthOf(100);
    expect(token?.issued_by_name).to.equal(new URL(issuer.url).host);
    expect((await exchange(daemon, await jwt({ branch: { deep: true } }))).status).to.equal(200);
    expect((await tokens())[0]?.name).to.equal(null);
  });

  describe('requests', () => {
    beforeEach(async () => {
      await open();
      await trust();
    });

    it('refuses forms that RFC 8693 does not allow', async () => {
      const forms: [Record<string, string | undefined>, string][] = [
        [{ grant_type: 'client_credentials' }, 'unsupported_grant_type'],
        [{ grant_type: undefined }, 'invalid_request'],
        [{ subject_token: undefined }, 'invalid_request'],
        [{ subject_token: '' }, 'invalid_request'],
        [{ subject_token_type: undefined }, 'invalid_request'],
        [{ subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' }, 'invalid_request'],
        [{ requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' }, 'invalid_request'],
        [{ actor_token: 'x' }, 'invalid_request'],
      ];
      for (const [form, error] of forms)
        expectRefused(await exchange(daemon, await jwt(), form), [400, error, 'invalid_request']);
      const ignored = { audience: 'https://api.example', resource: 'x', scope: 'y', unknown: 'z', actor_token: '' };
      expect((await exchange(daemon, await jwt(), ignored)).status).to.equal(200);
    });

    it('refuses other methods, types, places and sizes', async () => {
      const post = async (path: string, body: string, headers: Record<string, string> = {}, method = 'POST') => {
        const type = { 'content-type': 'application/x-www-form-urlencoded' };
        const init = { method, headers: { ...type, ...headers }, ...(body !== '' && { body }) };
        const response = await fetch(daemon.url + path, init);
        const text = await response.text();
        return [response.status, (JSON.parse(text || '{}') as { code?: string }).code];
      };
      const form = `grant_type=x&subject_token=${await jwt()}`;
      expect(await post('/token/exchange', '', {}, 'GET')).to.deep.equal([405, 'method_not_allowed']);
      expect(await post('/token/exchange', '', {}, 'OPTIONS')).to.deep.equal([405, 'method_not_allowed']);
      expect(await post('/token/exchange', '{}', { 'content-type': 'application/json' })).to.deep.equal([
        415,
        'unsupported_media_type',
      ]);
      expect(await post(`/token/exchange?${form}`, form)).to.deep.equal([400, 'invalid_request']);
      expect(await post('/token/exchange', `${form}&grant_type=y`)).to.deep.equal([400, 'invalid_request']);
      expect(await post('/token/exchange', '&'.repeat(50))).to.deep.equal([400, 'invalid_request']);
      expect(await post('/token/exchange', `a=${'x'.repeat(70_000)}`)).to.deep.equal([413, 'body_too_large']);
      expect(await post('/token/exchanges', form)).to.deep.equal([404, 'not_found']);
    });

    it('does not wait longer for a body than for others', async () => {
      const answer = new Promise<number | undefined>((resolve, reject) => {
        const slow = request(`${daemon.url}/token/exchange`, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '1000' },
        });
        slow.once('response', ({ statusCode }) => {
          resolve(statusCode);
          slow.destroy();
        });
        slow.on('error', reject);
        slow.write('grant_type=');
      });
      // After the head has arrived.
      while (daemon.clock.pending === 0) await new Promise(setImmediate);
      const timer = setInterval(() => {
        daemon.clock.advance(10_000);
      }, 10);
      expect(await answer).to.equal(408);
      clearInterval(timer);
    });
  });

  it('counts towards the limit of the address', async () => {
    await open({ IP_RATE_LIMIT: '2' });
    await trust();
    for (const status of [400, 400, 429]) expect((await exchange(daemon, 'x')).status).to.equal(status);
    const limited = await exchange(daemon, await jwt());
    expectRefused(limited, [429, 'temporarily_unavailable', 'rate_limited']);
    expect(Number(limited.headers.get('retry-after'))).to.be.greaterThan(0);
  });

  it('refuses an address for a while after many JWTs that are not accepted', async () => {
    await open();
    await trust();
    for (let i = 0; i < 120; i++) expect((await exchange(daemon, 'x')).status).to.equal(400);
    const limited = await exchange(daemon, await jwt());
    expectRefused(limited, [429, 'temporarily_unavailable', 'too_many_attempts']);
    expect(Number(limited.headers.get('retry-after'))).to.be.within(50, 60);
    daemon.clock.advance(60_000);
    for (let i = 0; i < 130; i++) expect((await exchange(daemon, await jwt())).status).to.equal(200);
  });

  describe('JWTs', () => {
    beforeEach(async () => {
      await open();
      await trust();
    });
    afterEach(async () => {
      expect(await tokens(), 'tokens').to.deep.equal([]);
    });

    it('refuses what is not exactly for this service and for now', async () => {
      const cases: [string, Record<string, unknown>][] = [
        ['another audience', { aud: 'other' }],
        ['no audience', { aud: undefined }],
        ['two audiences', { aud: ['llmp', 'other'] }],
        ['an audience with more', { aud: 'llmp ' }],
        ['no audience in a list', { aud: [] }],
        ['expired', { exp: secondsFromNow(-61) }],
        ['no expiry', { exp: undefined }],
        ['expiry as text', { exp: '9999999999' }],
        ['expiry beyond all numbers', { exp: 1e300 }],
        ['not valid yet', { nbf: secondsFromNow(62) }],
        ['issued in the future', { iat: secondsFromNow(62) }],
        ['no issuer', { iss: undefined }],
        ['an issuer with a character that PostgreSQL does not store', { iss: `${issuer.url}\u0000` }],
        ['an issuer that no trust can have', { iss: `https://${'a'.repeat(500)}.example` }],
      ];
      for (const [what, claims] of cases) {
        const answer = await exchange(daemon, await jwt(claims));
        expect([answer.status, answer.body.code], what).to.deep.equal([400, 'invalid_grant']);
      }
      expectRefused(await exchange(daemon, await jwt({ iss: `${issuer.url}/` })), NO_TRUST);
      expectRefused(await exchange(daemon, await jwt({ repository: 'acme/other' })), NO_TRUST);
      expectRefused(await exchange(daemon, await jwt({ repository: undefined })), NO_TRUST);
      expectRefused(await exchange(daemon, await jwt({ repository: ['acme/web'] })), NO_TRUST);
    });

    it('refuses signatures that anybody can make', async () => {
      const good = await jwt();
      const [header = '', payload = '', signature = ''] = good.split('.');
      const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const { kid, jwk } = issuer.key;
      // With the public key as the secret of HS256, in both usual forms.
      const pem = await exportSPKI((await importJWK(jwk, 'ES256')) as Parameters<typeof exportSPKI>[0]);
      const hmac = (secret: string) => {
        const content = `${encoded({ alg: 'HS256', kid })}.${payload}`;
        return `${content}.${createHmac('sha256', secret).update(content).digest('base64url')}`;
      };
      const other = await signingKey('ES256', kid);
      const rsa = await signingKey('RS256', kid);
      const claims = { ...WEB, iss: issuer.url, aud: 'llmp', exp: secondsFromNow(300) };
      // The key and its address in the header are those of the attacker.
      const own = { jwk: other.jwk, jku: `${issuer.url}/evil`, x5u: `${issuer.url}/evil` };
      issuer.asked.length = 0;
      const forged = {
        none: `${encoded({ alg: 'none' })}.${payload}.`,
        'none, with a signature': `${encoded({ alg: 'none', kid })}.${payload}.${signature}`,
        None: `${encoded({ alg: 'None', kid })}.${payload}.${signature}`,
        'HS256 with the PEM': hmac(pem),
        'HS256 with the JWK': hmac(JSON.stringify(jwk)),
        'another key of this ID': await signed(claims, other),
        'another kind of key of this ID': await signed(claims, rsa),
        'the key in the header': await signed(claims, other, own),
        'RS256 for a key of ES256': `${encoded({ alg: 'RS256', kid })}.${payload}.${signature}`,
        ES384: `${encoded({ alg: 'ES384', kid })}.${payload}.${signature}`,
        'no alg': `${encoded({ kid })}.${payload}.${signature}`,
        'changed claims': `${header}.${encoded({ ...claims, repository: 'acme/web', admin: true })}.${signature}`,
        'no signature': `${header}.${payload}.`,
        'an empty signature of zeros': `${header}.${payload}.${Buffer.alloc(64).toString('base64url')}`,
        crit: await signed(claims, issuer.key, { crit: ['b64'], b64: true }).catch(() => 'x.y.z'),
        encrypted: `${header}.${payload}.${signature}.a.b`,
        'not a JWT': 'eyJhbGciOiJub25lIn0',
        'JSON that is none': `${header}.${Buffer.from('{').toString('base64url')}.${signature}`,
        'a list': `${header}.${encoded([])}.${signature}`,
      };
      for (const [what, text] of Object.entries(forged)) {
        const answer = await exchange(daemon, text);
        expect([answer.status, answer.body.code], what).to.deep.equal([400, 'invalid_grant']);
      }
      expect(issuer.asked.filter((path) => path === '/evil')).to.deep.equal([]);
    });

    it('refuses an unknown issuer without asking anybody', async () => {
      const stranger = await StandInIssuer.start();
      const answer = await exchange(daemon, await stranger.jwt(WEB, daemon.clock.now()));
      expectRefused(answer, NO_TRUST);
      expect(stranger.asked).to.deep.equal([]);
      await stranger.stop();
    });

    it('refuses huge and deep JWTs', async () => {
      expectRefused(await exchange(daemon, await jwt({ padding: 'x'.repeat(20_000) })), INVALID_GRANT);
      const deep = Buffer.from(`{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`).toString('base64url');
      const [header = '', , signature = ''] = (await jwt()).split('.');
      expectRefused(await exchange(daemon, `${header}.${deep}.${signature}`), INVALID_GRANT);
    });
  });

  describe('trusts', () => {
    it('must be exactly one', async () => {
      await open();
      await trust({ match: { repository: 'acme/web', ref: 'refs/heads/*' } });
      expect((await exchange(daemon, await jwt())).status).to.equal(200);
      expectRefused(await exchange(daemon, await jwt({ ref: 'refs/tags/v1' })), NO_TRUST);
      const second = await trust({ match: { repository: 'acme/web' } });
      const again = await jwt();
      expectRefused(await exchange(daemon, again), AMBIGUOUS);
      await bodyOf(daemon.manage('PATCH', `/manage/trusts/${second.id}`, { is_active: false }));
      expect((await exchange(daemon, again)).status, 'not used up').to.equal(200);
      const claims = daemon.logged.filter((line) => line.includes('JWT not exchanged'));
      expect(claims.join()).to.contain('refs/tags/v1').and.not.contain(again.slice(0, 40));
    });

    it('are told apart by audience, and never lend each other their keys', async () => {
      const folder = temporaryFolder();
      const file = await signingKey('ES256', 'in a file');
      writeFileSync(join(folder, 'cluster.json'), JSON.stringify({ keys: [file.jwk] }));
      await open({ JWKS_DIR: folder });
      await trust({ audience: 'one', match: { repository: 'acme/web' } });
      const byFile = await trust({ audience: 'two', match: { sub: 'pod' }, jwks_file: 'cluster.json' });
      const at = { iss: issuer.url, exp: secondsFromNow(300), repository: 'acme/web', sub: 'pod' };
      expectRefused(await exchange(daemon, await jwt({ aud: 'two', sub: 'pod' })), INVALID_GRANT);
      expectRefused(await exchange(daemon, await signed({ ...at, aud: 'one' }, file)), INVALID_GRANT);
      const two = await signed({ ...at, aud: 'two' }, file);
      expect((await exchange(daemon, two)).status).to.equal(200);
      const [token] = await tokens();
      expect(token?.issued_by).to.equal(`trust:${byFile.id}`);
    });

    it('have a maximum of active tokens, and of tokens in an hour', async () => {
      await open();
      const { id } = await trust({ max_active: 2, duration_minutes: 10, per_hour: 4 });
      for (let i = 0; i < 2; i++) expect((await exchange(daemon, await jwt())).status).to.equal(200);
      const waiting = await jwt({ exp: secondsFromNow(5000) });
      const active = await exchange(daemon, waiting);
      expectRefused(active, LIMIT_REACHED);
      expect(Number(active.headers.get('retry-after'))).to.be.within(595, 600);
      const [record] = await audited('&outcome=denied');
      expect(record).to.deep.include({ actor: `trust:${id}`, project_id: projectId });
      daemon.clock.advance(600_000);
      expect((await exchange(daemon, waiting)).status, 'not used up').to.equal(200);
      expect((await exchange(daemon, await jwt())).status).to.equal(200);
      daemon.clock.advance(600_000);
      const hourly = await exchange(daemon, await jwt());
      expectRefused(hourly, LIMIT_REACHED);
      expect(Number(hourly.headers.get('retry-after'))).to.be.within(2390, 2400);
      daemon.clock.advance(2_400_000);
      expect((await exchange(daemon, await jwt())).status).to.equal(200);
      for (let i = 0; i < 30; i++) await exchange(daemon, waiting);
      expect((await audited('&outcome=denied')).length, 'records of a job that goes on').to.be.within(10, 12);
    });

    it('issue nothing for an inactive project, and do not use the JWT up', async () => {
      await open();
      await trust();
      const one = await jwt();
      await bodyOf(daemon.manage('PATCH', `/manage/projects/${projectId}`, { is_active: false }));
      expectRefused(await exchange(daemon, one), [400, 'unauthorized_client', 'project_inactive']);
      await bodyOf(daemon.manage('PATCH', `/manage/projects/${projectId}`, { is_active: true }));
      expect((await exchange(daemon, one)).status).to.equal(200);
    });
  });

  describe('replay', () => {
    beforeEach(async () => {
      await open();
      await trust();
    });

    it('exchanges a JWT once, until it is no longer accepted at all', async () => {
      const one = await jwt({ exp: secondsFromNow(300) });
      expect((await exchange(daemon, one)).status).to.equal(200);
      expectRefused(await exchange(daemon, one), TOKEN_USED);
      const { jti } = JSON.parse(Buffer.from(one.split('.')[1] ?? '', 'base64url').toString()) as { jti: string };
      expectRefused(await exchange(daemon, await jwt({ jti, run_id: '18' })), TOKEN_USED);
      daemon.clock.advance(358_000);
      expectRefused(await exchange(daemon, one), TOKEN_USED);
      daemon.clock.advance(2_000);
      expectRefused(await exchange(daemon, one), INVALID_GRANT);
    });

    it('knows a JWT without an ID by what is signed, whatever its signature looks like', async () => {
      const one = await jwt({ jti: undefined });
      expect((await exchange(daemon, one)).status).to.equal(200);
      // Another signature of the same content, which is as valid: s and n - s.
      const [header = '', payload = '', signature = ''] = one.split('.');
      const bytes = Buffer.from(signature, 'base64url');
      const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
      const s = BigInt(`0x${bytes.subarray(32).toString('hex')}`);
      const mirrored = (order - s).toString(16).padStart(64, '0');
      const twin = Buffer.concat([bytes.subarray(0, 32), Buffer.from(mirrored, 'hex')]).toString('base64url');
      expect(twin).to.not.equal(signature);
      expectRefused(await exchange(daemon, `${header}.${payload}.${twin}`), TOKEN_USED);
      // And another spelling of the same bytes.
      const last = signature.slice(0, -1) + String.fromCharCode(signature.charCodeAt(signature.length - 1) + 1);
      expect((await exchange(daemon, `${header}.${payload}.${last}`)).status).to.equal(400);
      expect(await tokens()).to.have.lengthOf(1);
    });

    it('makes one token of a JWT that is sent many times at once', async () => {
      const one = await jwt();
      const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(daemon, one)));
      const codes = answers.map(({ status, body }) => (status === 200 ? 'issued' : body.code)).sort();
      expect(codes).to.deep.equal(['issued', ...Array<string>(19).fill('token_used')]);
      expect(await tokens()).to.have.lengthOf(1);
    });
  });

  describe('keys', () => {
    beforeEach(async () => {
      await open();
      await trust();
    });
    const asked = (path = '/keys') => issuer.asked.filter((it) => it === path).length;

    it('are asked for once, and again for an unknown one after a minute', async () => {
      issuer.asked.length = 0;
      for (let i = 0; i < 3; i++) expect((await exchange(daemon, await jwt())).status).to.equal(200);
      expect(asked()).to.equal(1);
      await issuer.rotate();
      expectRefused(await exchange(daemon, await jwt()), INVALID_GRANT);
      expect(asked()).to.equal(1);
      daemon.clock.advance(60_000);
      expect((await exchange(daemon, await jwt())).status).to.equal(200);
      expect(asked()).to.equal(2);
      daemon.clock.advance(60_000);
      const flood = await Promise.all(
        Array.from({ length: 50 }, async (_, i) => exchange(daemon, await jwt({}, { kid: `unknown ${i}` }))),
      );
      for (const answer of flood) expectRefused(answer, INVALID_GRANT);
      expect(asked(), 'because of fifty unknown keys').to.equal(3);
    });

    it('are asked for again after a failure, which is 503, and used from the cache meanwhile', async () => {
      const unreachable = (_req: unknown, res: { destroy(): unknown }) => {
        res.destroy();
        return true;
      };
      issuer.answer = unreachable;
      const one = await jwt();
      const failed = await exchange(daemon, one);
      expectRefused(failed, UNAVAILABLE);
      expect(Number(failed.headers.get('retry-after'))).to.be.greaterThan(0);
      issuer.answer = undefined;
      expect((await exchange(daemon, one)).status, 'at once').to.equal(200);
      issuer.answer = unreachable;
      daemon.clock.advance(3_600_000);
      expect((await exchange(daemon, await jwt())).status, 'from the cache').to.equal(200);
      expectRefused(await exchange(daemon, await jwt({}, { kid: 'unknown' })), UNAVAILABLE);
      issuer.answer = undefined;
      daemon.clock.advance(10_000);
      await issuer.rotate();
      expect((await exchange(daemon, await jwt())).status, 'a failure is no request of this minute').to.equal(200);
      issuer.answer = unreachable;
      daemon.clock.advance(25 * 3_600_000);
      expectRefused(await exchange(daemon, await jwt()), UNAVAILABLE);
    });

    it('are refused if the documents are too large, too slow, not those of the issuer, or lead elsewhere', async () => {
      const document = (body: object) => ({ status: 200, body: JSON.stringify(body) });
      const discovery = { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` };
      const answers: Record<string, { status: number; body: string; headers?: Record<string, string>; path?: string }> =
        {
          'another issuer': document({ ...discovery, issuer: 'https://evil.example' }),
          'no address of keys': document({ issuer: issuer.url }),
          'keys without TLS': document({ ...discovery, jwks_uri: 'http://192.0.2.1/keys' }),
          'keys at a metadata address': document({ ...discovery, jwks_uri: 'https://169.254.169.254/keys' }),
          'not JSON': { status: 200, body: '<html>' },
          'an error': { status: 500, body: '{}' },
          '401': { status: 401, body: '{}' },
          'a redirect': { status: 302, body: '', headers: { location: `${issuer.url}/keys` } },
          'huge keys': { ...document({ keys: issuer.keys, padding: 'x'.repeat(600_000) }), path: '/keys' },
          'many keys': { ...document({ keys: Array.from({ length: 101 }, () => issuer.key.jwk) }), path: '/keys' },
          'no keys': { ...document({ keys: [] }), path: '/keys' },
          'only secrets': { ...document({ keys: [{ kty: 'oct', k: 'c2VjcmV0' }] }), path: '/keys' },
          'a list': { ...document([]), path: '/keys' },
        };
      for (const [what, { status, body, headers = {}, path = '/.well-known/openid-configuration' }] of Object.entries(
        answers,
      )) {
        issuer.answer = (req, res) => {
          if (req.url !== path) return false;
          res.writeHead(status, headers).end(body);
          return true;
        };
        const answer = await exchange(daemon, await jwt());
        expect([answer.status, answer.body.code], what).to.deep.equal([503, 'unavailable']);
        daemon.clock.advance(1_000);
      }
      issuer.answer = (_req, res) => {
        res.writeHead(200).write('{"issuer":');
        return true;
      };
      const slow = exchange(daemon, await jwt());
      const timer = setInterval(() => {
        daemon.clock.advance(1_000);
      }, 10);
      expectRefused(await slow, UNAVAILABLE);
      clearInterval(timer);
      issuer.answer = undefined;
      daemon.clock.advance(1_000);
      expect((await exchange(daemon, await jwt())).status).to.equal(200);
    });
  });

  it('reads keys from files of JWKS_DIR only, and again when they change', async () => {
    const folder = temporaryFolder();
    const [inside, outside] = [join(folder, 'keys'), join(folder, 'outside')];
    mkdirSync(join(inside, '..data'), { recursive: true });
    mkdirSync(outside);
    const [key, next] = [await signingKey('RS256', 'first'), await signingKey('RS256', 'second')];
    const text = (...keys: { jwk: object }[]) => JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });
    writeFileSync(join(inside, '..data', 'cluster.json'), text(key));
    writeFileSync(join(outside, 'keys.json'), text(key));
    symlinkSync('..data/cluster.json', join(inside, 'cluster.json'));
    symlinkSync('../outside/keys.json', join(inside, 'escape.json'));
    symlinkSync('/dev/zero', join(inside, 'endless.json'));
    writeFileSync(join(inside, 'huge.json'), `${text(key)}${' '.repeat(300_000)}`);
    await open({ JWKS_DIR: inside });
    const at = (file: string) => ({ iss: `https://${file}`, aud: 'llmp', exp: secondsFromNow(300), sub: 'pod' });
    const fileOf = (file: string) =>
      createTrust(daemon, `https://${file}`, projectId, { match: { sub: 'pod' }, jwks_file: file });
    for (const file of ['cluster.json', 'escape.json', 'endless.json', 'huge.json', 'missing.json']) {
      await fileOf(file);
      const { status } = await exchange(daemon, await signed(at(file), key));
      expect(status, file).to.equal(file === 'cluster.json' ? 200 : 503);
    }
    for (const file of ['../outside/keys.json', '/etc/passwd', '..', '.hidden', 'a/b.json']) {
      const body = {
        issuer: 'https://x.example',
        audience: 'llmp',
        match: { sub: 'pod' },
        project_id: projectId,
        duration_minutes: 5,
        jwks_file: file,
      };
      expect((await daemon.manage('POST', '/manage/trusts', body)).status, file).to.equal(400);
    }
    writeFileSync(join(inside, '..data', 'cluster.json'), text(next));
    const withNext = await signed({ ...at('cluster.json'), jti: 'n' }, next);
    expect((await exchange(daemon, withNext)).status).to.equal(200);
    expectRefused(await exchange(daemon, await signed({ ...at('cluster.json'), jti: 'o' }, key)), INVALID_GRANT);
  });

  it('is counted by outcome', async () => {
    await open({ ENABLE_METRICS: 'true' });
    await trust();
    const one = await jwt();
    for (const text of [one, one, 'x', await jwt({ repository: 'other' })]) await exchange(daemon, text);
    await exchange(daemon, one, { grant_type: 'x' });
    const samples = await scraped(`${daemon.managementUrl}/metrics`);
    for (const outcome of ['issued', 'token_used', 'invalid_grant', 'no_trust', 'invalid_request'])
      expect(sumOf(samples, 'llmp_token_exchanges_total', { outcome }), outcome).to.equal(1);
  });

  it('is passed to the primary by workers, also if /manage has an address of its own', async () => {
    await open({ WORKERS: '2', MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0', IP_RATE_LIMIT: '40' });
    await trust();
    const one = await jwt();
    const { status, body } = await exchange(daemon, one);
    expect(status, JSON.stringify(body)).to.equal(200);
    expectRefused(await exchange(daemon, one), TOKEN_USED);
    const secret = String(body.access_token);
    for (let i = 0; i < 4; i++) expect((await daemon.call(secret)).status).to.equal(200);
    expect((await daemon.call(secret, '/token/self', { method: 'DELETE' })).status).to.equal(204);
    for (let i = 0; i < 4; i++) expect((await daemon.call(secret)).status).to.equal(401);
    const elsewhere = await exchange({ url: daemon.managementUrl }, await jwt());
    expect(elsewhere.status).to.equal(404);
  });
});
