/** Small chat requests, unlimited token: what the daemon, with everything switched on, takes beside what others take, in turn. */
import { FORWARDER, type Measurable, PORTKEY, startBaselines, startProvider } from '../baselines.js';
import { NO_RECORDS, startDaemon } from '../daemon.js';
import type { Figure } from '../figures.js';
import { compare, idleWarning, ratio, type Rounds, rowsOf } from '../rounds.js';
import { startRedis } from '../redis.js';
import type { Bench, Report } from '../run.js';

const DAEMON = 'llmp, unlimited token';
const WITHOUT_RECORDS = 'llmp, no metrics, events or audit of use';
// The Go implementation of the same specification, where both were measured: 14,100 requests/s and 31,500.
const GO_TO_FORWARDER = 14_100 / 31_500;

export async function throughput(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const baselines = await startBaselines(bench, provider.url);
  // Events go to Redis, where there is one: in memory they cost less.
  const redis = await startRedis(bench);
  const service = await startDaemon(bench, provider.url, redis ? { REDIS_ADDR: redis.address } : {});
  const daemon: Measurable = { name: DAEMON, service, target: await service.targetWithToken(0) };
  const silent = await startDaemon(bench, provider.url, NO_RECORDS);
  const without: Measurable = { name: WITHOUT_RECORDS, service: silent, target: await silent.targetWithToken(0) };
  const rounds = await compare(bench, [...baselines, daemon, without]);
  return { rows: rowsOf(rounds), figures: figuresOf(rounds), warning: idleWarning(rounds, FORWARDER, DAEMON) };
}

function figuresOf(rounds: Rounds): Figure[] {
  const toForwarder = ratio(rounds, DAEMON, FORWARDER, ({ requestsPerS }) => requestsPerS);
  const figures: Figure[] = [
    { what: 'requests/s against the forwarder', value: toForwarder, unit: '', goal: { atLeast: 0.65 } },
    {
      what: '… against the Go implementation (0.45 of the forwarder)',
      value: toForwarder / GO_TO_FORWARDER,
      unit: '',
      goal: { atLeast: 1.3 },
    },
  ];
  figures.push({
    what: 'requests per CPU second, with all records against without',
    value: ratio(rounds, WITHOUT_RECORDS, DAEMON, ({ cpuUs }) => cpuUs),
    unit: '',
  });
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
      goal: { atLeast: 0.65 },
    });
  }
  return figures;
}
