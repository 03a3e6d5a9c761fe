/** A dispatcher in this process, with its own Redis. */
import { type Dispatcher, startDispatcher } from '../../daemon/dispatcher/dispatcher.js';
import { type Backend, openBackend } from '../../daemon/dispatcher/backends/backend.js';
import { loadDispatcherSettings } from '../../daemon/dispatcher/settings.js';
import { TestClock } from './clock.js';
import { recordingLog } from './daemon.js';
import type { TestRedis } from './redis.js';

export interface TestDispatcher extends Dispatcher {
  clock: TestClock;
  /** Every log line so far. */
  logged: string[];
  /** The value of a metric, such as `delivered_total` or `trimmed_total{state="unread"}`. */
  metric(name: string): Promise<number>;
  /** The response of a probe. */
  probe(path: string): Promise<{ status: number; body: string }>;
}

export interface TestDispatcherOptions {
  redis: TestRedis;
  env?: Record<string, string>;
  /** In place of the one in the settings. */
  backend?: Backend;
  isOnce?: boolean;
}

export async function startTestDispatcher({
  redis,
  env = {},
  backend,
  isOnce,
}: TestDispatcherOptions): Promise<TestDispatcher> {
  const all = { REDIS_ADDR: redis.address, DISPATCHER_LISTEN_ADDR: '127.0.0.1:0', ...env };
  const { settings } = loadDispatcherSettings({ env: all });
  const clock = new TestClock();
  const { log, logged } = recordingLog();
  const { dispatcherService, dispatcherEndpoint: endpoint, dispatcherApiKey: apiKey } = settings;
  const dispatcher = await startDispatcher({
    settings,
    backend: backend ?? (await openBackend(dispatcherService, { endpoint, apiKey, clock, log, version: '0' })),
    clock,
    log,
    ...(isOnce && { isOnce }),
  });
  return {
    ...dispatcher,
    clock,
    logged,
    async metric(name) {
      const text = await dispatcher.metrics.registry.metrics();
      const line = text.split('\n').find((it) => it.startsWith(`llmp_dispatcher_${name} `));
      return Number(line?.split(' ').at(-1));
    },
    async probe(path) {
      const { address } = dispatcher;
      if (address === null || typeof address === 'string') throw new Error('it does not listen on a port');
      const answer = await fetch(`http://127.0.0.1:${address.port}${path}`);
      return { status: answer.status, body: await answer.text() };
    },
  };
}
