/** Load: the same small request on some connections for some seconds, by wrk or else autocannon, in a separate process. */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { temporaryFolder } from '../support/daemon.js';
import { type BenchRequest, CHAT } from './requests.js';
import { installed } from './machine.js';
import { UsageError } from './usage-error.js';
import { Failure, type Program } from './processes.js';
import type { Bench } from './run.js';

/** The target of a load. */
export interface Target {
  /** The base URL. */
  url: string;
  headers: Record<string, string>;
  /** A chat by default. Of several, each is sent in turn, which needs wrk. */
  asked?: BenchRequest | readonly BenchRequest[];
  /** Its cache contains the response. */
  isHit?: boolean;
  /** It refuses everything, as intended, with this status and a body that contains this part. */
  refusal?: { status: number; part: string };
}

export interface LoadResult {
  requests: number;
  seconds: number;
  p50Ms: number;
  p99Ms: number;
}

export interface LoadOptions {
  connections: number;
  /** A whole number, because wrk accepts no other. */
  seconds: number;
}

const MS_PER_S = 1_000;
// The default of autocannon: on a busy machine a response may take longer than wrk's two seconds.
const PATIENCE = ['--timeout', '10s'];
const END_WITHIN_MS = 15_000; // After the last second of load.

const requestsOf = ({ asked = CHAT }: Target): readonly BenchRequest[] => ('path' in asked ? [asked] : asked);

/** Checks each request closely, so that no error page is measured. @throws unless it gets the expected response. */
export async function probe(target: Target): Promise<void> {
  for (const asked of requestsOf(target)) await probeRequest(target, asked);
}

async function probeRequest({ url, headers, isHit = false, refusal }: Target, asked: BenchRequest): Promise<void> {
  const { method, path, body, expectedPart } = asked;
  const response = await fetch(url + path, { method, headers: headersOf(headers, asked), body });
  const text = await response.text();
  const { status, part } = refusal ?? { status: 200, part: expectedPart };
  if (response.status !== status || !text.includes(part)) {
    throw new Failure(`${url} does not respond with ${part}: ${response.status} ${text.slice(0, 500)}`);
  }
  if (isHit && response.headers.get('x-proxy-cache') !== 'hit') throw new Failure(`${url} has not cached ${path}`);
}

/**
 * @throws if a single response was not 200 (or was 200, for a target that refuses everything), or a connection failed: the figures would
 * mean nothing.
 */
export async function load(bench: Bench, target: Target, options: LoadOptions): Promise<LoadResult> {
  const { failures, output, ...result } = await attempt(bench, target, options);
  if (failures > 0 || result.requests === 0) {
    throw new Failure(
      `void: ${failures} failures beside ${result.requests} good responses from ${target.url}\n${output}`,
    );
  }
  return result;
}

/** A run in which requests may fail. */
export interface AttemptResult extends LoadResult {
  failures: number;
  /** The output of the load generator. */
  output: string;
}

export async function attempt(bench: Bench, target: Target, options: LoadOptions): Promise<AttemptResult> {
  const generator = bench.options.load === 'wrk' ? wrk : autocannon;
  const { program, parse } = generator(target, options);
  const output = await bench.processes.run(
    { name: bench.options.load, ...program, cores: bench.cores.others },
    options.seconds * MS_PER_S + END_WITHIN_MS,
  );
  const { broken, refused, ...result } = parse(output);
  const failures = broken + (target.refusal ? result.requests - refused : refused);
  return { ...result, failures, output };
}

export const loadGenerators = ['wrk', 'autocannon'] as const;
export type LoadGenerator = (typeof loadGenerators)[number];
export const bestLoadGenerator = (): LoadGenerator => (installed('wrk') === null ? 'autocannon' : 'wrk');

interface Generator {
  program: Pick<Program, 'command' | 'args'>;
  parse: (output: string) => LoadResult & { broken: number; refused: number };
}

function wrk(target: Target, { connections, seconds }: LoadOptions): Generator {
  const script = join(temporaryFolder(), 'request.lua');
  const lines = [
    ...linesOf(target),
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
      args: ['-t', '1', '-c', String(connections), '-d', `${seconds}s`, ...PATIENCE, '-s', script, target.url],
    },
    parse: (output) => {
      const { us, p50, p99, ...counts } = JSON.parse(/^RESULT (.*)$/m.exec(output)?.[1] ?? '') as WrkResult;
      return { ...counts, seconds: us / 1e6, p50Ms: p50 / 1e3, p99Ms: p99 / 1e3 };
    },
  };
}

/** wrk is faster with one request that it composes itself. */
function linesOf(target: Target): string[] {
  const headersFor = (asked: BenchRequest) => Object.entries(headersOf(target.headers, asked));
  const [first = CHAT, ...more] = requestsOf(target);
  if (more.length === 0) {
    const { method, path, body } = first;
    return [
      `wrk.method, wrk.path = ${lua(method)}, ${lua(path)}`,
      ...(body === null ? [] : [`wrk.body = ${lua(body)}`]),
      ...headersFor(first).map(([name, value]) => `wrk.headers[${lua(name)}] = ${lua(value)}`),
    ];
  }
  const requests = [first, ...more].map((asked) => {
    const fields = headersFor(asked).map(([name, value]) => `[${lua(name)}]=${lua(value)}`);
    return `wrk.format(${lua(asked.method)}, ${lua(asked.path)}, {${fields.join()}}, ${asked.body === null ? 'nil' : lua(asked.body)})`;
  });
  return [
    'local at, all = 0, {}',
    `init = function() all = { ${requests.join(', ')} } end`,
    'request = function() at = at % #all + 1; return all[at] end',
  ];
}

// A JSON string in plain ASCII is also a string in Lua.
const lua = (text: string) => JSON.stringify(text);

interface WrkResult {
  requests: number;
  us: number;
  p50: number;
  p99: number;
  broken: number;
  refused: number;
}

/** Its times are whole milliseconds. */
function autocannon(target: Target, { connections, seconds }: LoadOptions): Generator {
  const { url, headers } = target;
  const [asked = CHAT, second] = requestsOf(target);
  if (second) throw new UsageError('autocannon sends only one kind of request: this needs wrk');
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

const headersOf = (headers: Record<string, string>, { body }: BenchRequest): Record<string, string> =>
  body === null ? headers : { 'content-type': 'application/json', ...headers };
