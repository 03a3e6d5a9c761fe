import type { Script } from '../../../daemon/store/redis/connection.js';
import { RedisConnection } from '../../../daemon/store/redis/connection.js';
import { RedisResponseCache } from '../../../daemon/store/redis/response-cache.js';
import type { TestClock } from '../clock.js';
import type { TestRedis } from '../redis.js';
import type { StoreSetup } from './history.js';
import { silent } from './instance.js';

const key = Buffer.alloc(32, 7);
// As if the machine were never busy: operations in progress finish before the clock moves.
const COMMAND_MS = 10_000;

/** Histories in a Redis that instances share, each with its own connection. */
export function inRedis(redis: TestRedis): (clock: TestClock, instances: number) => Promise<StoreSetup> {
  return async (clock, instances) => {
    let underWay = 0;
    const connections = Array.from({ length: instances }, () => {
      const connection = new RedisConnection({ address: redis.at(), clock, log: silent, commandMs: COMMAND_MS });
      const run = connection.run.bind(connection);
      connection.run = async (script: Script, args) => {
        underWay += 1;
        return run(script, args).finally(() => (underWay -= 1));
      };
      return connection;
    });
    const stores = connections.map((connection) => new RedisResponseCache({ connection, clock, key }));
    await Promise.all(connections.map((connection) => connection.open()));
    const idle = async () => {
      for (let quiet = 0; quiet < 4; quiet++) {
        await new Promise((resolve) => setImmediate(resolve));
        if (underWay > 0) quiet = -1;
      }
    };
    return {
      stores,
      agesByClock: false, // By Redis's own clock.
      tellsOthersWithinMs: 5,
      idle,
      fills: () => redis.client.zcard('llmp:cache:fills'),
      async close() {
        await Promise.all(stores.map((store) => store.close()));
        for (const connection of connections) connection.close();
      },
    };
  };
}
