/** `llmp status`: the health of a daemon on one screen. */
import type { WireStatus } from '../../daemon/api/contract.js';
import { ApiError, type ManagementClient } from '../../daemon/api/client.js';
import { counted, rate } from '../../daemon/api/formats.js';
import { MAX_PAGE_SIZE, TOKEN_STATES } from '../../daemon/api/vocabulary.js';
import { command, type Invocation } from '../command.js';
import { flag } from '../option.js';
import { EXIT, failureOf } from '../../console/failure.js';
import type { Health } from '../connection/probes.js';
import type { View } from '../../console/table.js';
import {
  NEARLY_SPENT_TOKENS,
  NOTHING_WRONG,
  type Problem,
  problemShown,
  problemsIn,
  type Spenders,
} from '../../console/problems.js';
import { stateShown } from '../../console/columns/cell-text.js';

/** Fields of the status that need a management token. */
const FACTS = [
  'version',
  'projects',
  'tokens',
  'database',
  'event_bus',
  'audit',
  'requests',
  'cache',
  'prices',
  'upstream',
  'workers',
] as const;
type Fact = (typeof FACTS)[number];
/** Null for unknown values. */
type Facts = { [Name in Fact]: WireStatus[Name] | null };

/** What is wrong, as in the terminal UI; null if it is unknown. */
interface Wrong {
  problems: readonly Omit<Problem, 'id'>[] | null;
}

/** The shown status. `unreachable` occurs with --watch only; without it the command fails. */
type Status = { server: string } & Omit<Health, 'status'> & { status: Health['status'] | 'unreachable' } & Facts &
  Wrong;

/**
 * Exit codes: 9 if the daemon is not ready (a failed check), 8 if it is ready but its management API fails, and 6 if it does not
 * respond.
 */
export const statusCommand = command({
  path: ['status'],
  summary: 'show daemon health (exits with 9 if it is not ready)',
  examples: [
    ['status', 'show health, traffic, and the numbers of projects and tokens'],
    ['status --watch', 'refresh every 2 seconds; when piped, print one line of JSON each time'],
    ['status --no-input --json', 'print JSON for a script; without a management token only the health'],
  ],
  options: { watch: flag('--watch', 'refresh every 2 seconds until interrupted') },
  async run(invocation) {
    const { output, options, server } = invocation;
    const [{ connectionTo }, { healthOf }] = await Promise.all([
      import('../connection/connection.js'),
      import('../connection/probes.js'),
    ]);
    const connection = connectionTo(invocation);
    const { shown } = connection.server;
    let operator: Promise<ManagementClient | null> | null = null;

    const fetchStatus = async (signal?: AbortSignal) => {
      const health = await healthOf(connection, signal);
      const known = (facts: Facts & Wrong): Status => ({ server: shown, ...health, ...facts });
      try {
        const client = await (operator ??= operatorOf(invocation));
        return { item: known(client ? await factsFrom(client, signal) : NO_FACTS), failure: null };
      } catch (error) {
        return { item: known(NO_FACTS), failure: failureOf(error, server) };
      }
    };
    if (options.watch) {
      const { watch } = await import('../watch.js');
      return watch(invocation, {
        fetch: fetchStatus,
        unreachableItem: () => ({ server: shown, ...UNREACHABLE_HEALTH, ...NO_FACTS }),
        show: (status, problem) => output.refresh(status, statusView, problem),
      });
    }
    const { item, failure } = await fetchStatus();
    if (failure) output.fail(failure);
    await output.one(item, statusView);
    if (item.status !== 'ready') return EXIT.checkFailed;
    return failure?.exitCode ?? EXIT.done;
  },
});

/** @returns null without a management token. */
async function operatorOf({
  connect,
  output,
  server,
}: Pick<Invocation, 'connect' | 'output' | 'server'>): Promise<ManagementClient | null> {
  try {
    return await connect();
  } catch (error) {
    if (failureOf(error, server).explanation.code !== 'management_token_missing') throw error;
    output.note('Showing only the health, because no management token was given.');
    return null;
  }
}

const UNREACHABLE_HEALTH = { status: 'unreachable' as const, missing: [], degraded: [], uptime_s: null, checks: {} };

const NO_FACTS = Object.fromEntries([...FACTS, 'problems'].map((name) => [name, null])) as unknown as Facts & Wrong;

async function factsFrom(client: ManagementClient, signal?: AbortSignal): Promise<Facts & Wrong> {
  const [status, incidents, spenders] = await Promise.all([
    client.status(signal),
    unlessUnavailable(client.incidents(signal)),
    unlessUnavailable(spendersFrom(client, signal)),
  ]);
  const found = problemsIn(status, incidents, spenders).map(({ id: _, ...problem }) => problem);
  const problems = incidents === null && found.length === 0 ? null : found;
  return { ...Object.fromEntries(FACTS.map((name) => [name, status[name]])), problems } as Facts & Wrong;
}

/** Null while the database is unavailable, as the counts in the status are. */
async function unlessUnavailable<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ApiError && error.status === 503) return null;
    throw error;
  }
}

