import { parseArgs } from 'node:util';
import { UsageError } from './usage-error.js';
import { bestLoadGenerator, type LoadGenerator, loadGenerators } from './load.js';

export interface Options {
  rounds: number;
  seconds: number;
  warmUpSeconds: number;
  connections: number;
  load: LoadGenerator;
  /** Until the memory of an idle daemon is read: V8 frees what the start allocated when nothing has happened for 15 seconds. */
  settleSeconds: number;
  /** Of the profile `streams`: the number of concurrent streams. */
  streams: number;
  /** Of the profile `memory`: how long the load lasts. */
  minutes: number;
  /** The executables of Node.js that run the daemon and the baselines. Only the profile `runtimes` uses more than the first. */
  nodes: readonly [string, ...string[]];
}

export const USAGE =
  'npm run bench -- [PROFILE] [--rounds N] [--seconds N] [--warm-up SECONDS] [--connections N] [--settle SECONDS] [--load wrk|autocannon] [--streams N] [--minutes N] [--node PATH]...';

/** @throws {UsageError} */
export function parseOptions(argv: string[]): { name: string; options: Options } {
  const { values, positionals } = parse(argv);
  const [name = 'throughput', ...more] = positionals;
  if (more.length > 0) throw new UsageError(`one profile at a time, not also ${more.join(' ')}`);
  const load = loadGenerators.find((generator) => generator === values.load);
  if (load === undefined) throw new UsageError(`--load is ${loadGenerators.join(' or ')}`);
  return {
    name,
    options: {
      rounds: wholeNumber('rounds', values.rounds, 1),
      seconds: wholeNumber('seconds', values.seconds, 1),
      warmUpSeconds: wholeNumber('warm-up', values['warm-up'], 0),
      connections: wholeNumber('connections', values.connections, 1),
      load,
      settleSeconds: wholeNumber('settle', values.settle, 0),
      streams: wholeNumber('streams', values.streams, 1),
      minutes: wholeNumber('minutes', values.minutes, 1),
      nodes: nodesOf(values.node),
    },
  };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        rounds: { type: 'string', default: '5' },
        seconds: { type: 'string', default: '5' },
        'warm-up': { type: 'string', default: '2' },
        connections: { type: 'string', default: '16' },
        settle: { type: 'string', default: '30' },
        streams: { type: 'string', default: '1000' },
        minutes: { type: 'string', default: '1' },
        load: { type: 'string', default: bestLoadGenerator() },
        node: { type: 'string', multiple: true },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function nodesOf(paths: readonly string[] = []): readonly [string, ...string[]] {
  const [first = process.execPath, ...more] = paths;
  return [first, ...more];
}

function wholeNumber(name: string, text: string, least: number): number {
  if (!/^\d{1,6}$/.test(text) || Number(text) < least) {
    throw new UsageError(`--${name} is a whole number of at least ${least}`);
  }
  return Number(text);
}
