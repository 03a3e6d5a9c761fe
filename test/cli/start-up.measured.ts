import { expect } from 'chai';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { startStandIn } from './stand-in.js';

const BUNDLE = join(import.meta.dirname, '../../cli/llmp.cjs');
const RUNS = 15;
const MAX_LIST_MS = 130;
const MAX_COMPLETION_MS = 150;
// 2.0 on a quiet machine.
const MAX_RATIO = 3;

async function msOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const begun = performance.now();
  const child: ChildProcess = spawn(process.execPath, args, { env, stdio: 'ignore' });
  const [exitCode] = (await once(child, 'close')) as [number | null];
  expect(exitCode, args.join(' ')).to.equal(0);
  return performance.now() - begun;
}

/** The CPU time of a process on average. It depends less on what else runs than the time that a user waits. */
async function cpuMsOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const script = `i=0; while [ $i -lt ${RUNS} ]; do "$@" > /dev/null 2>&1 || exit 1; i=$((i + 1)); done; times`;
  const { stdout } = await promisify(execFile)('sh', ['-c', script, 'sh', process.execPath, ...args], { env });
  // The second line has the user and the system time of the children: 0m1.230s 0m0.180s.
  const times = [...(stdout.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)];
  expect(times, stdout).to.have.length(2);
  return (times.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0) * 1_000) / RUNS;
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
  it(`llmp token list takes at most ${MAX_LIST_MS} ms, a completion ${MAX_COMPLETION_MS} ms; both ${MAX_RATIO} times the CPU time of \`node -e 0\``, async () => {
    const daemon = await startStandIn();
    try {
      const env = { PATH: process.env.PATH, HOME: temporaryFolder(), LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN };
      const lines = [
        ['-e', '0'],
        ['-e', `require('http').get('${daemon.url}/manage/tokens', (res) => res.resume())`],
        ['--', BUNDLE, 'token', 'list'],
        ['--', BUNDLE, '__complete', '--', 'token', 'revoke', ''],
      ];
      const times = lines.map((): number[] => []);
      for (let round = 0; round <= RUNS; round++) {
        for (const [index, line] of lines.entries()) {
          const ms = await msOf(line, env);
          if (round > 0) times[index]?.push(ms); // The first round reads the files from the disk.
        }
      }
      const [node = NaN, request = NaN, list = NaN, completion = NaN] = times.map(medianOf);
      const shown = { 'node -e 0': node, 'http.get': request, 'token list': list, completion };
      console.log(
        `      ${Object.entries(shown)
          .map(([name, ms]) => `${name} ${ms.toFixed(0)} ms`)
          .join(', ')}`,
      );
      const cpuMs: number[] = [];
      for (const line of lines) cpuMs.push(await cpuMsOf(line, env));
      const [nodeCpu = NaN, , ...ofCommands] = cpuMs;
      const ratios = ofCommands.map((ms) => ms / nodeCpu);
      console.log(
        `      CPU time ${cpuMs.map((ms) => ms.toFixed(0)).join(', ')} ms: ${ratios.map((ratio) => ratio.toFixed(2)).join(' and ')} times`,
      );
      expect(daemon.asked.length).to.equal(3 * (2 * RUNS + 1));
      expect(list, 'token list').to.be.at.most(MAX_LIST_MS);
      expect(completion, 'completion').to.be.at.most(MAX_COMPLETION_MS);
      for (const ratio of ratios) expect(ratio, 'CPU time of node -e 0').to.be.at.most(MAX_RATIO);
    } finally {
      await daemon.stop();
    }
  }).timeout(120_000);
});
