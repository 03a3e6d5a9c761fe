import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { startStandIn } from './stand-in.js';

const BUNDLE = join(import.meta.dirname, '../../cli/llmp.cjs');
const RUNS = 15;
const MAX_LIST_MS = 130;
const MAX_COMPLETION_MS = 150;

async function msOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const begun = performance.now();
  const child: ChildProcess = spawn(process.execPath, args, { env, stdio: 'ignore' });
  const [exitCode] = (await once(child, 'close')) as [number | null];
  expect(exitCode, args.join(' ')).to.equal(0);
  return performance.now() - begun;
}

const medianOf = (times: readonly number[]) => [...times].sort((a, b) => a - b)[times.length >> 1] ?? Infinity;

// Node's own start is measured in the same rounds. It is printed, because the times depend on the machine.
describe('start-up of the command line', () => {
  it(`llmp token list takes at most ${MAX_LIST_MS} ms, a completion ${MAX_COMPLETION_MS} ms`, async () => {
    const daemon = await startStandIn();
    try {
      const env = { PATH: process.env.PATH, HOME: temporaryFolder(), LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN };
      const lines = [
        ['-e', '0'],
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
      const [node = NaN, list = NaN, completion = NaN] = times.map(medianOf);
      console.log(
        `      node -e 0 ${node.toFixed(0)} ms, token list ${list.toFixed(0)} ms, completion ${completion.toFixed(0)} ms`,
      );
      expect(daemon.asked.length).to.equal(2 * (RUNS + 1));
      expect(list, 'token list').to.be.at.most(MAX_LIST_MS);
      expect(completion, 'completion').to.be.at.most(MAX_COMPLETION_MS);
    } finally {
      await daemon.stop();
    }
  });
});