async function spendersFrom(client: ManagementClient, signal?: AbortSignal): Promise<Spenders> {
  const [tokens, projects] = await Promise.all([
    client.tokens(NEARLY_SPENT_TOKENS, signal),
    client.projects({ is_active: 'true', limit: String(MAX_PAGE_SIZE) }, signal),
  ]);
  return { tokens: tokens.items, projects: projects.items };
}

/** Lines of problems, which leave room for the rest on one screen. */
const MAX_PROBLEMS = 8;

const listedOr = (nothing: string, names: readonly string[]) => (names.length === 0 ? nothing : names.join(', '));
/** The text of a fact; `unknown` without a management token, or if the daemon could not count. */
const factShown = <Name extends Fact>(
  facts: Facts,
  name: Name,
  textOf: (fact: NonNullable<WireStatus[Name]>) => string,
): string => {
  const fact = facts[name];
  return fact === null ? 'unknown' : textOf(fact);
};
const ms = (value: number | null) => (value === null ? '?' : `${Math.round(value)} ms`);

const statusView: View<Status> = {
  idOf: ({ server }) => server,
  fields: ['server', 'status', 'problems', 'missing', 'degraded', 'uptime_s', 'checks', ...FACTS],
  columns: [],
  isReport: true,
  labels: { uptime_s: 'uptime', event_bus: 'events' },
  details: {
    status: ({ status }, { ascii }) => `${status === 'ready' ? (ascii ? '*' : '●') : ascii ? 'x' : '✗'} ${status}`,
    problems: ({ problems }) => {
      if (problems === null) return 'unknown';
      if (problems.length === 0) return NOTHING_WRONG;
      const lines = problems.slice(0, MAX_PROBLEMS).map(problemShown);
      return problems.length > MAX_PROBLEMS ? [...lines, `and ${problems.length - MAX_PROBLEMS} more`] : lines;
    },
    missing: ({ missing }) => listedOr('nothing', missing.map(withSpaces)),
    degraded: ({ degraded }) => listedOr('nothing', degraded.map(withSpaces)),
    uptime_s: ({ uptime_s }) => (uptime_s === null ? 'unknown' : spanShown(uptime_s)),
    checks: ({ checks }) =>
      Object.entries(checks)
        .map(([name, result]) => `${withSpaces(name)} ${withSpaces(result)}`)
        .join(', '),
    version: ({ version }) => version ?? 'unknown',
    projects: (it) => factShown(it, 'projects', ({ all, active }) => `${all} (${active} active)`),
    tokens: (it, render) =>
      factShown(it, 'tokens', (counts) =>
        TOKEN_STATES.map((state) => `${counts[state]} ${stateShown(state, render)}`).join(', '),
      ),
    database: (it) =>
      factShown(it, 'database', ({ driver, schema, pending_migrations: pending }) => {
        const waiting = pending.length === 0 ? '' : `, ${counted(pending.length, 'migration')} pending`;
        return `${driver}, schema ${schema ?? 'none'}${waiting}`;
      }),
    event_bus: (it) =>
      factShown(it, 'event_bus', ({ kind, buffered, published, dropped, lag }) =>
        kind === 'off'
          ? 'off'
          : published === null
            ? kind
            : `${kind}, ${published} published, ${buffered} waiting, ${dropped} dropped, lag ${lag ?? 'unknown'}`,
      ),
    audit: (it) =>
      factShown(it, 'audit', ({ status, records, failures }) => {
        return records === null ? status : `${status}, ${records} records, ${failures} failures`;
      }),
    requests: (it) =>
      factShown(it, 'requests', ({ in_flight: inFlight, per_second: perSecond, errors_per_second: errors }) => {
        return `${rate(perSecond)}/s, failures ${rate(errors)}/s, ${inFlight} in flight`;
      }),
    cache: (it) =>
      factShown(it, 'cache', ({ backend, hit_ratio: ratio }) => {
        const share = ratio === null ? 'no requests' : `${Math.round(ratio * 100)} % hits`;
        return backend === 'off' ? 'off' : `${backend}, ${share}`;
      }),
    prices: (it) =>
      factShown(it, 'prices', ({ shipped, file }) => {
        const own = file === null ? '' : `, PRICES_FILE with ${counted(file.entries, 'entry')} (${shortHash(file)})`;
        return `list of ${shipped.date} (${shortHash(shipped)})${own}`;
      }),
    upstream: (it) =>
      factShown(it, 'upstream', ({ p50_ms: p50, p95_ms: p95 }) =>
        p50 === null ? 'no requests in the last minute' : `p50 ${ms(p50)}, p95 ${ms(p95)}`,
      ),
    workers: (it) =>
      factShown(it, 'workers', (workers) =>
        workers.length === 0
          ? 'none, one process serves all'
          : workers
              .map(({ pid, missing, in_flight: inFlight }) => {
                const ready = inFlight === null ? 'ready' : `${inFlight} in flight`;
                return `${pid} (${missing.length === 0 ? ready : `not ready: ${missing.join(', ')}`})`;
              })
              .join(', '),
      ),
  },
};

const shortHash = ({ sha256 }: { sha256: string }) => sha256.slice(0, 12);

/** `http_cache` → `http cache` */
const withSpaces = (name: string) => name.replaceAll('_', ' ');

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
