import { expect } from 'chai';
import type { EventQuery, WireEvent, WireRequestEvent } from '../../../daemon/api/contract.js';
import type { RequestEnded } from '../../../daemon/core/events.js';
import { eventually } from '../../support/eventually.js';
import { Follower } from '../../support/follower.js';
import { pagesOf, problemOf } from '../../support/management.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { SOME_REQUEST } from '../../support/request-follower.js';

const MINUTE_MS = 60_000;

const REFUSED = { status: 429, code: 'request_limit_reached', outcome: 'refused', isForwarded: false } as const;
/** Requests that differ in each property that a filter reads, oldest first. */
const REQUESTS: Readonly<Record<string, Partial<RequestEnded>>> = {
  good: { model: 'gpt-4o-2024-08-06', durationMs: 900 },
  slow: { model: 'Claude-3', durationMs: 2_500 },
  capped: REFUSED,
  inactive: { ...REFUSED, status: 403, code: 'project_inactive', model: 'gpt-4o-mini' },
  unknown: { status: 404, outcome: 'upstream_refused', model: 'o9' },
  broken: { status: 502, code: 'upstream_unreachable', outcome: 'upstream_error', durationMs: 10_000, projectId: 'q' },
  left: { status: 499, outcome: 'client_closed', tokenId: 'u' },
};

