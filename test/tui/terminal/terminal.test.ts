import { expect } from 'chai';
import { type Terminal, openTerminal } from '../../../tui/terminal/terminal.js';
import type { Input } from '../../../tui/terminal/keys.js';
import { FakeTerminal } from '../../support/fake-terminal.js';

const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h';
const LEAVE = /\x1b\[\?2004l.*\x1b\[\?7h\x1b\[0m\x1b\[\?25h\x1b\[\?1049l$/; // eslint-disable-line no-control-regex
const text = (words: string) => () => [words];

describe('full-screen terminal', () => {
  let io: FakeTerminal;
  let terminal: Terminal;

  async function open(size = { columns: 20, rows: 3 }): Promise<void> {
    io = new FakeTerminal(undefined, size);
    terminal = openTerminal(io, { mask: (it) => it.replaceAll('open-sesame', '********') });
    await io.passes();
  }
  beforeEach(() => open());
  afterEach(() => {
    terminal.close();
  });

  async function shown(frame: ReturnType<typeof text>): Promise<string> {
    terminal.show(frame);
    await io.passes(40);
    return io.take();
  }

  it('shows nothing before the first frame', async () => {
    await io.passes(100);
    expect(io.written.startsWith(ENTER)).to.equal(true);
    expect(io.written).to.not.contain('\x1b[?2026h');
    expect(io.stdin.isRaw).to.equal(true);
    expect(io.isBlocking).to.equal(false);
  });

  it('shows frames, and writes only changes', async () => {
    expect(await shown(text('one'))).to.contain('one');
    expect(await shown(text('two'))).to.equal('\x1b[?2026h\x1b[1;1H\x1b[2Ktwo\x1b[?2026l');
    expect(await shown(text('two'))).to.equal('');
  });

  it('produces only the newest of several frames', async () => {
    let laidOut = 0;
    for (let i = 0; i < 100; i++) {
      terminal.show(() => {
        laidOut++;
        return [`frame ${i}`];
      });
    }
    await io.passes();
    expect(laidOut).to.equal(1);
    expect(io.take()).to.contain('frame 99');
  });

  it('turns on the mouse only if it was asked for, and turns it off at the end', async () => {
    expect(io.written).not.to.contain('\x1b[?1000h').and.not.to.contain('\x1b[?1006h');
    terminal.close();
    io = new FakeTerminal(undefined, { columns: 20, rows: 3 });
    terminal = openTerminal(io, { mask: (it) => it, hasMouse: true });
    await io.passes();
    expect(io.written).to.contain('\x1b[?1000h\x1b[?1006h');
    const heard: Input[] = [];
    terminal.onInput((input) => heard.push(input));
    io.stdin.write('\x1b[<0;5;2M');
    await io.passes();
    expect(heard).to.deep.equal([{ kind: 'mouse', what: 'click', column: 4, row: 1 }]);
    await terminal.lend(() => {
      expect(io.take()).to.contain('\x1b[?1000l').and.to.contain('\x1b[?1006l');
      return Promise.resolve();
    });
    expect(io.take()).to.contain('\x1b[?1000h');
    terminal.close();
    expect(io.take()).to.match(/\x1b\[\?1000l.*\x1b\[\?1006l/); // eslint-disable-line no-control-regex
  });

  it('does not report the mouse that an earlier program has left on', async () => {
    const heard: Input[] = [];
    terminal.onInput((input) => heard.push(input));
    io.stdin.write('\x1b[<0;5;2Mj');
    await io.passes();
    expect(heard).to.deep.equal([{ kind: 'key', key: 'j' }]);
  });

  it('reports keys and pastes until the listener is removed', async () => {
    const heard: Input[] = [];
    const stop = terminal.onInput((input) => heard.push(input));
    io.stdin.write('j\x1b[A\x1b[200~text\x1b[201~\x03\x1a');
    await io.passes();
    expect(heard).to.deep.equal([
      { kind: 'key', key: 'j' },
      { kind: 'key', key: 'up' },
      { kind: 'paste', text: 'text' },
      { kind: 'key', key: 'ctrl+c' },
      { kind: 'key', key: 'ctrl+z' },
    ]);
    stop();
    io.stdin.write('k');
    await io.passes();
    expect(heard).to.have.length(5);
  });

  it('reports a resize, and cuts the screen to the new size', async () => {
    const sizes: unknown[] = [];
    terminal.onResize((size) => sizes.push(size));
    await shown(text('a long line of words'));
    io.resize(10, 2);
    await io.passes(40);
    expect(sizes).to.deep.equal([{ columns: 10, rows: 2 }]);
    expect(terminal.size).to.deep.equal({ columns: 10, rows: 2 });
    expect(io.take()).to.equal('\x1b[?2026h\x1b[0m\x1b[2J\x1b[1;1H\x1b[2Ka long lin\x1b[?2026l');
  });

  it('works at every size', async () => {
    for (const [columns, rows] of [
      [1, 1],
      [1, 50],
      [2, 1],
      [500, 1],
      [500, 200],
      [0, 0],
      [3, 2],
    ] as const) {
      io.resize(columns, rows);
      await shown(text(`words at ${columns}x${rows}`));
      const places = [...io.written.matchAll(/\x1b\[(\d+);1H/g)].map(([, row]) => Number(row)); // eslint-disable-line no-control-regex
      expect(places.every((row) => row <= (rows || 24))).to.equal(true);
    }
    await open({ columns: 1, rows: 1 });
    expect(await shown(text('words'))).to.contain('\x1b[1;1H\x1b[2Kw\x1b');
  });

  it('captures other output, and prints it at the end', async () => {
    await shown(text('frame'));
    io.stdout.write('stray');
    io.stderr.write('stray with open-sesame\n');
    await io.passes(100);
    expect(io.take()).to.equal('');
    expect(io.stdout.text + io.stderr.text).to.equal('');
    terminal.close();
    await io.passes();
    expect(io.stderr.text).to.equal('straystray with ********\n');
    io.stdout.write('afterwards');
    expect(io.stdout.text).to.equal('afterwards');
  });

  it('repaints on demand', async () => {
    await shown(text('frame'));
    terminal.repaint();
    await io.passes(40);
    expect(io.take()).to.contain('\x1b[2J').and.to.contain('frame');
  });

  it('sends text to the clipboard between frames, and reports text that is too long', async () => {
    await shown(text('frame'));
    expect(await terminal.copy('text')).to.equal('terminal');
    expect(io.take()).to.equal('\x1b]52;c;dGV4dA==\x07');
    expect(await terminal.copy('x'.repeat(200_000))).to.equal(null);
    expect(io.take()).to.equal('');
  });

  describe('at the end', () => {
    async function expectEnd(code: number): Promise<void> {
      expect(await terminal.ended).to.equal(code);
      expect(io.take()).to.match(LEAVE);
      expect(io.stdin.isRaw).to.equal(false);
      expect(io.isBlocking).to.equal(true);
      terminal.show(text('too late'));
      void terminal.copy('too late');
      io.stdin.write('j');
      io.resize(30, 5);
      await io.passes(100);
      expect(io.take(), 'after the end').to.equal('');
      expect(io.clock.pending).to.equal(0);
    }

    it('is restored, with the exit code of close', async () => {
      await shown(text('frame'));
      terminal.close(7);
      terminal.close(8);
      await expectEnd(7);
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGTSTP', 'SIGCONT']) {
        expect(io.process.listenerCount(signal), `a second ${signal} does as it always did`).to.equal(0);
      }
    });

    const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGQUIT: 131 };
    for (const [signal, code] of Object.entries(signals)) {
      it(`is restored after ${signal}, with exit code ${code}`, async () => {
        await shown(text('frame'));
        io.process.emit(signal, signal);
        await expectEnd(code);
      });
    }

    it('is restored when the process exits', async () => {
      io.process.emit('exit', 3);
      await expectEnd(0);
    });

    it('treats the end of input as a hangup', async () => {
      io.stdin.end();
      await expectEnd(129);
    });

    it('treats an error of the input as a hangup', async () => {
      io.stdin.emit('error', Object.assign(new Error('read EIO'), { code: 'EIO' }));
      await expectEnd(129);
    });

    it('writes no more to a terminal that is gone', async () => {
      await shown(text('frame'));
      io.goneWith = 'EIO';
      terminal.show(text('another'));
      await io.passes(40);
      expect(await terminal.ended).to.equal(129);
      expect(io.clock.pending).to.equal(0);
    });

    for (const event of ['uncaughtException', 'unhandledRejection']) {
      it(`reports an ${event} without secrets, and exits with 70`, async () => {
        await shown(text('frame'));
        io.process.emit(event, new Error('broke with open-sesame'));
        await expectEnd(70);
        expect(io.stderr.text).to.match(/^Internal error: Error: broke with \*{8}\n +at /);
        expect(io.exits).to.deep.equal([70]);
      });
    }

    it('reports a thrown value that is not an Error', async () => {
      io.process.emit('unhandledRejection', { reason: 'none' });
      await io.passes();
      expect(io.stderr.text).to.equal("Internal error: { reason: 'none' }\n");
    });

    it('reports an error in a frame, and shows none of it', async () => {
      await shown(text('frame'));
      terminal.show(() => {
        throw new Error('cannot be laid out with open-sesame');
      });
      await io.passes(40);
      expect(io.written).to.not.contain('cannot be laid out');
      await expectEnd(70);
      expect(io.stderr.text).to.contain('cannot be laid out with ********');
    });
  });

  describe('on loan', () => {
    it('is restored and reads no input during the work, and is taken over again', async () => {
      const heard: Input[] = [];
      terminal.onInput((input) => heard.push(input));
      await shown(text('frame'));
      const answer = await terminal.lend(async () => {
        expect(io.take()).to.match(LEAVE);
        expect(io.stdin.isRaw).to.equal(false);
        terminal.show(text('news'));
        io.stdin.setEncoding('utf8').resume(); // A prompt may do this.
        io.stdin.write('answer');
        io.stderr.write('a question');
        await io.passes(100);
        expect(io.stderr.text).to.equal('a question');
        expect(io.take(), 'meanwhile').to.equal('');
        return 'answer';
      });
      expect(answer).to.equal('answer');
      await io.passes(40);
      expect(io.take()).to.match(/^\x1b\[\?1049h.*news/s); // eslint-disable-line no-control-regex
      expect(heard).to.deep.equal([]);
      io.stdin.write('j');
      await io.passes();
      expect(heard).to.deep.equal([{ kind: 'key', key: 'j' }]);
    });

    it('is taken over again after failed work, and passes the error on', async () => {
      const failing = terminal.lend(() => Promise.reject(new Error('no answer')));
      expect(await failing.catch((error: unknown) => String(error))).to.equal('Error: no answer');
      await io.passes(40);
      expect(io.stdin.isRaw).to.equal(true);
    });

    it('is not taken over again if the session ended in the meantime', async () => {
      await terminal.lend(() => {
        io.process.emit('SIGTERM');
        io.take();
        return Promise.resolve();
      });
      await io.passes(100);
      expect(await terminal.ended).to.equal(143);
      expect(io.take()).to.equal('');
    });
  });

  describe('suspended', () => {
    it('restores the terminal first, stops the whole job, and takes over again when continued', async () => {
      await shown(text('frame'));
      let atStop: unknown;
      io.process.onKill = (signal) => {
        if (signal !== 'SIGTSTP') return;
        const { isRaw } = io.stdin;
        atStop = { hasLeft: LEAVE.test(io.take()), isRaw, listeners: io.process.listenerCount('SIGTSTP') };
      };
      terminal.suspend();
      expect(atStop).to.deep.equal({ hasLeft: true, isRaw: false, listeners: 0 });
      terminal.show(text('news'));
      await io.passes();
      expect(io.take(), 'while it is stopped').to.equal('');
      Object.assign(io.stdout, { columns: 30 });
      io.process.emit('SIGCONT');
      await io.passes(40);
      expect(io.stdin.isRaw).to.equal(true);
      expect(io.isBlocking).to.equal(false);
      expect(io.take()).to.match(/^\x1b\[\?1049h.*\x1b\[2Knews\x1b\[\?2026l$/); // eslint-disable-line no-control-regex
      expect(io.process.sent).to.deep.equal(['SIGTSTP to 0', 'SIGWINCH to 4242']);
      await io.passes(1_000);
      expect(io.take(), 'once').to.equal('');
    });

    it('resumes by itself if the system does not stop it', async () => {
      await shown(text('frame'));
      terminal.suspend();
      io.take();
      await io.passes(100);
      expect(io.take().startsWith(ENTER)).to.equal(true);
    });

    it('stops only itself after a SIGTSTP from outside', () => {
      io.process.emit('SIGTSTP');
      expect(io.process.sent).to.deep.equal(['SIGTSTP to 4242']);
      expect(io.take()).to.match(LEAVE);
      expect(io.process.listenerCount('SIGTSTP'), 'for the next time').to.equal(1);
    });

    it('takes over the terminal again when continued after SIGSTOP', async () => {
      await shown(text('frame'));
      io.process.emit('SIGCONT');
      await io.passes(40);
      expect(io.take()).to.match(/^\x1b\[\?1049h.*frame/s); // eslint-disable-line no-control-regex
    });

    it('ends if the terminal is gone when it is continued', async () => {
      terminal.suspend();
      io.take();
      io.stdin.setRawMode = () => {
        io.stdin.emit('error', Object.assign(new Error('setRawMode EIO'), { code: 'EIO' }));
        return io.stdin;
      };
      io.process.emit('SIGCONT');
      expect(await terminal.ended).to.equal(129);
      await io.passes(1_000);
      expect(io.take()).to.equal('');
    });

    it('does not touch the terminal if it is ended while stopped', async () => {
      terminal.suspend();
      io.take();
      io.process.emit('SIGTERM');
      expect(await terminal.ended).to.equal(143);
      await io.passes(1_000);
      expect(io.take()).to.equal('');
    });

    it('discards an incomplete sequence typed before', async () => {
      const heard: Input[] = [];
      terminal.onInput((input) => heard.push(input));
      io.stdin.write('\x1b[1;');
      await io.passes();
      terminal.suspend();
      io.process.emit('SIGCONT');
      io.stdin.write('j');
      await io.passes();
      expect(heard).to.deep.equal([{ kind: 'key', key: 'j' }]);
    });
  });
});
