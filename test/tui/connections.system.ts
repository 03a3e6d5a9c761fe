import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAIN } from '../cli/processes.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { Terminal, WITHOUT_TMUX } from '../support/tmux.js';

/** Screens, each of which loads other data. */
const TABS = ['1', '2', '4', '7', '1', '6', '5', '1', '3', '1', '7', '4'];
const BETWEEN_MS = 30;
const POLLED_EVERY_MS = 2_000;

describe(`the connections of the terminal UI${WITHOUT_TMUX}`, function () {
  this.timeout(120_000);
  let daemon: TestDaemon;
  let terminal: Terminal | undefined;
  const sockets = new Set<Socket>();

  before(async function () {
    if (WITHOUT_TMUX) this.skip();
    daemon = await startDaemon();
    await daemon.createProject({ name: 'web' });
    daemon.daemon.server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
  });
  after(async () => {
    await terminal?.close();
    await (daemon as TestDaemon | undefined)?.stop();
  });

  it('findings-3 B21: are no more after twelve changes of tabs than before', async () => {
    const folder = temporaryFolder();
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, MANAGEMENT_TOKEN, { mode: 0o600 });
    const env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN_FILE: tokenFile, HOME: folder };
    terminal = await Terminal.open([process.execPath, MAIN, 'tui', '--screen', 'overview'], { env, columns: 120 });
    await terminal.shows('req 0/s', 60_000);
    await sleep(2 * POLLED_EVERY_MS); // Until the connections are those of the polls.
    const before = sockets.size;
    for (const key of TABS) {
      await terminal.press(key);
      await sleep(BETWEEN_MS);
    }
    await terminal.press('1');
    const most = sockets.size;
    await eventually(`${before} connections are left of ${most}`, () => sockets.size <= before, 20_000);
    expect(before).to.be.above(0);
  });
});
