import { expect } from 'chai';
import { MemoryEventBus } from '../../daemon/store/memory/event-bus.js';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { RequestFollower, requestNamed, SOME_REQUEST } from '../support/request-follower.js';
import { itIsAnEventBus } from './event-bus.js';

describe('the event bus in memory', () => {
  itIsAnEventBus(() => Promise.resolve(new MemoryEventBus('i', new TestClock())));

  async function storedEvents(bus: MemoryEventBus, count: number): Promise<string[]> {
    const late = new RequestFollower(bus, { after: '1-1' });
    await eventually(`${count} events are delivered`, () => late.names.length === count);
    await late.leave();
    return late.names;
  }

  it('keeps the last ten thousand events', async () => {
    const bus = new MemoryEventBus('i', new TestClock());
    for (let i = 0; i < 12_345; i++) bus.publish(requestNamed(`n${i}`));
    const names = await storedEvents(bus, 10_000);
    expect([names[0], names.at(-1)]).to.deep.equal(['n2345', 'n12344']);
  });

  it('keeps fewer events if they contain bodies, so that memory stays bounded', async () => {
    const bus = new MemoryEventBus('i', new TestClock());
    const ended = { ...SOME_REQUEST, requestBody: 'x'.repeat(300_000), responseBody: 'y'.repeat(100_000) };
    for (let i = 0; i < 100; i++) bus.publish({ kind: 'request', ended: { ...ended, requestId: `n${i}` } });
    const names = await storedEvents(bus, 39);
    expect([names[0], names.at(-1)]).to.deep.equal(['n61', 'n99']);
  });

  it('counts the paths, and the JSON of events that were read, too', async () => {
    const bus = new MemoryEventBus('i', new TestClock());
    const path = `/${'"'.repeat(7_000)}`;
    const publish = (name: string) => {
      bus.publish({ kind: 'request', ended: { ...SOME_REQUEST, requestId: name, path } });
    };
    const stored = async () => {
      let characters = 0;
      let count = 0;
      for await (const events of bus.stored(null)) {
        for (const { json } of events) characters += json.length;
        count += events.length;
      }
      return { characters, count };
    };
    for (let i = 0; i < 5_000; i++) publish(`n${i}`);
    // As JSON the quotes take twice as much.
    const before = await stored();
    expect(before.count).to.equal(Math.floor(16_000_000 / (7_001 + 900)));
    publish('next');
    const after = await stored();
    expect(after.count).to.be.below(before.count);
    expect(after.characters).to.be.within(15_000_000, 16_100_000);
  });
});
