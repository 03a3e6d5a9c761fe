import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { RedisEventBus, type RedisEventBusOptions } from '../../daemon/store/redis/event-bus.js';
import { DISPATCHER_GROUP } from '../../daemon/store/redis/stream-state.js';
import { TestClock } from '../support/clock.js';
import { recordingLog } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { RequestFollower, requestNamed, SOME_REQUEST } from '../support/request-follower.js';
import { problemOf as problemOfEvent } from '../support/inspected-events.js';
import { pagesOf, problemOf } from '../support/management.js';
import { Follower } from '../support/follower.js';
import type { RequestEnded } from '../../daemon/core/events.js';
import type { WireEvent } from '../../daemon/api/contract.js';
import { eventText } from '../../daemon/store/event-text.js';
import { perTest } from '../support/per-test.js';
import { redisPerTest, Relay, WITHOUT_REDIS } from '../support/redis.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { itIsAnEventBus } from '../store/event-bus.js';

const KEY = 'events';

interface Entry {
  id: string;
  request_id: string;
}

describe(`K: the event bus in Redis${WITHOUT_REDIS}`, function () {
  this.timeout(60_000);
  let logged: string[];
  const buses: RedisEventBus[] = [];
  const redis = redisPerTest(async () => {
    for (const bus of buses.splice(0)) await closed(bus);
  });
  const relay = perTest(() => Relay.to(redis.port));
  const clock = perTest(() => new TestClock());

  async function open(more: Partial<RedisEventBusOptions> = {}): Promise<RedisEventBus> {
    const recording = recordingLog();
    logged = recording.logged;
    const bus = new RedisEventBus({
      address: redis.at({ port: relay.port }),
      instance: 'i',
      key: KEY,
      maxLength: 100_000,
      bufferSize: 2_000,
      clock,
      log: recording.log,
      commandMs: 5_000,
      ...more,
    });
    buses.push(bus);
    await bus.open();
    await eventually('it is connected', () => {
      clock.advance(50);
      return !bus.isFailing || redis.isDown;
    });
    return bus;
  }
  /** Waits until the bus is closed, while time passes. */
  async function closed(bus: RedisEventBus): Promise<void> {
    const time = setInterval(() => {
      clock.advance(20);
    }, 5);
    await bus.close();
    clearInterval(time);
  }
  const publish = (bus: RedisEventBus, count: number, name = 'n') => {
    for (let i = 0; i < count; i++) bus.publish(requestNamed(`${name}${i}`));
  };
  /** Waits for a condition while time passes. */
  const inTime = (what: string, holds: () => unknown) =>
    eventually(what, () => {
      clock.advance(20);
      return holds();
    });
  const published = (bus: RedisEventBus, count: number) =>
    inTime(`${count} are published`, () => bus.counts.published === count);
  async function entries(client: Redis = redis.client): Promise<Entry[]> {
    return (await client.xrange(KEY, '-', '+')).map(([, [name, text]]) => {
      expect(name).to.equal('event');
      return JSON.parse(text!) as Entry;
    });
  }
  const names = (count: number, name = 'n') => Array.from({ length: count }, (_, index) => `${name}${index}`);
  const namesOf = (list: readonly Entry[]) => list.map((it) => it.request_id);

  describe('like any other bus', () => {
    itIsAnEventBus(() => open());
  });

  it('publishes events in order, in the field "event", in the documented form', async () => {
    const bus = await open();
    publish(bus, 1_800);
    await published(bus, 1_800);
    expect(namesOf(await entries())).to.deep.equal(names(1_800));
    const texts = (await redis.client.xrange(KEY, '-', '+')).map(([, [, text]]) => text!);
    expect(texts.map(problemOfEvent).filter((problem) => problem !== null)).to.be.empty;
  });

  it('K02 K13 events are kept in memory while Redis is down, and sent when it is back', async () => {
    await redis.kill();
    const bus = await open();
    expect(bus.isFailing).to.equal(true);
    publish(bus, 100);
    await inTime('they wait', () => bus.counts.buffered === 100);
    await redis.begin();
    await published(bus, 100);
    expect(namesOf(await entries())).to.deep.equal(names(100));
    expect(bus.isFailing).to.equal(false);
  });

  it('K09 with full memory, refused events are counted, no error is thrown, and no event that fits the buffer is lost', async () => {
    const bus = await open();
    await redis.client.config('SET', 'maxmemory-policy', 'noeviction');
    await redis.client.config('SET', 'maxmemory', '1');
    publish(bus, 100);
    await inTime('it is refused', () => bus.counts.failed > 1);
    expect(bus.isFailing).to.equal(true);
    expect(bus.counts).to.include({ published: 0, buffered: 100, dropped: 0 });
    expect(logged.some((line) => line.includes('Redis rejects commands') && line.includes('OOM'))).to.equal(true);
    await redis.client.config('SET', 'maxmemory', '0');
    await published(bus, 100);
    expect(namesOf(await entries())).to.deep.equal(names(100));
    expect(bus.isFailing).to.equal(false);
  });

  it('K09 a stream that Redis evicts, or someone deletes, is noticed: undelivered events are counted', async () => {
    const bus = await open();
    await redis.client.call('XGROUP', 'CREATE', KEY, DISPATCHER_GROUP, '0', 'MKSTREAM');
    publish(bus, 30);
    await published(bus, 30);
    await redis.client.xreadgroup('GROUP', DISPATCHER_GROUP, 'c', 'COUNT', 10, 'STREAMS', KEY, '>');
    await inTime('the lag is seen', () => bus.counts.lag === 20);
    await redis.client.del(KEY);
    publish(bus, 1);
    await inTime('the loss is seen', () => bus.counts.trimmedUnread === 20);
    expect(logged.some((line) => line.includes('the event stream was recreated'))).to.equal(true);
  });

  it('K10 a full buffer drops the newest event, counts each, logs it once a minute, and never waits', async () => {
    await redis.kill();
    const bus = await open({ bufferSize: 50 });
    const beganAt = performance.now();
    publish(bus, 30_000);
    expect(performance.now() - beganAt).to.be.below(1_000);
    expect(bus.counts).to.include({ buffered: 50, dropped: 29_950 });
    const lines = () => logged.filter((line) => line.includes('dropping new events')).length;
    expect(lines()).to.equal(1);
    clock.advance(61_000);
    publish(bus, 10);
    expect(lines()).to.equal(2);
    await redis.begin();
    await published(bus, 50);
    expect(namesOf(await entries())).to.deep.equal(names(50));
  });

  it('K10 bodies have a separate limit', async () => {
    await redis.kill();
    const bus = await open();
    const body = 'x'.repeat(1_000_000);
    for (let i = 0; i < 100; i++) bus.publish({ kind: 'request', ended: { ...SOME_REQUEST, requestBody: body } });
    expect(bus.counts).to.include({ buffered: 64, dropped: 36 });
    publish(bus, 100);
    expect(bus.counts).to.include({ buffered: 164, dropped: 36 });
  });

  it('K03 K11 an accepted batch whose reply was lost is sent again: duplicates with the same ID', async () => {
    const bus = await open({ commandMs: 300 });
    publish(bus, 10, 'before');
    await published(bus, 10);
    redis.freeze();
    publish(bus, 20);
    await inTime('the reply is given up', () => bus.counts.failed > 0);
    redis.resume();
    await published(bus, 30);
    const list = (await entries()).slice(10);
    expect(new Set(namesOf(list))).to.deep.equal(new Set(names(20)));
    const ids = new Map(list.map((it) => [it.request_id, it.id]));
    expect(list.length).to.be.oneOf([20, 40]);
    for (const it of list) expect(it.id).to.equal(ids.get(it.request_id));
  });

  it('K11 a connection that breaks after the command costs only a duplicate', async () => {
    const bus = await open();
    const client = redis.client;
    for (let round = 1; round <= 5; round++) {
      publish(bus, 100, `r${round}-`);
      clock.advance(25);
      relay.reset();
      await published(bus, 100 * round);
    }
    const list = await entries(client);
    const unique = new Map(list.map((it) => [it.id, it.request_id]));
    expect(unique.size).to.equal(500);
    expect(new Set(namesOf(list)).size).to.equal(500);
  });

  it('K12 entries that are trimmed before they were dispatched are counted, once', async () => {
    const bus = await open({ maxLength: 100 });
    await redis.client.call('XGROUP', 'CREATE', KEY, DISPATCHER_GROUP, '0', 'MKSTREAM');
    await redis.client.config('SET', 'stream-node-max-entries', '10');
    publish(bus, 50);
    await published(bus, 50);
    await redis.client.xreadgroup('GROUP', DISPATCHER_GROUP, 'c', 'COUNT', 50, 'STREAMS', KEY, '>');
    await inTime('nothing is pending', () => bus.counts.lag === 0);
    publish(bus, 1_000);
    await published(bus, 1_050);
    const kept = await redis.client.xlen(KEY);
    expect(kept).to.be.within(100, 120);
    await inTime('it is seen', () => bus.counts.trimmedUnread > 0);
    expect(bus.counts).to.include({ lag: kept, trimmedUnread: 1_000 - kept });
    await redis.client.xreadgroup('GROUP', DISPATCHER_GROUP, 'c', 'COUNT', 60, 'STREAMS', KEY, '>');
    await inTime('it checks in the middle of the stream', () => bus.counts.lag !== kept);
    await redis.client.xreadgroup('GROUP', DISPATCHER_GROUP, 'c', 'COUNT', 1_000, 'STREAMS', KEY, '>');
    await inTime('it checks at the end', () => bus.counts.lag === 0);
    expect(bus.counts.trimmedUnread).to.equal(1_000 - kept);
    expect(logged.some((line) => line.includes('were trimmed from the stream'))).to.equal(true);
  });

  it('K14 a key of another type at the name of the stream is reported, and events are published as soon as it is gone', async () => {
    await redis.client.set(KEY, 'x');
    const bus = await open();
    publish(bus, 10);
    await inTime('it is refused', () => bus.counts.failed > 0);
    expect(bus.isFailing).to.equal(true);
    expect(logged.some((line) => line.includes('WRONGTYPE'))).to.equal(true);
    await redis.client.del(KEY);
    await published(bus, 10);
    expect(await redis.client.get('x')).to.equal(null);
    await redis.client.flushall();
    publish(bus, 5, 'later');
    await published(bus, 15);
    expect(namesOf(await entries())).to.deep.equal(names(5, 'later'));
  });

  it('K17 an event that fails within a batch does not shift replies of others, and nothing is duplicated', async () => {
    const bus = await open();
    publish(bus, 700, 'a');
    const pings = Array.from({ length: 20 }, () => redis.client.ping());
    publish(bus, 700, 'b');
    await published(bus, 1_400);
    expect(await Promise.all(pings)).to.deep.equal(Array(20).fill('PONG'));
    expect(namesOf(await entries())).to.deep.equal([...names(700, 'a'), ...names(700, 'b')]);
  });

  it('K19 a batch that is too large for one command is sent in several', async () => {
    const bus = await open();
    const body = 'é'.repeat(200_000);
    for (let i = 0; i < 30; i++) {
      bus.publish({ kind: 'request', ended: { ...SOME_REQUEST, requestId: `n${i}`, responseBody: `${body}\ud800` } });
    }
    await published(bus, 30);
    expect(namesOf(await entries())).to.deep.equal(names(30));
  });

  it('K20 followers share one separate connection for blocking reads, only while there are any', async () => {
    const bus = await open();
    const connections = async () =>
      [...((await redis.client.client('LIST')) as string).matchAll(/ name=(llmp[\w-]*)/g)].map(([, name]) => name);
    expect(await connections()).to.deep.equal(['llmp-events']);
    const followings = [new RequestFollower(bus), new RequestFollower(bus), new RequestFollower(bus, { after: '1-1' })];
    let count = 0;
    await eventually('they receive it', () => {
      bus.publish(requestNamed('x'));
      count += 1;
      clock.advance(20);
      return followings.every((it) => it.names.length > 0);
    });
    await published(bus, count);
    expect(await connections()).to.have.members(['llmp-events', 'llmp-events-reader']);
    const beganAt = performance.now();
    bus.publish(requestNamed('y'));
    await published(bus, count + 1);
    expect(performance.now() - beganAt).to.be.below(900); // The read of the others blocks for a second.
    await Promise.all(followings.map((it) => it.leave()));
    await eventually('one is left', async () => (await connections()).length === 1);
  });

  it('followers receive the events of all instances, and continue after Redis was unreachable', async () => {
    const [one, other] = [await open(), await open({ instance: 'j' })];
    const following = new RequestFollower(one);
    await eventually('it receives its own', () => {
      other.publish(requestNamed('probe'));
      clock.advance(20);
      return following.names.length > 0;
    });
    relay.reset();
    publish(other, 5, 'o');
    await inTime('it receives the other', () => following.names.includes('o4'));
    expect(following.names.filter((name) => name.startsWith('o'))).to.include.members(names(5, 'o'));
    await following.leave();
  });

  it('closing the bus sends waiting events, and gives up on a frozen Redis in time', async () => {
    const bus = await open();
    publish(bus, 300);
    buses.length = 0;
    await closed(bus);
    expect(namesOf(await entries())).to.deep.equal(names(300));
    const stuck = await open();
    buses.length = 0;
    redis.freeze();
    publish(stuck, 10);
    const beganAt = clock.monotonic();
    await closed(stuck);
    expect(clock.monotonic() - beganAt).to.be.within(1_900, 30_000);
    expect(stuck.counts).to.include({ published: 0, dropped: 10 });
    expect(clock.pending).to.equal(0);
  });
});

