import { expect } from 'chai';
import { head, RawClient } from '../support/raw.js';
import { sumOf } from '../support/scrape.js';
import { restartRepeatedly } from './support/restarts.js';
import { ServedDaemon } from './support/served-daemon.js';

const SOAK_MS = 120_000;
const CLIENTS = 400;
const BODY_BYTES = 400_000;

describe('M: a process, long tests', function () {
  this.timeout(900_000);

  it('M05 a hundred kills and stops: no file is left, and the daemon starts each time', async () => {
    await (await restartRepeatedly(100)).stop();
  });

  it('M08 more requests than fit in the heap: some are refused, and the process lives', async () => {
    const served = await ServedDaemon.start({
      // On Node 24, the young generation alone could be larger than that.
      nodeOptions: ['--max-old-space-size=64', '--max-semi-space-size=16'],
      env: {
        ENABLE_METRICS: 'true',
        HTTP_CACHE_ENABLED: 'true',
        OBSERVABILITY_CAPTURE_BODIES: 'true',
        LLM_PROXY_EVENT_BUS: 'in-memory',
        LOG_LEVEL: 'info',
      },
    });
    // Many small strings, because buffers are not part of the heap.
    const body = JSON.stringify({ model: 'm', input: Array.from({ length: BODY_BYTES / 20 }, (_, n) => `word ${n}`) });
    const seen = new Map<number, number>();
    const until = performance.now() + SOAK_MS;
    const calling = Array.from({ length: CLIENTS }, async () => {
      while (performance.now() < until) {
        const client = await RawClient.to(served.url);
        const fields = { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(body)) };
        client.send(head('POST /v1/echo', served.secret, fields) + body);
        const { status } = await client.response();
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
