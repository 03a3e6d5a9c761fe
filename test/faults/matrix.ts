/**
 * Reads the rows of test/faults.md. A row is covered by a test whose title begins with its ID (`C03 …`, or `C03 C04 …`), or README.md
 * explains why it has none.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = join(import.meta.dirname, '../../../test/faults.md');

/** The IDs of all rows, in order. */
export const allIds = (): string[] =>
  [...readFileSync(FILE, 'utf8').matchAll(/^\| ([A-S]\d\d) +\|/gm)].map(([, id = '']) => id);

/** The IDs at the beginning of a test's title, or of a line. */
export function idsAtFront(title: string): string[] {
  const front = /^(?:[A-Z]\d\d[ ,:]+)+/.exec(`${title} `)?.[0] ?? '';
  return front.match(/[A-Z]\d\d/g) ?? [];
}
