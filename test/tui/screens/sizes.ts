/** Checks the invariants of every screen, at a size and with a display setting. */
import { expect } from 'chai';
import stringWidth from 'string-width';
import { isTooSmall } from '../../../tui/state/rows.js';
import type { Look } from '../../../tui/state/state.js';
import { stripVTControlCharacters } from 'node:util';
import { frameLines } from './rendering.js';
import { SECRET, type Shown } from './scenes.js';

export const LOOKS: Record<string, Partial<Look>> = {
  'in colour': {},
  'in ASCII': { ascii: true },
  'without colour': { hasColor: false },
};

// Control characters except colours, and characters that change the direction of text.
const DRIVING = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;
const COLOR = /\x1b\[(?:3|4|9|10)\d/; // eslint-disable-line no-control-regex

/** Cache of widths: most lines are on many screens, and measuring is slower than rendering. */
const widths = new Map<string, number>();

function widthOf(line: string): number {
  const width = widths.get(line) ?? stringWidth(line);
  widths.set(line, width);
  return width;
}

export function expectFits({ name, make }: Shown, [columns, rows]: readonly [number, number], how: string): void {
  const look = LOOKS[how] ?? {};
  const { state } = make({ columns, rows, look });
  const where = `${columns}x${rows} ${how}`;
  const lines = frameLines(state);
  const plain = lines.map(stripVTControlCharacters);
  expect(plain.length, where).to.be.at.most(rows);
  if (!isTooSmall(state)) expect(plain.length, where).to.equal(rows);
  for (const line of plain) {
    // Creating a Chai expectation is slow, even if it passes.
    if (widthOf(line) > columns) expect.fail(`${where}: ${line} is ${widthOf(line)} wide`);
    if (DRIVING.test(line)) expect.fail(`${where}: ${JSON.stringify(line)} drives the terminal`);
    if (look.ascii && !/^[\x20-\x7e]*$/.test(line)) expect.fail(`${where}: ${line} is not ASCII`);
  }
  if (look.hasColor === false) expect(lines.join('\n'), where).to.not.match(COLOR);
  const isRevealed = name.startsWith('a secret that is shown') && !isTooSmall(state);
  // At any width the secret is complete, on as many lines as needed.
  const joined = plain.map((line) => line.replace(/[^\w-]+/g, '')).join('');
  if (!isRevealed) expect(joined, where).to.not.contain(SECRET.slice(6, 20));
}
