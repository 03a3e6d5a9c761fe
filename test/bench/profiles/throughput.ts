/** Small chat requests with an unlimited token: the daemon, with all records turned on, compared with others, in turn. */
import { FORWARDER, type Measurable, PORTKEY, startBaselines, startProvider } from '../baselines.js';
import { NO_RECORDS, startDaemon } from '../daemon.js';
import type { Figure } from '../figures.js';
import { compare, idleWarning, ratio, type Rounds, rowsOf } from '../rounds.js';
import { startRedis } from '../redis.js';
import type { Bench, Report } from '../run.js';

// Metrics, events, usage and both audit files, on SQLite: the default, plus the metrics.
const DAEMON = 'llmp, unlimited token';
const WITH_REDIS = 'llmp, with events in Redis';
const WITHOUT_RECORDS = 'llmp, no metrics, events or audit of use';
// The Go implementation of the same specification, where both were measured: 14,100 requests/s and 31,500.
const GO_TO_FORWARDER = 14_100 / 31_500;
const GOAL = { atLeast: 0.65 };

export async function throughput(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const baselines = await startBaselines(bench, provider.url);
  const daemonWith = async (name: string, settings: Record<string, string>): Promise<Measurable> => {
    const service = await startDaemon(bench, provider.url, settings);
    return { name, service, target: await service.targetWithToken(0) };
  };
  const redis = await startRedis(bench);
  const rounds = await compare(bench, [
    ...baselines,
    await daemonWith(DAEMON, {}),
    ...(redis ? [await daemonWith(WITH_REDIS, { REDIS_ADDR: redis.address })] : []),
    await daemonWith(WITHOUT_RECORDS, NO_RECORDS),
  ]);
  return { rows: rowsOf(rounds), figures: figuresOf(rounds), warning: idleWarning(rounds, FORWARDER, DAEMON) };
}

function figuresOf(rounds: Rounds): Figure[] {
  const against = (one: string, other: string) => ratio(rounds, one, other, ({ requestsPerS }) => requestsPerS);
  const perCpu = (one: string, other: string) => ratio(rounds, other, one, ({ cpuUs }) => cpuUs);
  const toForwarder = against(DAEMON, FORWARDER);
  const figures: Figure[] = [
    { what: 'requests/s against the forwarder', value: toForwarder, unit: '', goal: GOAL },
    {
      what: '… against the Go implementation (0.45 of the forwarder)',
      value: toForwarder / GO_TO_FORWARDER,
      unit: '',
      goal: { atLeast: 1.3 },
    },
  ];
  if (rounds.has(PORTKEY)) {
    figures.push({ what: `… against ${PORTKEY}`, value: against(DAEMON, PORTKEY), unit: '', goal: { atLeast: 15 } });
  }
  if (rounds.has(WITH_REDIS)) {
    figures.push({ what: '… with events in Redis', value: against(WITH_REDIS, FORWARDER), unit: '', goal: GOAL });
  }
  const perCpuSecond = perCpu(DAEMON, FORWARDER);
  if (!Number.isNaN(perCpuSecond)) {
    figures.push(
      { what: 'requests per CPU second against the forwarder', value: perCpuSecond, unit: '', goal: GOAL },
      { what: '… against the same without records', value: perCpu(DAEMON, WITHOUT_RECORDS), unit: '' },
    );
  }
  return figures;
}
