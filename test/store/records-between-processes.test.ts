import { expect } from 'chai';
import { deserialize, serialize } from 'node:v8';
import type { RequestEnded } from '../../daemon/core/events.js';
import { EndedRecords, decoded, encoded } from '../../daemon/store/ipc/records.js';
import { recordingLog } from '../support/daemon.js';
import { SOME_REQUEST } from '../support/request-follower.js';
import { TestClock } from '../support/clock.js';

/** As the channel of `node:cluster` carries them. */
const carried = (records: readonly RequestEnded[]) => decoded(deserialize(serialize(encoded(records))) as never);

const EMPTY: RequestEnded = {
  ...SOME_REQUEST,
  ...{ projectId: null, projectName: null, tokenId: null, tokenName: null, obfuscated: null, clientIp: null },
  ...{ upstreamMs: null, firstByteMs: null, upstreamRequestId: null, model: null, usage: null },
  costNano: null,
  ...{ code: 'invalid_token', problem: 'The token is unknown.', isForwarded: false, streamed: false },
};
const FULL: RequestEnded = {
  ...SOME_REQUEST,
  ...{
    projectName: 'Früh 早い',
    tokenName: '',
    upstreamRequestId: 'req-é',
    model: 'm',
    streamed: true,
    isForwarded: true,
    isModelAnswered: true,
  },
  ...{ requestBody: '{"a":"早"}', responseBody: '', upstreamMs: 0, firstByteMs: 0.25 },
  ...{ obfuscated: 'sk-wt-1…2', bytesIn: 3, bytesOut: 5_000_000_000 },
  usage: { promptTokens: 0, completionTokens: 6, totalTokens: 7, cacheReadTokens: 2, cacheWriteTokens: null },
  costNano: 1_234_567_890_123,
};

describe('records on their way from a worker to its primary', () => {
  it('arrive as they were, in their order', () => {
    const records = [FULL, EMPTY, SOME_REQUEST, { ...FULL, requestId: 'another', responseBody: null, requestBody: '' }];
    expect(carried(records)).to.deep.equal(records);
  });

  it('arrive with each a text of its own, as many as travel together', () => {
    const records = Array.from({ length: 256 }, (_, n) => ({
      ...FULL,
      ...{ requestId: `r${n}`, path: `/v1/${n}`, model: `m${n}`, projectId: `p${n}`, tokenId: `t${n}` },
      ...{ clientIp: `10.0.0.${n}`, requestBody: `asked ${n}`, responseBody: `said ${n}`, problem: `problem ${n}` },
    }));
    expect(carried(records)).to.deep.equal(records);
  });

  it('takes no longer for long paths that differ only at their end', () => {
    const records = (length: number) =>
      Array.from({ length: 256 }, (_, n) => ({ ...FULL, path: `${'a'.repeat(length)}${String(n).padStart(3, '0')}` }));
    const msOf = (measured: RequestEnded[]) => {
      for (const { path } of measured) Buffer.from(path); // As one piece of memory, as they arrive.
      const start = performance.now();
      encoded(measured);
      return performance.now() - start;
    };
    encoded(records(100));
    expect(carried(records(40_000))).to.deep.equal(records(40_000));
    // Hundreds of ms if each is compared with all others.
    expect(Math.min(...[1, 2, 3].map(() => msOf(records(40_000))))).to.be.below(50);
  });

  it('carries names that they have in common once', () => {
    const named = { ...FULL, projectName: 'p'.repeat(200), requestBody: null };
    const size = (count: number) => serialize(encoded(Array.from({ length: count }, () => named))).length;
    expect(size(100) - size(1)).to.be.below(99 * 300);
  });

  it('drops records while the primary takes none, and says how many', async () => {
    const clock = new TestClock();
    const { log, logged } = recordingLog();
    const taken: (() => void)[] = [];
    const sent: number[] = [];
    const records = new EndedRecords({
      send: (batch) => {
        sent.push(decoded(batch).length);
        return new Promise<void>((resolve) => taken.push(resolve));
      },
      clock,
      log,
    });
    const large = { ...FULL, responseBody: 'x'.repeat(17_000_000) };
    for (const each of [large, large, FULL, FULL]) {
      records.record(each);
      records.flush();
    }
    expect(sent).to.deep.equal([1, 1]);
    for (const take of taken) take();
    await new Promise(setImmediate);
    records.record(FULL);
    records.flush();
    expect(sent).to.deep.equal([1, 1, 1]);
    expect(logged.join('\n'))
      .to.match(/does not take records/)
      .and.to.match(/were dropped.*2/);
  });
});
