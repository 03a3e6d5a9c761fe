import { expect } from 'chai';
import { canary, secretsIn } from '../support/canaries.js';
import { startTestDispatcher, type TestDispatcher } from '../support/dispatcher.js';
import { changeEvent, requestEvent } from '../support/event-json.js';
import { GROUP, STREAM } from '../support/events.js';
import { perTest } from '../support/per-test.js';
import { json, startProvider } from '../support/provider.js';
import { redisPerTest, WITHOUT_REDIS } from '../support/redis.js';

const PATHS = { lunary: '/v1/runs/ingest', helicone: '/custom/v1/log', otlp: '/v1/traces' };

describe(`a dispatcher for a vendor${WITHOUT_REDIS}`, function () {
  this.timeout(60_000);
  let dispatcher: TestDispatcher | undefined;
  const redis = redisPerTest(() => dispatcher?.stop());
  const vendor = perTest(startProvider);

  for (const [service, path] of Object.entries(PATHS)) {
    it(`delivers every request to ${service} once, and acknowledges all events`, async () => {
      const key = canary('dispatcher');
      vendor.answer = (_req, res, { body }) => {
        const { events = [] } = JSON.parse(body.toString()) as { events?: { runId: string }[] };
        json(res, 200, { results: events.map(({ runId }) => ({ id: runId, success: true })) });
      };
      const requests = Array.from({ length: 150 }, () => requestEvent());
      for (const event of [changeEvent(), ...requests]) {
        await redis.client.xadd(STREAM, '*', 'event', JSON.stringify(event));
      }
      const env = { DISPATCHER_SERVICE: service, DISPATCHER_ENDPOINT: vendor.url, DISPATCHER_API_KEY: key };
      dispatcher = await startTestDispatcher({ redis, env, isOnce: true });
      expect(await dispatcher.done).to.equal('done');

      const posted = vendor.received.filter(({ url }) => url === path).map(({ body }) => body.toString());
      for (const { id } of requests) {
        const known = service === 'otlp' ? `"traceId":"${id.replaceAll('-', '')}"` : id;
        expect(posted.filter((body) => body.includes(known))).to.have.length(1);
      }
      expect(await redis.client.xpending(STREAM, GROUP)).to.include(0);
      expect(await dispatcher.metric('delivered_total')).to.equal(151);
      expect(secretsIn(dispatcher.logged.join('\n'))).to.be.empty;
      expect(secretsIn(posted.join('\n'))).to.be.empty;
    });
  }
});
