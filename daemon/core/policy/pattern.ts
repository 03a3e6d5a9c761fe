/**
 * Patterns with one wildcard, `*`, which stands for any characters, also none, and `/` too. A pattern matches a whole text, case-sensitively.
 *
 * Patterns come from operators and texts from clients, so there are no regular expressions: the literal parts are searched from left to
 * right, and each byte of the text is passed once.
 */
export class Pattern {
  readonly text: string;
  /** What is between the wildcards. */
  readonly #parts: readonly string[];

  constructor(text: string) {
    this.text = text;
    this.#parts = text.split('*');
  }

  matches(text: string): boolean {
    const parts = this.#parts;
    const [first = '', ...middle] = parts;
    const last = middle.pop();
    if (last === undefined) return text === first;
    const end = text.length - last.length;
    let at = first.length;
    if (end < at || !text.startsWith(first) || !text.endsWith(last)) return false;
    for (const part of middle) {
      const found = text.indexOf(part, at);
      if (found === -1 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  }

  /** Whether one of its literal parts contains this text. */
  spells(text: string): boolean {
    return this.#parts.some((part) => part.includes(text));
  }
}

/** A limit for all steps of one search: patterns of many wildcards have more states than can be looked at. */
const MAX_STEPS = 1_000_000;

/**
 * Whether there is a text that all of these patterns match. It walks the positions in all of them at once; one at a wildcard may stay
 * there. A search that takes too long counts as found.
 */
export function haveCommonText(patterns: readonly Pattern[]): boolean {
  // Without a wildcard in one of them only its own text can be common to all.
  const plain = patterns.find(({ text }) => !text.includes('*'));
  if (plain) return patterns.every((pattern) => pattern.matches(plain.text));
  const texts = patterns.map(({ text }) => text.replaceAll(/\*+/g, '*'));
  const seen = new Set<string>();
  const open: number[][] = [texts.map(() => 0)];
  for (let steps = 0; steps < MAX_STEPS; steps++) {
    const at = open.pop();
    if (!at) return false;
    const key = at.join();
    if (seen.has(key)) continue;
    seen.add(key);
    // What is left of each is nothing, or a wildcard that may be nothing.
    if (at.every((position, which) => /^\*?$/.test(texts[which]?.slice(position) ?? ''))) return true;
    for (const next of stepsFrom(at, texts)) open.push(next);
  }
  return true;
}

/** The positions after a wildcard that is taken for nothing, or after one more character of the text. */
function stepsFrom(at: readonly number[], texts: readonly string[]): number[][] {
  const skipped = at.flatMap((position, which) =>
    texts[which]?.[position] === '*' ? [at.with(which, position + 1)] : [],
  );
  const wanted = new Set(at.map((position, which) => texts[which]?.[position]).filter((letter) => letter !== '*'));
  const [letter, other] = wanted;
  // At the end of one of them nothing may follow, and two letters are not the same. Wildcards alone are skipped.
  if (letter === undefined || other !== undefined || wanted.size !== 1) return skipped;
  return [...skipped, at.map((position, which) => (texts[which]?.[position] === '*' ? position : position + 1))];
}
