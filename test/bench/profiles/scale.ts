/** A million tokens in one SQLite file: lists, first use, start; and what 300,000 live tokens take of memory. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { WireProject } from '../../../daemon/api/contract.js';
import { Admission } from '../../../daemon/core/admission.js';
import { digestOf, mintSecret } from '../../../daemon/core/token.js';
import { openStores } from '../../../daemon/store/open.js';
import { TestClock } from '../../support/clock.js';
import { MANAGEMENT_TOKEN, recordingLog, startDaemon, temporaryFolder, type TestDaemon } from '../../support/daemon.js';
import { knownToken } from '../../support/known-token.js';
import { spawnDaemon } from '../../support/process.js';
import { startProvider } from '../../support/provider.js';
import { type Figure, median } from '../figures.js';
import type { Report } from '../run.js';

const TOKENS = 1_000_000;
const PROJECTS = 100;
const LIVE = 300_000;
const DAY_MS = 86_400_000;
const RUNS = 9;

export async function scale(): Promise<Report> {
  const provider = await startProvider();
  const dir = temporaryFolder();
  const path = join(dir, 'llmp.db');
  const projects = await makeProjects(dir);
  const secrets = Array.from({ length: RUNS }, () => mintSecret());
  await makeTokens(path, projects, secrets);
  console.log(`${TOKENS} tokens, ${Math.round(statSync(path).size / 1e6)} MB`);

  const figures: Figure[] = [];
  const daemon = await startDaemon({ upstream: provider.url, dir });
  figures.push(await firstUseFigure((secret) => daemon.call(secret), secrets, 10));
  figures.push(...(await pageFigures(daemon, projects, 100)));
  await daemon.stop();
  await provider.stop();
  // Last: at first the kernel is still busy writing what was made.
  return { figures: [...figures, await startFigure(path), await memoryFigure()] };
}

async function makeProjects(dir: string): Promise<WireProject[]> {
  const daemon = await startDaemon({ dir });
  const projects: WireProject[] = [];
  for (let n = 0; n < PROJECTS; n++) projects.push(await daemon.createProject());
  for (const { id } of projects.slice(0, PROJECTS / 10)) {
    await daemon.manage('PATCH', `/manage/projects/${id}`, { is_active: false });
  }
  await daemon.stop();
  return projects;
}

/** Of all states, over twenty days, a third of them capped; a few whose secrets are known. */
async function makeTokens(path: string, projects: readonly WireProject[], secrets: readonly string[]): Promise<void> {
  const stores = await openStores(
    { database: { driver: 'sqlite', path }, encryptionKey: undefined },
    { clock: new TestClock() },
  );
  const nowMs = Date.now();
  const columns =
    'id, digest, project_id, name, name_folded, last_used_at, is_active, expires_at, created_at, max_requests, request_count, reserved, obfuscated';
  await stores.database.transact(async (tx) => {
    await tx.execute(
      `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < $last),
         p(nr, id) AS (SELECT ROW_NUMBER() OVER (ORDER BY id) - 1, id FROM projects)
       INSERT INTO tokens (${columns})
       SELECT LOWER(HEX(RANDOMBLOB(4)) || '-' || HEX(RANDOMBLOB(2)) || '-4000-a000-' || HEX(RANDOMBLOB(6))),
         LOWER(HEX(RANDOMBLOB(32))), p.id, 'CI job ' || i, 'ci job ' || i, $nowMs - ABS(RANDOM()) % $span, i % 7 <> 0,
         $nowMs - $span / 2 + ABS(RANDOM()) % $span, $nowMs - i * 500, CASE WHEN i % 3 = 0 THEN 100 ELSE 0 END,
         ABS(RANDOM()) % 101, 0, 'sk-wt-0000…0000'
       FROM n JOIN p ON p.nr = n.i % $projects`,
      { last: TOKENS - 1, nowMs, span: 20 * DAY_MS, projects: projects.length },
    );
    for (const [n, secret] of secrets.entries()) {
      await tx.execute(
        `INSERT INTO tokens (${columns}) VALUES ($id, $digest, $projectId, '', '', 0, $yes, $expiresAtMs, $nowMs, 0, 0, 0, '')`,
        {
          id: `known-${n}`,
          digest: digestOf(secret),
          projectId: projects.at(-1)?.id ?? '',
          yes: true,
          expiresAtMs: nowMs + DAY_MS,
          nowMs,
        },
      );
    }
  });
  await stores.close();
}

