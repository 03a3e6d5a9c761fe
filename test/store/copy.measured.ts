/** How long a copy takes: a tenth of a million tokens and ten million rows of usage, which must take ten minutes. */
import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { firstIdOf, HOUR_MS } from '../../daemon/core/usage.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { ended, start } from '../cli/processes.js';
import { startDaemon } from '../support/daemon.js';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { makeTokens } from '../support/many-tokens.js';

const TOKENS = 100_000;
const USAGE = 1_000_000;
/** On a quiet machine: 34 s, 59 s and 50 s. */
const WITHIN_S = { postgres: 60, mysql: 120, sqlite: 100 };
/** With SQLite, the caches of both databases are in this process. */
const MEMORY_MB = { postgres: 450, mysql: 400, sqlite: 600 };

describe('the speed of llmp migrate copy', function () {
  this.timeout(600_000);
  let path: string;
  let key: string;

  before(async () => {
    const daemon = await startDaemon();
    await daemon.createProject({ name: 'web' });
    await daemon.stop();
    path = daemon.databasePath;
    key = readFileSync(`${path}.key`, 'utf8').trim();
    await makeTokens(path, TOKENS);
    await makeUsage(path);
  });

  /** Of all tokens in turn, in the hours of the last weeks. */
  async function makeUsage(file: string): Promise<void> {
    const database = new SqliteDatabase(file);
    await database.writer.run('PRAGMA synchronous = OFF');
    await database.writer.run('PRAGMA cache_size = -262144');
    const hours = 100;
    const firstMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - hours * HOUR_MS;
    for (let hour = 0; hour < hours; hour++) {
      const hourMs = firstMs + hour * HOUR_MS;
      await database.transact((tx) =>
        tx.execute(
          `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < $last)
           INSERT INTO usage_hourly (id, hour_ms, token_id, project_id, outcome, code, model, requests, prompt_tokens, cost_nano)
           SELECT $first || '8000-8000-' || LOWER(HEX(RANDOMBLOB(6))), $hourMs, LOWER(HEX(RANDOMBLOB(16))), 'project',
             'completed', '', 'gpt-5-mini', i, 100 * i, 2500000 * i FROM n`,
          { last: USAGE / hours - 1, first: firstIdOf(hourMs), hourMs },
        ),
      );
    }
    await database.close();
  }

  for (const kind of ['postgres', 'mysql', 'sqlite'] as const) {
    it(`is within ${WITHIN_S[kind]} s for a tenth of a large database, with flat memory, to ${kind}${kind === 'sqlite' ? '' : WITHOUT[kind]}`, async function () {
      if (kind !== 'sqlite' && WITHOUT[kind]) this.skip();
      const to = kind === 'sqlite' ? `sqlite:${path}.copy` : await (await DatabaseServer.shared(kind)).newDatabase();
      const begunMs = performance.now();
      const child = start(['migrate', 'copy', '--to', to, '-o', 'json'], { DATABASE_URL: path, ENCRYPTION_KEY: key });
      let [peakMb, cpuSeconds] = [0, 0];
      const watch = setInterval(() => {
        const used = usedBy(child.pid);
        peakMb = Math.max(peakMb, used.memoryMb);
        cpuSeconds = Math.max(cpuSeconds, used.cpuSeconds);
      }, 200);
      const { exitCode, err } = await ended(child);
      clearInterval(watch);
      const seconds = (performance.now() - begunMs) / 1000;
      console.log(
        `      ${kind}: ${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of a core, ${peakMb.toFixed(0)} MB`,
      );
      expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
      expect(seconds).to.be.below(WITHIN_S[kind]);
      expect(peakMb).to.be.below(MEMORY_MB[kind]);
    });
  }
});

/** Zero after it has ended. Linux counts a hundred ticks a second. */
function usedBy(pid: number | undefined): { memoryMb: number; cpuSeconds: number } {
  try {
    const memoryMb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return { memoryMb, cpuSeconds: (Number(fields[11]) + Number(fields[12])) / 100 };
  } catch {
    return { memoryMb: 0, cpuSeconds: 0 };
  }
}
