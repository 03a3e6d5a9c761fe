/** People log in with an identity provider, over the management API. */
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect } from 'chai';
import { loadSettings } from '../../config/settings.js';
import type { WireSession, WireToken } from '../../daemon/api/contract.js';
import { readRoleMapping } from '../../daemon/oidc/role-mapping.js';
import { canary } from '../support/canaries.js';
import { ConnectProxy } from '../support/connect-proxy.js';
import { startDaemon, type TestDaemon, type TestResponse } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { CLIENT_ID, type IssuerKeys, jwt, PersonBrowser, startIssuer, type TestIssuer } from '../support/issuer.js';
import { auditOf, bodyOf, problemOf, rawRequest } from '../support/management.js';
import { freePort } from '../support/ports.js';
import { file, MANAGEMENT_TOKEN } from '../support/settings.js';

const PUBLIC_URL = 'https://llmp.example.com';
const REDIRECT_URI = `${PUBLIC_URL}/admin/oidc/callback`;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const ROWS = [
  { match: { groups: 'platform' }, role: 'admin' },
  { match: { sub: 'ana' }, role: 'issuer', ceilings: { hours: 8, active_tokens: 2 } },
];

type Json = Record<string, unknown>;
type Begun = { url: string; state: string };

describe('people log in', () => {
  let issuer: TestIssuer;
  let daemon: TestDaemon;
  let env: Record<string, string>;

  beforeEach(async () => {
    issuer = await startIssuer({ redirectUri: REDIRECT_URI });
    issuer.person = { sub: 'ana', name: 'Ana Lima', email: 'ana@example.com' };
    env = {
      OIDC_ISSUER: issuer.url,
      OIDC_CLIENT_ID: CLIENT_ID,
      OIDC_CLIENT_SECRET: issuer.clientSecret,
      OIDC_ROLES: file('roles.json', JSON.stringify(ROWS)),
      PUBLIC_URL,
    };
    daemon = await startDaemon({ env });
  });
  afterEach(async () => {
    await daemon.stop();
    await issuer.stop();
  });

  const begin = () => bodyOf<Begun>(daemon.manage('POST', '/manage/login/web'));
  const finish = (state: string, cameBackTo: string) =>
    daemon.manage(
      'POST',
      '/manage/login/web/finish',
      { state, query: new URL(cameBackTo).search.slice(1) },
      { 'x-llmp-actor': 'admin', 'x-llmp-client-ip': '203.0.113.7' },
    );
  /** @returns where the browser of the person is sent from the provider. */
  const atProvider = async (url: string) => (await new PersonBrowser(issuer).go(url)).to;
  const logIn = async (): Promise<TestResponse> => {
    const { url, state } = await begin();
    return finish(state, await atProvider(url));
  };
  const refusedWith = (answer: TestResponse, words: string) => {
    expect(problemOf(answer, 403, 'log_in_refused')).to.equal(words);
  };
  const self = (headers: Record<string, string>) => daemon.manage('GET', '/manage/self', undefined, headers);

  describe('in a browser', () => {
    it('with an authorization code, PKCE, a nonce and a state, and have the role of their row', async () => {
      const { url, state } = await begin();
      const asked = new URL(url);
      expect(Object.fromEntries(asked.searchParams)).to.include({
        client_id: CLIENT_ID,
        redirect_uri: REDIRECT_URI,
        response_type: 'code',
        code_challenge_method: 'S256',
        scope: 'openid profile email groups',
      });
      for (const name of ['code_challenge', 'nonce', 'state']) {
        expect(asked.searchParams.get(name), name).to.match(/^[\w-]{43}$/);
      }
      const answer = await finish(state, await atProvider(url));
      const session = await bodyOf<WireSession>(answer, 201);
      expect(session).to.include({ actor: issuer.actorOf('ana'), name: 'Ana Lima', role: 'issuer', ended_at: null });
      expect(Date.parse(session.expires_at) - Date.parse(session.begun_at)).to.equal(8 * HOUR_MS);
      expect((await self({ 'x-llmp-session': session.id })).body).to.deep.equal({
        actor: issuer.actorOf('ana'),
        name: 'Ana Lima',
        role: 'issuer',
        projects: null,
        ceilings: { hours: 8, active_tokens: 2 },
        expires_at: session.expires_at,
      });
      const [row] = (await auditOf(daemon)).filter(({ action }) => action === 'admin.login');
      expect(row).to.include({ actor: issuer.actorOf('ana'), outcome: 'success', client_ip: '203.0.113.7' });
    });

    it('with a group that only the UserInfo endpoint names', async () => {
      issuer.person = { sub: 'bo', groups: ['staff', 'platform'] };
      expect(await bodyOf(await logIn(), 201)).to.include({ actor: issuer.actorOf('bo'), role: 'admin', name: 'bo' });
    });

    it('only with a row: others are told so, and recorded', async () => {
      issuer.person = { sub: 'eve', name: 'Eve' };
      refusedWith(await logIn(), 'Eve has no role here: ask the operators of llmp for one');
      const row = (await auditOf(daemon)).at(-1);
      expect(row).to.include({ action: 'admin.login', actor: issuer.actorOf('eve'), outcome: 'denied' });
    });

    it('with names that are cut and masked, and IDs that fit the audit log', async () => {
      const secret = 'sk-abcdefghijklmnopqrstuvwxyz';
      const cases: [Json, string | null][] = [
        [{ sub: 'ana', name: `\u202eAna\u0000\nLima ${secret}` }, 'Ana Lima ********'],
        [{ sub: 'ana', name: 'é'.repeat(500) }, 'é'.repeat(100)],
        [{ sub: 'ana', name: ' ', preferred_username: 'ana.l' }, 'ana.l'],
        [{ sub: 'ana b', groups: 'platform' }, null],
        [{ sub: secret, groups: 'platform' }, null],
      ];
      for (const [person, name] of cases) {
        issuer.person = person;
        const answer = await logIn();
        if (name === null) refusedWith(answer, 'the identity provider gives an ID that cannot be used');
        else expect(await bodyOf(answer, 201)).to.include({ name });
      }
    });

    it('sixty times a minute from an address, which may have invented the codes', async () => {
      const { state } = await begin();
      const invented = `${REDIRECT_URI}?code=x&state=x`;
      for (let i = 0; i < 60; i++) problemOf(await finish(state, invented), 403, 'log_in_refused');
      problemOf(await finish(state, invented), 429, 'too_many_attempts');
      daemon.clock.advance(MINUTE_MS);
      expect((await logIn()).status).to.equal(201);
    });

    it('not with an error in words that the browser chose', async () => {
      const words = { server_error: 'server_error', you_are_hacked: 'an error' };
      for (const [error, shown] of Object.entries(words)) {
        const { url, state } = await begin();
        const own = new URL(url).searchParams.get('state') ?? '';
        const answer = await finish(
          state,
          `${REDIRECT_URI}?${new URLSearchParams({ error, state: own, iss: issuer.url }).toString()}`,
        );
        expect(problemOf(answer, 503, 'unavailable')).to.equal(
          `the identity provider cannot be used: it responded with ${shown}`,
        );
      }
      expect(daemon.logged.join()).not.to.include('you_are_hacked');
    });

    it('not after they have denied it at the provider', async () => {
      issuer.consents = false;
      refusedWith(await logIn(), 'log-in refused: access was denied');
    });

    it('not with a state that was changed, is of another log-in, or older than ten minutes', async () => {
      const here = 'this log-in was not begun here, or took longer than ten minutes: begin again';
      const foreign =
        'log-in refused: the response of the identity provider does not belong to this log-in, or is not signed by it';
      const [one, other] = [await begin(), await begin()];
      const cameBackTo = await atProvider(one.url);
      const { state } = one;
      const changed = `${state.startsWith('A') ? 'B' : 'A'}${state.slice(1)}`;
      refusedWith(await finish(changed, cameBackTo), here);
      refusedWith(await finish('sealed', cameBackTo), here);
      refusedWith(await finish(other.state, cameBackTo), foreign);
      const without = new URL(cameBackTo);
      without.searchParams.delete('state');
      refusedWith(await finish(state, without.href), foreign);
      // With the state of the other log-in, it is the code that does not fit.
      const swapped = new URL(cameBackTo);
      swapped.searchParams.set('state', new URL(other.url).searchParams.get('state')!);
      refusedWith(await finish(other.state, swapped.href), 'log-in refused: the code is not valid, or was used before');
      daemon.clock.advance(10 * MINUTE_MS);
      refusedWith(await finish(state, cameBackTo), here);
    });

    it('at another instance than the one at which they began', async () => {
      const { url, state } = await begin();
      const cameBackTo = await atProvider(url);
      const instance = await startDaemon({ env });
      const query = new URL(cameBackTo).search.slice(1);
      const answer = await instance.manage('POST', '/manage/login/web/finish', { state, query });
      expect(await bodyOf(answer, 201)).to.include({ actor: issuer.actorOf('ana') });
      await instance.stop();
    });

    it('only once with a code', async () => {
      const { url, state } = await begin();
      const cameBackTo = await atProvider(url);
      expect((await finish(state, cameBackTo)).status).to.equal(201);
      refusedWith(await finish(state, cameBackTo), 'log-in refused: the code is not valid, or was used before');
    });

    it('not with a code that was issued without the challenge of PKCE', async () => {
      const { url, state } = await begin();
      const downgraded = new URL(url);
      for (const name of ['code_challenge', 'code_challenge_method']) downgraded.searchParams.delete(name);
      issuer.requiresPkce = false;
      const cameBackTo = await atProvider(downgraded.href);
      expect(new URL(cameBackTo).searchParams.get('code')).not.to.equal(null);
      refusedWith(await finish(state, cameBackTo), 'log-in refused: the code is not valid, or was used before');
    });

    it('not with the response of another issuer (mix-up)', async () => {
      const foreign =
        'log-in refused: the response of the identity provider does not belong to this log-in, or is not signed by it';
      for (const iss of ['https://evil.example.com', null]) {
        const { url, state } = await begin();
        const cameBackTo = new URL(await atProvider(url));
        expect(cameBackTo.searchParams.get('iss')).to.equal(issuer.url);
        cameBackTo.searchParams.delete('iss');
        if (iss !== null) cameBackTo.searchParams.set('iss', iss);
        const before = issuer.requests.length;
        refusedWith(await finish(state, cameBackTo.href), foreign);
        expect(issuer.requests.slice(before), 'no code is sent anywhere').not.to.include('POST /token');
      }
    });

    const other: IssuerKeys = { kid: 'test', ...generateKeyPairSync('rsa', { modulusLength: 2048 }) };
    const FOREIGN = /^log-in refused: the ID token is for another log-in or client/;
    const UNSIGNED =
      /^log-in refused: the response of the identity provider does not belong to this log-in, or is not signed by it$/;
    const OUTDATED = /^log-in refused: the ID token has expired, or is not valid yet/;
    const forgeries: [string, (claims: Json, keys: IssuerKeys) => string, RegExp][] = [
      ['of another issuer', (claims, keys) => jwt({ ...claims, iss: 'https://evil.example.com' }, keys), FOREIGN],
      ['for another client', (claims, keys) => jwt({ ...claims, aud: 'another' }, keys), FOREIGN],
      ['of another log-in', (claims, keys) => jwt({ ...claims, nonce: 'another' }, keys), FOREIGN],
      ['without a nonce', ({ nonce: _, ...claims }, keys) => jwt(claims, keys), UNSIGNED],
      ['that has expired', (claims, keys) => jwt({ ...claims, exp: Number(claims.iat) - 60 }, keys), OUTDATED],
      ['that is not valid yet', (claims, keys) => jwt({ ...claims, nbf: Number(claims.exp) }, keys), OUTDATED],
      ['without a signature', (claims, keys) => jwt(claims, keys, 'none'), UNSIGNED],
      ['signed with the public key as a secret', (claims, keys) => jwt(claims, keys, 'HS256'), UNSIGNED],
      ['signed with another key', (claims) => jwt(claims, other), UNSIGNED],
      [
        'of another person than UserInfo',
        (claims, keys) => jwt({ ...claims, sub: 'bo' }, keys),
        /^log-in refused: the responses of the identity provider are about different people$/,
      ],
    ];
    for (const [what, forge, words] of forgeries) {
      it(`not with an ID token ${what}`, async () => {
        issuer.forge = forge;
        expect(problemOf(await logIn(), 403, 'log_in_refused')).to.match(words);
        issuer.forge = (claims, keys) => jwt(claims, keys);
        expect((await logIn()).status, 'the same with the right one').to.equal(201);
      });
    }
  });

  describe('on a command line', () => {
    type Device = { device_code: string; user_code: string; verification_uri_complete: string; interval: number };
    const beginDevice = (headers: Record<string, string | undefined> = {}) =>
      rawRequest(daemon, {
        method: 'POST',
        path: '/manage/login/device',
        headers: { authorization: undefined, ...headers },
      });
    const finishDevice = (code: string) =>
      rawRequest(daemon, {
        method: 'POST',
        path: '/manage/login/device/finish',
        headers: { authorization: undefined, 'content-type': 'application/json' },
        body: JSON.stringify({ device_code: code }),
      });
    const polls = () => issuer.requests.filter((request) => request === 'POST /token').length;

    it('with a code that they enter in a browser, and get a secret for the session', async () => {
      expect(
        (await rawRequest(daemon, { path: '/manage/login', headers: { authorization: undefined } })).body,
      ).to.deep.equal({
        issuer: issuer.url,
      });
      const device = await bodyOf<Device>(await beginDevice());
      expect(device).to.include({ verification_uri: `${issuer.url}/device`, interval: 5 });
      expect(device).to.have.property('expires_in').within(590, 600);
      const pending = await finishDevice(device.device_code);
      problemOf(pending, 400, 'login_pending');
      expect(pending.headers.get('retry-after')).to.equal('5');
      expect(polls()).to.equal(1);
      problemOf(await finishDevice(device.device_code), 400, 'login_pending');
      expect(polls(), 'too soon: the provider is not asked').to.equal(1);

      expect(await new PersonBrowser(issuer).enterCode(device.verification_uri_complete)).to.include('done');
      daemon.clock.advance(5_000);
      const answer = await finishDevice(device.device_code);
      expect(answer.headers.get('cache-control')).to.equal('no-store');
      const { secret, ...session } = await bodyOf<WireSession & { secret: string }>(answer, 201);
      expect(session).to.include({ actor: issuer.actorOf('ana'), name: 'Ana Lima', role: 'issuer' });
      expect(secret).to.match(/^sk-ss-/);
      expect((await self({ authorization: `Bearer ${secret}` })).body).to.include({
        actor: issuer.actorOf('ana'),
        role: 'issuer',
      });
      const [row] = (await auditOf(daemon)).filter(({ action }) => action === 'cli.login');
      expect(row).to.include({ actor: issuer.actorOf('ana'), outcome: 'success', client_ip: '127.0.0.1' });

      daemon.clock.advance(5_000);
      refusedWith(await finishDevice(device.device_code), 'log-in refused: the code is not valid, or was used before');
    });

    it('not with a code that is not of this daemon, of a browser, denied, or expired', async () => {
      const unknown = 'the code is not one of this daemon, or has expired: begin again';
      refusedWith(await finishDevice('forged'), unknown);
      refusedWith(await finishDevice((await begin()).state), unknown);

      const device = await bodyOf<Device>(await beginDevice());
      issuer.consents = false;
      await new PersonBrowser(issuer).enterCode(device.verification_uri_complete);
      refusedWith(await finishDevice(device.device_code), 'log-in refused: access was denied');

      const late = await bodyOf<Device>(await beginDevice());
      daemon.clock.advance(10 * MINUTE_MS);
      refusedWith(await finishDevice(late.device_code), unknown);
    });

    it('only with a row', async () => {
      issuer.person = { sub: 'eve', name: 'Eve' };
      const device = await bodyOf<Device>(await beginDevice());
      await new PersonBrowser(issuer).enterCode(device.verification_uri_complete);
      refusedWith(await finishDevice(device.device_code), 'Eve has no role here: ask the operators of llmp for one');
      expect((await auditOf(daemon)).at(-1)).to.include({
        action: 'cli.login',
        actor: issuer.actorOf('eve'),
        outcome: 'denied',
      });
    });

    it('ten times a minute from an address, and poll within limits too', async () => {
      for (let i = 0; i < 10; i++) expect((await beginDevice()).status).to.equal(200);
      const before = issuer.requests.length;
      const refused = await beginDevice();
      problemOf(refused, 429, 'too_many_attempts');
      problemOf(await beginDevice({ 'x-llmp-client-ip': '203.0.113.9' }), 429, 'too_many_attempts');
      expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60);
      await Promise.all(Array.from({ length: 300 }, () => finishDevice('forged')));
      problemOf(await finishDevice('forged'), 429, 'too_many_attempts');
      expect(issuer.requests.length, 'none of them reaches the provider').to.equal(before);
      daemon.clock.advance(MINUTE_MS);
      expect((await beginDevice()).status).to.equal(200);
    });
  });

  describe('while the mapping of roles', () => {
    const applied = (rows: unknown) => {
      const OIDC_ROLES = file('roles.json', JSON.stringify(rows));
      const { reloadable, settings } = loadSettings({ MANAGEMENT_TOKEN, ...env, OIDC_ROLES });
      daemon.daemon.apply(reloadable, { roles: readRoleMapping(reloadable.oidcRoles, settings.oidcIssuer) });
    };

    it('changes, which ends their sessions; a person who leaves keeps tokens and no session', async () => {
      const session = await bodyOf<WireSession>(await logIn(), 201);
      const inSession = { 'x-llmp-session': session.id };
      const project = await daemon.createProject();
      const fields = { project_id: project.id, duration_hours: 1 };
      const issued = await daemon.manage('POST', '/manage/tokens', fields, inSession);
      const { id } = await bodyOf<{ id: string }>(issued, 201);

      applied(ROWS); // The same content in another file.
      expect((await self(inSession)).status).to.equal(200);
      applied(ROWS.slice(0, 1));
      problemOf(await self(inSession), 401, 'session_ended');
      const stored = 'SELECT id FROM sessions WHERE ended_at IS NULL';
      const { database } = daemon.daemon.stores;
      await eventually('its end is stored', async () => (await database.select(stored)).length === 0);
      applied(ROWS);
      problemOf(await self(inSession), 401, 'session_ended');
      expect((await logIn()).status).to.equal(201);
      applied(ROWS.slice(0, 1));
      refusedWith(await logIn(), 'Ana Lima has no role here: ask the operators of llmp for one');
      expect(await daemon.token(id)).to.include({
        is_active: true,
        issued_by: issuer.actorOf('ana'),
        issued_by_name: 'Ana Lima',
      });
    });
  });

  it('as other people at another provider, also with the same ID', async () => {
    const first = issuer;
    const at = async (provider: TestIssuer) => {
      await daemon.stop();
      issuer = provider;
      const { url: OIDC_ISSUER, clientSecret: OIDC_CLIENT_SECRET } = provider;
      daemon = await startDaemon({ env: { ...env, OIDC_ISSUER, OIDC_CLIENT_SECRET }, dir: daemon.dir });
      const { id, actor } = await bodyOf<WireSession>(await logIn(), 201);
      expect(actor).to.equal(provider.actorOf('ana'));
      const asAna = (method: string, path: string, body?: unknown) =>
        daemon.manage(method, path, body, { 'x-llmp-session': id });
      return { asAna, listed: async () => (await bodyOf<WireToken[]>(asAna('GET', '/manage/tokens'))).length };
    };
    const { id: project_id } = await daemon.createProject();
    const before = await at(first);
    const issue = ({ asAna }: typeof before) => asAna('POST', '/manage/tokens', { project_id, duration_hours: 1 });
    const { id } = await bodyOf<WireToken>(issue(before), 201);
    await bodyOf(issue(before), 201);
    problemOf(await issue(before), 403, 'beyond_ceiling');

    const second = await startIssuer({ redirectUri: REDIRECT_URI });
    const after = await at(second);
    expect(await after.listed()).to.equal(0);
    for (const method of ['GET', 'DELETE'])
      problemOf(await after.asAna(method, `/manage/tokens/${id}`), 404, 'not_found');
    await bodyOf(issue(after), 201); // Their tokens do not count for the ceiling.

    expect(await (await at(first)).listed(), 'the first one has her tokens still').to.equal(2);
    await second.stop();
  });

  describe('not while the provider', () => {
    const respond = (status: number, body: string, headers: Record<string, string> = {}) => {
      issuer.intercept = (_req: IncomingMessage, res: ServerResponse) => {
        res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
        return true;
      };
    };
    const unusable = async (words: string) => {
      const answer = await daemon.manage('POST', '/manage/login/web');
      expect(problemOf(answer, 503, 'unavailable')).to.equal(`the identity provider cannot be used: ${words}`);
      expect(Number(answer.headers.get('retry-after'))).to.be.above(0);
      daemon.clock.advance(2_000); // A failure is the answer for a moment.
    };

    it('is unreachable: the daemon starts without it, and uses it as soon as it responds', async () => {
      const port = await freePort();
      const OIDC_ISSUER = `http://127.0.0.1:${port}`;
      const own = await startDaemon({ env: { ...env, OIDC_ISSUER } });
      const answer = await own.manage('POST', '/manage/login/web');
      expect(problemOf(answer, 503, 'unavailable')).to.equal(
        'the identity provider cannot be used: unreachable (ECONNREFUSED)',
      );
      const server = createServer((_req, res) => {
        res
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify({ issuer: OIDC_ISSUER, authorization_endpoint: `${OIDC_ISSUER}/auth` }));
      });
      await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
      expect((await own.manage('POST', '/manage/login/web')).status, 'for two seconds').to.equal(503);
      own.clock.advance(2_000);
      expect((await own.manage('POST', '/manage/login/web')).status).to.equal(200);
      await own.stop();
      server.close().closeAllConnections();
    });

    it('is reached through UPSTREAM_PROXY, unless it is on this machine', async () => {
      const proxy = await ConnectProxy.start();
      proxy.response = 'HTTP/1.1 502 Bad Gateway\r\n\r\n';
      const password = canary('password');
      const through = { ...env, UPSTREAM_PROXY: `http://llmp:${password}@${proxy.address}` };
      const local = await startDaemon({ env: through });
      expect((await local.manage('POST', '/manage/login/web')).status).to.equal(200);
      expect(proxy.asked).to.deep.equal([]);
      await local.stop();
      const own = await startDaemon({ env: { ...through, OIDC_ISSUER: 'https://login.example.com' } });
      const answer = await own.manage('POST', '/manage/login/web');
      expect(problemOf(answer, 503, 'unavailable')).to.match(/cannot be used: unreachable/);
      const credentials = `Basic ${Buffer.from(`llmp:${password}`).toString('base64')}`;
      expect(proxy.asked[0]).to.include({ authority: 'login.example.com:443', credentials });
      await own.stop();
      proxy.stop();
    });

    it('responds with errors, redirects, too much, or as somebody else', async () => {
      respond(500, '{}');
      await unusable('it responded with an unexpected status');
      respond(302, '', { location: `${issuer.url}/elsewhere` });
      await unusable('it responded with an unexpected status');
      expect(issuer.requests).not.to.include('GET /elsewhere');
      respond(200, 'hello', { 'content-type': 'text/html' });
      await unusable('it responded with something else than JSON');
      respond(200, '{');
      await unusable('it responded with something else than JSON');
      respond(200, ' '.repeat(512 * 1024 + 1));
      await unusable('its response is larger than 512 KiB');
      issuer.intercept = () => false;
      issuer.configuration = (document) => ({ ...document, issuer: 'https://evil.example.com' });
      await unusable('it has another issuer than OIDC_ISSUER');
      issuer.configuration = (document) => ({ ...document, authorization_endpoint: 'http://evil.example.com/auth' });
      await unusable('its authorization endpoint is not https');
    });

    it('is silent for five seconds', async () => {
      issuer.intercept = () => true;
      const answer = daemon.manage('POST', '/manage/login/web');
      await eventually('it is asked', () => issuer.requests.length > 0);
      daemon.clock.advance(5_000);
      expect(problemOf(await answer, 503, 'unavailable')).to.equal(
        'the identity provider cannot be used: no response within 5 s',
      );
    });

    it('names a token endpoint elsewhere without https, to which no secret is sent', async () => {
      issuer.configuration = (document) => ({ ...document, token_endpoint: 'http://evil.example.com/token' });
      const words = problemOf(await logIn(), 503, 'unavailable');
      expect(words).to.equal(
        'the identity provider cannot be used: it names an address that is not https: http://evil.example.com',
      );
    });

    it('refuses the client', async () => {
      const own = await startDaemon({ env: { ...env, OIDC_CLIENT_SECRET: 'another-secret' } });
      const { url, state } = await bodyOf<Begun>(own.manage('POST', '/manage/login/web'));
      const query = new URL(await atProvider(url)).search.slice(1);
      const answer = await own.manage('POST', '/manage/login/web/finish', { state, query });
      expect(problemOf(answer, 503, 'unavailable')).to.match(
        /it refuses the client of llmp \(invalid_client\): compare OIDC_CLIENT_ID/,
      );
      await own.stop();
    });
  });

  it('only where an identity provider is set, and web log-ins only through a front end', async () => {
    const own = await startDaemon();
    expect((await own.manage('GET', '/manage/login')).body).to.deep.equal({ issuer: null });
    for (const path of ['web', 'device'])
      problemOf(await own.manage('POST', `/manage/login/${path}`), 404, 'not_found');
    await own.stop();
    for (const path of ['/manage/login/web', '/manage/login/web/finish']) {
      const answer = await rawRequest(daemon, { method: 'POST', path, headers: { authorization: undefined } });
      problemOf(answer, 401, 'management_token_refused');
    }
    const session = await bodyOf<WireSession>(await logIn(), 201);
    const answer = await daemon.manage('POST', '/manage/login/web', undefined, { 'x-llmp-session': session.id });
    problemOf(answer, 403, 'not_permitted');
  });
});