const pages = (projects: readonly WireProject[]): Record<string, string> => ({
  'no filter': '',
  'one project': `project_id=${projects.at(-1)?.id ?? ''}`,
  'one project, usable': `project_id=${projects.at(-1)?.id ?? ''}&active_only=true`,
  usable: 'active_only=true',
  'usable, expiring first': 'active_only=true&sort=expires_at',
  expired: 'state=expired',
  revoked: 'state=revoked',
  'at their cap': 'state=rate_limited',
  'of inactive projects': 'state=project_inactive',
  'over 90 % of the cap': 'used_over=90',
  'part of one name': 'q=job 987654',
  'part of 1,111 names': 'q=job 123',
  'part of 11,111 names': 'q=job 12',
  'part of every name': 'q=job',
  'part of every name, usable': 'q=job&active_only=true',
  'part of every name, one project': `q=job&project_id=${projects.at(-1)?.id ?? ''}`,
  'the beginning of an id': 'q=3e7f61',
  'by last use': 'sort=-last_used_at',
});

/** @param atMostMs what each is to take, its count included. */
export async function pageFigures(
  daemon: TestDaemon,
  projects: readonly WireProject[],
  atMostMs: number,
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [what, query] of Object.entries(pages(projects))) {
    const times: number[] = [];
    for (let run = 0; run < RUNS; run++) {
      times.push(await timed(() => daemon.manage('GET', `/manage/tokens?${query}`)));
    }
    figures.push({ what: `a page of 100, ${what}`, value: median(times), unit: 'ms', goal: { atMost: atMostMs } });
  }
  return figures;
}

/** From the start of the process until it listens, with its database migrated and its page cache warm. */
async function startFigure(path: string): Promise<Figure> {
  const times: number[] = [];
  for (let run = 0; run < 5; run++) {
    times.push(
      await timed(async () => {
        const daemon = await spawnDaemon({ MANAGEMENT_TOKEN, DATABASE_URL: path });
        await daemon.kill();
      }),
    );
  }
  return { what: 'start until it listens', value: median(times), unit: 'ms', goal: { atMost: 1_000 } };
}

/** The whole request, through to the stand-in provider and back, for tokens not seen before. */
export async function firstUseFigure(
  call: (secret: string) => Promise<Response>,
  secrets: readonly string[],
  atMostMs: number,
): Promise<Figure> {
  const times: number[] = [];
  for (const secret of secrets) times.push(await timed(async () => (await call(secret)).arrayBuffer()));
  return { what: 'first use of a token', value: median(times), unit: 'ms', goal: { atMost: atMostMs } };
}

async function memoryFigure(): Promise<Figure> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const { log } = recordingLog();
  const clock = new TestClock({ standsStill: true });
  const admission = new Admission({
    // What a database would answer; only the memory matters here.
    lookup: { byDigest: (digest) => Promise.resolve(knownToken(digest)) },
    ledger: {
      enrol: () => Promise.resolve(),
      commit: () => Promise.resolve(new Map()),
      lastSeq: () => Promise.resolve(0),
      held: () => Promise.resolve(new Map()),
      rejoin: () => Promise.resolve(0),
      retire: () => Promise.resolve(),
    },
    clock,
    log,
    instanceId: 'one',
    staleLimitMs: 60_000,
    mostAccounts: LIVE,
  });
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < LIVE; n++) admission.finish(await admission.admit(mintSecret()));
  collect();
  const bytes = process.memoryUsage().heapUsed - before;
  console.log(`${admission.size.accounts} live tokens: ${Math.round(bytes / 1e6)} MB`);
  return { what: 'memory of a live token', value: bytes / admission.size.accounts, unit: 'bytes' };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}
