import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Backend } from '../../daemon/dispatcher/backends/backend.js';
import { DEAD, GROUP, idsOf, publish, STREAM } from '../support/events.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';
import { Relay, WITHOUT_REDIS } from '../support/redis.js';
import { dispatchersPerTest } from './support/dispatchers.js';

describe(`L: the dispatcher and its stream${WITHOUT_REDIS}`, function () {
  this.timeout(60_000);
  const { redis, receiver, start, pending, acknowledged, arrived } = dispatchersPerTest();
  const consumers = async () =>
    ((await redis.client.xinfo('CONSUMERS', STREAM, GROUP)) as unknown[][]).map((it) => it[1] as string);
  /** Reads events as a dispatcher does, which is then killed. */
  async function takenBy(consumer: string): Promise<void> {
    await redis.client.xgroup('CREATE', STREAM, GROUP, '0', 'MKSTREAM').catch(() => undefined);
    await redis.client.xreadgroup('GROUP', GROUP, consumer, 'STREAMS', STREAM, '>');
  }

  it('L02 pending events of a dispatcher that died are claimed by another after the idle time', async () => {
    const ids = idsOf('event', 120);
    await publish(redis.client, ids);
    await takenBy('died');
    const beganAt = performance.now();
    await start({ DISPATCHER_CLAIM_IDLE: '1s' });
    await start({ DISPATCHER_CLAIM_IDLE: '1s' });
    await arrived(ids);
    expect(performance.now() - beganAt).to.be.above(900);
    await acknowledged();
    expect([...receiver.accepted.values()].every((times) => times === 1)).to.equal(true);
    expect(receiver.accepted.size).to.equal(120);
  });

  // A dispatcher keeps its events by claiming them again, three times within this time. On a busy machine it is late by up to half a second.
  const DISPATCHER_CLAIM_IDLE = '1s';

  it('L03 events whose delivery takes longer than the idle time are not claimed', async () => {
    let answerNow: () => void = () => undefined;
    const slow = new Promise<void>((resolve) => (answerNow = resolve));
    receiver.answer = () => slow.then(() => ({}));
    const ids = idsOf('event', 5);
    await publish(redis.client, ids);
    const env = { DISPATCHER_CLAIM_IDLE };
    await start(env);
    await eventually('it is in flight', () => receiver.posts.length === 1);
    await start(env);
    await sleep(3_000); // Three times the idle time.
    expect(receiver.posts).to.have.length(1);
    answerNow();
    await arrived(ids);
    await acknowledged();
    expect(receiver.posts).to.have.length(1);
  });

  it('L03 events that wait for an unreachable backend are not claimed either', async () => {
    receiver.answer = () => ({ status: 503, headers: { 'retry-after': '3600' } });
    await publish(redis.client, idsOf('event', 5));
    const env = { DISPATCHER_CLAIM_IDLE };
    await start(env);
    await eventually('it was requested', () => receiver.posts.length === 1);
    const other = await start(env);
    await sleep(3_000);
    expect(receiver.posts).to.have.length(1);
    expect(await other.metric('in_hand_events')).to.equal(0);
  });

  it('L05 a pending event that was trimmed is dropped and counted, and delays nothing', async () => {
    await publish(redis.client, idsOf('trimmed', 20));
    await takenBy('died');
    await redis.client.xtrim(STREAM, 'MAXLEN', 0);
    const dispatcher = await start({ DISPATCHER_CLAIM_IDLE: '100ms' });
    await publish(redis.client, idsOf('event', 3));
    await arrived(idsOf('event', 3));
    await acknowledged();
    await eventually('it is counted', async () => (await dispatcher.metric('trimmed_total{state="pending"}')) === 20);
    expect(await redis.client.exists(DEAD)).to.equal(0);
  });

  it('K12 L06 events that were trimmed before any dispatcher read them are counted, once', async () => {
    receiver.answer = () => ({ status: 503, headers: { 'retry-after': '100' } });
    const dispatcher = await start();
    await publish(redis.client, idsOf('first', 1));
    await eventually('it was requested', () => receiver.posts.length === 1);
    // Up to 200 events are in flight. The others wait in a stream that keeps 50.
    await publish(redis.client, idsOf('later', 1_000));
    await eventually('no more is read', async () => (await dispatcher.metric('in_hand_events')) >= 200);
    const lag = async () => {
      dispatcher.clock.advance(2_000);
      return dispatcher.metric('lag_events');
    };
    await eventually(
      'the lag is visible',
      async () => (await lag()) === 1_001 - (await dispatcher.metric('in_hand_events')),
    );
    await redis.client.xtrim(STREAM, 'MAXLEN', 50);
    await eventually('the lag is what is in the stream', async () => (await lag()) === 50);
    const trimmed = 1_001 - 50 - (await dispatcher.metric('in_hand_events'));
    expect(await dispatcher.metric('trimmed_total{state="unread"}')).to.equal(trimmed);
    receiver.answer = () => ({});
    dispatcher.clock.advance(100_000);
    await eventually('the rest arrives', () => receiver.accepted.size === 1_001 - trimmed);
    await acknowledged();
    await eventually('nothing is left', async () => (await lag()) === 0);
    expect(await dispatcher.metric('trimmed_total{state="unread"}')).to.equal(trimmed);
  });

  it('K14 a missing group, with or without its stream, is created again from the beginning, with an alert', async () => {
    const dispatcher = await start();
    await publish(redis.client, ['before']);
    await arrived(['before']);
    await redis.client.flushall();
    await publish(redis.client, ['behind']);
    await arrived(['behind']);
    await acknowledged();
    await redis.client.xgroup('DESTROY', STREAM, GROUP);
    await publish(redis.client, ['later']);
    await arrived(['later']);
    expect(receiver.accepted.get('behind')).to.equal(2);
    expect(await dispatcher.metric('group_recreated_total')).to.equal(2);
    expect(
      dispatcher.logged.filter((it) => it.includes('"level":"error"') && it.includes('consumer group was missing')),
    ).to.have.length(2);
  });

  it('K14 a key of another type at the name of the stream is left alone, logged once, and shown in /ready', async () => {
    await redis.client.set(STREAM, "someone else's");
    const dispatcher = await start();
    await eventually('it is said', () =>
      dispatcher.logged.some((it) => it.includes('named by REDIS_STREAM_KEY is not a stream')),
    );
    dispatcher.clock.advance(60_000);
    const { status, body } = await dispatcher.probe('/ready');
    expect(status).to.equal(503);
    expect(JSON.parse(body)).to.deep.include({ missing: ['stream'] });
    expect(await redis.client.get(STREAM)).to.equal("someone else's");
    await redis.client.del(STREAM);
    await publish(redis.client, ['event']);
    await eventually('it arrives', () => {
      dispatcher.clock.advance(50);
      return receiver.hasAll(['event']);
    });
    expect(dispatcher.logged.filter((it) => it.includes('named by REDIS_STREAM_KEY is not a stream'))).to.have.length(
      1,
    );
    expect((await dispatcher.probe('/ready')).status).to.equal(200);
  });

  it('a Redis that starts after the dispatcher is not reported as refusing commands', async () => {
    await redis.kill();
    const dispatcher = await start();
    await redis.begin();
    await eventually('it created its group', () => {
      dispatcher.clock.advance(2_000);
      return dispatcher.logged.some((it) => it.includes('consumer group created'));
    });
    dispatcher.clock.advance(2_000);
    await eventually('it is ready', async () => (await dispatcher.probe('/ready')).status === 200);
    expect(dispatcher.logged.filter((it) => it.includes('Redis rejects commands'))).to.be.empty;
  });

  it('K02 K03 K20 a Redis that freezes or is killed delays events and loses none', async () => {
    const relay = await Relay.to(redis.port);
    const dispatcher = await start({ REDIS_ADDR: relay.address });
    await publish(redis.client, ['one']);
    await arrived(['one']);
    for (const [what, fail, mend] of [
      [
        'frozen',
        () => {
          redis.freeze();
        },
        () => {
          redis.resume();
        },
      ],
      [
        'silent',
        () => {
          relay.isSilent = true;
        },
        () => {
          relay.isSilent = false;
          relay.reset(); // Bytes of that time are lost, as on any connection that does not recover.
        },
      ],
      [
        'reset',
        () => {
          relay.reset();
        },
        () => undefined,
      ],
    ] as const) {
      fail();
      const published = publish(redis.client, idsOf(what, 50));
      await sleep(300);
      mend();
      await published;
      await eventually(
        `${what} is over`,
        () => {
          dispatcher.clock.advance(20);
          return receiver.hasAll(idsOf(what, 50));
        },
        30_000,
      );
      await acknowledged();
    }
    await dispatcher.stop();
    await relay.stop();
  });

  it('L11 events that were delivered while Redis was unreachable are acknowledged later, and not delivered again', async () => {
    const relay = await Relay.to(redis.port);
    let answerNow: () => void = () => undefined;
    const slow = new Promise<void>((resolve) => (answerNow = resolve));
    receiver.answer = () => slow.then(() => ({}));
    const dispatcher = await start({ REDIS_ADDR: relay.address });
    await publish(redis.client, idsOf('event', 5));
    await eventually('it is in flight', () => receiver.posts.length > 0);
    relay.isSilent = true;
    relay.reset();
    answerNow();
    await eventually('it is delivered', () => receiver.accepted.size > 0);
    expect(await pending()).to.equal(5);
    relay.isSilent = false;
    await eventually('it is acknowledged', async () => {
      dispatcher.clock.advance(500);
      return (await pending()) === 0;
    });
    expect(receiver.accepted.size).to.equal(5);
    expect([...receiver.accepted.values()]).to.deep.equal([1, 1, 1, 1, 1]);
    await dispatcher.stop();
    await relay.stop();
  });

  it('L15 a clock that goes backwards does not change the order of the stream', async () => {
    const future = Date.now() + 3_600_000;
    await redis.client.xadd(
      STREAM,
      `${future}-0`,
      'event',
      JSON.stringify({ schema: 1, id: 'future', kind: 'x', time: 't' }),
    );
    await publish(redis.client, idsOf('event', 5));
    await start();
    await arrived(['future', ...idsOf('event', 5)]);
    expect(receiver.posts.flatMap(({ ids }) => ids)).to.deep.equal(['future', ...idsOf('event', 5)]);
  });

  it('L16 of a long backlog, a limited number of events is in memory', async () => {
    for (let n = 0; n < 20; n++) await publish(redis.client, idsOf(`part-${n}`, 1_000));
    let most = 0;
    const dispatcher = await start();
    receiver.answer = async () => {
      most = Math.max(most, await dispatcher.metric('in_hand_events'));
      return {};
    };
    await eventually('everything has arrived', () => receiver.accepted.size === 20_000, 50_000);
    await acknowledged();
    expect(most).to.be.within(100, 200);
  });

  it('L16 large events are limited by their size', async () => {
    const held: number[] = [];
    let inHand = 0;
    const backend: Backend = {
      batch: { maxEvents: 1_000, maxBytes: 100_000 },
      async deliver(deliveries) {
        held.push(deliveries.reduce((sum, { json }) => sum + json.length, 0));
        inHand = Math.max(inHand, await dispatcher.metric('in_hand_events'));
        await sleep(5);
        return deliveries.map(() => ({ kind: 'delivered' }));
      },
      close: () => Promise.resolve(),
    };
    await publish(redis.client, idsOf('large', 200), { response_body: 'x'.repeat(50_000) });
    const dispatcher = await start({}, { backend });
    await eventually('everything is delivered', async () => (await dispatcher.metric('delivered_total')) === 200);
    expect(Math.max(...held)).to.be.below(160_000);
  });

  it('L17 a dispatcher that stops removes its consumer name; idle names are removed, but never pending events', async () => {
    await publish(redis.client, ['one']);
    await takenBy('gone-with-something');
    await redis.client.xgroup('CREATECONSUMER', STREAM, GROUP, 'gone');
    const first = await start();
    await first.stop();
    expect(await consumers()).to.have.members(['gone', 'gone-with-something']);
    const second = await start({ DISPATCHER_CLAIM_IDLE: '200ms' });
    await arrived(['one']);
    await eventually('they are removed', async () => {
      second.clock.advance(500);
      return (await consumers()).length === 1;
    });
  });

  it('L17 a dispatcher with its own address is the same consumer after a restart, and takes up its pending events at once', async () => {
    const env = { DISPATCHER_LISTEN_ADDR: `127.0.0.1:${await freePort()}`, DISPATCHER_CLAIM_IDLE: '1h' };
    receiver.answer = () => new Promise(() => undefined);
    await publish(redis.client, idsOf('event', 20));
    const first = await start({ ...env, SHUTDOWN_GRACE: '0' });
    await eventually('it is in flight', () => receiver.posts.length > 0);
    const [name] = await consumers();
    await first.stop();
    receiver.answer = () => ({});
    await start(env);
    await arrived(idsOf('event', 20));
    expect(await consumers()).to.deep.equal([name]);
  });

  it('L17 events that a stopped dispatcher gives up are taken by another at once, and do not count as delivered', async () => {
    receiver.answer = () => ({ status: 503 });
    await publish(redis.client, idsOf('event', 20));
    const first = await start({ DISPATCHER_CLAIM_IDLE: '1h' });
    await eventually('it was requested', () => receiver.posts.length > 0);
    await first.stop();
    const state = (await redis.client.xpending(STREAM, GROUP, '-', '+', 20)) as [string, string, number, number][];
    expect(state.map(([, , , deliveries]) => deliveries)).to.deep.equal(Array<number>(20).fill(0));
    receiver.answer = () => ({});
    await start({ DISPATCHER_CLAIM_IDLE: '1h' });
    await arrived(idsOf('event', 20));
  });
});
