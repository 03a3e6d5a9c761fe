/** `llmp status`: how a daemon is, on one screen. */
import type { WireStatus } from '../../daemon/api/contract.js';
import type { ManagementClient } from '../../daemon/api/client.js';
import { NO_STATUS, NOT_SAID, statusOf } from '../../daemon/api/older.js';
import { TOKEN_STATES } from '../../daemon/api/vocabulary.js';
import { command, type Invocation } from '../command.js';
import { flag } from '../option.js';
import { EXIT, failureOf } from '../../console/failure.js';
import type { Health } from '../connection/probes.js';
import type { Look, View } from '../../console/table.js';
import { relativeTime, stateShown } from '../../console/views.js';

/** What only an operator is told. */
const FACTS = [
  'version',
  'projects',
  'tokens',
  'database',
  'event_bus',
  'audit',
  'requests',
  'cache',
  'upstream',
] as const;
type Fact = (typeof FACTS)[number];
/** Null where nobody could say. */
type Facts = { [Name in Fact]: WireStatus[Name] | null };

/** Nobody answers: only who watches is shown that, others are told. */
type Status = { server: string } & Omit<Health, 'status'> & { status: Health['status'] | 'unreachable' } & Facts;

/**
 * Whatever the daemon says of itself, the question is answered; not to be ready is a check that failed (exit 9).
 * Exit 8 remains for a daemon that is ready and whose management API fails, exit 6 for one that does not answer.
 */
export const statusCommand = command({
  path: ['status'],
  summary: 'show daemon health (exits with 9 if it is not ready)',
  examples: [
    ['status', 'health, traffic, and numbers of projects and tokens'],
    ['status --watch', 'refresh every 2 seconds until interrupted; when piped, print one line of JSON each time'],
    ['status --no-input --json', 'for a script; shows only the health without a management token'],
  ],
  options: { watch: flag('--watch', 'refresh every 2 seconds until interrupted') },
  async run(invocation) {
    const { output, options, server } = invocation;
    const [{ connectionTo }, { healthOf }] = await Promise.all([
      import('../connection/connection.js'),
      import('../connection/probes.js'),
    ]);
    const connection = await connectionTo(invocation);
    const { shown } = connection.server;
    let operator: Promise<ManagementClient | null> | null = null;

    const find = async (signal?: AbortSignal) => {
      const health = await healthOf(connection, signal);
      const known = (facts: Facts): Status => ({ server: shown, ...health, ...facts });
      try {
        const client = await (operator ??= operatorOf(invocation));
        return { item: known(client ? factsOf(await client.status(signal)) : NOTHING_KNOWN), failure: null };
      } catch (error) {
        return { item: known(NOTHING_KNOWN), failure: failureOf(error, server) };
      }
    };
    if (options.watch) {
      const { watch } = await import('../watch.js');
      const away = () => ({ server: shown, ...AWAY, ...NOTHING_KNOWN });
      return watch(invocation, { find, away, show: (item, wrong) => output.again(item, statusView, wrong) });
    }
    const { item, failure } = await find();
    if (failure) output.fail(failure);
    await output.one(item, statusView);
    if (item.status !== 'ready') return EXIT.checkFailed;
    return failure?.exitCode ?? EXIT.done;
  },
});

/** Null without a management token. */
async function operatorOf({
  connect,
  output,
  server,
}: Pick<Invocation, 'connect' | 'output' | 'server'>): Promise<ManagementClient | null> {
  try {
    return await connect();
  } catch (error) {
    if (failureOf(error, server).explanation.code !== 'management_token_missing') throw error;
    output.note('Only the health is shown, because no management token was given.');
    return null;
  }
}

const AWAY = { status: 'unreachable' as const, missing: [], degraded: [], uptime_s: null, checks: {} };

const NOTHING_KNOWN = Object.fromEntries(FACTS.map((name) => [name, null])) as unknown as Facts;

/** As the daemon said them; an older one does not know some of them. */
const factsOf = (status: Partial<WireStatus>) =>
  Object.fromEntries(FACTS.map((name) => [name, status[name] ?? null])) as unknown as Facts;

/** Whether it lacks what this release knows. */
function isOlder(facts: Facts): boolean {
  const lacks: string[] = [];
  const said = Object.fromEntries(FACTS.flatMap((name) => (facts[name] === null ? [] : [[name, facts[name]]])));
  statusOf({ ...NO_STATUS, ...said }, (field) => lacks.push(field));
  const mayBeNull = FACTS.filter((name) => NO_STATUS[name] === null);
  return lacks.length > 0 || FACTS.some((name) => facts[name] === null && !mayBeNull.includes(name));
}

