/**
 * `npm run bench -- [PROFILE] [--rounds N] [--seconds N] …`: measurements, not tests. A profile prints its tables on standard output, then
 * the same as one line of JSON. Progress goes to standard error.
 *
 * profiles/     one for each question; what it starts, measures, and its goals
 * rounds.ts     several services under the same load, in turn
 * load.ts       the load: wrk or autocannon
 * baselines.ts  what the daemon is compared with, among them forwarder.ts and bare-server.ts
 * requests.ts   the requests of the load
 * daemon.ts     the measured daemon; redis.ts a Redis for it
 * processes.ts  starts, watches and ends all of these, each as a separate process
 * machine.ts    which process runs on which core, and what it has used
 */
import { figureTable, isReached, rowTable } from './figures.js';
import { describeMachine, divideCores } from './machine.js';
import { parseOptions, USAGE } from './options.js';
import { UsageError } from './usage-error.js';
import { Failure, Processes } from './processes.js';
import { audit } from './profiles/audit.js';
import { budgets } from './profiles/budgets.js';
import { cache } from './profiles/cache.js';
import { capped } from './profiles/capped.js';
import { frozenProvider } from './profiles/frozen-provider.js';
import { latency } from './profiles/latency.js';
import { limits } from './profiles/limits.js';
import { lists } from './profiles/lists.js';
import { memory } from './profiles/memory.js';
import { peers } from './profiles/peers.js';
import { propagation } from './profiles/propagation.js';
import { redisFrozen } from './profiles/redis-frozen.js';
import { runtimes } from './profiles/runtimes.js';
import { scale } from './profiles/scale.js';
import { scalePostgres } from './profiles/scale-postgres.js';
import { startup } from './profiles/startup.js';
import { streams } from './profiles/streams.js';
import { throughput } from './profiles/throughput.js';
import { tui } from './profiles/tui.js';
import { usage } from './profiles/usage.js';
import type { Profile } from './run.js';

/** In these everything runs on all cores. */
const UNPINNED: ReadonlySet<string> = new Set(['peers']);

const PROFILES: Record<string, Profile> = {
  throughput,
  capped,
  limits,
  budgets,
  cache,
  'redis-frozen': redisFrozen,
  'frozen-provider': frozenProvider,
  latency,
  streams,
  memory,
  startup,
  scale,
  usage,
  audit,
  propagation,
  'scale-postgres': scalePostgres,
  lists,
  tui,
  peers,
  runtimes,
};

async function main(processes: Processes): Promise<void> {
  const { name, options } = parseOptions(process.argv.slice(2));
  const profile = PROFILES[name];
  if (!profile) throw new UsageError(`no profile ${name}`);
  const cores = UNPINNED.has(name) ? { measured: null, others: null } : divideCores();
  const machine = `${describeMachine(cores)}, load by ${options.load}`;
  const { rows, figures, warning } = await profile({ cores, options, processes, node: options.nodes[0] });
  console.log(`${machine}\n`);
  if (rows) console.log(`${rowTable(rows)}\n`);
  console.log(`${figureTable(figures)}\n`);
  if (warning !== undefined) console.log(`${warning}\n`);
  const judged = figures.map((figure) => ({ ...figure, reached: isReached(figure) }));
  console.log(JSON.stringify({ profile: name, machine, rows, figures: judged, warning }));
}

const processes = new Processes();
for (const [signal, number] of [
  ['SIGHUP', 1],
  ['SIGINT', 2],
  ['SIGTERM', 15],
] as const) {
  process.once(signal, () => {
    process.exitCode = 128 + number;
    void processes.endAll().then(() => process.exit());
  });
}
try {
  await main(processes);
} catch (error) {
  if (error instanceof UsageError) {
    console.error(`${error.message}\n\n${USAGE}\nprofiles: ${Object.keys(PROFILES).join(', ')}`);
    process.exitCode = 2;
  } else if (process.exitCode === undefined) {
    const reason = await processes.reasonFor(error);
    console.error(reason instanceof Failure ? reason.message : reason);
    process.exitCode = 1;
  }
} finally {
  await processes.endAll();
}
