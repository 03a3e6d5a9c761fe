import { expect } from 'chai';
import { ConnectionError } from 'sequelize';
import type { WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import { startDaemon, type TestDaemon, UPSTREAM_KEY } from '../../support/daemon.js';
import { problemOf, storedIn } from '../../support/management.js';
import { type DatabaseOutage, makeDatabaseUnreachable } from '../../support/database-outage.js';

describe('the management API while the database is unavailable', () => {
  let daemon: TestDaemon;
  let project: WireProject;
  let token: WireTokenCreated;
  let outage: DatabaseOutage;
  let before: Record<string, object[]>;

  beforeEach(async () => {
    daemon = await startDaemon();
    project = await daemon.createProject();
    token = await daemon.createToken(project.id);
    before = await storedIn(daemon);
    outage = makeDatabaseUnreachable(daemon);
  });
  afterEach(async () => {
    outage.end();
    await daemon.stop();
  });

  const ask = (method: string, path: string, body?: object) =>
    daemon.manage(method, path.replace('<project>', project.id).replace('<token>', token.id), body);

  const unavailable: [method: string, path: string, body?: () => object, what?: string][] = [
    ['POST', '/manage/projects', () => ({ name: 'Beta', api_key: UPSTREAM_KEY })],
    ['GET', '/manage/projects'],
    ['GET', '/manage/projects/<project>'],
    ['PATCH', '/manage/projects/<project>', () => ({ is_active: false })],
    ['DELETE', '/manage/projects/<project>'],
    ['POST', '/manage/projects/<project>/tokens/revoke'],
    ['POST', '/manage/tokens', () => ({ project_id: project.id })],
    ['GET', '/manage/tokens'],
    ['GET', '/manage/tokens/<token>'],
    ['POST', '/manage/tokens/lookup', () => ({ token: token.token })],
    ['PATCH', '/manage/tokens/<token>', () => ({ is_active: false })],
    ['DELETE', '/manage/tokens/<token>'],
    ['GET', '/manage/usage'],
    ['POST', '/manage/cache/purge', () => ({ project_id: project.id })],
    ['POST', '/manage/cache/purge', () => ({ project_id: project.id, dry_run: true }), ' in a dry run'],
    ['POST', '/manage/cache/purge', () => ({ all: true }), ' of everything'],
    ['GET', '/manage/audit'],
    ['GET', '/manage/audit/<token>'],
    ['GET', '/manage/audit/stream'],
    ['GET', '/manage/migrations'],
    ['POST', '/manage/migrations/up'],
  ];
  for (const [method, path, body, what = ''] of unavailable) {
    it(`${method} ${path}${what} is 503 with Retry-After, and nothing is changed`, async () => {
      const answer = await ask(method, path, body?.());
      problemOf(answer, 503, 'unavailable');
      expect(answer.headers.get('retry-after')).to.match(/^[1-9]\d*$/);
      outage.end();
      expect(await storedIn(daemon)).to.deep.equal(before);
    });
  }

  for (const path of ['/manage/cache', '/manage/status', '/manage/openapi.json']) {
    it(`GET ${path} works without the database`, async () => {
      expect((await ask('GET', path)).status).to.equal(200);
    });
  }

  it('a mistyped secret is 404 as usual, without a database lookup', async () => {
    const misspelt = `${token.token.slice(0, -1)}${token.token.endsWith('0') ? '1' : '0'}`;
    const answer = await ask('POST', '/manage/tokens/lookup', { token: misspelt });
    expect(problemOf(answer, 404, 'not_found')).to.equal('token not found');
  });

  it('applying migrations is 503 if the database fails in between, and works once it is available again', async () => {
    const own = await startDaemon({ env: { AUTO_MIGRATE: 'false' } });
    let asked = 0;
    const gone = makeDatabaseUnreachable(own, (reach) => {
      asked += 1;
      return asked === 1 ? reach() : Promise.reject(new ConnectionError(new Error('the database is unavailable')));
    });
    problemOf(await own.manage('POST', '/manage/migrations/up'), 503, 'unavailable');
    expect(asked).to.be.greaterThan(1);
    gone.end();
    expect((await own.manage('POST', '/manage/migrations/up')).body).to.deep.include({ pending: [] });
    await own.stop();
  });
});
