/**
 * A process that publishes events continuously, until it is killed: `publisher.js PORT PREFIX`. It prints each ID once Redis has
 * acknowledged the event. It publishes unacknowledged events again, with the same ID.
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
