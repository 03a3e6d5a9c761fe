import { expect } from 'chai';
import stringWidth from 'string-width';
import { asciiOf } from '../../../tui/parts/ascii.js';
import { bar, columnChart } from '../../../tui/parts/charts.js';
import { rate } from '../../../daemon/api/formats.js';
import { count, milliseconds } from '../../../tui/parts/figures.js';
import { withFound } from '../../../tui/parts/found.js';
import { between, cut, fitted, over, slice, strip, type Strip, widthOf, wrapped } from '../../../tui/parts/strip.js';
import { HOSTILE } from './scenes.js';

const said = (line: Strip) => line.map((piece) => piece.text).join('');

describe('strip', () => {
  it('is cut with an ellipsis, never within a character', () => {
    expect(said(cut(strip('abcdef'), 4))).to.equal('abc…');
    expect(said(cut(strip('漢字漢字'), 6))).to.equal('漢字 …');
    expect(said(cut(strip('abc'), 3))).to.equal('abc');
    expect(said(cut(strip('abc'), 0))).to.equal('');
  });

  it('goes on in the next line, a long word too', () => {
    for (const [words, lines] of [
      ['one two three', ['one two', 'three']],
      ['https://a.example/path x', ['https://', 'a.exampl', 'e/path x']],
      ['a 漢字漢字漢字', ['a', '漢字漢字', '漢字']],
      ['', ['']],
    ] as const) {
      expect(wrapped(words, 8)).to.deep.equal(lines);
    }
  });

  it('has the exact width with any content', () => {
    for (const words of HOSTILE) {
      for (const columns of [0, 1, 2, 3, 10, 41]) {
        const line = fitted(strip('a', words, 'b'), columns);
        expect(widthOf(line), words).to.equal(columns);
        expect(stringWidth(said(line)), words).to.equal(columns);
      }
    }
  });

  it('can be split and joined without a change', () => {
    for (const words of HOSTILE) {
      const line = strip('ab', words, 'cd');
      for (let at = 0; at <= widthOf(line); at += 3) {
        const parts = [...slice(line, 0, at), ...slice(line, at, widthOf(line))];
        expect(widthOf(parts)).to.equal(widthOf(line));
      }
    }
  });

  it('shows both ends if there is room', () => {
    expect(said(between(strip('left'), strip('right'), 12))).to.equal('left   right');
    expect(said(between(strip('a long left'), strip('right'), 12))).to.equal('a lo…  right');
  });

  it('is drawn over others without shifting them', () => {
    const below = [strip('0123456789'), strip('漢字漢字漢')];
    expect(below.map((line) => said(over(line, strip('ab'), 3)))).to.deep.equal(['012ab56789', '漢 ab 字漢']);
  });
});

describe('ASCII', () => {
  it('has the same width as the original', () => {
    for (const words of [
      '┌─┐│└┘ ● ○ ✗ ▲ ◌ ✓ … · “é” ñ 漢字 🚀 ∞ ▁▂▃▄▅▆▇█ ⣿⣀ ▌PROTECTED▐',
      ...HOSTILE.map((it) => said(strip(it))),
    ]) {
      const ascii = asciiOf(words);
      expect(ascii).to.match(/^[\x20-\x7e]*$/);
      expect(ascii.length, words).to.equal(stringWidth(words));
    }
  });

  it('keeps letters, without accents', () => {
    expect(asciiOf('José Müller')).to.equal('Jose Muller');
  });
});

describe('highlighting of filter words', () => {
  it('ignores case, and keeps the length of each match', () => {
    expect(withFound('CI-Deploy-ci', ['ci']).map(({ text: words, role }) => [words, role])).to.deep.equal([
      ['CI', 'found'],
      ['-Deploy-', 'plain'],
      ['ci', 'found'],
    ]);
  });

  it('leaves composed characters alone', () => {
    expect(said(withFound('e\u0301a', ['e']))).to.equal('e\u0301a');
    expect(said(withFound('İstanbul', ['s']))).to.equal('İstanbul');
  });
});

describe('figures', () => {
  it('are short for numbers of any size', () => {
    expect([0, 999, 99_999, 100_000, 1_234_567, 2_147_483_647].map(count)).to.deep.equal([
      '0',
      '999',
      '99,999',
      '100k',
      '1.23M',
      '2.15G',
    ]);
    expect([0, 0.25, 14.2, 250_000].map(rate)).to.deep.equal(['0', '0.3', '14', '250,000']);
    expect([null, 0.4, 1_890, 65_000].map(milliseconds)).to.deep.equal(['–', '0 ms', '1,890 ms', '65.0 s']);
  });

  it('include bars and charts of the exact width', () => {
    for (const share of [0, 0.001, 0.5, 0.999, 1, 7, Number.NaN]) {
      expect(widthOf(bar(share, 20, 'good')), String(share)).to.equal(20);
    }
    expect(said(bar(0.001, 4, 'good'))).to.equal('▏░░░');
    expect(columnChart([0, 1, 2, 4], 1, 'accent').map(said)).to.deep.equal([' ▂▄█']);
    expect(columnChart([0, 4], 2, 'accent').map(said)).to.deep.equal([' █', ' █']);
  });
});
