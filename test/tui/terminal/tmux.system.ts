import { expect } from 'chai';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { Terminal, WITHOUT_TMUX } from '../../support/tmux.js';

const PROGRAM = fileURLToPath(new URL('program.js', import.meta.url));

function isGone(pid: number): boolean {
  try {
    return !process.kill(pid, 0);
  } catch {
    return true;
  }
}

/** What a process has written, to files of any kind. */
async function writtenBy(pid: number): Promise<{ bytes: number; calls: number }> {
  const counters = await readFile(`/proc/${pid}/io`, 'utf8');
  const count = (name: string) => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(counters)?.[1]);
  return { bytes: count('wchar'), calls: count('syscw') };
}

/** With how many bytes a thread of Node.js wakes another, at any time. */
const WAKE_BYTES = 8;
/** More calls than are made between two frames. */
const REFUSED_CALLS = 20;

const START_MS = 60_000;

describe(`a full-screen program in a real terminal${WITHOUT_TMUX}`, function () {
  this.timeout(120_000); // It starts often, and a start takes a second where nothing else runs.
  let terminal: Terminal | undefined;

  before(function () {
    if (WITHOUT_TMUX) this.skip();
  });
  afterEach(async () => {
    await terminal?.close();
    terminal = undefined;
  });

  async function started(env: Record<string, string> = {}, columns = 60, rows = 16): Promise<Terminal> {
    terminal = await Terminal.open([process.execPath, PROGRAM], { env, columns, rows, cwd: temporaryFolder() });
    await terminal.shows('last line', START_MS);
    return terminal;
  }

  /** Starts it from an interactive shell, with the mouse. */
  async function startedFromShell(): Promise<Terminal> {
    const env = { PS1: 'prompt> ', NODE: process.execPath, PROGRAM };
    const shell = ['bash', '--norc', '--noprofile', '-i'];
    terminal = await Terminal.open(shell, { env, columns: 60, rows: 16, cwd: temporaryFolder() });
    await terminal.shows('prompt>');
    await terminal.type('stty -a >before; echo one line before\n');
    await terminal.shows(/^one line before/m);
    await terminal.type('$NODE $PROGRAM --mouse; echo exit code $?\n');
    await terminal.shows('last line', START_MS);
    return terminal;
  }

  /** Waits for a complete frame, because tmux shows what it has read so far. @returns the lines. */
  async function wholeScreen(it: Terminal, columns: number, rows: number): Promise<string[]> {
    let lines: string[] = [];
    await eventually(`a frame of ${columns}x${rows} is painted`, async () => {
      lines = (await it.screen()).split('\n');
      return lines.length === rows && /^╰─*╯$/.test(lines.at(-1) ?? '') && lines.at(-1)?.length === columns;
    });
    return lines;
  }

  const ON_SHELL = { isAlternate: false, hasCursor: true, wraps: true, hasMouse: false };
  const WITH_MOUSE = { isAlternate: true, hasCursor: false, wraps: false, hasMouse: true };
  const IN_PROGRAM = { isAlternate: true, hasCursor: false, wraps: false, hasMouse: false };

  /** Checks that the program has ended and the shell is restored. */
  async function expectShellAsBefore(it: Terminal, code: number): Promise<void> {
    await it.shows(`exit code ${code}`);
    const seen = await it.screen(true);
    expect(seen).to.contain('one line before');
    expect(seen).to.not.contain('last line');
    expect(await it.modes()).to.include(ON_SHELL);
    await it.type('stty -a | diff before - && echo settings as before\n');
    await it.shows(/^settings as before/m);
    await it.type('cat -v\n');
    await it.shows(/^prompt> cat -v$/m);
    await it.paste('pasted');
    await it.press('Enter');
    await it.shows(/^pasted\npasted$/m);
  }

  it('fills the screen without scrolling, and hides the cursor', async () => {
    const it = await started();
    const lines = await wholeScreen(it, 60, 16);
    expect(lines[0]).to.match(/^╭─{58}╮$/);
    for (const line of lines.slice(1, -1)) expect(line).to.match(/^│.*│$/);
    expect(await it.scrolled()).to.equal(0);
    expect(await it.modes()).to.include(IN_PROGRAM);
  });

  it('writes only changed lines, once, and nothing without a change', async () => {
    const it = await started();
    const recorded = await it.record();
    await it.signal('SIGWINCH');
    await it.press('t');
    await it.shows('ticks 1');
    await eventually('the whole frame is recorded', async () => (await recorded()).endsWith('\x1b[?2026l'));
    const bytes = await recorded();
    expect(bytes).to.not.contain('\x1b[2J').and.to.not.contain('\n');
    expect(bytes.split('\x1b[?2026h')).to.have.length(2);
    expect(bytes.match(/\x1b\[\d+;1H/g)).to.have.length(3); // eslint-disable-line no-control-regex
    expect(bytes.length).to.be.below(500);
  });

  it('reads several keys at once, modifiers and pastes', async () => {
    const it = await started();
    await it.type('jjjä');
    await it.press('Up', 'C-Left', 'M-z', 'F5', 'BTab', 'BSpace', 'Escape');
    await it.shows('inputs 11');
    await it.paste('x q\x1b[A\n日');
    const seen = await it.shows('heard paste of 8: x q');
    const heard = [...seen.matchAll(/heard (.*?) *│/g)].map(([, key]) => key);
    expect(heard.slice(0, 8)).to.deep.equal([
      'ä',
      'up',
      'ctrl+left',
      'alt+z',
      'f5',
      'shift+tab',
      'backspace',
      'escape',
    ]);
  });

  it('hears the mouse only if it was asked for', async () => {
    const it = await startedFromShell();
    expect(await it.modes()).to.include(WITH_MOUSE);
    await it.type('\x1b[<0;12;7M\x1b[<0;12;7m\x1b[<65;1;2M');
    await it.shows('heard wheeldown at 0,1');
    expect(await it.screen())
      .to.contain('heard click at 11,6')
      .and.to.contain('inputs 2');
    await it.close();
    const without = await started();
    await without.type('\x1b[<0;12;7M');
    await without.press('j');
    expect(await without.shows('heard j')).to.contain('inputs 1');
  });

  it('handles many resizes, including very small and very large sizes', async () => {
    const it = await started();
    for (let size = 60; size >= 1; size -= 7) await it.resize(size, Math.max(1, Math.floor(size / 4)));
    await it.resize(1, 1);
    await it.resize(500, 200);
    await it.shows('size 500x200');
    await wholeScreen(it, 500, 200);
    await it.resize(60, 16);
    await wholeScreen(it, 60, 16);
    expect(await it.screen()).to.contain('size 60x16');
    expect(await it.scrolled()).to.equal(0);
    await it.press('q');
    expect(await it.exit()).to.equal(0);
  });

  it('starts on one cell, and shows everything once there is room', async () => {
    const it = (terminal = await Terminal.open([process.execPath, PROGRAM], { columns: 1, rows: 1 }));
    await eventually('it has begun', async () => (await it.modes()).isAlternate, START_MS);
    await it.resize(60, 16);
    await wholeScreen(it, 60, 16);
  });

  it('repaints on ^L over other output', async () => {
    const it = await started();
    const recorded = await it.record();
    await it.press('C-l');
    await eventually('it is repainted', async () => (await recorded()).includes('last line'));
    await it.shows('heard ctrl+l');
  });

  it('copies text to the clipboard of the terminal', async () => {
    const it = await started();
    const recorded = await it.record();
    await it.press('y');
    await eventually('it is sent', async () => (await recorded()).includes('\x1b]52;c;Y29waWVkIHRleHQ=\x07'));
  });

  it('findings-3 B16: copies text to the buffer of tmux, whose defaults ignore the clipboard', async () => {
    terminal = await Terminal.open([process.execPath, PROGRAM], { isTmuxKnown: true, cwd: temporaryFolder() });
    await terminal.shows('last line', START_MS);
    const recorded = await terminal.record();
    await terminal.press('y');
    await eventually('it is in the buffer', async () => (await terminal?.pasteBuffer()) === 'copied text');
    expect(await recorded()).not.to.contain('\x1b]52');
  });

  it('findings-3 B16: copies text to the clipboard of the terminal if tmux cannot be run', async () => {
    const folder = temporaryFolder();
    const options = { isTmuxKnown: true, env: { PATH: folder }, cwd: folder };
    terminal = await Terminal.open([process.execPath, PROGRAM], options);
    await terminal.shows('last line', START_MS);
    const recorded = await terminal.record();
    await terminal.press('y');
    await eventually('it is sent', async () => (await recorded()).includes('\x1b]52;c;Y29waWVkIHRleHQ=\x07'));
  });

  it('ends when its terminal is closed', async () => {
    const it = await started();
    const pid = await it.program();
    await it.close();
    await eventually('it ends', () => isGone(pid));
  });

  describe('while its terminal does not read', () => {
    /** Paints until the buffer to the terminal is full. */
    async function clogged(): Promise<{ it: Terminal; pid: number }> {
      const it = await started();
      await it.press('T');
      await it.shows(/ticks [1-9]/);
      const pid = await it.program();
      await it.freeze();
      let accepted = await writtenBy(pid);
      await eventually('it writes no more', async () => {
        const now = await writtenBy(pid);
        const calls = now.calls - accepted.calls;
        const hasWritten = now.bytes - accepted.bytes > calls * WAKE_BYTES;
        if (hasWritten) accepted = now;
        return !hasWritten && calls >= REFUSED_CALLS;
      });
      return { it, pid };
    }

    it('keeps running, and shows the latest frame once the terminal reads again', async () => {
      const { it } = await clogged();
      it.thaw();
      // Not of a screen that is just cleared: tmux shows what it has read so far of a frame.
      const ticks = async () => Number(/ticks (\d+)/.exec(await it.shows(/ticks \d/))?.[1]);
      const before = await ticks();
      await eventually('new frames come', async () => (await ticks()) > before);
      await it.press('q');
      expect(await it.exit()).to.equal(0);
    });

    it('still handles signals', async () => {
      const { pid } = await clogged();
      process.kill(pid, 'SIGTERM');
      await eventually('it ends', () => isGone(pid));
    });
  });

  describe('restores the terminal', () => {
    const keys: [string, number, string][] = [
      ['q', 0, 'when it is quit'],
      ['7', 7, 'with the code that it wants'],
      ['C-c', 130, 'at ^C'],
      ['E', 3, 'when something in it ends the process'],
      ['x', 70, 'when it throws'],
      ['r', 70, 'when it forgets a rejection'],
      ['b', 70, 'when it cannot lay out a frame'],
    ];
    for (const [key, code, when] of keys) {
      it(when, async () => {
        const it = await startedFromShell();
        await it.press(key);
        await it.shows(`exit code ${code}`);
        const end = await it.screen(true);
        if (code === 70) expect(end).to.match(/Internal error: Error: .* with \*{8}/);
        expect(end).to.not.contain('open-sesame');
        await expectShellAsBefore(it, code);
      });
    }

    const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGQUIT: 131 } as const;
    for (const [signal, code] of Object.entries(signals)) {
      it(`at ${signal}`, async () => {
        const it = await startedFromShell();
        await it.signal(signal as NodeJS.Signals);
        await expectShellAsBefore(it, code);
      });
    }

    it('and then prints captured output', async () => {
      const it = await startedFromShell();
      await it.press('w');
      expect(await it.shows('heard w')).to.not.contain('stray');
      await it.press('q');
      await it.shows('exit code 0');
      expect(await it.screen()).to.match(/^stray words\nstray words on the error output$/m);
    });
  });

  describe('suspended', () => {
    const suspensions: [string, (it: Terminal) => Promise<void>][] = [
      ['^Z', (it) => it.press('C-z')],
      ['SIGTSTP', (it) => it.signal('SIGTSTP')],
    ];
    for (const [how, suspend] of suspensions) {
      it(`stops by ${how}, and resumes by fg at another size`, async () => {
        const it = await startedFromShell();
        await suspend(it);
        await it.shows('Stopped');
        expect(await it.modes()).to.include(ON_SHELL);
        await it.type('stty -a | diff before - && echo settings as before\n');
        await it.shows(/^settings as before/m);
        await it.resize(50, 12);
        await it.type('fg\n');
        await it.shows('size 50x12');
        await wholeScreen(it, 50, 12);
        expect(await it.modes()).to.include(WITH_MOUSE);
        await it.press('j');
        await it.shows('heard j');
        await it.press('q');
        await it.shows(/^prompt>$/m);
        expect(await it.modes()).to.include(ON_SHELL);
      });
    }

    it('stops again in the background, without output on the shell', async () => {
      const it = await startedFromShell();
      await it.press('C-z');
      await it.shows('Stopped');
      await it.type('clear; bg\n');
      await it.shows(/&$/m);
      await eventually('it is stopped again', async () => {
        await it.type('jobs\n');
        return (await it.screen()).includes('Stopped');
      });
      expect(await it.modes()).to.include(ON_SHELL);
      await it.type('fg\n');
      await it.shows('last line');
      await it.press('q');
      await it.shows(/^prompt>$/m);
      expect(await it.modes()).to.include(ON_SHELL);
    });

    it('is complete again after a stop without notice', async () => {
      const it = await startedFromShell();
      await it.signal('SIGSTOP');
      await it.shows('Stopped');
      await it.type('fg\n');
      await wholeScreen(it, 60, 16);
      await it.press('j');
      await it.shows('heard j');
    });

    it('keeps running where no shell could continue it', async () => {
      const it = await started();
      await it.press('C-z');
      await it.press('j');
      await it.shows('heard j');
      expect(await it.modes()).to.include(IN_PROGRAM);
    });
  });

  describe('environment', () => {
    const looks: [Record<string, string>, RegExp, 'coloured' | 'plain'][] = [
      [{ COLORTERM: 'truecolor' }, /colours truecolor symbols true utf8 true motion true ż日本語/, 'coloured'],
      [{ NO_COLOR: '1' }, /colours none/, 'plain'],
      [{ FORCE_COLOR: '0' }, /colours none/, 'plain'],
      [{ TERM: 'dumb' }, /colours none/, 'plain'],
      [{ CI: 'true' }, /colours 256/, 'coloured'],
      [{ LC_ALL: 'C' }, /symbols false utf8 false motion true \?{7}/, 'coloured'],
      [{ LLMP_ASCII: '1' }, /symbols false utf8 true motion true ż日本語/, 'coloured'],
      [{ LLMP_REDUCED_MOTION: '1' }, /motion false/, 'coloured'],
    ];
    for (const [env, expected, colours] of looks) {
      it(`is respected: ${JSON.stringify(env)}`, async () => {
        const it = await started(env, 80);
        const seen = await it.shows(expected);
        // eslint-disable-next-line no-control-regex
        if (seen.includes('symbols false')) expect(seen.replaceAll('ż日本語', '')).to.match(/^[\x00-\x7f]*$/);
        expect((await it.colouredScreen()).includes('\x1b[')).to.equal(colours === 'coloured');
        await it.resize(70, 10);
        await it.shows('size 70x10');
      });
    }
  });
});
