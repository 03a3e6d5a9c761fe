import { expect } from 'chai';
import { MemoryEventBus } from '../../daemon/store/memory/event-bus.js';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { RequestFollower, requestNamed, SOME_REQUEST } from '../support/request-follower.js';
import { itIsAnEventBus } from './event-bus.js';

describe('the event bus in memory', () => {
  itIsAnEventBus(() => Promise.resolve(new MemoryEventBus('i', new TestClock())));

  async function storedEvents(bus: MemoryEventBus, count: number): Promise<string[]> {
    const late = new RequestFollower(bus, '1-1');
    await eventually(`${count} events are delivered`, () => late.names.length === count);
    await late.leave();
    return late.names;
  }

  it('keeps the last thousand events', async () => {
    const bus = new MemoryEventBus('i', new TestClock());
    for (let i = 0; i < 2_345; i++) bus.publish(requestNamed(`n${i}`));
    const names = await storedEvents(bus, 1_000);
    expect([names[0], names.at(-1)]).to.deep.equal(['n1345', 'n2344']);
  });

  it('keeps fewer events if they contain bodies, so that memory stays bounded', async () => {
    const bus = new MemoryEventBus('i', new TestClock());
    const ended = { ...SOME_REQUEST, requestBody: 'x'.repeat(300_000), responseBody: 'y'.repeat(100_000) };
    for (let i = 0; i < 100; i++) bus.publish({ kind: 'request', ended: { ...ended, requestId: `n${i}` } });
    const names = await storedEvents(bus, 40);
    expect([names[0], names.at(-1)]).to.deep.equal(['n60', 'n99']);
  });
});
