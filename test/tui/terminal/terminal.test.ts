import { expect } from 'chai';
import { Text } from 'ink';
import { createElement } from 'react';
import { type Terminal, openTerminal } from '../../../tui/terminal/terminal.js';
import type { Input } from '../../../tui/terminal/keys.js';
import { FakeTerminal } from '../../support/fake-terminal.js';

const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h';
const LEAVE = /\x1b\[\?2004l.*\x1b\[\?7h\x1b\[0m\x1b\[\?25h\x1b\[\?1049l$/; // eslint-disable-line no-control-regex
const text = (words: string) => createElement(Text, null, words);

describe('a terminal that was taken over', () => {
  let io: FakeTerminal;
  let terminal: Terminal;

  async function open(size = { columns: 20, rows: 3 }): Promise<void> {
    io = new FakeTerminal(undefined, size);
    terminal = openTerminal(io, { mask: (it) => it.replaceAll('open-sesame', '********') });
    // Elements wait for Ink.
    await import('../../../tui/terminal/mount.js');
    await io.passes();
  }
  beforeEach(() => open());
  afterEach(() => {
    terminal.close();
  });

  async function shown(element: ReturnType<typeof text>): Promise<string> {
    terminal.render(element);
    await io.passes(40);
    return io.take();
  }

  it('shows nothing before there is something', async () => {
    await io.passes(100);
    expect(io.written.startsWith(ENTER)).to.equal(true);
    expect(io.written).to.not.contain('\x1b[?2026h');
    expect(io.stdin.isRaw).to.equal(true);
    expect(io.isBlocking).to.equal(false);
  });

  it('shows what it is given, and writes only what changed', async () => {
    expect(await shown(text('one'))).to.contain('one');
    expect(await shown(text('two'))).to.equal('\x1b[?2026h\x1b[1;1H\x1b[2Ktwo\x1b[?2026l');
    expect(await shown(text('two'))).to.equal('');
  });

  it('shows lines while Ink is not there, and no longer than that', async () => {
    terminal.paint(['first', 'lines']);
    await io.passes(40);
    expect(io.take()).to.match(/first.*lines/);
    expect(await shown(text('one'))).to.contain('one');
    terminal.paint(['late', 'lines']);
    await io.passes(40);
    expect(io.take()).to.equal('');
  });

  it('lays out the newest of many only', async () => {
    let laidOut = 0;
    const Counted = ({ words }: { words: string }) => {
      laidOut++;
      return text(words);
    };
    for (let i = 0; i < 100; i++) terminal.render(createElement(Counted, { words: `frame ${i}` }));
    await io.passes();
    expect(laidOut).to.equal(1);
    expect(io.take()).to.contain('frame 99');
  });

  it('tells keys and pastes, until nobody listens', async () => {
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

  it('tells another size, and shows the same cut to it', async () => {
    const sizes: unknown[] = [];
    terminal.onResize((size) => sizes.push(size));
    await shown(text('a long line of words'));
    io.resize(10, 2);
    await io.passes(40);
    expect(sizes).to.deep.equal([{ columns: 10, rows: 2 }]);
    expect(terminal.size).to.deep.equal({ columns: 10, rows: 2 });
    expect(io.take()).to.equal('\x1b[?2026h\x1b[0m\x1b[2J\x1b[1;1H\x1b[2Ka long lin\x1b[?2026l');
  });

  it('survives every size', async () => {
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

  it('keeps what others write off the screen, until its end', async () => {
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

  it('is painted anew on demand', async () => {
    await shown(text('frame'));
    terminal.repaint();
    await io.passes(40);
    expect(io.take()).to.contain('\x1b[2J').and.to.contain('frame');
  });

  it('gets a text for the clipboard between frames, and says when it is too long', async () => {
    await shown(text('frame'));
    expect(terminal.copy('text')).to.equal(true);
    expect(io.take()).to.equal('\x1b]52;c;dGV4dA==\x07');
    expect(terminal.copy('x'.repeat(200_000))).to.equal(false);
    expect(io.take()).to.equal('');
  });

  describe('at its end', () => {
    async function expectEnd(code: number): Promise<void> {
      expect(await terminal.ended).to.equal(code);
      expect(io.take()).to.match(LEAVE);
      expect(io.stdin.isRaw).to.equal(false);
      expect(io.isBlocking).to.equal(true);
      terminal.render(text('too late'));
      terminal.copy('too late');
      io.stdin.write('j');
      io.resize(30, 5);
      await io.passes(100);
      expect(io.take(), 'after the end').to.equal('');
      expect(io.clock.pending).to.equal(0);
    }

    it('is as before, with the code it was closed with', async () => {
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
      it(`by ${signal} is as before, with ${code}`, async () => {
        await shown(text('frame'));
        io.process.emit(signal, signal);
        await expectEnd(code);
      });
    }

    it('by the end of the process is as before', async () => {
      io.process.emit('exit', 3);
      await expectEnd(0);
    });

    it('by the end of its input is that of a terminal that hung up', async () => {
      io.stdin.end();
      await expectEnd(129);
    });

    it('by an error of its input is the same', async () => {
      io.stdin.emit('error', Object.assign(new Error('read EIO'), { code: 'EIO' }));
      await expectEnd(129);
    });

    it('writes no more to one that is gone', async () => {
      await shown(text('frame'));
      io.goneWith = 'EIO';
      terminal.render(text('another'));
      await io.passes(40);
      expect(await terminal.ended).to.equal(129);
      expect(io.clock.pending).to.equal(0);
    });

    for (const event of ['uncaughtException', 'unhandledRejection']) {
      it(`by an ${event} says what it was, without secrets, and exits with 70`, async () => {
        await shown(text('frame'));
        io.process.emit(event, new Error('broke with open-sesame'));
        await expectEnd(70);
        expect(io.stderr.text).to.match(/^Internal error: Error: broke with \*{8}\n +at /);
        expect(io.exits).to.deep.equal([70]);
      });
    }

    it('by what was thrown without being an error says what it was', async () => {
      io.process.emit('unhandledRejection', { reason: 'none' });
      await io.passes();
      expect(io.stderr.text).to.equal("Internal error: { reason: 'none' }\n");
    });

    it('by a component that fails says what it was, and shows nothing of it', async () => {
      const Broken = () => {
        throw new Error('cannot be laid out with open-sesame');
      };
      await shown(text('frame'));
      terminal.render(createElement(Broken));
      await io.passes(40);
      expect(io.written).to.not.contain('cannot be laid out');
      await expectEnd(70);
      expect(io.stderr.text).to.contain('cannot be laid out with ********');
    });
  });

  describe('when it is lent', () => {
    it('is as before for as long as the work takes, hears nothing, and is taken over again', async () => {
      const heard: Input[] = [];
      terminal.onInput((input) => heard.push(input));
      await shown(text('frame'));
      const answer = await terminal.lend(async () => {
        expect(io.take()).to.match(LEAVE);
        expect(io.stdin.isRaw).to.equal(false);
        terminal.render(text('news'));
        io.stdin.setEncoding('utf8').resume(); // As whoever asks a question may.
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

    it('is taken over again though the work failed, and tells why', async () => {
      const failing = terminal.lend(() => Promise.reject(new Error('no answer')));
      expect(await failing.catch((error: unknown) => String(error))).to.equal('Error: no answer');
      await io.passes(40);
      expect(io.stdin.isRaw).to.equal(true);
    });

    it('and ended meanwhile, is left alone', async () => {
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

  describe('when it is suspended', () => {
    it('gives the terminal back first, stops the whole job, and takes it over when continued', async () => {
      await shown(text('frame'));
      let atStop: unknown;
      io.process.onKill = (signal) => {
        if (signal !== 'SIGTSTP') return;
        const { isRaw } = io.stdin;
        atStop = { hasLeft: LEAVE.test(io.take()), isRaw, listeners: io.process.listenerCount('SIGTSTP') };
      };
      terminal.suspend();
      expect(atStop).to.deep.equal({ hasLeft: true, isRaw: false, listeners: 0 });
      terminal.render(text('news'));
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

    it('comes back by itself where the system does not stop it', async () => {
      await shown(text('frame'));
      terminal.suspend();
      io.take();
      await io.passes(100);
      expect(io.take().startsWith(ENTER)).to.equal(true);
    });

    it('from outside, does the same for itself alone', () => {
      io.process.emit('SIGTSTP');
      expect(io.process.sent).to.deep.equal(['SIGTSTP to 4242']);
      expect(io.take()).to.match(LEAVE);
      expect(io.process.listenerCount('SIGTSTP'), 'for the next time').to.equal(1);
    });

    it('without a word (SIGSTOP), takes the terminal over anew when continued', async () => {
      await shown(text('frame'));
      io.process.emit('SIGCONT');
      await io.passes(40);
      expect(io.take()).to.match(/^\x1b\[\?1049h.*frame/s); // eslint-disable-line no-control-regex
    });

    it('ends when it turns out on the way back that nobody is there any more', async () => {
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

    it('and ended while it is stopped, leaves the terminal alone', async () => {
      terminal.suspend();
      io.take();
      io.process.emit('SIGTERM');
      expect(await terminal.ended).to.equal(143);
      await io.passes(1_000);
      expect(io.take()).to.equal('');
    });

    it('forgets half a sequence that was typed before', async () => {
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
