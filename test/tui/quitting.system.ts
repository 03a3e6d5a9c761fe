/** Quitting in a real terminal: the shell is back immediately, in any situation. */
import { expect } from 'chai';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WireProject } from '../../daemon/api/contract.js';
import { eventually } from '../support/eventually.js';
import { type Terminal, WITHOUT_TMUX } from '../support/tmux.js';
import { TerminalFixture } from './terminal-fixture.js';

/** On an idle machine it takes less than 200 ms; this allows for a busy one. A leaked connection costs 15 s or more. */
const WITHIN_MS = 3_000;
/** LLMP_TEST_QUITS=1000 runs more of them, from another one on with LLMP_TEST_QUITS_FROM. */
const QUITS = Number(process.env.LLMP_TEST_QUITS ?? 3);
const FIRST_SEED = Number(process.env.LLMP_TEST_QUITS_FROM ?? 1);

describe(`llmp tui, quitting${WITHOUT_TMUX}`, function () {
  this.timeout(30_000 + QUITS * 10_000);
  let stage: TerminalFixture;
  let web: WireProject;

  before(async function () {
    if (WITHOUT_TMUX) this.skip();
    stage = await TerminalFixture.open();
    web = await stage.project('web');
    for (const name of ['alpha', 'beta', 'gamma']) await stage.token(web.id, name);
  });
  afterEach(() => {
    stage.resume();
  });
  after(() => (WITHOUT_TMUX ? undefined : stage.close()));

  async function live(args: readonly string[] = []): Promise<Terminal> {
    const it = await stage.watch({ args });
    await it.shows(/gamma/);
    await it.shows(/live/);
    return it;
  }

  /** Quits the program. @returns how long that took. */
  async function ends(it: Terminal, end: () => Promise<void>): Promise<{ code: number; ms: number }> {
    const beganMs = Date.now();
    await end();
    const code = await it.exit();
    const ms = (await it.endedMs()) - beganMs;
    await it.close();
    return { code, ms };
  }
  const quits = (it: Terminal) => ends(it, () => it.press('q'));

  it(`returns to the shell at ${QUITS} random moments (finding A2)`, async () => {
    const times: number[] = [];
    for (let seed = FIRST_SEED; seed < FIRST_SEED + QUITS; seed++) {
      const random = randomFrom(seed);
      const it = await live();
      const pressed: string[] = [];
      for (let n = 0; n < 4; n++) {
        const key = ['1', '2', '3', '4', '5', '6', '7', 'j', 'p'][Math.floor(random() * 9)] ?? '4';
        pressed.push(key);
        await it.press(key);
        await sleep(random() * 500);
      }
      const { code, ms } = await quits(it);
      expect(code).to.equal(0);
      expect(ms, `seed ${seed}: ${pressed.join(' ')} q`).to.be.below(WITHIN_MS);
      times.push(Math.round(ms));
      if (QUITS > 3 && ms > 150) console.log(seed, pressed.join(' '), Math.round(ms));
    }
    times.sort((a, b) => a - b);
    const part = (share: number) => times[Math.ceil(times.length * share) - 1];
    if (QUITS > 3) console.log(`median ${part(0.5)} ms, 99 % ${part(0.99)} ms, longest ${part(1)} ms`);
  });

  it('returns to the shell while the list is loading (finding A2)', async () => {
    for (const waitMs of [450, 700]) {
      const it = await stage.watch();
      await it.shows(/llmp/);
      await sleep(waitMs - 400);
      const { code, ms } = await quits(it);
      expect(code).to.equal(0);
      expect(ms).to.be.below(WITHIN_MS);
    }
  });

  for (const [how, end, code] of [
    ['q', (it: Terminal) => it.press('q'), 0],
    ['^C', (it: Terminal) => it.press('C-c'), 130],
    ['SIGTERM', (it: Terminal) => it.signal('SIGTERM'), 143],
    ['SIGHUP', (it: Terminal) => it.signal('SIGHUP'), 129],
  ] as const) {
    it(`returns to the shell with ${how} while the daemon hangs, with open requests and streams (finding A2)`, async () => {
      const it = await live();
      await it.press('4');
      await it.shows(/token\.create/);
      stage.hang();
      // The detail of a token sends four requests; none gets a response.
      await it.press('2', 'Enter');
      await it.shows(/tokens › /);
      if (how === 'q') await it.press('h');
      const ended = await ends(it, () => end(it));
      expect(ended.code).to.equal(code);
      expect(ended.ms).to.be.below(WITHIN_MS);
    });
  }

  it('reports an unconfirmed change on the shell when the daemon hangs (finding A2)', async () => {
    const it = await live();
    stage.hang();
    await it.press('x', 'Tab', 'Enter');
    const beganMs = Date.now();
    await it.press('q');
    expect(await it.exit()).to.equal(0);
    expect((await it.endedMs()) - beganMs).to.be.below(WITHIN_MS);
    expect(await it.screen()).to.contain('the daemon has not confirmed the last change');
  });

  it('leaks no connection when screens are left repeatedly (finding A2)', async () => {
    const it = await live();
    const pid = await it.program();
    for (let round = 0; round < 8; round++) {
      await it.press('4');
      await it.shows(/token\.create/);
      await sleep(250);
      await it.press('6');
      await sleep(250);
      await it.press('2');
      await it.shows(/gamma/);
    }
    // Idle connections for the next requests: four are sent at a time.
    await eventually('no more are left', async () => (await connectionsOf(pid, stage.port)) <= 6);
    await it.close();
  });
});

/** Number of established TCP connections of a process to a port. */
async function connectionsOf(pid: number, port: number): Promise<number> {
  const fds = await readdir(`/proc/${pid}/fd`);
  const links = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
  const inodes = new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').slice(1);
  return lines.filter((line) => {
    const [, , remote = '', state, , , , , , inode = ''] = line.trim().split(/\s+/);
    return remote.endsWith(`:${hex}`) && state === '01' && inodes.has(inode);
  }).length;
}

/** Pseudo-random numbers from 0 to 1, the same for the same seed. */
function randomFrom(seed: number): () => number {
  // Neighbouring seeds would begin alike.
  let state = Math.imul(seed, 2_654_435_761) >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
