/** Kills the processes that deliver events, at random points, and checks which events arrived. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { type DispatcherProcess, launchDispatcher } from '../../support/dispatcher-process.js';
import { DEAD, GROUP, STREAM } from '../../support/events.js';
import { eventually } from '../../support/eventually.js';
import { seededRandom } from '../../support/model.js';
import { Receiver } from '../../support/receiver.js';
import { freePort } from '../../support/ports.js';
import { TestRedis } from '../../support/redis.js';

const PUBLISHER = join(import.meta.dirname, '../../support/publisher.js');
const PATIENCE_MS = 60_000;

export interface DeliveryReport {
  acknowledged: number;
  /** How many of these the backend received more than once. */
  duplicates: number;
  dead: number;
  kills: Record<string, number>;
}

/** The publishers, and the events that Redis acknowledged to them. */
class Publishers {
  readonly #port: number;
  readonly acknowledged: string[] = [];
  #child: ChildProcess | null = null;
  #count = 0;

  constructor(port: number) {
    this.#port = port;
  }

  start(): void {
    const args = [PUBLISHER, String(this.#port), `publisher-${this.#count++}`];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    createInterface(child.stdout).on('line', (id) => this.acknowledged.push(id));
    this.#child = child;
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child) return;
    this.#child = null;
    const gone = once(child, 'close');
    child.kill('SIGKILL');
    await gone;
  }
}

/**
 * @param count the number of kills: of the publisher, of Redis (which writes each change to its disk) or of the dispatcher, each after some
 * more events were delivered. @throws if an acknowledged event is neither at the backend nor a dead letter, or arrived again with another
 * content.
 */
export async function killAtRandom(seed: number, count: number): Promise<DeliveryReport> {
  const random = seededRandom(seed);
  const redis = await TestRedis.start('--appendonly', 'yes', '--appendfsync', 'always');
  const receiver = await Receiver.start();
  const bodies = new Map<string, string>();
  receiver.answer = async ({ ids, body }) => {
    // An event that is delivered again must be unchanged. The request has it as it is in the stream.
    const { events } = JSON.parse(body) as { events: unknown[] };
    ids.forEach((id, index) => {
      const json = JSON.stringify(events[index]);
      expect(bodies.get(id) ?? json).to.equal(json);
      bodies.set(id, json);
    });
    receiver.posts.length = 0;
    await sleep(random() * 30);
    return { status: random() < 0.05 ? 503 : 200 };
  };
  const env = {
    REDIS_ADDR: redis.address,
    DISPATCHER_SERVICE: 'webhook',
    DISPATCHER_ENDPOINT: receiver.url,
    DISPATCHER_LISTEN_ADDR: `127.0.0.1:${await freePort()}`,
    DISPATCHER_CLAIM_IDLE: '2s',
  };
  const publishers = new Publishers(redis.port);
  let dispatcher: DispatcherProcess = launchDispatcher(env);
  publishers.start();
  const kills: Record<string, number> = { publisher: 0, redis: 0, dispatcher: 0 };
  try {
    for (let n = 0; n < count; n++) {
      const before = receiver.accepted.size;
      await eventually(`events are delivered after kill ${n}`, () => receiver.accepted.size > before, PATIENCE_MS);
      await sleep(random() * 150);
      const victim = ['publisher', 'redis', 'dispatcher', 'dispatcher'][Math.floor(random() * 4)]!;
      kills[victim] = (kills[victim] ?? 0) + 1;
      if (victim === 'publisher') {
        await publishers.kill();
        publishers.start();
      } else if (victim === 'redis') {
        await redis.kill();
        await redis.begin();
      } else {
        await dispatcher.kill();
        dispatcher = launchDispatcher(env);
      }
    }
    await publishers.kill();
    const isQuiet = async () => {
      const [group] = (await redis.client.xinfo('GROUPS', STREAM)) as unknown[][];
      const lag = group![group!.indexOf('lag') + 1];
      return lag === 0 && (await redis.client.xpending(STREAM, GROUP))[0] === 0;
    };
    await eventually('everything is delivered', isQuiet, PATIENCE_MS);
    const dead = (await redis.client.xrange(DEAD, '-', '+')).map(([, fields]) => fields[1]!);
    const setAside = new Set(dead.map((json) => (JSON.parse(json) as { id: string }).id));
    const { acknowledged } = publishers;
    const lost = acknowledged.filter((id) => !receiver.accepted.has(id) && !setAside.has(id));
    expect(lost, 'events that were lost').to.deep.equal([]);
    const duplicates = [...receiver.accepted.values()].filter((times) => times > 1).length;
    return { acknowledged: acknowledged.length, duplicates, dead: setAside.size, kills };
  } finally {
    await publishers.kill();
    await dispatcher.kill();
    await receiver.stop();
    await redis.stop();
  }
}
