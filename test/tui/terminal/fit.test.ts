import { expect } from 'chai';
import { fitLine } from '../../../tui/terminal/fit.js';

const RED = '\x1b[31m';
const PLAIN = '\x1b[39m';

describe('a line of a frame', () => {
  it('is unchanged if it fits', () => {
    expect(fitLine('│ ä日🙂 │', 20, true)).to.equal('│ ä日🙂 │');
  });

  it('is cut at the width of the terminal, between characters of any width', () => {
    expect(fitLine('abcdef', 3, true)).to.equal('abc');
    expect(fitLine('日本語', 5, true)).to.equal('日本');
    expect(fitLine('a👩‍💻b', 3, true)).to.equal('a👩‍💻');
    expect(fitLine('日', 1, true)).to.equal('');
    expect(fitLine('abc', 0, true)).to.equal('');
  });

  it('keeps its colours and resets them at its end', () => {
    expect(fitLine(`a${RED}bcd${PLAIN}ef`, 3, true)).to.equal(`a${RED}bc${PLAIN}\x1b[0m`);
    expect(fitLine('\x1b[38;2;1;2;3mx', 3, true)).to.equal('\x1b[38;2;1;2;3mx\x1b[0m');
  });

  const commands = {
    'moves the cursor': '\x1b[5;5H',
    'clears the screen': '\x1b[2J',
    'leaves the alternate screen': '\x1b[?1049l',
    'sets the clipboard': '\x1b]52;c;c2VjcmV0\x07',
    'sets the title': '\x1b]0;title\x1b\\',
    'sends something to the printer': '\x1bPq#0\x1b\\',
    'resets the terminal': '\x1bc',
    'moves by one line': '\r\n\v\f',
    'rings and goes back': '\x07\b\x7f',
    'is an 8-bit command, or a line': '\u009b\u0085\u2028',
    'is cut off': '\x1b[12',
    'has only begun': '\x1b',
  };
  for (const [what, command] of Object.entries(commands)) {
    it(`drops what ${what}`, () => {
      const isLast = /cut off|begun/.test(what);
      expect(fitLine(`a${command}${isLast ? '' : 'b'}`, 9, true)).to.equal(isLast ? 'a' : 'ab');
    });
  }

  it('is ASCII of the same width on a terminal without UTF-8', () => {
    expect(fitLine(`aä日${RED}ś${PLAIN}|`, 20, false)).to.equal(`a???${RED}?${PLAIN}|\x1b[0m`);
  });
});
