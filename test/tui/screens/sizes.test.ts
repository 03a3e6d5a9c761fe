import { expect } from 'chai';
import stringWidth from 'string-width';
import { isTooSmall } from '../../../tui/state/rows.js';
import type { Look } from '../../../tui/state/state.js';
import { frameLines, withoutColors } from './rendering.js';
import { SCENES, SECRET } from './scenes.js';

const SIZES: readonly (readonly [number, number])[] = [
  [1, 1],
  [2, 30],
  [40, 10],
  [50, 10],
  [80, 24],
  [120, 24],
  [200, 60],
  [300, 100],
];

const LOOKS: Record<string, Partial<Look>> = {
  'in colour': {},
  'in ASCII': { ascii: true },
  'without colour': { hasColor: false },
};

// What may drive a terminal, beside what sets colours; and what turns the direction of what is written.
const DRIVING = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;
const COLOR = /\x1b\[(?:3|4|9|10)\d/; // eslint-disable-line no-control-regex

describe('every screen at every size', () => {
  for (const { name, make } of SCENES) {
    it(`shows ${name}: never wider or taller than the screen, and nothing that drives it`, () => {
      for (const [columns, rows] of SIZES) {
        for (const [how, look] of Object.entries(LOOKS)) {
          const { state } = make({ columns, rows, look });
          const where = `${columns}x${rows} ${how}`;
          const lines = frameLines(state);
          const plain = lines.map(withoutColors);
          expect(plain.length, where).to.be.at.most(rows);
          if (!isTooSmall(state)) expect(plain.length, where).to.equal(rows);
          for (const line of plain) {
            expect(stringWidth(line), `${where}: ${line}`).to.be.at.most(columns);
            expect(line, where).to.not.match(DRIVING);
            if (look.ascii) expect(line, where).to.match(/^[\x20-\x7e]*$/);
          }
          if (look.hasColor === false) expect(lines.join('\n'), where).to.not.match(COLOR);
          const isRevealed = name.startsWith('a secret that is shown') && !isTooSmall(state);
          // However narrow it is, all of it is there, on as many lines as that takes.
          const joined = plain.map((line) => line.replace(/[^\w-]+/g, '')).join('');
          if (!isRevealed) expect(joined, where).to.not.contain(SECRET.slice(6, 20));
        }
      }
    });
  }

  it('says what is needed where it is too small', () => {
    const [first] = SCENES;
    const { state } = first!.make({ columns: 44, rows: 9 });
    expect(frameLines(state)).to.deep.equal(['llmp needs 50x10, this is 44x9']);
  });
});
