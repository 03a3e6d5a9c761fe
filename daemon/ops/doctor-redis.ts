/** Doctor checks of Redis: whether it is available, and whether it preserves events. */
import type { AllSettings } from '../../config/settings.js';
import { redisAddressFrom } from '../store/redis/address.js';
import { newClient } from '../store/redis/connection.js';
import { factsOf, misfitIn, type ServerFacts } from '../store/redis/server-facts.js';
import {
  type DoctorContext,
  checksWith,
  clockFinding,
  failed,
  type CheckGroup,
  type Finding,
  messageOf,
  ok,
  skipped,
  warning,
} from './doctor-finding.js';

const RESPONSE_MS = 2_000;

type Redis = ReturnType<typeof newClient>;

const NEEDED = [
  'redisAddress',
  'redisDatabase',
  'redisUsername',
  'redisPassword',
  'redisTls',
  'eventBus',
  'databaseDriver',
] as const;

export const redisChecks = (context: DoctorContext): CheckGroup => checksWith('redis', context, NEEDED, redis);

async function* redis(
  settings: Pick<AllSettings, (typeof NEEDED)[number]>,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const address = redisAddressFrom(settings);
  if (!address) {
    yield skipped('redis', 'REDIS_ADDR is not set');
    return;
  }
  const { host, port } = address;
  const where = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const client = newClient(address, { commandMs: RESPONSE_MS, name: 'llmp-doctor' });
  let broken: unknown = null;
  client.on('error', (error: unknown) => (broken ??= error));
  const disconnect = () => {
    client.disconnect();
  };
  signal.addEventListener('abort', disconnect);
  try {
    await client.connect();
    const facts = await factsOf(client);
    if (broken) throw broken as Error; // For example a database number that does not exist.
    yield* findings(facts, where, settings, client);
  } catch (error) {
    const why = messageOf(broken ?? error);
    yield failed(
      'redis',
      `${where}: ${why}`,
      /\bNOPERM\b|No permissions/i.test(why)
        ? 'Give the user of REDIS_USERNAME all commands that are not dangerous, on the keys and channels of llmp: +@all -@dangerous ~llmp:* &llmp:*'
        : `Test the connection: redis-cli -h ${host} -p ${port}${address.isEncrypted ? ' --tls' : ''} ping`,
    );
  } finally {
    signal.removeEventListener('abort', disconnect);
    disconnect();
  }
}

async function* findings(
  { version: known, isReplica, misfit, info }: ServerFacts,
  where: string,
  settings: Pick<AllSettings, 'eventBus' | 'databaseDriver'>,
  client: Redis,
): AsyncGenerator<Finding> {
  const hasEvents = settings.eventBus === 'redis-streams';
  const version = known ?? 'of unknown version';
  const unfit = misfit ?? (await misfitAtWork(client));
  if (unfit !== null) {
    const [what = '', advice = ''] = unfit.split('. ');
    yield failed('redis', `${where}: Redis ${version}: ${what}`, `Set REDIS_ADDR: ${advice}`);
    return;
  }
  if (isReplica) {
    yield failed(
      'redis',
      `${where}: Redis ${version} is a replica, which accepts no writes`,
      'Set REDIS_ADDR to the primary',
    );
    return;
  }
  yield ok('redis', `${where}: Redis ${version}`);
  const askedMs = Date.now();
  const [seconds, micros] = await client.time();
  yield clockFinding('Redis', Number(seconds) * 1000 + Number(micros) / 1000, [askedMs, Date.now()]);
  if (info === null) {
    yield skipped('redis memory', 'not checked: this user may not run INFO, which llmp itself does not need');
    return;
  }
  yield memory(info, [
    ...(hasEvents ? ['the event stream'] : []),
    ...(settings.databaseDriver === 'sqlite' ? [] : ['the counts of limits']),
  ]);
  if (hasEvents) yield await persistence(info, client);
}

/** Asks as the daemon does: in scripts, for keys that they do not declare. @throws if this user may not, with the reply. */
async function misfitAtWork(client: Redis): Promise<string | null> {
  const look = "for n = 1, 16 do redis.call('EXISTS', 'llmp:cache:' .. n) end";
  try {
    await client.eval(look, 0);
    return null;
  } catch (error) {
    const misfit = error instanceof Error ? misfitIn(error.message) : null;
    if (misfit === null) throw error;
    return misfit;
  }
}

/** @param lasting what has no expiry. A policy for all keys can evict it, such as the whole stream with its undelivered events. */
function memory(info: ReadonlyMap<string, string>, lasting: readonly string[]): Finding {
  const check = 'redis memory';
  const maxMemory = Number(info.get('maxmemory') ?? 0);
  const policy = info.get('maxmemory_policy') ?? 'unknown';
  if (maxMemory === 0) return ok(check, `no limit (maxmemory 0, ${policy})`);
  const shown = `maxmemory ${Math.round(maxMemory / 2 ** 20)} MiB, ${policy}`;
  if (lasting.length > 0 && policy.startsWith('allkeys')) {
    return warning(
      check,
      `${shown}: may evict ${lasting.join(' and ')}`,
      'redis-cli config set maxmemory-policy volatile-lru',
    );
  }
  if (policy === 'noeviction') {
    return warning(
      check,
      `${shown}: when the memory is full of cached responses, Redis refuses all other writes`,
      'redis-cli config set maxmemory-policy volatile-lru',
    );
  }
  return ok(check, shown);
}

/** Whether events survive a restart of Redis. */
async function persistence(info: ReadonlyMap<string, string>, client: Redis): Promise<Finding> {
  const check = 'redis persistence';
  const fix = 'redis-cli config set appendonly yes';
  for (const [fact, what] of [
    ['aof_last_write_status', 'the append-only file'],
    ['rdb_last_bgsave_status', 'the last snapshot'],
  ] as const) {
    if (info.has(fact) && info.get(fact) !== 'ok')
      return warning(check, `Redis could not write ${what}`, 'Check the log of Redis: redis-cli info persistence');
  }
  if (info.get('aof_enabled') === '1') return ok(check, 'append-only file');
  // Managed Redis services refuse CONFIG.
  const save = await client.config('GET', 'save').then(
    (answer) => answer[1] ?? '',
    () => null,
  );
  if (save === null) return skipped(check, 'no append-only file; Redis does not report whether it saves snapshots');
  if (save !== '') return ok(check, `snapshots (save ${save}): a crash loses the events since the last one`);
  return warning(check, 'neither append-only file nor snapshots: a restart of Redis loses undelivered events', fix);
}
