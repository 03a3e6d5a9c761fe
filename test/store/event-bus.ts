/** Contract of every event bus. */
import { expect } from 'chai';
import type { EventBus } from '../../daemon/core/ports.js';
import { eventually } from '../support/eventually.js';
import { RequestFollower, requestNamed } from '../support/request-follower.js';

/** @param begin returns an empty bus. */
export function itIsAnEventBus(begin: () => Promise<EventBus>): void {
  let bus: EventBus;
  let followings: RequestFollower[];

  beforeEach(async () => {
    bus = await begin();
    followings = [];
  });
  afterEach(async () => {
    await Promise.all(followings.map((it) => it.leave()));
  });

  const publish = (...names: string[]) => {
    for (const name of names) bus.publish(requestNamed(name));
  };
  /** Publishes until the follower receives an event, which shows that it is following; it receives nothing published earlier. */
  async function followed(): Promise<RequestFollower> {
    const following = new RequestFollower(bus);
    followings.push(following);
    await eventually('the follower receives events', () => {
      if (following.names.length === 0) publish('probe');
      return following.names.length > 0;
    });
    await settled();
    following.names.length = following.places.length = 0;
    return following;
  }
  const settled = async () => {
    publish('last');
    await eventually('all events are delivered', () => followings.every((it) => it.names.at(-1) === 'last'));
  };
  const followAfter = (place: string) => {
    const following = new RequestFollower(bus, { after: place });
    followings.push(following);
    return following;
  };

  it('delivers events to all followers, in order, and counts them', async () => {
    const [one, other] = [await followed(), await followed()];
    one.names.length = one.places.length = 0;
    // The events with which the followers began may be delivered before they are counted.
    await eventually('earlier events are counted', () => bus.counts.buffered === 0);
    const { published } = bus.counts;
    const names = Array.from({ length: 700 }, (_, index) => `n${index}`);
    publish(...names);
    await eventually('all events are delivered', () => one.names.length === 700 && other.names.length === 700);
    expect(one.names).to.deep.equal(names);
    expect(other.names).to.deep.equal(names);
    expect(other.places).to.deep.equal(one.places);
    await eventually('all events are counted', () => bus.counts.published === published + 700);
    expect(bus.counts).to.include({ dropped: 0, failed: 0, buffered: 0 });
    expect(bus.isFailing).to.equal(false);
  });

  it('continues after any stored event, with the same text', async () => {
    const first = await followed();
    publish(...Array.from({ length: 300 }, (_, index) => `n${index}`));
    await eventually('all events are delivered', () => first.names.length === 300);
    for (const at of [0, 50, 298]) {
      const late = followAfter(first.places[at]!);
      await eventually('the rest is delivered', () => late.names.length === 299 - at);
      expect(late.places).to.deep.equal(first.places.slice(at + 1));
    }
    const latest = followAfter(first.places[299]!);
    publish('next');
    await eventually('the next event is delivered', () => latest.names.length === 1);
    expect(latest.names).to.deep.equal(['next']);
  });

  it('lists the stored events, newest first, from the newest or before any of them', async () => {
    const first = await followed();
    publish(...Array.from({ length: 300 }, (_, index) => `n${index}`));
    await eventually('all events are delivered', () => first.names.length === 300);
    const streamIdsBefore = async (before: string | null) => {
      const ids = [];
      for await (const events of bus.stored(before, 0)) ids.push(...events.map(({ streamId }) => streamId));
      return ids;
    };
    const newestFirst = [...first.places].reverse();
    expect((await streamIdsBefore(null)).slice(0, 300)).to.deep.equal(newestFirst);
    for (const at of [0, 1, 150, 298]) {
      const before = await streamIdsBefore(newestFirst[at]!);
      expect(before.slice(0, 299 - at)).to.deep.equal(newestFirst.slice(at + 1));
    }
    expect(await streamIdsBefore('1-1')).to.be.empty;
  });

  it('delivers the stored events since a time, then new ones, without a gap or a duplicate', async () => {
    const first = await followed();
    publish(...Array.from({ length: 250 }, (_, index) => `old${index}`));
    await eventually('all events are delivered', () => first.names.length === 250);
    const late = new RequestFollower(bus, { sinceMs: Date.now() - 1_000 });
    followings.push(late);
    publish(...Array.from({ length: 250 }, (_, index) => `new${index}`));
    await eventually('all events are delivered', () => late.names.at(-1) === 'new249' && first.names.length === 500);
    expect(late.places.slice(-500)).to.deep.equal(first.places);
    expect(new Set(late.places).size).to.equal(late.places.length);
  });

  it('begins with the oldest event for an unknown position', async () => {
    publish('a', 'b');
    const late = followAfter('1-1');
    await eventually('both events are delivered', () => late.names.length === 2);
    expect(late.names).to.deep.equal(['a', 'b']);
  });

  it('releases followers that leave, waiting or not', async () => {
    const following = await followed();
    await following.leave();
    publish('unheard');
    expect(following.names).to.be.empty;
  });
}