describe('stored events', function () {
  this.timeout(30_000);
  let scene: ProxyFixture;
  let followers: Follower<WireEvent>[] = [];

  beforeEach(async () => {
    scene = await ProxyFixture.open();
    followers = [];
  });
  afterEach(async () => {
    await Promise.all(followers.map((it) => it.leave()));
    await scene.close();
  });

  const publish = (requestId: string, fields: Partial<RequestEnded> = {}) => {
    const timeMs = scene.daemon.clock.now();
    scene.daemon.daemon.shared.bus!.publish({
      kind: 'request',
      ended: { ...SOME_REQUEST, timeMs, requestId, ...fields },
    });
  };
  const publishAll = () => {
    for (const [name, fields] of Object.entries(REQUESTS)) publish(name, fields);
  };
  const namesOf = (events: readonly WireEvent[]) => events.map((it) => it.request_id);
  const pages = (query: EventQuery) =>
    pagesOf<WireEvent>(
      scene.daemon,
      `/manage/events?${new URLSearchParams(query as Record<string, string>).toString()}`,
    );
  const list = async (query: EventQuery) => (await pages(query)).flat();
  async function follow(query: Record<string, string>, lastEventId?: string): Promise<Follower<WireEvent>> {
    const follower = new Follower<WireEvent>(
      scene.daemon.url,
      (client, options) => client.events(query, options),
      lastEventId,
    );
    followers.push(follower);
    await follower.opened;
    return follower;
  }

  for (const [query, expected] of [
    [{ code: 'request_limit_reached' }, ['capped']],
    [{ code: 'project_inactive,upstream_unreachable' }, ['inactive', 'broken']],
    [{ code: '!project_inactive,upstream_unreachable' }, ['good', 'slow', 'capped', 'unknown', 'left']],
    [{ outcome: 'refused' }, ['capped', 'inactive']],
    [{ outcome: '!ok' }, ['capped', 'inactive', 'unknown', 'broken', 'left']],
    [{ model: 'GPT-4o' }, ['good', 'inactive']],
    [{ model: 'mini,claude' }, ['slow', 'inactive']],
    [{ model: '!gpt-4o,o9' }, ['slow', 'capped', 'broken', 'left']],
    [{ project_id: 'q' }, ['broken']],
    [{ token_id: 'u' }, ['left']],
    [{ token_id: 't', status: '4xx' }, ['capped', 'inactive', 'unknown']],
    [{ status: '4xx,5xx' }, ['capped', 'inactive', 'unknown', 'broken', 'left']],
    [{ status: '429,502' }, ['capped', 'broken']],
    [{ took_over: '900ms' }, ['slow', 'broken']],
    [{ took_over: '2s', outcome: 'ok' }, ['slow']],
    [{ status: '4xx', outcome: '!refused', kind: 'request.completed' }, ['unknown', 'left']],
  ] as const) {
    it(`are filtered by ${JSON.stringify(query)}, in the list and in the stream`, async () => {
      publishAll();
      expect(namesOf(await list(query))).to.deep.equal([...expected].reverse());
      const follower = await follow({ ...query, since: '1m' });
      await eventually('the stored events arrive', () => follower.items.length === expected.length);
      publishAll();
      await eventually('the new events arrive', () => follower.items.length === 2 * expected.length);
      expect(namesOf(follower.items)).to.deep.equal([...expected, ...expected]);
    });
  }

  it('include changes, which no filter for requests matches', async () => {
    expect((await list({})).map(({ kind }) => kind)).to.deep.equal(['token.created', 'project.changed']);
    for (const query of [{ code: '!x' }, { outcome: '!ok' }, { model: '!x' }, { took_over: '0ms' }])
      expect(await list(query), JSON.stringify(query)).to.be.empty;
  });

  it('are listed for a period', async () => {
    for (const name of ['a', 'b', 'c']) {
      publish(name);
      scene.daemon.clock.advance(10 * MINUTE_MS);
    }
    publish('d');
    const only = { kind: 'request.completed' };
    expect(namesOf(await list({ ...only, since: '15m' }))).to.deep.equal(['d', 'c']);
    expect(namesOf(await list({ ...only, until: '15m' }))).to.deep.equal(['b', 'a']);
    expect(namesOf(await list({ ...only, since: '25m', until: '5m' }))).to.deep.equal(['c', 'b']);
    const since = new Date(scene.daemon.clock.now() - 15 * MINUTE_MS).toISOString();
    expect(namesOf(await list({ ...only, since }))).to.deep.equal(['d', 'c']);
    problemOf(await scene.daemon.manage('GET', '/manage/events?since=1m&until=1h'), 400, 'invalid_request');
  });

  it('are streamed since a time; a reconnecting client continues after its last event instead', async () => {
    publish('old');
    scene.daemon.clock.advance(20 * MINUTE_MS);
    publish('a');
    publish('b');
    const query = { kind: 'request.completed', since: '15m' };
    const first = await follow(query);
    await eventually('the stored events arrive', () => first.items.length === 2);
    publish('c');
    await eventually('the new event arrives', () => first.items.length === 3);
    expect(namesOf(first.items)).to.deep.equal(['a', 'b', 'c']);
    scene.daemon.clock.advance(60 * MINUTE_MS);
    const again = await follow(query, first.positions[0]);
    await eventually('the rest arrives', () => again.items.length === 2);
    expect(namesOf(again.items)).to.deep.equal(['b', 'c']);
  });

  it('are listed page by page, each once', async () => {
    for (let n = 0; n < 25; n++) publish(`n${n}`, n % 5 === 0 ? REFUSED : {});
    const lengths = async (query: EventQuery) => (await pages(query)).map(({ length }) => length);
    expect(await lengths({ kind: 'request.completed', limit: '10' })).to.deep.equal([10, 10, 5]);
    expect(await lengths({ outcome: 'refused', limit: '5' })).to.deep.equal([5]);
    expect(namesOf(await list({ outcome: 'refused', limit: '2' }))).to.deep.equal(['n20', 'n15', 'n10', 'n5', 'n0']);
  });

  it('fill a page of limited size, however large they are', async () => {
    const responseBody = 'x'.repeat(400_000);
    for (let n = 0; n < 30; n++) publish(`n${n}`, { responseBody });
    const all = await pages({ kind: 'request.completed' });
    expect(all.map(({ length }) => length)).to.deep.equal([10, 10, 10]);
    expect(new Set(namesOf(all.flat())).size).to.equal(30);
  });

  it('have a cursor for this list only', async () => {
    publishAll();
    const cursorOf = (id: string) => Buffer.from(JSON.stringify(['x', 0, id])).toString('base64url');
    for (const cursor of ['x', cursorOf('1-1')])
      problemOf(await scene.daemon.manage('GET', `/manage/events?cursor=${cursor}`), 400, 'invalid_request');
  });

  it('say why llmp refused a request, without secrets', async () => {
    const capped = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
    await scene.get(capped.token);
    await scene.get(capped.token);
    const revoked = await scene.daemon.createToken(scene.project.id);
    await scene.daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
    await scene.get(revoked.token);
    await scene.provider.stop();
    await scene.get();
    await eventually('all events are stored', async () => (await list({ outcome: '!ok' })).length === 3);
    const events = (await list({ outcome: '!ok' })) as WireRequestEvent[];
    expect(events.reverse().map(({ status, code, error }) => [status, code, error])).to.deep.equal([
      [429, 'request_limit_reached', 'token request limit reached: ask for another token'],
      [401, 'unauthorized', 'the token is revoked'],
      [502, 'upstream_unreachable', 'upstream unreachable (ECONNREFUSED)'],
    ]);
    expect((await list({ outcome: 'ok' })).map((event) => 'error' in event && event.error)).to.deep.equal([null]);
    publish('echoed', { ...REFUSED, problem: `key sk-${'a'.repeat(40)} is wrong` });
    const [echoed] = (await list({ limit: '1' })) as WireRequestEvent[];
    expect(echoed?.error).to.equal('key ******** is wrong');
  });

  it('are not available when they are off', async () => {
    const off = await ProxyFixture.open({ LLM_PROXY_EVENT_BUS: 'off' });
    problemOf(await off.daemon.manage('GET', '/manage/events'), 404, 'not_found');
    await off.close();
  });
});
