/** The daemon's memory: idle, under load, and whether it grows while the load lasts (`--minutes 60`). */
import { setTimeout as sleep } from 'node:timers/promises';
import { startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import { type Figure, median } from '../figures.js';
import { load, probe } from '../load.js';
import { rssMb } from '../machine.js';
import type { Bench, Report } from '../run.js';

const SAMPLE_EVERY_MS = 1_000;
const S_PER_MINUTE = 60;
const MS_PER_HOUR = 3_600_000;
const FLAT_MB_PER_HOUR = 10;
// In less time, normal changes of the heap are larger than any slope.
const SLOPE_TELLS_AFTER_MINUTES = 60;

interface Sample {
  atMs: number;
  mb: number;
}

export async function memory(bench: Bench): Promise<Report> {
  const { minutes } = bench.options;
  const provider = await startProvider(bench);
  const daemon = await startDaemon(bench, provider.url);
  const target = await daemon.targetWithToken(0);
  await probe(target);
  await sleep(bench.options.settleSeconds * 1_000);
  const idleMb = rssMb(daemon.pid, 'now');

  const samples: Sample[] = [];
  const sampling = setInterval(() => {
    samples.push({ atMs: performance.now(), mb: rssMb(daemon.pid, 'now') });
    const { mb } = samples.at(-1) ?? { mb: NaN };
    if (samples.length % S_PER_MINUTE === 0) console.error(`${Math.round(mb)} MB`);
  }, SAMPLE_EVERY_MS);
  try {
    await load(bench, target, { ...bench.options, seconds: minutes * S_PER_MINUTE });
  } finally {
    clearInterval(sampling);
  }

  const growth: Figure = {
    what: 'growth in the second half',
    value: slopeMbPerHour(samples.slice(Math.floor(samples.length / 2))),
    unit: 'MB/h',
    ...(minutes >= SLOPE_TELLS_AFTER_MINUTES && { goal: { atMost: FLAT_MB_PER_HOUR } }),
  };
  return {
    figures: [
      { what: 'RSS, idle', value: idleMb, unit: 'MB', goal: { atMost: 110 } },
      { what: 'RSS under load, highest', value: rssMb(daemon.pid, 'highest'), unit: 'MB', goal: { atMost: 200 } },
      { what: `RSS after ${minutes} min of load`, value: lastOf(samples), unit: 'MB', goal: { atMost: 170 } },
      growth,
    ],
  };
}

const lastOf = (samples: readonly Sample[]) => median(samples.slice(-10).map(({ mb }) => mb));

/** The slope of the best-fitting straight line. */
function slopeMbPerHour(samples: readonly Sample[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const meanMs = mean(samples.map(({ atMs }) => atMs));
  const meanMb = mean(samples.map(({ mb }) => mb));
  const together = mean(samples.map(({ atMs, mb }) => (atMs - meanMs) * (mb - meanMb)));
  return (together / mean(samples.map(({ atMs }) => (atMs - meanMs) ** 2))) * MS_PER_HOUR;
}
