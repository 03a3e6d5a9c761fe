import { expect } from 'chai';
import { clipboardSequence } from '../../../tui/terminal/clipboard.js';

const plain = (text: string) => `\x1b]52;c;${Buffer.from(text).toString('base64')}\x07`;

describe('clipboard text', () => {
  it('is sent as OSC 52', () => {
    expect(clipboardSequence('tök_3fa9', { TERM: 'xterm' })).to.equal(plain('tök_3fa9'));
  });

  it('is sent to tmux unchanged', () => {
    expect(clipboardSequence('a', { TERM: 'screen-256color', TMUX: '/tmp/x,1,0', STY: '1' })).to.equal(plain('a'));
  });

  it('is sent to screen in pieces for pass-through', () => {
    const text = 'x'.repeat(5_000);
    for (const env of [{ STY: '1.tty', TERM: 'xterm' }, { TERM: 'screen.xterm-256color' }]) {
      const sequence = clipboardSequence(text, env) ?? '';
      const pieces = sequence.split('\x1b\\').slice(0, -1);
      expect(pieces.every((piece) => piece.startsWith('\x1bP') && piece.length < 768)).to.equal(true);
      expect(pieces.map((piece) => piece.slice(2)).join('')).to.equal(plain(text));
    }
  });

  it('is refused if it is too long for terminals', () => {
    expect(clipboardSequence('x'.repeat(74_994), {})?.length).to.equal(100_000);
    expect(clipboardSequence('x'.repeat(74_995), {})).to.equal(undefined);
    expect(clipboardSequence('ä'.repeat(40_000), {})).to.equal(undefined);
  });
});
