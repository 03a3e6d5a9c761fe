import { expect } from 'chai';
import { head, RawClient } from '../support/raw.js';
import { sumOf } from '../support/scrape.js';
import { restartOften } from './support/restarts.js';
import { Served } from './support/served.js';

const SOAK_MS = 120_000;
const CLIENTS = 400;
const BODY_BYTES = 400_000;

describe('M: a process, for long', function () {
  this.timeout(900_000);

  it('M05 that is killed or stopped a hundred times leaves no file behind, and starts each time', async () => {
    await (await restartOften(100)).stop();
  });

  it('M08 that is asked for more than its heap holds refuses some, and lives', async () => {
    const served = await Served.start({
      // On Node 24 what is young alone could be more than that.
      nodeOptions: ['--max-old-space-size=64', '--max-semi-space-size=16'],
      env: {
        ENABLE_METRICS: 'true',
        HTTP_CACHE_ENABLED: 'true',
        OBSERVABILITY_CAPTURE_BODIES: 'true',
        LLM_PROXY_EVENT_BUS: 'in-memory',
        LOG_LEVEL: 'info',
      },
    });
    // Many small strings: what lies in buffers is beside the heap.
    const body = JSON.stringify({ model: 'm', input: Array.from({ length: BODY_BYTES / 20 }, (_, n) => `word ${n}`) });
    const seen = new Map<number, number>();
    const until = performance.now() + SOAK_MS;
    const calling = Array.from({ length: CLIENTS }, async () => {
      while (performance.now() < until) {
        const client = await RawClient.to(served.url);
        const fields = { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(body)) };
        client.send(head('POST /v1/echo', served.secret, fields) + body);
        const { status } = await client.answer();
        seen.set(status, (seen.get(status) ?? 0) + 1);
        client.destroy();
      }
    });
    await Promise.all(calling);
    expect([...seen.keys()].filter((status) => status !== 200 && status !== 503)).to.deep.equal([]);
    expect(seen.get(200)).to.be.above(1_000);
    expect(sumOf(await served.metrics(), 'llmp_requests_shed_total')).to.equal(seen.get(503) ?? 0);
    expect(served.process.child.exitCode).to.equal(null);
    await served.stop();
  });
});
