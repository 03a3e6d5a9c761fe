/**
 * A process that publishes events without end, to be killed: `publisher.js PORT PREFIX`. It prints each id once Redis has
 * acknowledged the event. What was not acknowledged it publishes again, with the same id.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { eventOf, STREAM } from './events.js';

const [port, prefix] = process.argv.slice(2);
const redis = new Redis({ port: Number(port), host: '127.0.0.1', protocol: 2, retryStrategy: () => 20 });
redis.on('error', () => undefined); // Redis is killed, too.

for (let n = 0; ; n++) {
  const id = `${prefix}-${n}`;
  while (!(await redis.xadd(STREAM, '*', 'event', JSON.stringify(eventOf(id))).catch(() => null))) await sleep(20);
  process.stdout.write(`${id}\n`);
  await sleep(4);
}
