/** Whether Redis answers, and keeps what is put into it. */
import { redisAddressFrom } from '../store/redis/address.js';
import { newClient } from '../store/redis/connection.js';
import {
  type Around,
  clockFinding,
  codeOf,
  failed,
  type Family,
  type Finding,
  ok,
  partOf,
  skipped,
  warning,
  WRONG_SETTINGS,
} from './doctor-finding.js';

const ANSWER_MS = 2_000;

type Redis = ReturnType<typeof newClient>;

export function redisFamily(around: Around): Family {
  return { check: 'redis', look: (signal) => redis(around, signal) };
}

async function* redis(around: Around, signal: AbortSignal): AsyncGenerator<Finding> {
  const settings = partOf(around, [
    'redisAddress',
    'redisDatabase',
    'redisUsername',
    'redisPassword',
    'redisTls',
    'eventBus',
  ]);
  const address = settings && redisAddressFrom(settings);
  if (!address) {
    yield skipped('redis', settings ? 'REDIS_ADDR is not set' : WRONG_SETTINGS);
    return;
  }
  const { host, port } = address;
  const where = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const client = newClient(address, { commandMs: ANSWER_MS, name: 'llmp-doctor' });
  let broken: unknown = null;
  client.on('error', (error: unknown) => (broken ??= error));
  const letGo = () => {
    client.disconnect();
  };
  signal.addEventListener('abort', letGo);
  try {
    await client.connect();
    const info = factsIn(await client.info());
    if (broken) throw broken as Error; // Such as a database that there is not.
    yield* findings(info, where, settings.eventBus === 'redis-streams', client);
  } catch (error) {
    const why = messageOf(broken ?? error);
    yield failed(
      'redis',
      `${where}: ${why}`,
      `redis-cli -h ${host} -p ${port}${address.isEncrypted ? ' --tls' : ''} ping`,
    );
  } finally {
    signal.removeEventListener('abort', letGo);
    letGo();
  }
}

async function* findings(
  info: ReadonlyMap<string, string>,
  where: string,
  hasEvents: boolean,
  client: Redis,
): AsyncGenerator<Finding> {
  const version = info.get('redis_version') ?? 'of unknown version';
  if (info.get('role') === 'slave') {
    yield failed(
      'redis',
      `${where}: Redis ${version}, a replica, which takes no writes`,
      'Set REDIS_ADDR to the primary',
    );
    return;
  }
  yield ok('redis', `${where}: Redis ${version}`);
  const askedMs = Date.now();
  const [seconds, micros] = await client.time();
  yield clockFinding('Redis', Number(seconds) * 1000 + Number(micros) / 1000, [askedMs, Date.now()]);
  yield memory(info, hasEvents);
  if (hasEvents) yield await persistence(info, client);
}

/** The stream of events never expires: a policy for all keys may take it as a whole, what is not dispatched included. */
function memory(info: ReadonlyMap<string, string>, hasEvents: boolean): Finding {
  const check = 'redis memory';
  const most = Number(info.get('maxmemory') ?? 0);
  const policy = info.get('maxmemory_policy') ?? 'unknown';
  if (most === 0) return ok(check, `no limit (maxmemory 0, ${policy})`);
  const shown = `maxmemory ${Math.round(most / 2 ** 20)} MiB, ${policy}`;
  if (hasEvents && policy.startsWith('allkeys')) {
    return warning(
      check,
      `${shown}: may evict the stream of events`,
      'redis-cli config set maxmemory-policy volatile-lru',
    );
  }
  if (policy === 'noeviction') {
    return warning(
      check,
      `${shown}: when it is full, what is cached keeps everything else out`,
      'redis-cli config set maxmemory-policy volatile-lru',
    );
  }
  return ok(check, shown);
}

/** Whether events outlive the process. */
async function persistence(info: ReadonlyMap<string, string>, client: Redis): Promise<Finding> {
  const check = 'redis persistence';
  const mend = 'redis-cli config set appendonly yes';
  for (const [fact, what] of [
    ['aof_last_write_status', 'the append-only file'],
    ['rdb_last_bgsave_status', 'the last snapshot'],
  ] as const) {
    if (info.has(fact) && info.get(fact) !== 'ok')
      return warning(check, `${what} could not be written`, 'redis-cli info persistence');
  }
  if (info.get('aof_enabled') === '1') return ok(check, 'append-only file');
  // Managed ones do not say.
  const save = await client.config('GET', 'save').then(
    (answer) => answer[1] ?? '',
    () => null,
  );
  if (save === null) return skipped(check, 'no append-only file, and it does not say whether it saves snapshots');
  if (save !== '') return ok(check, `snapshots (save ${save}): a crash forgets the events since the last`);
  return warning(
    check,
    'neither append-only file nor snapshots: with Redis all events go that are not dispatched',
    mend,
  );
}

const factsIn = (info: string) =>
  new Map([...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name = '', value = '']) => [name, value]));

const messageOf = (error: unknown) => (error instanceof Error && error.message !== '' ? error.message : codeOf(error));
