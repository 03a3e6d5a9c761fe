/** Kills whoever has a part in the delivery of events, at random points, and looks at what arrived. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { type DispatcherProcess, launchDispatcher } from '../../support/dispatcher-process.js';
import { DEAD, STREAM } from '../../support/events.js';
import { eventually } from '../../support/eventually.js';
import { seededRandom } from '../../support/model.js';
import { Receiver } from '../../support/receiver.js';
import { freePort } from '../../support/ports.js';
import { TestRedis } from '../../support/redis.js';

const PUBLISHER = join(import.meta.dirname, '../../support/publisher.js');
const GROUP = 'llmp-dispatchers';
const PATIENCE_MS = 60_000;

export interface Told {
  acknowledged: number;
  /** How many of these the back end was given more than once. */
  duplicates: number;
  dead: number;
  kills: Record<string, number>;
}

/** Publishes that Redis acknowledged to whoever publishes. */
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
 * @param count of kills, each of the publisher, of Redis (that writes each change to its disk) or of the dispatcher, and each after
 * something more was delivered.
 * @throws when an acknowledged event is neither at the back end nor a dead letter, or one came back as another.
 */
export async function killAtRandom(seed: number, count: number): Promise<Told> {
  const random = seededRandom(seed);
  const redis = await TestRedis.start('--appendonly', 'yes', '--appendfsync', 'always');
  const receiver = await Receiver.start();
  const bodies = new Map<string, string>();
  receiver.answer = async ({ ids, body }) => {
    // What is delivered again must be what it was; the post has it as it lies in the stream.
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
      await eventually(`something is delivered behind kill ${n}`, () => receiver.accepted.size > before, PATIENCE_MS);
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
    await eventually('all is delivered', isQuiet, PATIENCE_MS);
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
