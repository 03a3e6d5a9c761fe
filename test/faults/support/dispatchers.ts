import { type TestDispatcher, type TestDispatcherOptions, startTestDispatcher } from '../../support/dispatcher.js';
import { GROUP, STREAM } from '../../support/events.js';
import { eventually } from '../../support/eventually.js';
import { perTest } from '../../support/per-test.js';
import { Receiver } from '../../support/receiver.js';
import { redisPerTest } from '../../support/redis.js';

/** For each test of a suite a Redis, the server of a webhook, and the dispatchers that the test starts, which deliver to it. */
export function dispatchersPerTest() {
  const running = new Set<TestDispatcher>();
  const redis = redisPerTest(() => Promise.all([...running].map((it) => it.stop())));
  const receiver = perTest(() => Receiver.start());
  const pending = async () => (await redis.client.xpending(STREAM, GROUP))[0] as number;
  return {
    redis,
    receiver,
    pending,
    start: async (env: Record<string, string> = {}, more: Partial<TestDispatcherOptions> = {}) => {
      const webhook = { DISPATCHER_SERVICE: 'webhook', DISPATCHER_ENDPOINT: receiver.url };
      const started = await startTestDispatcher({ redis, env: { ...webhook, ...env }, ...more });
      const dispatcher: TestDispatcher = {
        ...started,
        stop() {
          running.delete(dispatcher);
          return started.stop();
        },
      };
      running.add(dispatcher);
      return dispatcher;
    },
    acknowledged: () => eventually('everything is acknowledged', async () => (await pending()) === 0),
    arrived: (ids: readonly string[]) => eventually('everything has arrived', () => receiver.hasAll(ids), 30_000),
  };
}
