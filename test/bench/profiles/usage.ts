/** A year of hourly usage of a thousand tokens in one SQLite file: how long the possible reports take. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DAY_MS, HOUR_MS } from '../../../daemon/core/usage.js';
import { openStores } from '../../../daemon/store/open.js';
import { TestClock } from '../../support/clock.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../../support/daemon.js';
import { type Figure, median } from '../figures.js';
import type { Report } from '../run.js';

const TOKENS = 1_000;
const PROJECTS = 20;
const MODELS = 3;
const DAYS = 365;
const RUNS = 5;
const GOAL = { atMost: 500 };

export async function usage(): Promise<Report> {
  const figures: Figure[] = [];
  for (const percentActive of [10, 100]) {
    const dir = temporaryFolder();
    const path = join(dir, 'llmp.db');
    await (await startDaemon({ dir })).stop();
    const rows = await makeYear(path, percentActive);
    const size = `${(rows / 1e6).toFixed(2)} million rows of hours, ${Math.round(statSync(path).size / 1e6)} MB`;
    console.log(`each token used in ${percentActive} % of hours: ${size}`);
    const daemon = await startDaemon({ dir });
    for (const [what, query] of Object.entries(reports())) {
      const times: number[] = [];
      for (let run = 0; run < RUNS; run++) times.push(await timed(daemon, query));
      figures.push({ what: `${what}, ${percentActive} % of hours`, value: median(times), unit: 'ms', goal: GOAL });
    }
    await daemon.stop();
  }
  return { figures };
}

/** Each token has its own model. One use in a hundred fails, in separate rows. */
async function makeYear(path: string, percentActive: number): Promise<number> {
  const stores = await openStores(
    { database: { driver: 'sqlite', path }, encryptionKey: undefined },
    { clock: new TestClock() },
  );
  const lastDayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  let rows = 0;
  for (let day = DAYS - 1; day >= 0; day--) {
    const dayMs = lastDayMs - day * DAY_MS;
    await stores.database.transact(async (tx) => {
      rows += await tx.execute(
        `WITH RECURSIVE hours(h) AS (SELECT 0 UNION ALL SELECT h + 1 FROM hours WHERE h < 23),
           tokens(t) AS (SELECT 0 UNION ALL SELECT t + 1 FROM tokens WHERE t < $tokens - 1),
           results(outcome) AS (SELECT 'ok' UNION ALL SELECT 'upstream_error'),
           made(hour_ms, t, outcome) AS (SELECT $dayMs + h * ${HOUR_MS}, t, outcome FROM hours, tokens, results
             WHERE ABS(RANDOM()) % 100 < CASE outcome WHEN 'ok' THEN $percent ELSE 1 END)
         INSERT INTO usage_hourly (id, hour_ms, token_id, project_id, outcome, code, model,
           requests, hits, prompt_tokens, completion_tokens, with_tokens)
         SELECT printf('%08x-%04x-8%03x-8%03x-%012x', hour_ms >> 16, hour_ms & 65535, t, outcome = 'ok', ABS(RANDOM()) >> 16),
           hour_ms, ${idOf('t')}, ${idOf(`t % ${PROJECTS}`)}, outcome, '', 'model-' || t % ${MODELS},
           12, 3, 4000, 1500, 12
         FROM made ORDER BY 1`,
        { tokens: TOKENS, dayMs, percent: percentActive },
      );
      for (const [kind, from, token] of [
        ['token_day', '$dayMs', 'token_id'],
        ['project_day', '$dayMs', "''"],
        ['project_hour', 'hour_ms', "''"],
      ] as const) {
        await tx.execute(
          `INSERT INTO usage_sums (kind, from_ms, project_id, token_id, model, requests, hits, prompt_tokens, completion_tokens,
             refused, failed)
           SELECT '${kind}', ${from}, project_id, ${token}, model, SUM(requests), SUM(hits), SUM(prompt_tokens), SUM(completion_tokens),
             0, SUM(CASE outcome WHEN 'ok' THEN 0 ELSE requests END)
           FROM usage_hourly WHERE id >= printf('%08x-', $dayMs >> 16) AND hour_ms >= $dayMs GROUP BY 1, 2, 3, 4, 5`,
          { dayMs },
        );
      }
    });
  }
  await stores.close();
  return rows;
}

const idOf = (number: string) => `printf('%08x-0000-4000-8000-000000000000', ${number})`;

function reports(): Record<string, string> {
  const year = `since=${new Date(Date.now() - (DAYS - 1) * DAY_MS - 5 * HOUR_MS).toISOString()}`;
  const token = 'token_id=00000007-0000-4000-8000-000000000000';
  const project = 'project_id=00000007-0000-4000-8000-000000000000';
  return {
    'the year in one line': year,
    'the year by day': `by=day&${year}`,
    'the year by model': `by=model&${year}`,
    'the year by project': `by=project&${year}`,
    'the year by token': `by=token&${year}`,
    'the year by token and model': `by=token,model&${year}`,
    'the year by project and day': `by=project,day&${year}`,
    'the year by hour': `by=hour&${year}`,
    'the year of a token by day': `by=day&${token}&${year}`,
    'the year of a token by hour': `by=hour&${token}&${year}`,
    'the year of a project by token': `by=token&${project}&${year}`,
    'the year of a project by hour': `by=hour&${project}&${year}`,
    'seven days by hour': 'by=hour',
    'seven days by token': 'by=token',
    'seven days by token and model': 'by=token,model',
    'seven days of a project by token and hour': `by=token,hour&${project}`,
  };
}

async function timed(daemon: TestDaemon, query: string): Promise<number> {
  const begun = performance.now();
  const answer = await daemon.manage('GET', `/manage/usage?${query}`);
  if (answer.status !== 200) throw new Error(`${query}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return performance.now() - begun;
}
