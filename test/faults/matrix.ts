/**
 * The rows of the fault matrix that this stage of llmp answers for, by section: how many each has. A row is shown by a test whose
 * title begins with its id (`C03 …`, or `C03 C04 …`), or README.md says why there is none.
 */
export const SECTIONS: Readonly<Record<string, number>> = {
  A: 38,
  B: 14,
  C: 34,
  D: 10,
  E: 16,
  F: 21,
  G: 32,
  H: 18,
  I: 18,
  J: 22,
  K: 20,
  L: 18,
  M: 18,
  N: 10,
  O: 8,
  P: 18,
  Q: 11,
  R: 12,
  S: 12,
};

/** Numbers that no row has. */
const LEFT_OUT: readonly string[] = ['M09', 'R04', 'R05', 'R09', 'R11'];

export const allIds = (): string[] =>
  Object.entries(SECTIONS).flatMap(([letter, rows]) =>
    Array.from({ length: rows }, (_, index) => letter + String(index + 1).padStart(2, '0')).filter(
      (id) => !LEFT_OUT.includes(id),
    ),
  );

/** The ids that stand in front of a test's title, or of a line. */
export function idsAtFront(title: string): string[] {
  const front = /^(?:[A-Z]\d\d[ ,:]+)+/.exec(`${title} `)?.[0] ?? '';
  return front.match(/[A-Z]\d\d/g) ?? [];
}
