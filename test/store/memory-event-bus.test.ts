import { expect } from 'chai';
import type { RequestEnded } from '../../daemon/core/events.js';
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
    const { timeMs, projectId, tokenId, status, code, outcome, model, durationMs } = FULL;
    expect(stored[0]?.facts).to.deep.equal({
      ...{ kind: 'request.completed', timeMs, projectId, tokenId, status, code, outcome, model, durationMs },
    });
    expect(stored.map(({ json }) => withoutId(json))).to.deep.equal(
      variants.map((ended) => withoutId(eventText({ kind: 'request', ended }, 'i'))),
    );
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

  it('counts the bytes of long paths, too, and keeps the order of small and large events', async () => {
    const bus = new MemoryEventBus('i', new TestClock());
    const pathOf = (n: number) => `/${(n % 3 === 0 ? '"é' : 'x').repeat(n % 7 === 0 ? 30_000 : 2_000)}`;
    for (let n = 0; n < 5_000; n++)
      bus.publish({ kind: 'request', ended: { ...SOME_REQUEST, requestId: `n${n}`, path: pathOf(n) } });
    let bytes = 0;
    const read: { request_id: string; path: string }[] = [];
    for await (const events of bus.stored(null)) {
      for (const { json } of events) {
        bytes += Buffer.byteLength(json);
        read.push(JSON.parse(json) as (typeof read)[0]);
      }
    }
    expect(bytes).to.be.within(15_700_000, 16_000_000);
    const expected = read.map((_, index) => ({ request_id: `n${4_999 - index}`, path: pathOf(4_999 - index) }));
    expect(read.map(({ request_id, path }) => ({ request_id, path }))).to.deep.equal(expected);
  });
});
