/**
 * How long a revocation on one instance stays unknown to another: two daemons on one database, with and without Redis. Measured from the
 * acknowledgement until the other instance receives a request that it refuses. The other is asked continuously.
 */
import { join } from 'node:path';
import type { WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import { canaryEncryptionKey } from '../../support/canaries.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../../support/database-servers.js';
import { temporaryFolder } from '../../support/daemon.js';
import { startProvider } from '../baselines.js';
import { spawnDaemon } from '../daemon.js';
import { type Figure, median, quantile, type Row } from '../figures.js';
import { manage } from '../management.js';
import { Failure, type Service } from '../processes.js';
import { startRedis } from '../redis.js';
import type { Bench, Report } from '../run.js';

const NAMES: Record<ServerKind, string> = { postgres: 'PostgreSQL', mysql: 'MariaDB' };
const REVOCATIONS = 200;
/** p99 in ms, as promised. */
const GOALS = { redis: 100, none: 1_000 };

/** @throws {Failure} if a server is not installed. */
export async function propagation(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const redis = await startRedis(bench);
  if (redis === null) throw new Failure('propagation needs redis-server');
  const rows: Row[] = [];
  const figures: Figure[] = [];
  for (const kind of ['postgres', 'mysql'] as const) {
    if (WITHOUT[kind]) throw new Failure(`propagation needs ${NAMES[kind]}`);
    const server = await DatabaseServer.start(kind);
    try {
      for (const connected of ['redis', 'none'] as const) {
        const more: Record<string, string> = connected === 'redis' ? { REDIS_ADDR: redis.address } : {};
        const times = await measured(bench, provider.url, server, more);
        const what = `${NAMES[kind]}, ${connected === 'redis' ? 'with Redis' : 'without Redis'}`;
        const [p50, p99, longest] = [median(times), quantile(times, 0.99), Math.max(...times)];
        rows.push({ instances: what, revocations: times.length, 'p50 ms': p50, 'p99 ms': p99, 'longest ms': longest });
        figures.push({
          what: `known to another, p99, ${what}`,
          value: p99,
          unit: 'ms',
          goal: { atMost: GOALS[connected] },
        });
      }
    } finally {
      await server.remove();
    }
  }
  return { rows, figures };
}

async function measured(
  bench: Bench,
  upstreamUrl: string,
  server: DatabaseServer,
  more: Record<string, string>,
): Promise<number[]> {
  const settings = {
    DB_DRIVER: server.kind,
    DATABASE_URL: await server.newDatabase(),
    ENCRYPTION_KEY: canaryEncryptionKey(),
    ...more,
  };
  const start = () => spawnDaemon(bench, upstreamUrl, join(temporaryFolder(), 'unused.db'), settings);
  const one = await start();
  const other = await start();
  const project = await manage<WireProject>(one.url, 'POST', '/manage/projects', {
    name: 'bench',
    api_key: 'sk-upstream-of-the-bench',
  });
  const times: number[] = [];
  while (times.length < REVOCATIONS) times.push(await revokedIn(project.id, one, other));
  await Promise.all([one.stop(), other.stop()]);
  return times;
}

/** @returns ms. */
async function revokedIn(projectId: string, one: Service, other: Service): Promise<number> {
  const { id, token } = await manage<WireTokenCreated>(one.url, 'POST', '/manage/tokens', { project_id: projectId });
  const ask = async () => {
    const response = await fetch(`${other.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
    await response.arrayBuffer();
    return response.status;
  };
  if ((await ask()) !== 200) throw new Failure('void: the token is not served');
  await manage(one.url, 'DELETE', `/manage/tokens/${id}`);
  const acknowledgedAt = performance.now();
  for (;;) {
    const takenAt = performance.now();
    if ((await ask()) === 401) return Math.max(0, takenAt - acknowledgedAt);
  }
}
