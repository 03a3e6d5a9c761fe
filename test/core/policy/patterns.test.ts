import { expect } from 'chai';
import { haveCommonText, Pattern } from '../../../daemon/core/policy/pattern.js';

/** What patterns mean, by trying every way to place the parts. */
function means(pattern: string, text: string): boolean {
  if (pattern === '') return text === '';
  if (pattern[0] === '*') return means(pattern.slice(1), text) || (text !== '' && means(pattern, text.slice(1)));
  return text !== '' && text[0] === pattern[0] && means(pattern.slice(1), text.slice(1));
}

describe('a pattern', () => {
  it('matches a whole text, with any characters for each wildcard, case-sensitively', () => {
    for (const [pattern, text, isMatch] of [
      ['gpt-5', 'gpt-5', true],
      ['gpt-5', 'gpt-5-mini', false],
      ['gpt-5', 'GPT-5', false],
      ['gpt-*', 'gpt-', true],
      ['*', '', true],
      ['*', 'a/b', true],
      ['/v1/*/x', '/v1/a/b/x', true],
      ['a*a', 'a', false],
      ['a*a', 'aa', true],
      ['*ab*ba*', 'aba', false],
      ['*ab*ba*', 'abba', true],
      ['a**b', 'ab', true],
      ['a.c', 'abc', false],
    ] as const) {
      expect(new Pattern(pattern).matches(text), `${pattern} ${text}`).to.equal(isMatch);
    }
  });

  it('means the same as every way to place its parts', () => {
    let seed = 7;
    const pick = (letters: string, most: number) => {
      let text = '';
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      for (let rest = seed % (most + 1); rest > 0; rest--) {
        seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
        text += letters.charAt((seed >> 8) % letters.length);
      }
      return text;
    };
    for (let n = 0; n < 20_000; n++) {
      const [pattern, text] = [pick('ab*', 6), pick('ab', 8)];
      expect(new Pattern(pattern).matches(text), `${pattern} ${text}`).to.equal(means(pattern, text));
    }
  });

  it('has a text in common with others exactly if one can be found', () => {
    const texts = [''];
    for (let at = 0; at < texts.length && texts.length < 2_000; at++) texts.push(`${texts[at]}a`, `${texts[at]}b`);
    let seed = 11;
    const pick = () => {
      let text = '';
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      for (let rest = (seed >> 8) % 5; rest > 0; rest--) {
        seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
        text += 'ab*'.charAt((seed >> 8) % 3);
      }
      return new Pattern(text);
    };
    for (let n = 0; n < 3_000; n++) {
      const patterns = [pick(), pick(), pick()].slice(0, 2 + (n % 2));
      // A common text of patterns with so few letters is not longer than these.
      const isFound = texts.some((text) => patterns.every((pattern) => pattern.matches(text)));
      expect(haveCommonText(patterns), patterns.map(({ text }) => text).join(' ')).to.equal(isFound);
    }
  });

  it('is compared with hostile others in bounded time', () => {
    const hostile = ['a*', 'b*', 'c*'].map((part) => new Pattern(`*${part.repeat(99)}`));
    const began = process.cpuUsage();
    for (let n = 0; n < 10_000; n++) expect(haveCommonText(hostile)).to.equal(true);
    expect(process.cpuUsage(began).user / 1_000, 'ms').to.be.lessThan(1_000);
  });

  it('takes no longer for a hostile text', () => {
    const pattern = new Pattern(`${'a*'.repeat(99)}b`);
    const began = process.cpuUsage();
    for (let n = 0; n < 1_000; n++) expect(pattern.matches('a'.repeat(8_192))).to.equal(false);
    expect(process.cpuUsage(began).user / 1_000, 'ms').to.be.lessThan(1_000);
  });
});
