import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { canary } from '../support/canaries.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import type { TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { DaemonGroup } from '../support/daemon-group.js';

const NAMES: Record<ServerKind, string> = { postgres: 'PostgreSQL', mysql: 'MariaDB' };

for (const kind of ['postgres', 'mysql'] as const) {
  describe(`several instances on ${NAMES[kind]}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
    });

    // With Redis as well: test/deployments.
    describe('connected only by the database', () => {
      behave(() => DaemonGroup.start(server, { count: 3 }));
    });

    it('F18 started concurrently on an empty database migrate it once', async () => {
      const several = await DaemonGroup.start(server, { count: 4 });
      for (const daemon of several.daemons) expect((await daemon.manage('GET', '/ready')).status).to.equal(200);
      const body = (await several.at(0).manage('GET', '/manage/migrations')).body as unknown;
      expect((body as { pending: unknown[] }).pending).to.deep.equal([]);
      await several.stop();
    });

    it('with separate caches: a purge or a new upstream key on one removes the entries on all', async () => {
      const several = await DaemonGroup.start(server, { env: { HTTP_CACHE_ENABLED: 'true' } });
      const [one, other] = [several.at(0), several.at(1)];
      const project = await one.createProject();
      const { token } = await one.createToken(project.id);
      const cacheOf = async (daemon: TestDaemon) => (await daemon.call(token)).headers.get('x-proxy-cache');
      const entriesOf = async (daemon: TestDaemon) =>
        ((await daemon.manage('GET', '/manage/cache')).body as { entries: number }).entries;
      const purges: [string, () => Promise<unknown>][] = [
        ['all', () => one.manage('POST', '/manage/cache/purge', { all: true })],
        ['the project', () => one.manage('POST', '/manage/cache/purge', { project_id: project.id })],
        ['another key', () => one.manage('PATCH', `/manage/projects/${project.id}`, { api_key: canary('upstream') })],
        [
          'another key, while it is not active',
          async () => {
            const path = `/manage/projects/${project.id}`;
            await one.manage('PATCH', path, { api_key: canary('upstream'), is_active: false });
            await eventually('it is removed at once', async () => (await entriesOf(other)) === 0);
            await one.manage('PATCH', path, { is_active: true });
          },
        ],
        ['a resource', () => one.manage('POST', '/manage/cache/purge', { method: 'GET', url: '/v1/models' })],
      ];
      for (const [what, purge] of purges) {
        // A change that it learns of late empties it once more.
        await eventually('it is in the cache', async () => {
          return (await cacheOf(other)) === 'hit' && (await entriesOf(other)) > 0;
        });
        await purge();
        await eventually(`${what} is gone`, async () => (await entriesOf(other)) === 0);
      }
      await several.stop();
    });
  });
}

function behave(start: () => Promise<DaemonGroup>): void {
  let several: DaemonGroup;
  let one: TestDaemon;
  let other: TestDaemon;
  let project: WireProject;
  let token: WireTokenCreated;

  before(async () => {
    several = await start();
    one = several.at(0);
    other = several.at(1);
  });
  after(() => several.stop());
  beforeEach(async () => {
    several.provider.answer = undefined;
    several.provider.received.length = 0;
    project = await one.createProject();
    token = await one.createToken(project.id);
  });

  const statusAt = async (daemon: TestDaemon, secret = token.token) => (await daemon.call(secret)).status;

  it('accept a token as soon as one of them has issued it', async () => {
    for (const daemon of several.daemons) expect(await statusAt(daemon)).to.equal(200);
  });

  it('refuse a token that one of them revoked, and accept it again after reactivation', async () => {
    for (const daemon of several.daemons) expect(await statusAt(daemon)).to.equal(200);
    for (const isActive of [false, true, false]) {
      expect((await one.manage('PATCH', `/manage/tokens/${token.id}`, { is_active: isActive })).status).to.equal(200);
      expect(await statusAt(one)).to.equal(isActive ? 200 : 401);
      await eventually('the others know', async () => (await statusAt(other)) === (isActive ? 200 : 401), 2_000);
    }
  });

  it('F15 refuse a project that one of them deactivated, and accept it again, with its tokens unchanged', async () => {
    expect(await statusAt(other)).to.equal(200);
    for (const [isActive, status] of [
      [false, 403],
      [true, 200],
    ] as const) {
      await one.manage('PATCH', `/manage/projects/${project.id}`, { is_active: isActive });
      await eventually('the other knows', async () => (await statusAt(other)) === status, 2_000);
    }
    expect((await other.token(token.id)).is_active).to.equal(true);
  });

  it('end a request in flight on another instance when its token is revoked, even if it is reactivated at once', async () => {
    several.provider.answer = (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: 1\n\n');
    };
    const response = await other.call(token.token);
    expect(response.status).to.equal(200);
    const read = response.text().then(
      () => 'whole',
      () => 'cut',
    );
    await one.manage('DELETE', `/manage/tokens/${token.id}`);
    await one.manage('PATCH', `/manage/tokens/${token.id}`, { is_active: true });
    expect(await read).to.equal('cut');
    await eventually('it is recorded', () => other.ended.some(({ outcome }) => outcome === 'revoked'));
  });

  it('give back units that are not drawn', async () => {
    const capped = await one.createToken(project.id, { max_requests: 1_000 });
    for (const daemon of several.daemons) expect(await statusAt(daemon, capped.token)).to.equal(200);
    const unspent = () => several.daemons.some(({ daemon }) => daemon.admission.size.leasedUnits > 0);
    expect(unspent()).to.equal(true);
    await eventually('no instance holds any', () => !unspent());
  });
}
