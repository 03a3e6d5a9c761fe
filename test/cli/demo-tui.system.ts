import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { temporaryFolder } from '../support/daemon.js';
import { Terminal, WITHOUT_TMUX } from '../support/tmux.js';
import { BUNDLE, MAIN } from './processes.js';

const START_WITHIN_MS = 30_000; // On a busy machine.
/** The time until the first line of the demo, by that until the output of `llmp version`. Loading the demo takes several times as long. */
const MOST_OF_VERSION = 4;

describe(`llmp demo --tui${WITHOUT_TMUX}`, function () {
  this.timeout(90_000);
  const terminals: Terminal[] = [];
  before(function () {
    if (WITHOUT_TMUX) this.skip();
  });
  afterEach(async () => {
    await Promise.all(terminals.splice(0).map((terminal) => terminal.close()));
  });

  async function open(): Promise<{ terminal: Terminal; tmp: string }> {
    const tmp = temporaryFolder();
    const argv = [process.execPath, '--', MAIN, 'demo', '--tui'];
    const env = { TMPDIR: tmp, HOME: tmp, LLMP_SERVER: 'http://127.0.0.1:9' };
    const terminal = await Terminal.open(argv, { columns: 120, rows: 40, env });
    terminals.push(terminal);
    await terminal.shows('Starting a daemon', 10_000);
    await terminal.shows('Open the terminal UI?', START_WITHIN_MS);
    return { terminal, tmp };
  }

  it('explains itself, opens the terminal UI with its past, and removes everything when it is left', async () => {
    const { terminal, tmp } = await open();
    expect(await terminal.screen()).to.contain('Press q to leave');
    await terminal.press('Enter');
    await terminal.shows(/Overview/, START_WITHIN_MS);
    await terminal.press('2');
    await terminal.shows(/ci-deploy/);
    await terminal.type(':events');
    await terminal.press('Enter');
    await terminal.shows(/✗ 502 .*mobile-app/, START_WITHIN_MS);
    expect((await terminal.modes()).isAlternate).to.equal(true);
    await terminal.press('q');
    await terminal.shows('again to quit, which also stops');
    await terminal.press('q');
    expect(await terminal.exit()).to.equal(0);
    await terminal.shows('All data of the demo was removed.');
    expect(readdirSync(tmp)).to.deep.equal([]);
  });

  it('says what it does as soon as the program runs, not when the demo is loaded', async () => {
    /** From the start of the program to its first line. */
    const firstLineMs = async (args: readonly string[], line: RegExp) => {
      const tmp = temporaryFolder();
      const beganMs = performance.now();
      const argv = [process.execPath, '--', BUNDLE, ...args];
      const terminal = await Terminal.open(argv, { env: { TMPDIR: tmp, HOME: tmp } });
      await terminal.shows(line, START_WITHIN_MS);
      const tookMs = performance.now() - beganMs;
      await terminal.signal('SIGKILL'); // A demo that is still starting would end too late, and slow down the next program.
      await terminal.close();
      return tookMs;
    };
    // The shortest times, because other programs slow down some of them.
    let [versionMs, demoMs] = [Infinity, Infinity];
    for (let times = 0; times < 5 && !(demoMs < MOST_OF_VERSION * versionMs); times += 1) {
      versionMs = Math.min(versionMs, await firstLineMs(['version'], /^llmp \d/m));
      demoMs = Math.min(demoMs, await firstLineMs(['demo'], /^Starting a daemon/m));
    }
    expect(demoMs / versionMs, `${demoMs} ms`).to.be.below(MOST_OF_VERSION);
  });

  it('ends without the terminal UI when the question is answered with no', async () => {
    const { terminal, tmp } = await open();
    await terminal.press('n', 'Enter');
    expect(await terminal.exit()).to.equal(0);
    expect(readdirSync(tmp)).to.deep.equal([]);
  });

  it('removes everything when it is ended by a signal', async () => {
    const { terminal, tmp } = await open();
    await terminal.press('Enter');
    await terminal.shows(/Overview/, START_WITHIN_MS);
    await terminal.signal('SIGTERM');
    await terminal.exit();
    expect(readdirSync(tmp)).to.deep.equal([]);
  });

  it('needs a terminal', async () => {
    const tmp = temporaryFolder();
    const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
      execFile(
        process.execPath,
        [MAIN, 'demo', '--tui'],
        { env: { PATH: process.env.PATH, TMPDIR: tmp } },
        (error, _, err) => {
          resolve({ code: error?.code, stderr: err });
        },
      );
    });
    expect(code).to.equal(2);
    expect(stderr).to.contain('the terminal UI needs a terminal');
    expect(readdirSync(tmp)).to.deep.equal([]);
  });
});
