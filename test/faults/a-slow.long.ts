import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectRefusal, REQUEST_TIMEOUT } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';

const SECOND_MS = 1000;
// Ten seconds, and one until the next check. The rest is for a busy machine.
const WITHIN_MS = 13 * SECOND_MS;

// With default settings, and in Node's own time, which a test cannot move.
describe('A: clients that make the daemon wait', function () {
  this.timeout(30 * SECOND_MS);
  const { stage, it } = staged();

  const SLOW: Record<string, { begins: string; goesOn: string }> = {
    'A19 a head that arrives byte by byte': { begins: 'GET /v1/models HTTP/1.1\r\nX-Slow: ', goesOn: 'x' },
    'A19 a head that arrives header by header': { begins: 'GET /v1/models HTTP/1.1\r\n', goesOn: 'A: b\r\n' },
    'A20 a connection on which nothing is sent': { begins: '', goesOn: '' },
    'A37 one empty line after the other': { begins: '', goesOn: '\r\n' },
  };
  for (const [what, { begins, goesOn }] of Object.entries(SLOW)) {
    it(`${what}: 408 after ten seconds, and the connection closes`, async () => {
      const client = await stage.client(begins);
      const begunAtMs = performance.now();
      while (client.pending.length === 0 && performance.now() - begunAtMs < WITHIN_MS) {
        client.send(goesOn);
        await sleep(SECOND_MS / 4);
      }
      await eventually('the response has arrived', () => client.pending.length > 0);
      expect(performance.now() - begunAtMs).to.be.within(9 * SECOND_MS, WITHIN_MS);
      expectRefusal(await client.response(), REQUEST_TIMEOUT);
      await client.closed;
      await stage.expectNothingSpent();
    });
  }
});
