import { expect } from 'chai';
import type {
  EventStreamQuery,
  WireChangeEvent,
  WireEvent,
  WireProblem,
  WireRequestEvent,
} from '../../daemon/api/contract.js';
import type { PublishableEvent, RequestEnded } from '../../daemon/core/events.js';
import { mintSecret } from '../../daemon/core/token.js';
import { eventText, MAX_EVENT_BYTES } from '../../daemon/store/event-text.js';
import { uniqueId } from '../../daemon/store/event-text.js';
import { eventually } from '../support/eventually.js';
import { Follower } from '../support/follower.js';
import { SOME_REQUEST } from '../support/request-follower.js';
import { problemOf } from '../support/inspected-events.js';
import { ProxyFixture } from '../support/proxy-fixture.js';

class EventFollower extends Follower<WireEvent> {
  constructor(server: string, query: EventStreamQuery = {}, lastEventId?: string) {
    super(server, (client, options) => client.events(query, options), lastEventId);
  }

  get requests(): WireRequestEvent[] {
    return this.items.filter((it) => it.kind === 'request.completed');
  }

  get changes(): WireChangeEvent[] {
    return this.items.filter((it): it is WireChangeEvent => it.kind !== 'request.completed' && !('budget' in it));
  }
}

describe('events', function () {
  this.timeout(30_000);
  let scene: ProxyFixture;
  let followers: EventFollower[] = [];

  before(async () => {
    scene = await ProxyFixture.open();
  });
  beforeEach(() => scene.begin());
  afterEach(async () => {
    await Promise.all(followers.map((it) => it.leave()));
    followers = [];
    await eventually('there are no followers', () => scene.daemon.daemon.streams.size === 0);
    await scene.end();
  });
  after(() => scene.close());

  async function follow(query: EventStreamQuery = {}, lastEventId?: string): Promise<EventFollower> {
    const { streams } = scene.daemon.daemon;
    const before = streams.size;
    const follower = new EventFollower(scene.daemon.url, query, lastEventId);
    followers.push(follower);
    await eventually('the follower is connected', () => streams.size > before);
    return follower;
  }

  describe('of requests', () => {
    it('contain the facts of a completed request', async () => {
      const follower = await follow();
      const answer = await scene.send(scene.post({ 'X-Request-ID': 'mine' }, 'hello'));
      await eventually('the event arrives', () => follower.items.length === 1);
      const [event] = follower.requests;
      expect(event).to.deep.include({
        schema: 1,
        kind: 'request.completed',
        request_id: 'mine',
        project_id: scene.project.id,
        token_id: scene.token.id,
        project_name: scene.project.name,
        token_name: null,
        method: 'POST',
        path: '/v1/echo',
        status: 200,
        code: null,
        outcome: 'ok',
        cache: 'miss',
        bytes_in: 5,
        bytes_out: 5,
        streamed: false,
        usage: {
          ...{ prompt_tokens: null, completion_tokens: null, total_tokens: null, source: 'missing' },
          ...{ cache_read_tokens: null, cache_write_tokens: null },
        },
        cost_usd: null,
        request_body: null,
        response_body: null,
      });
      expect(answer.status).to.equal(200);
      expect(event!.duration_ms).to.be.at.least(event!.first_byte_ms!);
      expect(event!.first_byte_ms).to.be.at.least(event!.upstream_ms!);
      expect(Math.abs(Date.parse(event!.time) - scene.daemon.clock.now())).to.be.below(60_000);
    });

    it('are published for requests with a known token, including refused ones, and for no others', async () => {
      const capped = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
      const revoked = await scene.daemon.createToken(scene.project.id);
      await scene.daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
      const follower = await follow();
      await scene.get(null);
      await scene.get('sk-wt-no-such-token');
      await scene.send('TRACE /v1/models HTTP/1.1\r\nHost: x\r\n\r\n');
      await scene.get(capped.token);
      await scene.get(capped.token);
      await scene.get(revoked.token);
      await scene.get();
      await eventually('the last event arrives', () => follower.items.at(-1)?.token_id === scene.token.id);
      expect(
        follower.requests.map(({ token_id: id, status, code, outcome }) => [id, status, code, outcome]),
      ).to.deep.equal([
        [capped.id, 200, null, 'ok'],
        [capped.id, 429, 'request_limit_reached', 'refused'],
        [revoked.id, 401, 'unauthorized', 'refused'],
        [scene.token.id, 200, null, 'ok'],
      ]);
    });

    it('contain the name of the token, and the name that the project has when the request ends', async () => {
      const project = await scene.daemon.createProject();
      const { id, token } = await scene.daemon.createToken(project.id, { name: 'nightly tests' });
      const follower = await follow({ kind: 'request.completed' });
      await scene.get(token);
      await scene.daemon.manage('PATCH', `/manage/projects/${project.id}`, { name: `${project.name}, renamed` });
      await scene.get(token);
      await scene.daemon.manage('DELETE', `/manage/tokens/${id}`);
      await scene.get(token);
      await eventually('all events arrive', () => follower.items.length === 3);
      expect(follower.items.map(({ token_name, project_name }) => [token_name, project_name])).to.deep.equal([
        ['nightly tests', project.name],
        ['nightly tests', `${project.name}, renamed`],
        ['nightly tests', `${project.name}, renamed`],
      ]);
    });
  });

  describe('of changes', () => {
    it('are published for each change that was made, and for none that was refused', async () => {
      const follower = await follow();
      const manage: typeof scene.daemon.manage = (...given) => scene.daemon.manage(...given);
      const project = await scene.daemon.createProject();
      await manage('PATCH', `/manage/projects/${project.id}`, { name: `${project.name}, again` });
      const token = await scene.daemon.createToken(project.id, { name: 'nightly tests' });
      await scene.daemon.createToken(project.id);
      await manage('DELETE', `/manage/tokens/${token.id}`, undefined, {
        'X-Llmp-Actor': 'cli',
        'X-Llmp-User': 'ana@laptop',
      });
      await manage('PATCH', `/manage/tokens/${token.id}`, { is_active: true });
      await manage('POST', `/manage/projects/${project.id}/tokens/revoke`);
      await manage('DELETE', `/manage/projects/${project.id}`);
      await manage('POST', '/manage/tokens', { project_id: 'x' });
      await manage('POST', '/manage/cache/purge', { all: true, dry_run: true });
      await manage('POST', '/manage/cache/purge', { all: true });
      await eventually('the last event arrives', () => follower.items.at(-1)?.kind === 'cache.purged');
      expect(follower.changes.map((it) => [it.kind, it.project_id, it.token_id, it.actor, it.count])).to.deep.equal([
        ['project.changed', project.id, null, 'management', null],
        ['project.changed', project.id, null, 'management', null],
        ['token.created', project.id, token.id, 'management', null],
        ['token.created', project.id, follower.changes[3]?.token_id, 'management', null],
        ['token.revoked', project.id, token.id, 'cli', null],
        ['token.reactivated', project.id, token.id, 'management', null],
        ['token.revoked', project.id, null, 'management', 2],
        ['cache.purged', null, null, 'management', 0],
      ]);
      expect(follower.changes.map(({ user }) => user)).to.deep.equal(
        follower.changes.map(({ actor }) => (actor === 'cli' ? 'ana@laptop' : null)),
      );
      const renamed = `${project.name}, again`;
      expect(follower.changes.map(({ project_name, token_name }) => [project_name, token_name])).to.deep.equal([
        [project.name, null],
        [renamed, null],
        [renamed, 'nightly tests'],
        [renamed, null],
        [renamed, 'nightly tests'],
        [renamed, 'nightly tests'],
        [renamed, null],
        [null, null],
      ]);
    });
  });

  describe('/manage/events/stream', () => {
    it('begins with the next event', async () => {
      await scene.get();
      const follower = await follow();
      await scene.get(scene.secret, { 'X-Request-ID': 'second' });
      await eventually('the event arrives', () => follower.items.length === 1);
      expect(follower.requests[0]!.request_id).to.equal('second');
    });

    it('refuses an invalid event ID', async () => {
      for (const id of ['x', '1', '1-', '1-1-1', '-1-1', `1-${'1'.repeat(40)}`]) {
        const answer = await scene.daemon.manage('GET', '/manage/events/stream', undefined, { 'last-event-id': id });
        expect([answer.status, (answer.body as WireProblem).code], id).to.deep.equal([400, 'invalid_request']);
      }
    });

    it('refuses filters that no event can match', async () => {
      for (const query of [
        'status=6xx',
        'status=4XX',
        'status=',
        'status=4xx,',
        'kind=x',
        'since=1',
        'token_id=',
        'code=A',
        'outcome=x',
        'model=',
        'took_over=2h',
        'until=1h',
      ]) {
        const answer = await scene.daemon.manage('GET', `/manage/events/stream?${query}`);
        expect([answer.status, (answer.body as WireProblem).code], query).to.deep.equal([400, 'invalid_request']);
      }
    });

    it('sends the event of a streamed response when the stream has ended', async () => {
      const follower = await follow({ kind: 'request.completed' });
      const { client } = await scene.midStream();
      expect(follower.items).to.be.empty;
      client.destroy();
      await eventually('the event arrives', () => follower.items.length === 1);
      expect(follower.requests[0]).to.include({ streamed: true, outcome: 'client_closed', status: 200 });
    });
  });

  it('are not available when they are off: the stream returns 404, and /health reports it', async () => {
    const off = await ProxyFixture.open({ LLM_PROXY_EVENT_BUS: 'off' });
    await off.get();
    const answer = await off.daemon.manage('GET', '/manage/events/stream');
    expect([answer.status, (answer.body as WireProblem).error]).to.deep.equal([
      404,
      'no events are published: LLM_PROXY_EVENT_BUS is off',
    ]);
    const health = await fetch(`${off.daemon.url}/health`);
    expect(await health.json()).to.deep.include({
      checks: { database: 'ok', redis: 'off', event_bus: 'off', memory: 'ok' },
    });
    expect(off.daemon.daemon.shared.bus).to.equal(null);
    await off.close();
  });
});

