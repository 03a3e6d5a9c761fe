import { expect } from 'chai';
import type { RequestEnded } from '../../daemon/core/events.js';
import type { AuditFile } from '../../daemon/store/audit-file/audit-file.js';
import { BEGINNING, type Head } from '../../daemon/store/audit-file/chain.js';
import { UseLog } from '../../daemon/store/audit-file/use-log.js';
import { silent } from '../support/cache-model/instance.js';
import { TestClock } from '../support/clock.js';
import { SOME_REQUEST } from '../support/request-follower.js';

describe('the log of uses', () => {
  it('is written every half second under load, not again and again', async () => {
    const clock = new TestClock({ standsStill: true });
    const ended: RequestEnded = { ...SOME_REQUEST, tokenId: 't' };
    const written: number[] = [];
    const file = {
      head: BEGINNING,
      maxBytes: Infinity,
      bytesWaiting: 0,
      whyFailing: null,
      ready: () => Promise.resolve(),
      recovered: () => undefined,
      append(bytes: Buffer, after: Head) {
        written.push(bytes.toString().split('\n').length - 1);
        this.head = after;
        // Requests end while each write is in progress, enough to be composed at once.
        for (let n = 0; n < 20; n++) log.record(ended);
        return new Promise((resolve) => setImmediate(resolve));
      },
    };
    const log: UseLog = new UseLog({ file: file as unknown as AuditFile, clock, log: silent });
    log.record(ended);
    const settled = async () => {
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    };
    clock.advance(500);
    await settled();
    expect(written).to.deep.equal([1]);
    clock.advance(500);
    await settled();
    expect(written).to.deep.equal([1, 20]);
    await log.flush();
    expect(written).to.deep.equal([1, 20, 20]);
  });
});
