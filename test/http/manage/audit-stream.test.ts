import { expect } from 'chai';
import type { AuditStreamQuery, WireAuditRecord } from '../../../daemon/api/contract.js';
import { eventually } from '../../support/eventually.js';
import { Follower } from '../../support/follower.js';
import { bodyOf, problemOf, rawRequest } from '../../support/management.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

class RecordFollower extends Follower<WireAuditRecord> {
  constructor(server: string, query: AuditStreamQuery, lastEventId?: string) {
    super(server, (client, options) => client.auditStream(query, options), lastEventId);
  }

  get actions(): string[] {
    return this.items.map(({ action }) => action);
  }
}

describe('/manage/audit/stream', () => {
  let scene: ProxyFixture;
  let followers: RecordFollower[] = [];

  beforeEach(async () => {
    scene = await ProxyFixture.open();
  });
  afterEach(async () => {
    await Promise.all(followers.map((it) => it.leave()));
    followers = [];
    await eventually('no stream is open', () => scene.daemon.daemon.streams.size === 0);
    await scene.close();
  });

  async function follow(query: AuditStreamQuery = {}, lastEventId?: string): Promise<RecordFollower> {
    const { streams } = scene.daemon.daemon;
    const before = streams.size;
    const follower = new RecordFollower(scene.daemon.url, query, lastEventId);
    followers.push(follower);
    await eventually('it follows', () => streams.size > before);
    return follower;
  }
  const setActive = (isActive: boolean, headers: Record<string, string> = {}) =>
    scene.daemon.manage('PATCH', `/manage/tokens/${scene.token.id}`, { is_active: isActive }, headers);
  const listed = async () =>
    (await bodyOf<WireAuditRecord[]>(scene.daemon.manage('GET', '/manage/audit?limit=1000'))).reverse();

  it('begins with the next record', async () => {
    await setActive(false);
    const follower = await follow();
    await setActive(true);
    await eventually('the record is received', () => follower.items.length > 0);
    expect(follower.actions).to.deep.equal(['token.reactivate']);
  });

  it('sends records of changes as in the list, including denied ones, each with its number, and none of uses', async () => {
    const follower = await follow();
    await scene.get();
    await setActive(false, { 'x-audit-reason': 'leaked' });
    await scene.daemon.manage('DELETE', `/manage/projects/${scene.project.id}`);
    await scene.daemon.daemon.usage.flush();
    await setActive(true);
    await eventually('the last record is received', () => follower.actions.at(-1) === 'token.reactivate');
    expect(follower.actions).to.deep.equal(['token.revoke', 'project.delete_refused', 'token.reactivate']);
    expect(follower.positions).to.deep.equal(['3', '4', '5']);
    const changes = (await listed()).filter(({ action }) => action !== 'token.use');
    expect(follower.items).to.deep.equal(changes.slice(2));
  });

  it('continues after the last record of a client, however many followed, and then with new ones', async () => {
    await Promise.all(Array.from({ length: 220 }, (_, n) => setActive(n % 2 === 1)));
    const all = await listed();
    for (const [lastEventId, missed] of [
      ['0', all],
      ['2', all.slice(2)],
      ['221', all.slice(221)],
    ] as const) {
      const follower = await follow({}, lastEventId);
      await eventually('it has the missed records', () => follower.items.length >= missed.length);
      expect(follower.items).to.deep.equal(missed);
    }
    await setActive(true);
    await eventually('all records are received', () => followers.every(({ positions }) => positions.at(-1) === '223'));
  }).timeout(60_000);

  it('waits for new records if the client has all existing ones', async () => {
    const follower = await follow({}, '2');
    await setActive(false);
    await eventually('the record is received', () => follower.items.length > 0);
    expect(follower.actions).to.deep.equal(['token.revoke']);
  });

  it('sends only records that match the filters', async () => {
    const other = await scene.daemon.createToken((await scene.daemon.createProject()).id);
    const queries: AuditStreamQuery[] = [
      { action: 'token.revoke' },
      { actor: 'cli' },
      { outcome: 'denied' },
      { project_id: other.project_id },
      { token_id: scene.token.id },
      { token_id: scene.token.id, actor: 'cli' },
      { action: 'project.create', outcome: 'denied' },
    ];
    const each = queries.map((query) => new RecordFollower(scene.daemon.url, query, '4'));
    followers.push(...each);
    const everything = await follow({}, '4');
    await setActive(false);
    await setActive(true, { 'x-llmp-actor': 'cli' });
    await scene.daemon.manage('DELETE', `/manage/tokens/${other.id}`, undefined, { 'x-llmp-actor': 'cli' });
    await scene.daemon.manage('DELETE', `/manage/projects/${scene.project.id}`);
    const shown = (it: RecordFollower) => it.positions.join();
    await eventually(
      'all records are received',
      () => shown(everything) === '5,6,7,8' && each.slice(0, 6).every((it) => it.items.length > 0),
    );
    await eventually('those too', () => each.map(shown).join(' ') === '5,7 6,7 8 7 5,6 6 ');
  });

  for (const id of ['x', '-1', '1.5', '0x1', '1 1', '9'.repeat(16), 'c1']) {
    it(`refuses ${JSON.stringify(id)} as a record ID with 400`, async () => {
      const answer = await rawRequest(scene.daemon, {
        path: '/manage/audit/stream',
        headers: { 'last-event-id': id },
      });
      expect(problemOf(answer, 400, 'invalid_request')).to.equal(
        'Last-Event-ID must be the ID of an event of this stream',
      );
    });
  }

  for (const query of ['action=token', 'actor=root', 'outcome=ok', 'project_id=', 'token_id=']) {
    it(`refuses ?${query} with 400`, async () => {
      const answer = await scene.daemon.manage('GET', `/manage/audit/stream?${query}`);
      expect(problemOf(answer, 400, 'invalid_request')).to.match(new RegExp(`^${query.split('=')[0]} must be `));
    });
  }

  for (const query of ['since=2030-01-01T00:00:00Z', 'q=a', 'limit=1', 'cursor=x']) {
    it(`has no time range and no pages: ?${query} is 400`, async () => {
      const answer = await scene.daemon.manage('GET', `/manage/audit/stream?${query}`);
      expect(problemOf(answer, 400, 'invalid_request')).to.equal(`unknown query parameter: ${query.split('=')[0]}`);
    });
  }

  it('ends when the daemon stops, without delaying it', async () => {
    const own = await ProxyFixture.open({ SHUTDOWN_GRACE: '60s' });
    const follower = new RecordFollower(own.daemon.url, {}, undefined);
    await eventually('it follows', () => own.daemon.daemon.streams.size === 1);
    const beganAt = performance.now();
    await own.daemon.stop();
    expect(performance.now() - beganAt).to.be.below(10_000);
    await follower.ended();
    await own.provider.stop();
  });
});
