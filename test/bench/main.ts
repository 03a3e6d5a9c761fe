/**
 * `npm run bench -- [PROFILE] [--rounds N] [--seconds N] …`: measurements, not tests. Each profile prints its tables on
 * standard output, then the same as one line of JSON; progress goes to standard error.
 */
import { figureTable, isReached, rowTable } from './figures.js';
import { describeMachine, divideCores } from './machine.js';
import { parseOptions, UsageError } from './options.js';
import { Processes } from './processes.js';
import { scale } from './profiles/scale.js';
import { throughput } from './profiles/throughput.js';
import type { Profile } from './run.js';

const PROFILES: Record<string, Profile> = { throughput, scale };

async function main(processes: Processes): Promise<void> {
  const { name, options } = parseOptions(process.argv.slice(2));
  const profile = PROFILES[name];
  if (!profile) throw new UsageError(`no profile ${name}; there are: ${Object.keys(PROFILES).join(', ')}`);
  const cores = divideCores();
  const machine = `${describeMachine(cores)}, load by ${options.load}`;
  const { rows, figures } = await profile({ cores, options, processes });
  console.log(`${machine}\n`);
  if (rows) console.log(`${rowTable(rows)}\n`);
  console.log(`${figureTable(figures)}\n`);
  const judged = figures.map((figure) => ({ ...figure, reached: isReached(figure) }));
  console.log(JSON.stringify({ profile: name, machine, rows, figures: judged }));
}

const processes = new Processes();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void processes.endAll().then(() => process.exit(1));
  });
}
try {
  await main(processes);
} catch (error) {
  console.error(error instanceof UsageError ? error.message : error);
  process.exitCode = error instanceof UsageError ? 2 : 1;
} finally {
  await processes.endAll();
}
