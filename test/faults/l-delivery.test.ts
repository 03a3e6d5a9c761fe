import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Backend } from '../../daemon/dispatcher/backends/backend.js';
import { canary } from '../support/canaries.js';
import { DEAD, eventOf, GROUP, idsOf, publish, STREAM } from '../support/events.js';
import { eventually } from '../support/eventually.js';
import { Receiver } from '../support/receiver.js';
import { WITHOUT_REDIS } from '../support/redis.js';
import { dispatchersPerTest } from './support/dispatchers.js';

describe(`L: the dispatcher when a backend does not accept events${WITHOUT_REDIS}`, function () {
  this.timeout(60_000);
  const { redis, receiver, start, acknowledged, arrived } = dispatchersPerTest();
  const dead = () => redis.client.xrange(DEAD, '-', '+');

  it("L04 an event that is always refused goes to the dead letters after 5 deliveries by Redis's count", async () => {
    receiver.answer = ({ ids }) => ({ status: ids.includes('bad') ? 400 : 200 });
    const ids = idsOf('good', 250);
    await publish(redis.client, [...ids.slice(0, 100), 'bad', ...ids.slice(100)]);
    const dispatcher = await start();
    await arrived(ids);
    await eventually('it is a dead letter', async () => (await dead()).length === 1);
    const letter = (await dead())[0]![1];
    expect(letter.slice(0, 2)).to.deep.equal(['event', JSON.stringify(eventOf('bad'))]);
    expect(letter.slice(4)).to.deep.equal(['deliveries', '5', 'why', 'status 400']);
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

  it('L08 a refused credential pauses delivery, is logged once, and makes no dead letters', async () => {
    receiver.answer = () => ({ status: 401, body: 'who are you?' });
    await publish(redis.client, idsOf('event', 10));
    const dispatcher = await start({ DISPATCHER_API_KEY: canary('password') });
    await eventually('it pauses', async () => (await dispatcher.metric('paused')) === 1);
    for (let minute = 1; minute <= 10; minute++) {
      const before = receiver.posts.length;
      dispatcher.clock.advance(60_000);
      await eventually('it asks again', () => receiver.posts.length > before);
    }
    expect(receiver.posts.length).to.be.at.most(20);
    expect(await dead()).to.deep.equal([]);
    expect(dispatcher.logged.filter((line) => line.includes('refuses DISPATCHER_API_KEY'))).to.have.length(1);
    expect(dispatcher.logged.join('')).not.to.include('who are you');
    expect(JSON.parse((await dispatcher.probe('/ready')).body)).to.deep.include({ missing: ['credential'] });
    const counts = (await redis.client.xpending(STREAM, GROUP, '-', '+', 10)) as [string, string, number, number][];
    expect(Math.max(...counts.map(([, , , deliveries]) => deliveries))).to.be.at.most(1);
    receiver.answer = () => ({});
    await eventually('it continues', () => {
      dispatcher.clock.advance(500); // Few enough for a request to get its response in time.
      return receiver.hasAll(idsOf('event', 10));
    });
    await acknowledged();
    expect(await dispatcher.metric('paused')).to.equal(0);
  });

  it('L04 an entry that is not an event goes to the dead letters at once, and other events are delivered', async () => {
    const ids = idsOf('good', 3);
    await publish(redis.client, ids);
    await redis.client.xadd(STREAM, '*', 'event', '{"schema":1,"id":');
    await redis.client.xadd(STREAM, '*', 'something', 'else');
    await redis.client.xadd(STREAM, '*', 'event', 'null');
    const dispatcher = await start();
    await arrived(ids);
    await eventually('they are dead letters', async () => (await dead()).length === 3);
    await acknowledged();
    expect(receiver.posts.flatMap((post) => post.ids)).to.have.members(ids);
    expect(await dispatcher.metric('dead_total')).to.equal(3);
  });

  it('L04 an event on which the backend fails is identified, delays others little, and goes to the dead letters in the end', async () => {
    receiver.answer = ({ ids }) => (ids.includes('bad') ? { reset: true } : {});
    const ids = idsOf('good', 99);
    const dispatcher = await start();
    await publish(redis.client, [...ids.slice(0, 30), 'bad', ...ids.slice(30)]);
    const beganAt = performance.now();
    await arrived(ids);
    expect(performance.now() - beganAt).to.be.below(5_000);
    for (let n = 0; (await dead()).length === 0; n++) {
      await publish(redis.client, [`later-${n}`]);
      await arrived([`later-${n}`]);
      dispatcher.clock.advance(60_000);
      expect(n).to.be.below(50);
    }
    expect((await dead())[0]![1]).to.include.members(['deliveries', '5']);
    await acknowledged();
  });

  it("L04 an event that crashes its dispatchers goes to the dead letters by Redis's count, and the others are delivered", async () => {
    const ids = [...idsOf('good', 3), 'bad', ...idsOf('more', 3)];
    await publish(redis.client, ids);
    // Five dispatchers took it and were killed. Redis's count is all that is known of them.
    await redis.client.xgroup('CREATE', STREAM, GROUP, '0');
    const entries = await redis.client.xrange(STREAM, '-', '+');
    await redis.client.xreadgroup('GROUP', GROUP, 'killed', 'STREAMS', STREAM, '>');
    const bad = entries.find(([, fields]) => fields[1]!.includes('"bad"'))![0];
    for (let n = 0; n < 4; n++) await redis.client.xclaim(STREAM, GROUP, 'killed', 0, bad);
    const dispatcher = await start({ DISPATCHER_CLAIM_IDLE: '100ms' });
    await arrived(ids.filter((id) => id !== 'bad'));
    await eventually('it is a dead letter', async () => (await dead()).length === 1);
    expect((await dead())[0]![1]).to.include.members(['deliveries', '5', 'never acknowledged']);
    expect(receiver.triesOf('bad')).to.equal(0);
    await acknowledged();
    expect(await dispatcher.metric('dead_total')).to.equal(1);
  });

  it('L04 an event that two dispatchers took and left is tried alone, so that no other event is blamed', async () => {
    const ids = idsOf('event', 6);
    await publish(redis.client, ids);
    await redis.client.xgroup('CREATE', STREAM, GROUP, '0');
    await redis.client.xreadgroup('GROUP', GROUP, 'killed', 'STREAMS', STREAM, '>');
    const entries = await redis.client.xrange(STREAM, '-', '+');
    for (const [id] of entries) await redis.client.xclaim(STREAM, GROUP, 'killed', 0, id);
    await start({ DISPATCHER_CLAIM_IDLE: '100ms' });
    await arrived(ids);
    expect(receiver.posts.map((post) => post.ids.length)).to.deep.equal([1, 1, 1, 1, 1, 1]);
    await acknowledged();
  });

  it('L06 Retry-After of a backend is honoured, and nothing is lost', async () => {
    receiver.answer = () => ({ status: 429, headers: { 'retry-after': '120' } });
    const ids = idsOf('event', 150);
    await publish(redis.client, ids);
    const dispatcher = await start();
    await eventually('it was requested', async () => (await dispatcher.metric('retried_total')) > 0);
    const asked = receiver.posts.length;
    for (let second = 0; second < 110; second += 10) {
      dispatcher.clock.advance(10_000);
      await sleep(5);
    }
    expect(receiver.posts).to.have.length(asked);
    receiver.answer = () => ({});
    dispatcher.clock.advance(20_000);
    await arrived(ids);
    await acknowledged();
    expect(await dead()).to.deep.equal([]);
  });

  it('L06 a Retry-After with a date is honoured', async () => {
    const inTenMinutes = new Date(Date.now() + 600_000).toUTCString();
    receiver.answer = () => ({ status: 503, headers: { 'retry-after': inTenMinutes } });
    await publish(redis.client, ['event']);
    const dispatcher = await start();
    await eventually('it was requested', async () => (await dispatcher.metric('retried_total')) > 0);
    dispatcher.clock.advance(500_000);
    await sleep(100);
    expect(receiver.posts).to.have.length(1);
    receiver.answer = () => ({});
    dispatcher.clock.advance(110_000);
    await arrived(['event']);
  });

  for (const [what, answer] of [
    ['answers 500', { status: 500, body: 'secret of the back end' }],
    ['resets connections', { reset: true }],
    ['redirects', { status: 307, headers: { location: 'http://127.0.0.1:9/' } }],
    ['does not exist at that address', { status: 404 }],
  ] as const) {
    it(`L07 a backend that ${what} is retried with backoff, no event is blamed, and all are delivered once it works`, async () => {
      receiver.answer = () => answer;
      const ids = idsOf('event', 300);
      await publish(redis.client, ids);
      const dispatcher = await start();
      for (let second = 0; second < 3_600; second += 15) {
        dispatcher.clock.advance(15_000); // Less than a request may take.
        await sleep(5);
      }
      const tries = receiver.posts.length;
      // An hour with at most half a minute between tries, and never a storm of them.
      expect(tries).to.be.within(5, 400);
      const state = (await redis.client.xpending(STREAM, GROUP, '-', '+', 1_000)) as [string, string, number, number][];
      expect(Math.max(...state.map(([, , , deliveries]) => deliveries))).to.be.at.most(1);
      expect(state.length, 'no more than the limit is read').to.be.at.most(200);
      expect(JSON.parse((await dispatcher.probe('/ready')).body)).to.deep.include({ degraded: ['back_end'] });
      receiver.answer = () => ({});
      await eventually('it is tried again', () => {
        dispatcher.clock.advance(500);
        return receiver.hasAll(ids);
      });
      await acknowledged();
      expect(await dead()).to.deep.equal([]);
      expect(dispatcher.logged.join('')).not.to.include('secret of the back end');
      expect(dispatcher.logged.filter((line) => line.includes('backend unavailable'))).to.have.length(1);
    });
  }

  it('L07 a backend that does not respond times out and is tried again', async () => {
    let isSilent = true;
    receiver.answer = () => (isSilent ? new Promise(() => undefined) : {});
    await publish(redis.client, idsOf('event', 3));
    const dispatcher = await start();
    await eventually('it was requested', () => receiver.posts.length > 0);
    isSilent = false;
    dispatcher.clock.advance(20_000);
    await eventually('it is requested again', () => {
      dispatcher.clock.advance(50);
      return receiver.hasAll(idsOf('event', 3));
    });
    await acknowledged();
  });

  it('L07 when part of a batch is accepted, only the rest is sent again', async () => {
    const sent: string[][] = [];
    let round = 0;
    const backend: Backend = {
      batch: { maxEvents: 10, maxBytes: 1e6 },
      deliver(deliveries) {
        sent.push(deliveries.map(({ event }) => event.id));
        const isFirst = round++ === 0;
        return Promise.resolve(
          deliveries.map(({ event }) =>
            isFirst && event.id > 'event-0003' ? { kind: 'retry', why: 'later' } : { kind: 'delivered' },
          ),
        );
      },
      close: () => Promise.resolve(),
    };
    await publish(redis.client, idsOf('event', 6));
    await start({}, { backend });
    await eventually('all was sent', () => sent.flat().length === 9);
    await acknowledged();
    expect(sent[0]).to.deep.equal(idsOf('event', 6));
    expect(sent.slice(1).flat()).to.have.members(['event-0004', 'event-0005', 'event-0006']);
  });

  it('L07 an event that the backend cannot convert is the only one that is lost', async () => {
    const taken: string[] = [];
    const backend: Backend = {
      batch: { maxEvents: 10, maxBytes: 1e6 },
      deliver(deliveries) {
        const ids = deliveries.map(({ event }) => event.id);
        if (ids.includes('bad')) return Promise.reject(new TypeError('model is null'));
        taken.push(...ids);
        return Promise.resolve(ids.map(() => ({ kind: 'delivered' })));
      },
      close: () => Promise.resolve(),
    };
    await publish(redis.client, ['one', 'bad', 'two']);
    await start({}, { backend });
    await eventually('the others are accepted', () => taken.length === 2);
    await eventually('it is a dead letter', async () => (await dead()).length === 1);
  });

  it('L10 an event that is delivered again has the same ID and the same key', async () => {
    let failures = 2;
    receiver.answer = () => (failures-- > 0 ? { status: 502 } : {});
    await publish(redis.client, ['event']);
    await start();
    await arrived(['event']);
    expect(receiver.posts.map(({ headers }) => headers['idempotency-key'])).to.deep.equal(['event', 'event', 'event']);
    expect(new Set(receiver.posts.map(({ body }) => body)).size).to.equal(1);
  });

  it('L18 a redirect does not carry the key to another host', async () => {
    const other = await Receiver.start();
    receiver.answer = () => ({ status: 308, headers: { location: other.url } });
    await publish(redis.client, ['event']);
    await start({ DISPATCHER_API_KEY: canary('password') });
    await eventually('it was requested twice', () => receiver.posts.length > 1);
    expect(other.posts).to.deep.equal([]);
    await other.stop();
  });

  it('a webhook gets what is documented: a signed batch of up to 100 events and 1 MB', async () => {
    const key = canary('password');
    const ids = idsOf('large', 30);
    await publish(redis.client, ids, { response_body: 'x'.repeat(100_000) });
    await publish(redis.client, idsOf('small', 150));
    await start({ DISPATCHER_API_KEY: key });
    await arrived([...ids, ...idsOf('small', 150)]);
    for (const { headers, body, ids: posted } of receiver.posts) {
      expect(headers.authorization).to.equal(`Bearer ${key}`);
      expect(headers['x-llmp-signature']).to.equal(`sha256=${createHmac('sha256', key).update(body).digest('hex')}`);
      expect(headers['content-type']).to.equal('application/json');
      expect(posted.length).to.be.at.most(100);
      expect(Buffer.byteLength(body)).to.be.at.most(1_000_000);
      expect(Object.keys(JSON.parse(body) as object)).to.deep.equal(['events']);
    }
    expect(receiver.posts[0]?.ids.length).to.be.above(5);
  });
});
