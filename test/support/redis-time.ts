/** The time of Redis for the limits of tokens and projects, which no test can move there. */
import { RedisConnection, type Script } from '../../daemon/store/redis/connection.js';
import type { TestRedis } from './redis.js';

/** Scripts of the limits that connections of this process send find the time moved by `aheadMs`, which is whole seconds. */
export function moveRedisTime(): { aheadMs: number } {
  const moved = { aheadMs: 0 };
  const connection = RedisConnection.prototype;
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with the connection
  const { run, onConnect } = connection;
  const atTime = (script: Script): Script => {
    if (!script.name.startsWith('llmpLimits')) return script;
    const asked = "local time = redis.call('TIME')";
    const lua = script.lua.replace(asked, `${asked}\n  time[1] = time[1] + ${moved.aheadMs / 1_000}`);
    return { ...script, lua, keepsOrder: true };
  };
  before(() => {
    connection.run = function (script, args) {
      return run.call(this, atTime(script), args);
    };
    connection.onConnect = function (listener) {
      onConnect.call(this, (connected) =>
        listener({ ...connected, run: (script, args) => connected.run(atTime(script), args) }),
      );
    };
  });
  after(() => {
    Object.assign(connection, { run, onConnect });
  });
  return moved;
}

/** As if instances had been counting limits in it for long: otherwise the first minute counts as full. */
export async function hasCountedLimits({ client }: TestRedis): Promise<void> {
  const run = /run_id:(\w+)/.exec(await client.info('server'))?.[1] ?? '';
  await client.hset('llmp:limits:begun', 'run', run, 'at', 0);
  await client.zadd('llmp:limits:leases', '+inf', '');
}
