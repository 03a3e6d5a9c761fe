import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { canary } from '../support/canaries.js';
import { type TestDispatcher, type TestDispatcherOptions, dispatch } from '../support/dispatcher.js';
import { DEAD, eventOf, idsOf, publish, STREAM } from '../support/events.js';
import { eventually } from '../support/eventually.js';
import { Receiver } from '../support/receiver.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';

const GROUP = 'llmp-dispatchers';

describe(`L: what the dispatcher does when a back end does not take events${WITHOUT_REDIS}`, function () {
  this.timeout(60_000);
  let redis: TestRedis;
  let receiver: Receiver;
  let running: TestDispatcher[] = [];

  before(function () {
    if (WITHOUT_REDIS) this.skip();
  });
  beforeEach(async () => {
    redis = await TestRedis.start();
    receiver = await Receiver.start();
  });
  afterEach(async () => {
    await Promise.all(running.map((it) => it.stop()));
    running = [];
    await receiver.stop();
    await redis.stop();
  });

  async function start(env: Record<string, string> = {}, more: Partial<TestDispatcherOptions> = {}) {
    const dispatcher = await dispatch({
      redis,
      env: { DISPATCHER_SERVICE: 'webhook', DISPATCHER_ENDPOINT: receiver.url, ...env },
      ...more,
    });
    running.push(dispatcher);
    return dispatcher;
  }

  const pending = async () => (await redis.client.xpending(STREAM, GROUP))[0] as number;
  const dead = () => redis.client.xrange(DEAD, '-', '+');
  const acknowledged = () => eventually('all is acknowledged', async () => (await pending()) === 0);
  const arrived = (ids: readonly string[]) => eventually('all has arrived', () => receiver.hasAll(ids), 30_000);

  it('L04 an event that is always refused is set aside after 5 deliveries by the count of Redis', async () => {
    receiver.answer = ({ ids }) => ({ status: ids.includes('bad') ? 400 : 200 });
    const ids = idsOf('good', 250);
    await publish(redis.client, [...ids.slice(0, 100), 'bad', ...ids.slice(100)]);
    const dispatcher = await start();
    await arrived(ids);
    await eventually('it is set aside', async () => (await dead()).length === 1);
    const [, fields] = (await dead())[0]!;
    const letter = Object.fromEntries(
      fields.map((name, index) => [name, fields[index + 1]]).filter((_, i) => i % 2 === 0),
    );
    expect(JSON.parse(letter.event!)).to.deep.equal(eventOf('bad'));
    expect(letter).to.include({ deliveries: '5', why: 'status 400' });
    const alone = receiver.posts.filter((post) => post.ids.length === 1 && post.ids[0] === 'bad');
    expect(alone).to.have.length(5);
    await acknowledged();
    expect(await dispatcher.metric('dead_total')).to.equal(1);
    expect(await dispatcher.metric('delivered_total')).to.equal(250);
    expect(receiver.triesOf('good-0001')).to.be.at.most(2);
  });

  it('L04 a poison event delays others by a second at most', async () => {
    receiver.answer = ({ ids }) => ({ status: ids.includes('bad') ? 400 : 200 });
    await start();
    const sentAtMs = new Map<string, number>();
    for (let round = 0; round < 40; round++) {
      const ids = idsOf(`round-${round}`, 5);
      for (const id of ids) sentAtMs.set(id, performance.now());
      await publish(redis.client, round % 10 === 5 ? ['bad', ...ids] : ids);
      await sleep(25);
    }
    await arrived([...sentAtMs.keys()]);
    const delays = [...sentAtMs].map(([id, sentAt]) => {
      const accepted = receiver.posts.findLast(({ ids }) => ids.includes(id))!;
      return accepted.atMs - sentAt;
    });
    expect(Math.max(...delays)).to.be.below(1_000);
  });

  it('L08 a refused credential pauses all, says so once, and sets nothing aside', async () => {
    receiver.answer = () => ({ status: 401, body: 'who are you?' });
    await publish(redis.client, idsOf('event', 10));
    const dispatcher = await start({ DISPATCHER_API_KEY: canary('password') });
    await eventually('it pauses', async () => (await dispatcher.metric('paused')) === 1);
    for (let i = 0; i < 20; i++) {
      dispatcher.clock.advance(60_000);
      await sleep(10);
    }
    expect(receiver.posts.length).to.be.within(5, 40);
    expect(await dead()).to.deep.equal([]);
    expect(dispatcher.logged.filter((line) => line.includes('refuses DISPATCHER_API_KEY'))).to.have.length(1);
    expect(dispatcher.logged.join('')).not.to.include('who are you');
    expect(JSON.parse((await dispatcher.probe('/ready')).body)).to.deep.include({ missing: ['credential'] });
    const counts = (await redis.client.xpending(STREAM, GROUP, '-', '+', 10)) as [string, string, number, number][];
    expect(Math.max(...counts.map(([, , , deliveries]) => deliveries))).to.be.at.most(1);
    receiver.answer = () => ({});
    await eventually('it goes on', () => {
      dispatcher.clock.advance(60_000);
      return receiver.hasAll(idsOf('event', 10));
    });
    await acknowledged();
    expect(await dispatcher.metric('paused')).to.equal(0);
  });
});