describe(`K: events of a whole daemon${WITHOUT_REDIS}`, function () {
  this.timeout(60_000);
  let scene: ProxyFixture;
  const redis = redisPerTest(() => scene.close());
  beforeEach(async () => {
    scene = await ProxyFixture.open({
      REDIS_ADDR: redis.address,
      REDIS_STREAM_KEY: KEY,
      OBSERVABILITY_BUFFER_SIZE: '20',
    });
  });

  const busIs = async () =>
    ((await (await fetch(`${scene.daemon.url}/health`)).json()) as { checks: { event_bus: string } }).checks.event_bus;

  it('K02 K03 K10 a frozen Redis does not delay requests; events beyond the buffer are lost', async () => {
    const { bus } = scene.daemon.daemon.shared;
    await eventually('it is connected', async () => (await busIs()) === 'ok');
    await eventually('the token is published', () => bus!.counts.buffered === 0);
    const { published } = bus!.counts;
    redis.freeze();
    for (let i = 0; i < 50; i++) expect((await scene.get()).status).to.equal(200);
    await eventually('all have ended', () => scene.daemon.ended.length === 50);
    expect(bus!.counts).to.include({ buffered: 20, dropped: 30 });
    await eventually('it is seen', async () => {
      scene.daemon.clock.advance(100);
      return (await busIs()) === 'failing';
    });
    redis.resume();
    await eventually('the rest is published', () => {
      scene.daemon.clock.advance(100);
      return bus!.counts.published === published + 20;
    });
    expect(await busIs()).to.equal('ok');
  });

  const listed = async (query: string) => {
    const path = `/manage/events?kind=request.completed&${query}`;
    return (await pagesOf<WireEvent>(scene.daemon, path)).map((page) => page.map((it) => it.request_id));
  };
  /** Adds events, as another instance would. */
  async function add(count: number, more: (index: number) => Partial<RequestEnded>): Promise<void> {
    const commands = redis.client.pipeline();
    for (let n = 0; n < count; n++) {
      const ended = { ...SOME_REQUEST, timeMs: Date.now(), requestId: `n${n}`, ...more(n) };
      commands.xadd(KEY, '*', 'event', eventText({ kind: 'request', ended }, 'other'));
    }
    await commands.exec();
  }

  it('lists the events of all instances, newest first, and searches a limited number for a page', async () => {
    await scene.get(scene.secret, { 'X-Request-ID': 'own' });
    await eventually('it is stored', async () => (await listed('')).flat().length === 1);
    await redis.client.xadd(KEY, '*', 'other', 'of another program');
    await redis.client.xadd(KEY, '*', 'event', 'not JSON');
    await add(25_000, (n) => (n % 5_000 === 0 ? { status: 502, outcome: 'upstream_error' } : {}));
    expect(await listed('outcome=!ok')).to.deep.equal([['n20000', 'n15000', 'n10000', 'n5000'], ['n0']]);
    const newest = await scene.daemon.manage('GET', '/manage/events?limit=3');
    expect((newest.body as WireEvent[]).map((it) => it.request_id)).to.deep.equal(['n24999', 'n24998', 'n24997']);
    expect((await listed(`limit=1000`)).flat()).to.have.lengthOf(25_001);
  });

  it('lists and streams the events since a time, with the clock of Redis a little behind', async () => {
    await add(3, (n) => ({ timeMs: Date.now() - (3 - n) * 600_000 }));
    scene.daemon.clock.advance(20_000);
    expect((await listed('since=15m')).flat()).to.deep.equal(['n2']);
    expect((await listed('since=25m&until=15m')).flat()).to.deep.equal(['n1']);
    const follower = new Follower<WireEvent>(scene.daemon.url, (client, options) =>
      client.events({ kind: 'request.completed', since: '25m' }, options),
    );
    await eventually('the stored events arrive', () => follower.items.length === 2);
    await scene.get(scene.secret, { 'X-Request-ID': 'own' });
    await eventually('the new event arrives', () => follower.items.length === 3);
    expect(follower.items.map((it) => it.request_id)).to.deep.equal(['n1', 'n2', 'own']);
    await follower.leave();
  });

  it('K02 the list is 503 while Redis is down', async () => {
    await redis.kill();
    problemOf(await scene.daemon.manage('GET', '/manage/events'), 503, 'unavailable');
    await redis.begin();
  });

  it('a daemon that stops has sent its waiting events', async () => {
    for (let i = 0; i < 10; i++) await scene.get();
    await scene.daemon.stop();
    const list = (await redis.client.xrange(KEY, '-', '+')).map(
      ([, [, text]]) => JSON.parse(text!) as { kind: string },
    );
    expect(list.filter(({ kind }) => kind === 'request.completed')).to.have.length(10);
    expect(list.filter(({ kind }) => kind === 'token.created')).to.have.length(1);
    expect(list.filter(({ kind }) => kind === 'project.changed')).to.have.length(1);
  });
});
