/** Small chat requests, unlimited token: what the daemon takes beside what others take, in turn. */
import { FORWARDER, type Measurable, PORTKEY, startBaselines, startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import type { Figure } from '../figures.js';
import { compare, idleWarning, ratio, type Rounds, rowsOf } from '../rounds.js';
import type { Bench, Report } from '../run.js';

const DAEMON = 'llmp, unlimited token';
// The Go implementation of the same specification, where both were measured: 14,100 requests/s and 31,500.
const GO_TO_FORWARDER = 14_100 / 31_500;

export async function throughput(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const baselines = await startBaselines(bench, provider.url);
  const service = await startDaemon(bench, provider.url);
  const daemon: Measurable = { name: DAEMON, service, target: await service.targetWithToken(0) };
  const rounds = await compare(bench, [...baselines, daemon]);
  return { rows: rowsOf(rounds), figures: figuresOf(rounds), warning: idleWarning(rounds, FORWARDER, DAEMON) };
}

function figuresOf(rounds: Rounds): Figure[] {
  const toForwarder = ratio(rounds, DAEMON, FORWARDER, ({ requestsPerS }) => requestsPerS);
  const figures: Figure[] = [
    // While audit file and events are not there yet; 0.65 with everything switched on.
    { what: 'requests/s against the forwarder', value: toForwarder, unit: '', goal: { atLeast: 0.75 } },
    {
      what: '… against the Go implementation (0.45 of the forwarder)',
      value: toForwarder / GO_TO_FORWARDER,
      unit: '',
      goal: { atLeast: 1.3 },
    },
  ];
  if (rounds.has(PORTKEY)) {
    const value = ratio(rounds, DAEMON, PORTKEY, ({ requestsPerS }) => requestsPerS);
    figures.push({ what: `… against ${PORTKEY}`, value, unit: '', goal: { atLeast: 15 } });
  }
  const perCpu = ratio(rounds, FORWARDER, DAEMON, ({ cpuUs }) => cpuUs);
  if (!Number.isNaN(perCpu)) {
    figures.push({
      what: 'requests per CPU second against the forwarder',
      value: perCpu,
      unit: '',
      goal: { atLeast: 0.75 },
    });
  }
  return figures;
}
