/** A capped and an unlimited token, on the same daemon in turn: what an exact cap costs. */
import { startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import { compare, idleWarning, ratio, rowsOf } from '../rounds.js';
import type { Bench, Report } from '../run.js';

const UNLIMITED = 'unlimited token';
const CAPPED = 'capped token';
const CAP = 2_000_000_000; // More than any run uses.

export async function capped(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const daemon = await startDaemon(bench, provider.url);
  const rounds = await compare(bench, [
    { name: UNLIMITED, service: daemon, target: await daemon.targetWithToken(0) },
    { name: CAPPED, service: daemon, target: await daemon.targetWithToken(CAP) },
  ]);
  const goal = { atLeast: 0.95 };
  return {
    rows: rowsOf(rounds),
    warning: idleWarning(rounds, UNLIMITED, CAPPED),
    figures: [
      {
        what: 'requests/s, capped against unlimited',
        value: ratio(rounds, CAPPED, UNLIMITED, ({ requestsPerS }) => requestsPerS),
        unit: '',
        goal,
      },
      {
        what: 'requests per CPU second, capped against unlimited',
        value: ratio(rounds, UNLIMITED, CAPPED, ({ cpuUs }) => cpuUs),
        unit: '',
        goal,
      },
    ],
  };
}
