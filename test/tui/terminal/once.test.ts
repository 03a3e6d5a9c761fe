import { expect } from 'chai';
import { Box, Text } from 'ink';
import { createElement } from 'react';
import { textOf } from '../../../tui/terminal/once.js';

const size = { columns: 10, rows: 3 };
const text = (words: string) => createElement(Text, null, words);

describe('one frame as lines', () => {
  it('is as wide and as tall as it may be, without spaces at the ends of lines', () => {
    const column = createElement(
      Box,
      { flexDirection: 'column', flexShrink: 0 },
      ...['one', 'two', 'three', 'four'].map(text),
    );
    expect(textOf(column, size, true)).to.equal('one\ntwo\nthree');
    expect(textOf(createElement(Box, { width: 10 }, text('ab')), size, true)).to.equal('ab\n\n');
  });

  it('has nothing in it that would drive a terminal', () => {
    expect(textOf(text('a\x1b]52;c;AAAA\x07b\x1b[2Jc'), size, true)).to.equal('abc\n\n');
  });

  it('is ASCII where that is all there is', () => {
    expect(textOf(text('ä日'), size, false)).to.equal('???\n\n');
  });

  it('says why it cannot be laid out', () => {
    const Broken = () => {
      throw new Error('this is why');
    };
    expect(() => textOf(createElement(Broken), size, true)).to.throw('this is why');
  });
});
