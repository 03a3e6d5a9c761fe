import { expect } from 'chai';
import type { RequestEnded } from '../../daemon/core/events.js';
import { factsOf } from '../../daemon/store/event-facts.js';
import { eventText } from '../../daemon/store/event-text.js';
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

  const FULL: RequestEnded = {
    requestId: 'r1',
    timeMs: 1_700_000_000_123,
    projectId: 'p1',
    tokenId: 't1',
    tokenName: 'CI job',
    projectName: 'web',
    obfuscated: 'sk-wt-1…2',
    clientIp: '192.0.2.1',
    method: 'POST',
    path: '/v1/chat/completions',
    status: 502,
    code: 'upstream_unreachable',
    problem: 'The provider cannot be reached.',
    outcome: 'upstream_error',
    isForwarded: true,
    cache: 'hit',
    durationMs: 12.25,
    upstreamMs: 11.5,
    firstByteMs: 11.75,
    bytesIn: 10,
    bytesOut: 5_000_000_000,
    streamed: true,
    costNano: 1_234_567,
    upstreamRequestId: 'req_1',
    model: 'gpt-x',
    usage: { promptTokens: 1, completionTokens: 2, totalTokens: 3, cacheReadTokens: 4, cacheWriteTokens: 5 },
    requestBody: null,
    responseBody: null,
  };
  const NO_COUNTS = {
    promptTokens: null,
    completionTokens: 0,
    totalTokens: null,
    cacheReadTokens: null,
    cacheWriteTokens: null,
  };
  const withoutId = (json: string) => ({ ...(JSON.parse(json) as object), id: '' });

  it('keeps each field of a request', async () => {
    const bus = new MemoryEventBus('i', new TestClock());
    const variants = [
      FULL,
      { ...FULL, costNano: null },
      { ...FULL, costNano: 8_999_999_123_456_789 },
      { ...SOME_REQUEST, tokenId: null, projectId: null, projectName: null },
      { ...FULL, isForwarded: false, cache: 'miss' as const, usage: NO_COUNTS },
      { ...FULL, requestId: 'r'.repeat(65), upstreamRequestId: 'é'.repeat(64) },
      { ...FULL, requestId: '', upstreamRequestId: '' },
      { ...FULL, requestId: 'r…', upstreamRequestId: null },
      { ...FULL, streamed: false, path: `/v1/${'x'.repeat(1_000)}` },
      { ...FULL, requestBody: 'asked', responseBody: 'answered' },
    ];
    for (const ended of variants) bus.publish({ kind: 'request', ended });
    const stored = [];
    for await (const events of bus.stored(null)) stored.push(...events);
    stored.reverse();
    expect(stored[0]?.facts).to.deep.equal(factsOf({ kind: 'request', ended: FULL }));
    expect(stored.map(({ json }) => withoutId(json))).to.deep.equal(
      variants.map((ended) => withoutId(eventText({ kind: 'request', ended }, 'i'))),
    );
  });

  it('keeps nothing of a request that was in the same place before', async () => {
    const bus = new MemoryEventBus('i', new TestClock());
    for (let i = 0; i < 10_000; i++) bus.publish({ kind: 'request', ended: FULL });
    const ended = { ...FULL, requestId: 'next', upstreamRequestId: null };
    bus.publish({ kind: 'request', ended });
    for await (const [newest] of bus.stored(null)) {
      expect(withoutId(newest?.json ?? '')).to.deep.equal(withoutId(eventText({ kind: 'request', ended }, 'i')));
      break;
    }
  });

  it('gives an event to all readers with the same ID, whoever reads it first', async () => {
    const bus = new MemoryEventBus('i', new TestClock());
    for (let i = 0; i < 3; i++) bus.publish(requestNamed(`n${i}`));
    const read = async () => {
      for await (const events of bus.stored(null)) return events;
      return [];
    };
    const [one, other] = [await read(), await read()];
    expect(one).to.have.length(3);
    expect(one.map(({ json }) => json)).to.deep.equal(other.map(({ json }) => json));
    expect((await read()).map(({ json }) => json)).to.deep.equal(one.map(({ json }) => json));
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
