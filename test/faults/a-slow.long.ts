import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectRefusal, REQUEST_TIMEOUT } from '../support/refusals.js';
import { staged } from './support/stage.js';

const SECOND_MS = 1000;
// Ten seconds, and one until somebody looks; the rest is for a machine that has other things to do.
const WITHIN_MS = 13 * SECOND_MS;

// As shipped, and in Node's own time, which cannot be moved.
describe('A: clients that keep the daemon waiting', function () {
  this.timeout(30 * SECOND_MS);
  const { stage, it } = staged();

  const SLOW: Record<string, { begins: string; goesOn: string }> = {
    'A19 with a head that comes byte by byte': { begins: 'GET /v1/models HTTP/1.1\r\nX-Slow: ', goesOn: 'x' },
    'A19 with a head of field after field': { begins: 'GET /v1/models HTTP/1.1\r\n', goesOn: 'A: b\r\n' },
    'A20 and send nothing': { begins: '', goesOn: '' },
    'A37 with empty lines, one after the other': { begins: '', goesOn: '\r\n' },
  };
  for (const [what, { begins, goesOn }] of Object.entries(SLOW)) {
    it(`${what} get 408 and are closed after ten seconds`, async () => {
      const client = await stage.client(begins);
      const begunAtMs = performance.now();
      while (client.pending.length === 0 && performance.now() - begunAtMs < WITHIN_MS) {
        client.send(goesOn);
        await sleep(SECOND_MS / 4);
      }
      await eventually('it is answered', () => client.pending.length > 0);
      expect(performance.now() - begunAtMs).to.be.within(9 * SECOND_MS, WITHIN_MS);
      expectRefusal(await client.answer(), REQUEST_TIMEOUT);
      await client.closed;
      await stage.expectNothingSpent();
    });
  }
});
