import { expect } from 'chai';
import { FrameStdout } from '../../../tui/terminal/frame.js';
import { Output } from '../../../tui/terminal/output.js';
import { FakeTerminal } from '../../support/fake-terminal.js';

const CLEAR = '\x1b[0m\x1b[2J';
const line = (row: number, text: string) => `\x1b[${row};1H\x1b[2K${text}`;
const frame = (...changes: string[]) => `\x1b[?2026h${changes.join('')}\x1b[?2026l`;

async function opened(columns = 20, rows = 3) {
  const io = new FakeTerminal(undefined, { columns, rows });
  const output = new Output(io);
  const frames = new FrameStdout({ output, clock: io.clock, size: () => io.stdout, isUtf8: true });
  frames.resume();
  await io.passes();
  expect(io.take(), 'nothing is shown before the first frame').to.equal('');
  return { io, frames };
}

describe('frames on a terminal', () => {
  it('come at once, the first one with all its lines', async () => {
    const { io, frames } = await opened();
    frames.write('a\n\nc');
    await io.passes();
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'a'), line(3, 'c')));
  });

  it('cost their changed lines, and nothing without any', async () => {
    const { io, frames } = await opened();
    frames.write('a\nb\nc');
    await io.passes(100);
    io.take();
    frames.write('a\nB\nc');
    await io.passes(100);
    expect(io.take()).to.equal(frame(line(2, 'B')));
    frames.write('a\nB\nc');
    await io.passes(100);
    expect(io.take()).to.equal('');
    frames.write('a');
    await io.passes(100);
    expect(io.take(), 'what is gone is erased').to.equal(frame(line(2, ''), line(3, '')));
  });

  it('are 30 a second at most, and the last of them is always shown', async () => {
    const { io, frames } = await opened();
    let shown = 0;
    for (let ms = 0; ms < 1_000; ms++) {
      frames.write(`at ${ms}`);
      await io.passes(1);
      if (io.take() !== '') shown++;
    }
    expect(shown).to.be.within(28, 31);
    await io.passes(40);
    expect(frames.last).to.equal('at 999');
    expect(io.clock.pending).to.equal(0);
  });

  it('are asked for only when they may be shown', async () => {
    const { io, frames } = await opened();
    const laidOut: number[] = [];
    for (let i = 0; i < 5; i++) {
      frames.ask(() => {
        laidOut.push(i);
        frames.write(`frame ${i}`);
      });
    }
    await io.passes();
    expect(laidOut).to.deep.equal([4]);
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'frame 4')));
  });

  it('that laying one out asks for come after it', async () => {
    const { io, frames } = await opened();
    frames.ask(() => {
      frames.write('first');
      frames.ask(() => frames.write('second'));
    });
    await io.passes();
    expect(io.take()).to.contain('first');
    await io.passes(40);
    expect(io.take()).to.equal(frame(line(1, 'second')));
  });

  it('wait for a terminal that reads slowly, and then only the newest is written', async () => {
    const { io, frames } = await opened();
    io.room = 10;
    frames.write('frame 1');
    await io.passes(100);
    for (let i = 2; i < 10; i++) {
      frames.write(`frame ${i}`);
      await io.passes(100);
    }
    io.room = Infinity;
    await io.passes(100);
    await io.passes(100);
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'frame 1')) + frame(line(1, 'frame 9')));
  });

  it('have never more lines or columns than the terminal', async () => {
    const { io, frames } = await opened(4, 2);
    frames.write('abcdef\n日本語\nthird\nfourth');
    await io.passes();
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'abcd'), line(2, '日本')));
  });

  it('on a terminal of one cell are that cell', async () => {
    const { io, frames } = await opened(1, 1);
    frames.write('ab\ncd');
    await io.passes();
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'a')));
  });

  it('stop while another has the terminal, and come back whole, as they are by then', async () => {
    const { io, frames } = await opened();
    frames.write('a\nb');
    await io.passes(100);
    frames.write('a\nB');
    frames.pause();
    frames.write('a\nC');
    await io.passes(1_000);
    io.take();
    await io.passes(1_000);
    expect(io.take()).to.equal('');
    frames.resume();
    await io.passes(40);
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'a'), line(2, 'C')));
  });

  it('are painted anew when asked to, though nothing changed', async () => {
    const { io, frames } = await opened();
    frames.write('a');
    await io.passes(100);
    io.take();
    frames.redraw();
    await io.passes();
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'a')));
  });

  it('are no modes that Ink would set', async () => {
    const { io, frames } = await opened();
    frames.write('a');
    frames.write('\x1b[?25h');
    await io.passes(100);
    expect(io.take()).to.equal(frame(CLEAR, line(1, 'a')));
    expect(frames.last).to.equal('a');
  });
});
