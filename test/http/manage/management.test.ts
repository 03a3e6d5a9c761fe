import { expect } from 'chai';
import type { WireMigrations, WireProblem, WireProject } from '../../../daemon/api/contract.js';
import { operations } from '../../../daemon/api/operations.js';
import { type Route, ROUTES } from '../../../daemon/api/routes.js';
import { mintSecret } from '../../../daemon/core/token.js';
import { allCopied } from '../../support/audit-files.js';
import { daemonForSuite, MANAGEMENT_TOKEN, startDaemon } from '../../support/daemon.js';
import { RawClient } from '../../support/raw.js';
import { lastAuditOf, problemOf, rawRequest, storedIn } from '../../support/management.js';
import { LAST_MIGRATION, MIGRATIONS } from '../../support/migrations.js';

const ID = '00000000-0000-4000-8000-000000000000';

describe('the management API', () => {
  let project: WireProject;

  const daemon = daemonForSuite();
  before(async () => {
    project = await daemon.createProject();
  });

  const withCredential = (authorization: string | undefined, path = '/manage/projects') =>
    rawRequest(daemon, { path, headers: { authorization } });

  describe('authentication', () => {
    // Separates the attempts of each test.
    beforeEach(async () => {
      // Ten jumps of the clock within one call to a slow disk would look like a disk that does not respond.
      await allCopied(daemon);
      daemon.clock.advance(60_000);
    });

    it('H04 accepts the management token with the scheme in any letter case', async () => {
      for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
        expect((await withCredential(`${scheme} ${MANAGEMENT_TOKEN}`)).status).to.equal(200);
      }
    });

    for (const [what, authorization] of [
      ['no credential', undefined],
      ['an empty one', ''],
      ['the scheme only', 'Bearer'],
      ['another token of the same length', `Bearer ${MANAGEMENT_TOKEN.slice(0, -1)}X`],
      ['another letter case', `Bearer ${MANAGEMENT_TOKEN.toUpperCase()}`],
      ['two spaces', `Bearer  ${MANAGEMENT_TOKEN}`],
      ['a tab', `Bearer\t${MANAGEMENT_TOKEN}`],
      ['no space', `Bearer${MANAGEMENT_TOKEN}`],
      ['something after it', `Bearer ${MANAGEMENT_TOKEN} x`],
      ['a list', `Bearer ${MANAGEMENT_TOKEN}, Bearer x`],
      ['another scheme', `Basic ${Buffer.from(`:${MANAGEMENT_TOKEN}`).toString('base64')}`],
      ['no scheme', MANAGEMENT_TOKEN],
    ] as const) {
      it(`H04 refuses ${what} with 401`, async () => {
        const answer = await withCredential(authorization);
        expect(problemOf(answer, 401, 'management_token_refused')).to.equal('management token missing or wrong');
        expect(answer.headers.get('www-authenticate')).to.equal('Bearer');
      });
    }

    it('H12 every operation needs a credential, whatever its method and query, except the log-in of people', async () => {
      const isPublic = new Set<string>();
      for (const { method, path, permission } of Object.values(operations)) {
        if (permission !== 'public') continue;
        for (const each of [method, ...(method === 'GET' ? ['HEAD'] : [])]) isPublic.add(`${each} ${path}`);
      }
      expect([...isPublic]).to.deep.equal([
        'GET /manage/login',
        'HEAD /manage/login',
        'POST /manage/login/device',
        'POST /manage/login/device/finish',
      ]);
      for (const { method, path } of Object.values<Route>(ROUTES)) {
        for (const each of [method, 'OPTIONS', ...(method === 'GET' ? ['HEAD'] : [])]) {
          if (isPublic.has(`${each} ${path}`)) continue;
          const target = `${path.replace('{id}', ID)}?x=1`;
          const answer = await rawRequest(daemon, {
            method: each,
            path: target,
            headers: { authorization: undefined },
          });
          expect(answer.status, `${each} ${path}`).to.equal(401);
        }
      }
    });

    it('refuses two credentials with 400, even if one is right', async () => {
      const client = await RawClient.to(daemon.url);
      const credential = `Authorization: Bearer ${MANAGEMENT_TOKEN}\r\n`;
      client.send(`GET /manage/projects HTTP/1.1\r\nHost: llmp\r\n${credential}authorization: Bearer x\r\n\r\n`);
      const { status, json } = await client.response();
      expect({ status, code: json.code }).to.deep.equal({ status: 400, code: 'invalid_request' });
      client.destroy();
    });
  });

  describe('methods', () => {
    it('OPTIONS on a path that does not exist is 404', async () => {
      problemOf(await rawRequest(daemon, { method: 'OPTIONS', path: '/manage/nothing' }), 404, 'not_found');
    });
  });

  describe('paths', () => {
    for (const path of ['http://[/manage/tokens', 'http://x/manage/tokens', '//manage/tokens', '*']) {
      it(`are required: the target ${path} is 400`, async () => {
        problemOf(await rawRequest(daemon, { path }), 400, 'malformed_request');
      });
    }
  });

  describe('the request ID', () => {
    const idFor = async (sent: string | undefined, path = '/manage/projects') =>
      (await rawRequest(daemon, { path, headers: { 'x-request-id': sent } })).headers.get('x-request-id');

    for (const sent of ['a', 'Az09_-', 'x'.repeat(64)]) {
      it(`is the client's if it is valid: ${sent}`, async () => {
        expect(await idFor(sent)).to.equal(sent);
        expect(await idFor(sent, '/manage/nothing')).to.equal(sent);
        expect(await idFor(sent, '/live')).to.equal(sent);
      });
    }

    for (const [what, sent] of Object.entries({
      nothing: undefined,
      'an empty one': '',
      'a token': mintSecret(),
      'a token after a prefix': `of-${mintSecret()}`,
      'too many characters': 'x'.repeat(65),
      'two words': 'two words',
      'a semicolon': 'a;b',
      'a non-ASCII letter': 'ä',
      'a path': '../x',
      'a quote': '"',
    })) {
      it(`is a new one if the client sends ${what}`, async () => {
        const given = [await idFor(sent), await idFor(sent)];
        expect(new Set(given).size).to.equal(2);
        for (const id of given)
          expect(id)
            .to.match(/^[A-Za-z0-9_-]{1,64}$/)
            .and.not.to.equal(sent);
      });
    }
  });

  describe('the caller in the audit record', () => {
    const record = async (headers: Record<string, string>) => {
      const answer = await daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: true }, headers);
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
      return lastAuditOf(daemon);
    };

    it('is by default the management token, with the client address and no reason', async () => {
      expect(await record({})).to.include({
        actor: 'management',
        client_ip: '127.0.0.1',
        reported_user: null,
        reason: null,
      });
    });

    for (const actor of ['cli', 'tui', 'admin']) {
      it(`is ${actor} with X-Llmp-Actor`, async () => {
        expect(await record({ 'x-llmp-actor': actor })).to.include({ actor });
      });
    }

    for (const address of ['203.0.113.7', '2001:db8::7']) {
      it(`has the address ${address} with X-Llmp-Client-IP`, async () => {
        expect(await record({ 'x-llmp-client-ip': address })).to.include({ client_ip: address });
      });
    }

    for (const reason of ['leaked', 'Schlüssel 100% verloren, weil …', 'ä'.repeat(200)]) {
      it(`has the reason ${reason.slice(0, 20)} with X-Audit-Reason`, async () => {
        expect(await record({ 'x-audit-reason': encodeURIComponent(reason) })).to.include({ reason });
      });
    }

    for (const user of ['ana@laptop', 'José Ünal@büro', '@runner-7', '界'.repeat(100)]) {
      it(`has the user ${user.slice(0, 20)} with X-Llmp-User`, async () => {
        expect(await record({ 'x-llmp-user': encodeURIComponent(user) })).to.include({ reported_user: user });
      });
    }

    it('has the user as a person types it, and none for an empty header', async () => {
      expect(await record({ 'x-llmp-user': 'ana@laptop' })).to.include({ reported_user: 'ana@laptop' });
      expect(await record({ 'x-llmp-user': '' })).to.include({ reported_user: null });
    });

    it('never has a token as the user', async () => {
      const { token } = await daemon.createToken(project.id);
      const { reported_user } = await record({ 'x-llmp-user': token });
      expect(reported_user).to.be.a('string').and.not.to.include(token.slice(-20));
    });

    it('has the request ID of the response', async () => {
      expect(await record({ 'x-request-id': 'from-the-client' })).to.include({ request_id: 'from-the-client' });
    });

    for (const [name, value] of [
      ['x-llmp-actor', 'root'],
      ['x-llmp-actor', 'system'],
      ['x-llmp-actor', 'constructor'],
      ['x-llmp-actor', ''],
      ['x-audit-reason', 'x'.repeat(201)],
      ['x-audit-reason', '100%'],
      ['x-audit-reason', '%ff'],
      ['x-audit-reason', '%0Aforged'],
      ['x-llmp-user', 'x'.repeat(101)],
      ['x-llmp-user', '100%'],
      ['x-llmp-user', 'ana%0Aroot'],
      ['x-llmp-user', 'ana%E2%80%AEtoor'],
      ['x-llmp-user', 'ana%C2%9B'],
      ['x-llmp-user', 'operator:ana'],
      ['x-llmp-user', ' Person:login.example.com%231'],
      ['x-llmp-client-ip', 'localhost'],
      ['x-llmp-client-ip', '10.0.0.1, 10.0.0.2'],
      ['x-llmp-client-ip', '10.0.0.256'],
      ['x-llmp-client-ip', 'fe80::1%eth0'],
    ] as const) {
      it(`is refused with 400 for ${name}: ${value.slice(0, 20)}, and nothing changes`, async () => {
        const before = await storedIn(daemon);
        const path = `/manage/projects/${project.id}/tokens/revoke`;
        const error = problemOf(
          await daemon.manage('POST', path, undefined, { [name]: value }),
          400,
          'invalid_request',
        );
        expect(error.toLowerCase()).to.match(new RegExp(`^${name} must be `));
        expect(await storedIn(daemon)).to.deep.equal(before);
      });
    }
  });

  describe('an unexpected error', () => {
    it('is 500 without details; the log has them with the same request ID', async () => {
      const own = await startDaemon();
      own.daemon.admission.readBetweenTicks = () => Promise.reject(new TypeError('the inner workings'));
      const answer = await own.manage('GET', '/manage/tokens');
      expect(problemOf(answer, 500, 'internal')).to.equal('internal error');
      const line = own.logged.find((text) => text.includes((answer.body as WireProblem).request_id));
      expect(line).to.include('the inner workings');
      await own.stop();
    });
  });

  describe('migrations', () => {
    it('are listed with the time each was applied; applying none changes nothing and is not recorded', async () => {
      const beganAtMs = Date.now();
      const own = await startDaemon({ makesTables: true });
      const shown = await own.manage('GET', '/manage/migrations');
      expect(shown.body).to.deep.include({ current: LAST_MIGRATION, pending: [] });
      const { applied } = shown.body as WireMigrations;
      expect(applied.map(({ name }) => name)).to.deep.equal(MIGRATIONS);
      for (const { applied_at: at } of applied) expect(Date.parse(at)).to.be.within(beganAtMs, own.clock.now());
      const before = await storedIn(own);
      expect((await own.manage('POST', '/manage/migrations/up')).body).to.deep.equal(shown.body);
      expect(await storedIn(own)).to.deep.equal(before);
      await own.stop();
    });
  });

  describe('health endpoints', () => {
    it('need no credential and report success', async () => {
      const get = (path: string) => rawRequest(daemon, { path, headers: { authorization: undefined } });
      expect(await get('/live')).to.deep.include({ status: 200, body: { status: 'ok' } });
      expect(await get('/ready')).to.deep.include({ status: 200 });
      const health = (await get('/health')).body as Record<string, unknown>;
      expect(health).to.deep.include({
        status: 'ok',
        checks: { database: 'ok', redis: 'off', event_bus: 'ok', memory: 'ok' },
      });
      expect(health.uptime_s).to.be.a('number');
    });

    it('return 503 while migrations are pending, and so does every management request that needs the tables', async () => {
      const own = await startDaemon({ env: { AUTO_MIGRATE: 'false' } });
      expect(await own.manage('GET', '/ready')).to.deep.include({
        status: 503,
        body: { status: 'not ready', missing: ['pending migrations'], degraded: [] },
      });
      expect((await own.manage('GET', '/live')).status).to.equal(200);
      problemOf(await own.manage('GET', '/manage/projects'), 503, 'unavailable');
      expect((await own.call(mintSecret())).status).to.equal(503);

      const pending = await own.manage('GET', '/manage/migrations');
      expect(pending.body).to.deep.equal({
        current: null,
        pending: MIGRATIONS,
        applied: [],
      });
      const applied = await own.manage('POST', '/manage/migrations/up');
      expect(applied.body).to.deep.include({ current: LAST_MIGRATION, pending: [] });
      expect(await lastAuditOf(own)).to.include({ action: 'migrations.up', outcome: 'success' });
      expect((await own.manage('GET', '/ready')).status).to.equal(200);
      await own.createProject();
      await own.stop();
    });
  });
});