const listedOr = (nothing: string, names: readonly string[]) => (names.length === 0 ? nothing : names.join(', '));
/** Of what only an operator is told. */
const told = <Name extends Fact>(
  facts: Facts,
  name: Name,
  said: (fact: NonNullable<WireStatus[Name]>) => string,
): string => {
  if (facts[name] === null) return 'unknown';
  const whole = statusOf({ ...NO_STATUS, [name]: facts[name] })[name];
  return said(whole as NonNullable<WireStatus[Name]>);
};
const number = (value: number) => (Number.isNaN(value) ? NOT_SAID : String(value));
const perSecond = (value: number) => (Number.isNaN(value) ? NOT_SAID : value.toFixed(1));
const ms = (value: number | null) => (value === null || Number.isNaN(value) ? '?' : `${Math.round(value)} ms`);

const statusView: View<Status> = {
  idOf: ({ server }) => server,
  fields: ['server', 'status', 'missing', 'degraded', 'uptime_s', 'checks', ...FACTS],
  columns: [],
  labels: { uptime_s: 'uptime', event_bus: 'events' },
  details: {
    status: ({ status }, { ascii }) => `${status === 'ready' ? (ascii ? '*' : '●') : ascii ? 'x' : '✗'} ${status}`,
    missing: ({ missing }) => listedOr('nothing', missing.map(spelled)),
    degraded: ({ degraded }) => listedOr('nothing', degraded.map(spelled)),
    uptime_s: ({ uptime_s }, look) =>
      uptime_s === null ? 'unknown' : `${spanShown(uptime_s)} (started ${startedAgo(uptime_s, look)})`,
    checks: ({ checks }) =>
      Object.entries(checks)
        .map(([name, result]) => `${spelled(name)} ${spelled(result)}`)
        .join(', '),
    version: (it) => {
      const release = it.version ?? 'unknown';
      const isKnown = FACTS.some((name) => it[name] !== null);
      return isKnown && isOlder(it)
        ? `${release}, older than this program: it does not report values shown as ${NOT_SAID} or unknown`
        : release;
    },
    projects: (it) => told(it, 'projects', ({ all, active }) => `${number(all)}, of which ${number(active)} active`),
    tokens: (it, look) =>
      told(it, 'tokens', (counts) =>
        TOKEN_STATES.map((state) => `${number(counts[state])} ${stateShown(state, look)}`).join(', '),
      ),
    database: (it) =>
      told(it, 'database', ({ driver, schema, pending_migrations: pending }) => {
        const waiting = pending.length === 0 ? '' : `, ${pending.length} migrations pending`;
        return `${driver}, schema ${schema ?? 'none'}${waiting}`;
      }),
    event_bus: (it) =>
      told(it, 'event_bus', ({ kind, buffered, published, dropped, lag }) =>
        kind === 'off'
          ? 'off'
          : `${kind}, ${number(published)} published, ${number(buffered)} waiting, ${number(dropped)} dropped, lag ${lag ?? 'unknown'}`,
      ),
    audit: (it) =>
      told(it, 'audit', ({ status, records, failures }) => {
        return `${status}, ${number(records)} records, ${number(failures)} failures`;
      }),
    requests: (it) =>
      told(it, 'requests', ({ in_flight: inFlight, per_second: rate, errors_per_second: errors }) => {
        return `${perSecond(rate)}/s, errors ${perSecond(errors)}/s, ${number(inFlight)} in flight`;
      }),
    cache: (it) =>
      told(it, 'cache', ({ backend, hit_ratio: ratio }) => {
        const share = ratio === null ? 'no requests' : `${number(Math.round(ratio * 100))} % hits`;
        return backend === 'off' ? 'off' : `${backend}, ${share}`;
      }),
    upstream: (it) =>
      told(it, 'upstream', ({ p50_ms: p50, p95_ms: p95 }) =>
        p50 === null ? 'no requests in the last minute' : `half within ${ms(p50)}, 95 % within ${ms(p95)}`,
      ),
  },
};

/** `http_cache` → `http cache` */
const spelled = (name: string) => name.replaceAll('_', ' ');

function spanShown(seconds: number): string {
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3_600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days > 0) return `${days}d ${hours}h`;
  if (hours > 0) return `${hours}h ${minutes}m`;
  return minutes > 0 ? `${minutes}m ${seconds % 60}s` : `${seconds}s`;
}

const startedAgo = (uptimeS: number, look: Look) =>
  relativeTime(new Date(look.now - uptimeS * 1000).toISOString(), look);
