/** A daemon with both rate limits and one with none: what counting costs, and a flood that is refused. */
import { startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import { compare, idleWarning, ratio, rowsOf } from '../rounds.js';
import type { Bench, Report } from '../run.js';

const WITHOUT = 'without limits';
const WITHIN = 'within both limits';
const BEYOND = 'above the limit of its address';
const MANY = '1000000000'; // More than any run sends.

export async function limits(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const without = await startDaemon(bench, provider.url);
  const within = await startDaemon(bench, provider.url, { GLOBAL_RATE_LIMIT: MANY, IP_RATE_LIMIT: MANY });
  const beyond = await startDaemon(bench, provider.url, { IP_RATE_LIMIT: '1', RATE_LIMIT_WINDOW: '500h' });
  const full = await beyond.targetWithToken(0);
  await fetch(`${full.url}/v1/models`); // The one request that is let through.
  const rounds = await compare(bench, [
    { name: WITHOUT, service: without, target: await without.targetWithToken(0) },
    { name: WITHIN, service: within, target: await within.targetWithToken(0) },
    { name: BEYOND, service: beyond, target: { ...full, refusal: { status: 429, part: '"rate_limited"' } } },
  ]);
  const goal = { atLeast: 0.97 };
  return {
    rows: rowsOf(rounds),
    warning: idleWarning(rounds, WITHOUT, WITHIN),
    figures: [
      {
        what: 'requests/s, within both limits against without',
        value: ratio(rounds, WITHIN, WITHOUT, ({ requestsPerS }) => requestsPerS),
        unit: '',
        goal,
      },
      {
        what: 'requests per CPU second, within both limits against without',
        value: ratio(rounds, WITHOUT, WITHIN, ({ cpuUs }) => cpuUs),
        unit: '',
        goal,
      },
    ],
  };
}
