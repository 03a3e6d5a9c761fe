import { expect } from 'chai';
import { Frames } from '../../../tui/terminal/frame.js';
import { Output } from '../../../tui/terminal/output.js';
import { FakeTerminal } from '../../support/fake-terminal.js';

const CLEAR = '\x1b[0m\x1b[2J';
const line = (row: number, text: string) => `\x1b[${row};1H\x1b[2K${text}`;
const frame = (...changes: string[]) => `\x1b[?2026h${changes.join('')}\x1b[?2026l`;

async function opened(columns = 20, rows = 3) {
  const io = new FakeTerminal(undefined, { columns, rows });
  const output = new Output(io);
  const frames = new Frames({ output, clock: io.clock, size: () => io.stdout, isUtf8: true });
  frames.resume();
  await io.passes();
  expect(io.take(), 'nothing is shown before the first frame').to.equal('');
  const show = (frame: string) => {
    frames.show(() => frame.split('\n'));
  };
  return { io, frames, show };
}

describe('frame output', () => {
  it('writes the first frame immediately, with all lines', async () => {
    const { io, show } = await opened();
    show('a\n\nc');
    await io.passes();
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'a'), line(3, 'c')));
  });

  it('writes only changed lines, and nothing for an unchanged frame', async () => {
    const { io, show } = await opened();
    show('a\nb\nc');
    await io.passes(100);
    io.take();
    show('a\nB\nc');
    await io.passes(100);
    expect(io.take()).to.equal(frame(line(2, 'B')));
    show('a\nB\nc');
    await io.passes(100);
    expect(io.take()).to.equal('');
    show('a');
    await io.passes(100);
    expect(io.take(), 'what is gone is erased').to.equal(frame(line(2, ''), line(3, '')));
  });

  it('writes up to 30 frames a second, and always the last one', async () => {
    const { io, show } = await opened();
    let count = 0;
    let written = '';
    for (let ms = 0; ms < 1_000; ms++) {
      show(`at ${ms}`);
      await io.passes(1);
      written = io.take();
      if (written !== '') count++;
    }
    expect(count).to.be.within(28, 31);
    await io.passes(40);
    expect(written + io.take()).to.contain('at 999');
    expect(io.clock.pending).to.equal(0);
  });

  it('requests a frame only when it can be shown', async () => {
    const { io, frames } = await opened();
    const laidOut: number[] = [];
    for (let i = 0; i < 5; i++) {
      frames.show(() => {
        laidOut.push(i);
        return [`frame ${i}`];
      });
    }
    await io.passes();
    expect(laidOut).to.deep.equal([4]);
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'frame 4')));
  });

  it('shows a frame that was requested during layout after the current one', async () => {
    const { io, frames, show } = await opened();
    frames.show(() => {
      show('second');
      return ['first'];
    });
    await io.passes();
    expect(io.take()).to.contain('first');
    await io.passes(40);
    expect(io.take()).to.equal(frame(line(1, 'second')));
  });

  it('waits for a slow terminal, and then writes only the newest frame', async () => {
    const { io, show } = await opened();
    io.room = 10;
    show('frame 1');
    await io.passes(100);
    for (let i = 2; i < 10; i++) {
      show(`frame ${i}`);
      await io.passes(100);
    }
    io.room = Infinity;
    await io.passes(100);
    await io.passes(100);
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'frame 1')) + frame(line(1, 'frame 9')));
  });

  it('never writes more lines or columns than the terminal has', async () => {
    const { io, show } = await opened(4, 2);
    show('abcdef\n日本語\nthird\nfourth');
    await io.passes();
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'abcd'), line(2, '日本')));
  });

  it('fits a terminal of one cell', async () => {
    const { io, show } = await opened(1, 1);
    show('ab\ncd');
    await io.passes();
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'a')));
  });

  it('stops while paused, and repaints the latest frame afterwards', async () => {
    const { io, frames, show } = await opened();
    show('a\nb');
    await io.passes(100);
    show('a\nB');
    frames.pause();
    show('a\nC');
    await io.passes(1_000);
    io.take();
    await io.passes(1_000);
    expect(io.take()).to.equal('');
    frames.resume();
    await io.passes(40);
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'a'), line(2, 'C')));
  });

  it('repaints on request without a change', async () => {
    const { io, frames, show } = await opened();
    show('a');
    await io.passes(100);
    io.take();
    frames.redraw();
    await io.passes();
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'a')));
  });
});
