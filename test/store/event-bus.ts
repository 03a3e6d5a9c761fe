/** What every event bus does. */
import { expect } from 'chai';
import type { EventBus } from '../../daemon/core/ports.js';
import { eventually } from '../support/eventually.js';
import { Following, requestNamed } from '../support/happenings.js';

/** @param begin gives a bus with nothing in it. */
export function itIsAnEventBus(begin: () => Promise<EventBus>): void {
  let bus: EventBus;
  let followings: Following[];

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
  /** Published while it looks is what shows that it does: of what comes before it, it hears nothing. */
  async function followed(): Promise<Following> {
    const following = new Following(bus);
    followings.push(following);
    await eventually('it hears', () => {
      if (following.names.length === 0) publish('probe');
      return following.names.length > 0;
    });
    await settled();
    following.names.length = following.places.length = 0;
    return following;
  }
  const settled = async () => {
    publish('last');
    await eventually('all are told', () => followings.every((it) => it.names.at(-1) === 'last'));
  };
  const behind = (place: string) => {
    const following = new Following(bus, place);
    followings.push(following);
    return following;
  };

  it('tells everyone who follows, in order, and counts', async () => {
    const [one, other] = [await followed(), await followed()];
    one.names.length = one.places.length = 0;
    const { published } = bus.counts;
    const names = Array.from({ length: 700 }, (_, index) => `n${index}`);
    publish(...names);
    await eventually('all are told', () => one.names.length === 700 && other.names.length === 700);
    expect(one.names).to.deep.equal(names);
    expect(other.names).to.deep.equal(names);
    expect(other.places).to.deep.equal(one.places);
    await eventually('all are counted', () => bus.counts.published === published + 700);
    expect(bus.counts).to.include({ dropped: 0, failed: 0, buffered: 0 });
    expect(bus.isFailing).to.equal(false);
  });

  it('goes on behind any event that is kept, with the same text', async () => {
    const first = await followed();
    publish(...Array.from({ length: 300 }, (_, index) => `n${index}`));
    await eventually('all are told', () => first.names.length === 300);
    for (const at of [0, 50, 298]) {
      const late = behind(first.places[at]!);
      await eventually('the rest is told', () => late.names.length === 299 - at);
      expect(late.places).to.deep.equal(first.places.slice(at + 1));
    }
    const latest = behind(first.places[299]!);
    publish('next');
    await eventually('what comes is told', () => latest.names.length === 1);
    expect(latest.names).to.deep.equal(['next']);
  });

  it('begins with the oldest for who was never there', async () => {
    publish('a', 'b');
    const late = behind('1-1');
    await eventually('both are told', () => late.names.length === 2);
    expect(late.names).to.deep.equal(['a', 'b']);
  });

  it('lets go of who leaves, waiting or not', async () => {
    const following = await followed();
    await following.leave();
    publish('unheard');
    expect(following.names).to.be.empty;
  });
}
