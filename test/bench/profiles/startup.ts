/** From the start of the process until `/ready` returns 200: with a new database, which is migrated, and with an existing one. */
import { join } from 'node:path';
import { temporaryFolder } from '../../support/daemon.js';
import { startProvider } from '../baselines.js';
import { spawnDaemon } from '../daemon.js';
import { median, medianOrNull, type Row } from '../figures.js';
import { cpuMs } from '../machine.js';
import type { Bench, Report } from '../run.js';

export interface Start {
  seconds: number;
  /** Null if the system does not report it. */
  cpuMs: number | null;
}

const GOAL = { atMost: 0.8 };
const READY_WITHIN_MS = 20_000;

export async function startup(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const onNew: Start[] = [];
  const onMigrated: Start[] = [];
  for (let round = 0; round <= bench.options.rounds; round++) {
    const databasePath = join(temporaryFolder(), 'llmp.db');
    const first = await startOnce(bench, provider.url, databasePath);
    const second = await startOnce(bench, provider.url, databasePath);
    if (round === 0) continue; // It brought the files into the page cache.
    onNew.push(first);
    onMigrated.push(second);
  }
  return {
    rows: [rowOf('new', onNew), rowOf('existing', onMigrated)],
    figures: [
      {
        what: 'start to ready, SQLite, migrated from nothing',
        value: median(onNew.map(({ seconds }) => seconds)),
        unit: 's',
        goal: GOAL,
      },
      { what: '… migrated before', value: median(onMigrated.map(({ seconds }) => seconds)), unit: 's', goal: GOAL },
    ],
  };
}

const rowOf = (database: string, starts: readonly Start[]): Row => ({
  database,
  's to ready': median(starts.map(({ seconds }) => seconds)),
  shortest: Math.min(...starts.map(({ seconds }) => seconds)),
  longest: Math.max(...starts.map(({ seconds }) => seconds)),
  'CPU ms': medianOrNull(starts.map((start) => start.cpuMs)),
});

export async function startOnce(bench: Bench, upstreamUrl: string, databasePath: string): Promise<Start> {
  const begunMs = performance.now();
  const daemon = await spawnDaemon(bench, upstreamUrl, databasePath);
  await bench.processes.whileAllLive(ready(daemon.url), READY_WITHIN_MS, () => `not ready in ${READY_WITHIN_MS} ms`);
  const start = { seconds: (performance.now() - begunMs) / 1_000, cpuMs: cpuMs(daemon.pid) };
  await daemon.stop();
  return start;
}

async function ready(url: string): Promise<void> {
  const response = await fetch(`${url}/ready`);
  await response.arrayBuffer();
  if (response.status !== 200) await ready(url);
}
