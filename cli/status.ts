/** `llmp status`: how a daemon is, on one screen. */
import type { ManagementClient } from '../daemon/api/client.js';
import type { WireTokenState } from '../daemon/api/contract.js';
import { command } from './command.js';
import { EXIT, failureOf } from './failure.js';
import type { Health } from './probes.js';
import type { Look, View } from './table.js';
import { relativeTime, stateShown, TOKEN_STATES } from './views.js';

/** How many there are. Null where nobody could say. */
interface Counts {
  projects: { active: number | null; all: number | null } | null;
  tokens: Record<WireTokenState, number | null> | null;
}

type Status = { server: string } & Health & Counts;

/**
 * Whatever the daemon says of itself, the question is answered; not to be ready is a check that failed (exit 9).
 * Exit 8 remains for a daemon that is ready and whose management API fails, exit 6 for one that does not answer.
 */
export const statusCommand = command({
  path: ['status'],
  summary: 'say how the daemon is; exit 9 when it is not ready',
  examples: [
    ['status', 'health, and how many projects and tokens there are'],
    ['status --no-input --json', 'for a script; without a management token the health alone'],
  ],
  options: {},
  async run({ shell, globals, output, server, connect }) {
    const [{ connectionTo }, { healthOf }] = await Promise.all([import('./connection.js'), import('./probes.js')]);
    const connection = await connectionTo(shell, globals, output);
    const health = await healthOf(connection);

    let counts: Counts = { projects: null, tokens: null };
    let exitCode: number = EXIT.done;
    try {
      counts = await countsOf(await connect());
    } catch (error) {
      const failure = failureOf(error, server);
      if (failure.explanation.code === 'management_token_missing') {
        output.note('Without a management token projects and tokens are not counted.');
      } else {
        output.fail(failure);
        exitCode = failure.exitCode;
      }
    }
    await output.one({ server: connection.server.shown, ...health, ...counts }, statusView);
    return health.status === 'ready' ? exitCode : EXIT.checkFailed;
  },
});

async function countsOf(client: ManagementClient): Promise<Counts> {
  const limit = '1'; // The total of a filtered list is in its header.
  const [all, active, ...tokens] = await Promise.all([
    client.projects({ limit }),
    client.projects({ limit, is_active: 'true' }),
    ...TOKEN_STATES.map((state) => client.tokens({ limit, state })),
  ]);
  const totals = TOKEN_STATES.map((state, i) => [state, tokens[i]?.total ?? null] as const);
  return {
    projects: { active: active.total, all: all.total },
    tokens: Object.fromEntries(totals) as Record<WireTokenState, number | null>,
  };
}

const listedOr = (nothing: string, names: readonly string[]) => (names.length === 0 ? nothing : names.join(', '));
const count = (total: number | null) => String(total ?? '?');

const statusView: View<Status> = {
  idOf: ({ server }) => server,
  fields: ['server', 'status', 'missing', 'degraded', 'uptime_s', 'checks', 'projects', 'tokens'],
  columns: [],
  details: {
    status: ({ status }, { ascii }) => `${status === 'ready' ? (ascii ? '*' : '●') : ascii ? 'x' : '✗'} ${status}`,
    missing: ({ missing }) => listedOr('nothing', missing),
    degraded: ({ degraded }) => listedOr('nothing', degraded),
    uptime_s: ({ uptime_s }, look) =>
      uptime_s === null ? 'unknown' : `${uptime_s} (started ${startedAgo(uptime_s, look)})`,
    checks: ({ checks }) =>
      Object.entries(checks)
        .map(([name, result]) => `${name} ${result}`)
        .join(', '),
    projects: ({ projects }) =>
      projects === null ? 'not counted' : `${count(projects.all)}, of which ${count(projects.active)} active`,
    tokens: ({ tokens }, look) =>
      tokens === null
        ? 'not counted'
        : TOKEN_STATES.map((state) => `${count(tokens[state])} ${stateShown(state, look)}`).join(', '),
  },
};

const startedAgo = (uptimeS: number, look: Look) =>
  relativeTime(new Date(look.now - uptimeS * 1000).toISOString(), look);
