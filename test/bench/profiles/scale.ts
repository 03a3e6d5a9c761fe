/** A million tokens in one SQLite file: lists, first use, start; and the memory of 300,000 live tokens. */
import { statSync } from 'node:fs';
import { Limiter } from '../../../daemon/core/limiter.js';
import { MemoryLimits } from '../../../daemon/store/memory/limits.js';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { WireProject } from '../../../daemon/api/contract.js';
import { Admission } from '../../../daemon/core/admission.js';
import { mintSecret } from '../../../daemon/core/token.js';
import { TestClock } from '../../support/clock.js';
import { MANAGEMENT_TOKEN, recordingLog, startDaemon, temporaryFolder, type TestDaemon } from '../../support/daemon.js';
import { aKnownToken } from '../../support/factories.js';
import { makeTokens } from '../../support/many-tokens.js';
import { spawnDaemon } from '../../support/process.js';
import { startProvider } from '../../support/provider.js';
import { type Figure, median } from '../figures.js';
import type { Report } from '../run.js';

const TOKENS = 1_000_000;
const PROJECTS = 100;
const LIVE = 300_000;
const RUNS = 9;

export async function scale(): Promise<Report> {
  const provider = await startProvider();
  const dir = temporaryFolder();
  const path = join(dir, 'llmp.db');
  const projects = await makeProjects(dir);
  const secrets = Array.from({ length: RUNS }, () => mintSecret());
  await makeTokens(path, TOKENS, { projectId: projects.at(-1)?.id ?? '', secrets });
  console.log(`${TOKENS} tokens, ${Math.round(statSync(path).size / 1e6)} MB`);

  const figures: Figure[] = [];
  const daemon = await startDaemon({ upstream: provider.url, dir });
  figures.push(await firstUseFigure((secret) => daemon.call(secret), secrets, 10));
  figures.push(...(await pageFigures(daemon, projects, 100)));
  await daemon.stop();
  await provider.stop();
  // The last one: at first the kernel is still writing the new file.
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

/** @param atMostMs the limit of each, including its total. */
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

/** From the start of the process until it listens, with a migrated database and a warm page cache. */
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

/** The whole request, through to the provider stand-in and back, for unknown tokens. */
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
    limiter: new Limiter(new MemoryLimits({ clock, shares: null })),
    // The reply of a database; only the memory matters here.
    lookup: {
      byDigest: (digest) => Promise.resolve(aKnownToken(digest)),
      purses: () => Promise.resolve(new Map()),
    },
    ledger: {
      enrol: () => Promise.resolve(false),
      commit: () => Promise.resolve({ units: new Map(), purses: new Map() }),
      lastSeq: () => Promise.resolve(0),
      held: () => Promise.resolve(new Map()),
      heldOfPurses: () => Promise.resolve(new Map()),
      rejoin: () => Promise.resolve(0),
      retire: () => Promise.resolve(),
    },
    clock,
    log,
    instanceId: 'one',
    staleLimitMs: 60_000,
    maxAccounts: LIVE,
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
