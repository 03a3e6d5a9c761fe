/** A backend that is down while events are published, then recovers: what that costs the dispatcher, and how fast it catches up. */
import { readFileSync } from 'node:fs';
import { launchDispatcher } from '../../support/dispatcher-process.js';
import { GROUP, idsOf, publish, STREAM } from '../../support/events.js';
import { eventually } from '../../support/eventually.js';
import { Receiver } from '../../support/receiver.js';
import { TestRedis } from '../../support/redis.js';

const AT_ONCE = 1_000;
const CATCH_UP_WITHIN_MS = 900_000;

export interface OutageFigures {
  delivered: number;
  /** The number of events that were delivered more than once. */
  duplicates: number;
  perSecond: number;
  /** Resident memory of the dispatcher, in MB: before, the highest while the backend was down, and the highest afterwards. */
  memoryMb: { before: number; down: number; after: number };
}

/** @param events the number of events that are published while it is down. */
export async function runBackendOutage(events: number): Promise<OutageFigures> {
  const redis = await TestRedis.start();
  const receiver = await Receiver.start();
  let isDown = false;
  receiver.answer = () => {
    receiver.posts.length = 0;
    return { status: isDown ? 503 : 200 };
  };
  const dispatcher = launchDispatcher({
    REDIS_ADDR: redis.address,
    DISPATCHER_SERVICE: 'webhook',
    DISPATCHER_ENDPOINT: receiver.url,
  });
  const { child } = dispatcher;
  const memoryMb = () => {
    const status = readFileSync(`/proc/${child.pid ?? 0}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
  };
  try {
    // The first few thousand events also pay for what is made once, so they come before the measurement.
    await publish(redis.client, idsOf('warm', 3_000));
    await eventually('it is warm', () => receiver.accepted.size === 3_000, 60_000);
    receiver.accepted.clear();
    const figures = { before: memoryMb(), down: 0, after: 0 };

    isDown = true;
    for (let n = 0; n < events; n += AT_ONCE) {
      await publish(redis.client, idsOf(`event-${n}`, Math.min(AT_ONCE, events - n)));
      figures.down = Math.max(figures.down, memoryMb());
    }

    isDown = false;
    child.kill('SIGHUP'); // Makes it ask at once instead of in half a minute.
    const beganAtMs = performance.now();
    const sampling = setInterval(() => {
      figures.after = Math.max(figures.after, memoryMb());
    }, 200);
    await eventually('it has caught up', () => receiver.accepted.size === events, CATCH_UP_WITHIN_MS);
    const seconds = (performance.now() - beganAtMs) / 1000;
    await eventually('everything is acknowledged', async () => (await redis.client.xpending(STREAM, GROUP))[0] === 0);
    clearInterval(sampling);
    const duplicates = [...receiver.accepted.values()].filter((times) => times > 1).length;
    return {
      delivered: receiver.accepted.size,
      duplicates,
      perSecond: Math.round(events / seconds),
      memoryMb: figures,
    };
  } finally {
    await dispatcher.kill();
    await receiver.stop();
    await redis.stop();
  }
}
