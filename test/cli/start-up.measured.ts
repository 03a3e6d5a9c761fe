import { expect } from 'chai';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { startStandIn } from './stand-in.js';

const BUNDLE = join(import.meta.dirname, '../../cli/llmp.cjs');
const ROUNDS = 9;
// 2.2 to 2.6 of the time and 2.2 to 2.9 of the CPU time were seen, on a quiet machine and on a busy one.
const MAX_RATIO = 3.5;

async function msOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const begun = performance.now();
  const child: ChildProcess = spawn(process.execPath, args, { env, stdio: 'ignore' });
  const [exitCode] = (await once(child, 'close')) as [number | null];
  expect(exitCode, args.join(' ')).to.equal(0);
  return performance.now() - begun;
}

const RUNS_AT_ONCE = 3; // The shell counts in hundredths of a second.

/** The CPU time of a process on average. It depends less on what else runs than the time that a user waits. */
async function cpuMsOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const script = `i=0; while [ $i -lt ${RUNS_AT_ONCE} ]; do "$@" > /dev/null 2>&1 || exit 1; i=$((i + 1)); done; times`;
  const { stdout } = await promisify(execFile)('sh', ['-c', script, 'sh', process.execPath, ...args], { env });
  // The second line has the user and the system time of the children: 0m1.230s 0m0.180s.
  const times = [...(stdout.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)];
  expect(times, stdout).to.have.length(2);
  return (
    (times.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0) * 1_000) /
    RUNS_AT_ONCE
  );
}

const medianOf = (times: readonly number[]) => [...times].sort((a, b) => a - b)[times.length >> 1] ?? Infinity;

/*
 * Node's own start is measured in the same rounds, because the times depend on the machine. Where the time of `llmp token list` goes, in
 * ms on a quiet machine with Node.js 20:
 *
 *   24  node -e 0
 *   12  the modules of node:http, and one request
 *    5  reading the bundle (480 KB, 1.3) and its code cache (0.3), and V8's deserialization (2.6)
 *    3  its modules
 *    2  parsing
 *    4  the user's name, the time limit, the output, garbage collection: none more than 1
 *
 * That is 2.0 times `node -e 0`, in CPU time. It would be 2.2 if all modules of Node.js were loaded at once (cli/bundled-program.ts), and
 * 1.85 with an HTTP client of our own. A bundle of the half that these commands need would save 2 ms.
 */
describe('start-up of the command line', () => {
  it(`llmp token list and a completion take at most ${MAX_RATIO} times as long as \`node -e 0\`, and ${MAX_RATIO} times its CPU time`, async () => {
    const daemon = await startStandIn();
    try {
      const env = { PATH: process.env.PATH, HOME: temporaryFolder(), LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN };
      const lines: Record<string, string[]> = {
        'node -e 0': ['-e', '0'],
        'http.get': ['-e', `require('http').get('${daemon.url}/manage/tokens', (res) => res.resume())`],
        'token list': ['--', BUNDLE, 'token', 'list'],
        completion: ['--', BUNDLE, '__complete', '--', 'token', 'revoke', ''],
      };
      // In turns, so that a slow minute of the machine slows all of them down.
      const times = new Map<string, { ms: number[]; cpuMs: number[] }>();
      for (let round = 0; round <= ROUNDS; round++) {
        for (const [name, line] of Object.entries(lines)) {
          const measured = times.get(name) ?? { ms: [], cpuMs: [] };
          measured.ms.push(await msOf(line, env));
          measured.cpuMs.push(await cpuMsOf(line, env));
          // The first round reads the files from the disk.
          if (round > 0) times.set(name, measured);
        }
      }
      const node = times.get('node -e 0');
      for (const [name, { ms, cpuMs }] of times) {
        const ratio = medianOf(ms) / medianOf(node?.ms ?? []);
        const cpuRatio = medianOf(cpuMs) / medianOf(node?.cpuMs ?? []);
        console.log(
          `      ${name}: ${medianOf(ms).toFixed(0)} ms, ${ratio.toFixed(2)} times; CPU time ${medianOf(cpuMs).toFixed(0)} ms, ${cpuRatio.toFixed(2)} times`,
        );
        expect(ratio, `${name}: time`).to.be.at.most(MAX_RATIO);
        expect(cpuRatio, `${name}: CPU time`).to.be.at.most(MAX_RATIO);
      }
      expect(daemon.asked.length).to.equal(3 * (ROUNDS + 1) * (1 + RUNS_AT_ONCE));
    } finally {
      await daemon.stop();
    }
  }).timeout(120_000);
});
