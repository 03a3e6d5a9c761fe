/** Load: the same small request over some connections for some seconds, by wrk or else autocannon, in a process of its own. */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { temporaryFolder } from '../support/daemon.js';
import { type Asked, CHAT } from './asked.js';
import { installed } from './machine.js';
import { Failure, type Program } from './processes.js';
import type { Bench } from './run.js';

/** What load is put on. */
export interface Target {
  /** The base URL. */
  url: string;
  headers: Record<string, string>;
  /** A chat, if nothing else is said. */
  asked?: Asked;
  /** It has the answer in its cache. */
  isHit?: boolean;
  /** It refuses whatever comes, as it is meant to. */
  isFull?: boolean;
}

export interface LoadResult {
  requests: number;
  seconds: number;
  p50Ms: number;
  p99Ms: number;
}

export interface LoadOptions {
  connections: number;
  /** A whole number: wrk takes no other. */
  seconds: number;
}

const MS_PER_S = 1_000;
// As long as autocannon's own: on a busy machine an answer may take longer than the two seconds that wrk gives it.
const PATIENCE = ['--timeout', '10s'];
const END_WITHIN_MS = 15_000; // After the last second of load.

/** One request, looked at closely, so that no error page is measured. @throws unless it is answered as it is meant to be. */
export async function probe({ url, headers, asked = CHAT, isHit = false, isFull = false }: Target): Promise<void> {
  const { method, path, body, answeredWith } = asked;
  const response = await fetch(url + path, { method, headers: headersOf(headers, asked), body });
  const text = await response.text();
  const [status, part] = isFull ? [429, '"rate_limited"'] : [200, answeredWith];
  if (response.status !== status || !text.includes(part)) {
    throw new Failure(`${url} does not answer with ${part}: ${response.status} ${text.slice(0, 500)}`);
  }
  if (isHit && response.headers.get('x-proxy-cache') !== 'hit') throw new Failure(`${url} has not kept ${path}`);
}

/** @throws when a single answer was not 200 (or was, of one that is full), or a connection failed: the figures would mean nothing. */
export async function load(bench: Bench, target: Target, options: LoadOptions): Promise<LoadResult> {
  const { failures, output, ...result } = await attempt(bench, target, options);
  if (failures > 0 || result.requests === 0) {
    throw new Failure(
      `void: ${failures} failures beside ${result.requests} good answers from ${target.url}\n${output}`,
    );
  }
  return result;
}

/** A run in which requests may fail. */
export interface Attempted extends LoadResult {
  failures: number;
  /** Of the load generator. */
  output: string;
}

export async function attempt(bench: Bench, target: Target, options: LoadOptions): Promise<Attempted> {
  const generator = bench.options.load === 'wrk' ? wrk : autocannon;
  const { program, parse } = generator(target, options);
  const output = await bench.processes.run(
    { name: bench.options.load, ...program, cores: bench.cores.others },
    options.seconds * MS_PER_S + END_WITHIN_MS,
  );
  const { broken, refused, ...result } = parse(output);
  const failures = broken + (target.isFull ? result.requests - refused : refused);
  return { ...result, failures, output };
}

export const loadGenerators = ['wrk', 'autocannon'] as const;
export type LoadGenerator = (typeof loadGenerators)[number];
export const bestLoadGenerator = (): LoadGenerator => (installed('wrk') === null ? 'autocannon' : 'wrk');

interface Generator {
  program: Pick<Program, 'command' | 'args'>;
  parse: (output: string) => LoadResult & { broken: number; refused: number };
}

function wrk({ url, headers, asked = CHAT }: Target, { connections, seconds }: LoadOptions): Generator {
  const { method, path, body } = asked;
  const script = join(temporaryFolder(), 'request.lua');
  // A string of JSON in plain ASCII is one of Lua's as well.
  const lines = [
    `wrk.method = "${method}"`,
    ...(body === null ? [] : [`wrk.body = ${JSON.stringify(body)}`]),
    ...Object.entries(headersOf(headers, asked)).map(
      ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
    ),
    'done = function(summary, latency)',
    '  local e = summary.errors',
    '  local broken = e.connect + e.read + e.write + e.timeout',
    '  io.write(string.format(\'RESULT {"requests":%d,"us":%d,"p50":%f,"p99":%f,"broken":%d,"refused":%d}\\n\',',
    '    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), broken, e.status))',
    'end',
  ];
  writeFileSync(script, lines.join('\n'));
  return {
    program: {
      command: 'wrk',
      args: ['-t', '1', '-c', String(connections), '-d', `${seconds}s`, ...PATIENCE, '-s', script, url + path],
    },
    parse: (output) => {
      const { us, p50, p99, ...counts } = JSON.parse(/^RESULT (.*)$/m.exec(output)?.[1] ?? '') as WrkResult;
      return { ...counts, seconds: us / 1e6, p50Ms: p50 / 1e3, p99Ms: p99 / 1e3 };
    },
  };
}

interface WrkResult {
  requests: number;
  us: number;
  p50: number;
  p99: number;
  broken: number;
  refused: number;
}

/** Its times are whole milliseconds. */
function autocannon({ url, headers, asked = CHAT }: Target, { connections, seconds }: LoadOptions): Generator {
  const { method, path, body } = asked;
  const fields = Object.entries(headersOf(headers, asked)).flatMap(([name, value]) => ['-H', `${name}=${value}`]);
  const script = createRequire(import.meta.url).resolve('autocannon');
  const numbers = ['-c', String(connections), '-d', String(seconds)];
  return {
    program: {
      command: process.execPath,
      args: [script, '--json', ...numbers, '-m', method, ...fields, ...(body === null ? [] : ['-b', body]), url + path],
    },
    parse: (output) => {
      const result = JSON.parse(/^\{.*\}$/m.exec(output)?.[0] ?? '') as AutocannonResult;
      const { requests, duration, latency } = result;
      return {
        requests: requests.total,
        seconds: duration,
        p50Ms: latency.p50,
        p99Ms: latency.p99,
        broken: result.errors,
        refused: requests.total - result['2xx'],
      };
    },
  };
}

interface AutocannonResult {
  requests: { total: number };
  duration: number;
  latency: { p50: number; p99: number };
  '2xx': number;
  errors: number;
}

const headersOf = (headers: Record<string, string>, { body }: Asked): Record<string, string> =>
  body === null ? headers : { 'content-type': 'application/json', ...headers };
