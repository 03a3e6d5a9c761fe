import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { EventJson } from '../../daemon/store/event-json.js';
import { temporaryFolder } from '../support/daemon.js';
import { startTestDispatcher } from '../support/dispatcher.js';
import { eventually } from '../support/eventually.js';
import { head } from '../support/raw.js';
import { TestRedis, needsRedis, WITHOUT_REDIS } from '../support/redis.js';
import { ProxyFixture } from '../support/proxy-fixture.js';

describe(`from a daemon to a backend${WITHOUT_REDIS}`, function () {
  this.timeout(60_000);

  needsRedis();

  it('an event is delivered for each request of a token, and for each change', async () => {
    const redis = await TestRedis.start();
    const path = join(temporaryFolder(), 'events.jsonl');
    const scene = await ProxyFixture.open({ REDIS_ADDR: redis.address });
    const dispatcher = await startTestDispatcher({ redis, env: { DISPATCHER_ENDPOINT: path } });
    const events = (): EventJson[] =>
      !existsSync(path)
        ? []
        : readFileSync(path, 'utf8')
            .split('\n')
            .slice(0, -1)
            .map((line) => JSON.parse(line) as EventJson);
    try {
      for (let n = 0; n < 5; n++) await scene.send(head(`GET /v1/models?n=${n}`, scene.secret));
      const requests = () => events().filter(({ kind }) => kind === 'request.completed');
      await eventually('all request events', () => requests().length === 5, 30_000);
      expect(requests().map(({ token_id: id }) => id)).to.deep.equal(Array<string>(5).fill(scene.token.id));
      await eventually('the event of the change', () => events().some(({ kind }) => kind === 'token.created'));
      expect(new Set(events().map(({ id }) => id)).size).to.equal(events().length);
      expect(await dispatcher.metric('dead_total')).to.equal(0);
    } finally {
      await dispatcher.stop();
      await scene.close();
      await redis.stop();
    }
  });
});