describe('the text of an event', () => {
  const eventOf = (fields: Partial<RequestEnded>): WireRequestEvent => {
    const text = eventText({ kind: 'request', ended: { ...SOME_REQUEST, ...fields } }, 'i');
    expect(problemOf(text)).to.equal(null);
    expect(Buffer.byteLength(text)).to.be.at.most(MAX_EVENT_BYTES);
    expect(Buffer.from(text).toString()).to.equal(text); // Everything is valid UTF-8.
    return JSON.parse(text) as WireRequestEvent;
  };

  it('says what is known of the cost', () => {
    const costs = [0, null, 1, 1_500_000_000, 123_456_789_012].map((costNano) => eventOf({ costNano }).cost_usd);
    expect(costs).to.deep.equal(['0.00', null, '0.000000001', '1.50', '123.456789012']);
  });

  it('is valid JSON whatever a client sends', () => {
    for (const odd of [
      '"',
      '\\',
      '\n',
      '\u0000',
      '\u001f',
      '\u007f',
      '\u2028',
      'é',
      '\u{1f600}',
      '"}{',
      '</script>',
      "'",
    ]) {
      const {
        method,
        path,
        model,
        request_id: id,
        request_body: body,
      } = eventOf({
        method: odd,
        path: `/${odd}`,
        model: odd,
        requestId: odd,
        requestBody: odd,
      });
      expect([method, path, model, id, body]).to.deep.equal([odd, `/${odd}`, odd, odd, odd]);
    }
  });

  it('K19 contains U+FFFD for an unpaired surrogate, which UTF-8 cannot encode', () => {
    expect(eventOf({ model: 'a\ud83d', requestBody: '\ude00b' })).to.deep.include({
      model: 'a\ufffd',
      request_body: '\ufffdb',
    });
  });

  for (const [what, body] of [
    ['letters', 'x'.repeat(600_000)],
    ['characters of three bytes', '€'.repeat(300_000)],
    ['what JSON writes with six', '\u0001'.repeat(200_000)],
    ['pairs', '\u{1f600}'.repeat(200_000)],
    ['more than any event', 'x'.repeat(20_000_000)],
  ] as const) {
    it(`K19 truncates bodies of ${what} to the limit, and marks them`, () => {
      const bytes = Buffer.byteLength(body);
      const { request_body: request, response_body: response } = eventOf({ requestBody: body, responseBody: body });
      for (const cut of [request!, response!]) {
        const [mark = '', length, total] = /…\[cut: (\d+) of (\d+) bytes\]$/.exec(cut) ?? [];
        expect(total).to.equal(String(bytes));
        const text = cut.slice(0, -mark.length);
        expect(body.startsWith(text)).to.equal(true);
        expect(Buffer.byteLength(text)).to.equal(Number(length));
        expect(text.length).to.be.above(30_000);
      }
    });
  }

  it('K19 states the original size of a body that was already truncated', () => {
    const { response_body: body } = eventOf({ responseBody: `${'x'.repeat(600_000)}…[cut: 600000 of 987654 bytes]` });
    expect(body).to.match(/x…\[cut: \d{6} of 987654 bytes\]$/);
    expect(body!.match(/cut:/g)).to.have.length(1);
  });

  it('contains no credential that was sent in a body or as a model name', () => {
    const secret = mintSecret();
    const event = eventOf({
      model: secret,
      upstreamRequestId: secret,
      requestBody: `"key":"${secret}"`,
      responseBody: secret,
    });
    expect(JSON.stringify(event)).not.to.include(secret);
    expect(event.request_body).to.match(/^"key":"/);
  });

  it('limits the length of names from the upstream', () => {
    const { model, upstream_request_id: id } = eventOf({
      model: 'm'.repeat(70_000),
      upstreamRequestId: 'r'.repeat(70_000),
    });
    expect([model!.length, id!.length]).to.deep.equal([256, 256]);
  });

  it('distinguishes counts of 0 from counts that the provider did not report', () => {
    const usage = {
      ...{ promptTokens: 0, completionTokens: null, totalTokens: 3 },
      ...{ cacheReadTokens: null, cacheWriteTokens: 2 },
    };
    expect(eventOf({ usage }).usage).to.deep.equal({
      prompt_tokens: 0,
      completion_tokens: null,
      total_tokens: 3,
      source: 'provider',
      cache_read_tokens: null,
      cache_write_tokens: 2,
    });
    expect(eventOf({ usage: null }).usage.source).to.equal('missing');
  });

  it('has a unique ID that begins with its time', () => {
    const event: PublishableEvent = { kind: 'request', ended: SOME_REQUEST };
    const ids = Array.from({ length: 5_000 }, () => (JSON.parse(eventText(event, 'i')) as WireEvent).id);
    expect(new Set(ids).size).to.equal(5_000);
    expect(new Set(ids.map((id) => id.slice(0, 15)))).to.deep.equal(new Set(['00000000-03e8-7'.slice(0, 15)]));
    expect(new Set(ids.map((id) => id[19]))).to.deep.equal(new Set(['8', '9', 'a', 'b']));
    expect(uniqueId(Date.UTC(2022, 1, 22, 19, 22, 22))).to.match(/^017f22e2-79b0-7/); // The example in RFC 9562.
  });
});
