import { expect } from 'chai';
import { Output } from '../../../tui/terminal/output.js';
import { FakeTerminal } from '../../support/fake-terminal.js';

function opened() {
  const io = new FakeTerminal();
  const output = new Output(io);
  let drains = 0;
  let ends = 0;
  output.onDrain = () => drains++;
  output.onGone = () => ends++;
  return { io, output, drains: () => drains, ends: () => ends };
}

describe('terminal output', () => {
  it('is written immediately as far as it fits, and the rest later in order', () => {
    const { io, output, drains } = opened();
    io.room = 4;
    output.write('abcdef');
    output.write('gh');
    expect(io.written).to.equal('abcd');
    expect(output.isClogged).to.equal(true);
    io.clock.advance(1_000);
    expect(drains()).to.equal(0);
    io.room = 100;
    io.clock.advance(20);
    expect(io.written).to.equal('abcdefgh');
    expect(output.isClogged).to.equal(false);
    expect(drains()).to.equal(1);
    expect(io.clock.pending, 'no timer stays').to.equal(0);
  });

  it('does not split characters', () => {
    const { io, output } = opened();
    io.room = 1;
    output.write('日本');
    io.room = 100;
    io.clock.advance(20);
    expect(io.written).to.equal('日本');
  });

  it('that is written synchronously replaces the buffer, and cancels an incomplete sequence', () => {
    const { io, output } = opened();
    io.room = 3;
    output.write('\x1b]52;c;long\x07');
    io.room = 100;
    output.writeNow('bye');
    expect(io.written).to.equal('\x1b]5\x18bye');
    io.clock.advance(1_000);
    expect(io.written).to.equal('\x1b]5\x18bye');
  });

  it('that is written synchronously gives up on a terminal that does not read', () => {
    const { io, output } = opened();
    io.room = 0;
    const began = performance.now();
    output.writeNow('bye');
    expect(performance.now() - began).to.be.within(400, 10_000);
    io.room = 100;
    io.clock.advance(1_000);
    expect(io.written).to.equal('');
  });

  for (const code of ['EIO', 'EPIPE', 'EBADF']) {
    it(`to a terminal that is gone (${code}) is reported once and then ignored`, () => {
      const { io, output, ends } = opened();
      io.goneWith = code;
      output.write('a');
      output.write('b');
      output.writeNow('c');
      expect(ends()).to.equal(1);
      expect(output.isClogged).to.equal(false);
      expect(io.clock.pending).to.equal(0);
    });
  }
});
