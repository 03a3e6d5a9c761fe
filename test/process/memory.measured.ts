/** The memory of the process: V8's young generation has the same sizes however the daemon is started, requests stay out of the old one, and no module is loaded in vain. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { HeapSpaceInfo } from 'node:v8';
import { expect } from 'chai';
import { median } from '../bench/figures.js';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { childrenOf } from '../support/process-tree.js';
import { ServedDaemon, type ServedDaemonOptions } from '../faults/support/served-daemon.js';

const BUNDLED_PROGRAM = join(import.meta.dirname, '../../cli/llmp.cjs');
const MB = 2 ** 20;
// Both halves. V8 may need some pages more while it collects.
const MOST_MB = 24;
const AT_ONCE = 16;
const WARM_UP = 1600;
const REQUESTS = 400;
const TIMES = 12;
// Each request has a connection of its own here, of which some 5 KB live until V8 has finalized its socket. A request takes about 100 KB.
const MOST_KB = 10;

const WAYS: Readonly<Record<string, ServedDaemonOptions>> = {
  'llmp daemon': { program: BUNDLED_PROGRAM },
  'npm start': {},
  'a worker': { env: { WORKERS: '2' } },
};

describe('the young generation of V8', function () {
  this.timeout(120_000);
  for (const [how, options] of Object.entries(WAYS)) {
    it(`is small at first, and grows to 8 MB under load: ${how}`, async () => {
      const folder = temporaryFolder();
      const daemon = await ServedDaemon.start({ ...options, atSignal: writeSize(folder) });
      try {
        const pids = options.env?.WORKERS === undefined ? [daemon.pid] : childrenOf(daemon.pid);
        expect(await sizesMb(folder, pids)).to.satisfy((sizes: number[]) => sizes.every((size) => size <= 4));
        const grows = async () => {
          await together(() => daemon.get());
          return (await sizesMb(folder, pids)).every((size) => size >= 16);
        };
        while (!(await grows()));
        expect(await sizesMb(folder, pids)).to.satisfy((sizes: number[]) => sizes.every((size) => size <= MOST_MB));
      } finally {
        await daemon.stop();
      }
    });
  }

  it('leaves little of a request in the old generation while no code is optimized', async () => {
    const folder = temporaryFolder();
    const daemon = await ServedDaemon.start({
      nodeOptions: ['--no-opt'],
      atSignal: writeSize(folder, 'old_space', 'space_used_size'),
      env: { LLM_PROXY_EVENT_BUS: 'off' }, // It keeps the latest events.
    });
    try {
      const send = async (count: number) => {
        // One at a time: those that are alive during two collections reach the old generation for a good reason.
        for (let sent = 0; sent < count; sent += 1) await daemon.get();
      };
      await send(WARM_UP);
      const sizes = await sizesMb(folder, [daemon.pid]);
      for (let time = 0; time < TIMES; time += 1) {
        await send(REQUESTS);
        sizes.push(...(await sizesMb(folder, [daemon.pid])));
      }
      // A full collection makes a difference negative. There are few.
      const grown = sizes.slice(1).map((size, index) => size - (sizes[index] ?? NaN));
      expect((median(grown) * 1024) / REQUESTS).to.be.below(MOST_KB);
    } finally {
      await daemon.stop();
    }
  });
});

describe('the memory of modules', function () {
  this.timeout(60_000);
  it('Sequelize is loaded only by a start that migrates', async () => {
    const folder = temporaryFolder();
    for (const isFirst of [true, false]) {
      const daemon = await ServedDaemon.start({
        program: BUNDLED_PROGRAM,
        dir: folder,
        atSignal: writeScripts(folder),
      });
      try {
        expect((await written(folder, [daemon.pid])).join('').includes('/sequelize/lib/sequelize.js')).to.equal(
          isFirst,
        );
      } finally {
        await daemon.stop();
      }
    }
  });
});

/** A program that writes the URLs of all scripts of its process. */
const writeScripts = (folder: string) => `
  const { Session } = process.getBuiltinModule('node:inspector');
  const session = new Session();
  session.connect();
  const urls = [];
  session.on('Debugger.scriptParsed', ({ params }) => urls.push(params.url));
  session.post('Debugger.enable');
  session.disconnect();
  ${writeToFile(folder, 'urls.join()')}`;

const together = <T>(work: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: AT_ONCE }, work));

/** A program that writes one figure of a space of the heap to a file that is named after the process. */
const writeSize = (folder: string, name = 'new_space', figure: keyof HeapSpaceInfo = 'space_size') => `
  const { getHeapSpaceStatistics } = process.getBuiltinModule('node:v8');
  const space = getHeapSpaceStatistics().find((space) => space.space_name === '${name}');
  ${writeToFile(folder, `space.${figure}`)}`;

function writeToFile(folder: string, expression: string): string {
  return `process.getBuiltinModule('node:fs').writeFileSync(${JSON.stringify(folder)} + '/' + process.pid, ${expression} + '\\n');`;
}

const sizesMb = async (folder: string, pids: readonly number[]) =>
  (await written(folder, pids)).map((size) => Number(size) / MB);

/** What each process writes at the signal. */
async function written(folder: string, pids: readonly number[]): Promise<string[]> {
  const paths = pids.map((pid) => join(folder, String(pid)));
  for (const path of paths) rmSync(path, { force: true });
  for (const pid of pids) process.kill(pid, 'SIGUSR2');
  const isWritten = (path: string) => existsSync(path) && readFileSync(path, 'utf8').endsWith('\n');
  await eventually('each process has written', () => paths.every(isWritten));
  return paths.map((path) => readFileSync(path, 'utf8'));
}
