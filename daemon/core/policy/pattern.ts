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

  /** Whether it has no wildcard. */
  get isPlain(): boolean {
    return this.#parts.length === 1;
  }

  /** What is before its first wildcard. */
  get start(): string {
    return this.#parts[0] ?? '';
  }

  /** What is after its last wildcard. */
  get end(): string {
    return this.#parts.at(-1) ?? '';
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

  /** Whether it matches all that another pattern matches: what that has as a wildcard can only be where this one has one, too. */
  covers({ text }: Pattern): boolean {
    return this.matches(text);
  }

  /** Whether one of its literal parts contains this text. */
  spells(text: string): boolean {
    return this.#parts.some((part) => part.includes(text));
  }
}

/**
 * Whether there is a text that all of these patterns match. If each has a wildcard, only their beginnings and their ends can contradict each
 * other: what one has between its wildcards can be where the others have one.
 */
export function haveCommonText(patterns: readonly Pattern[]): boolean {
  const plain = patterns.find(({ isPlain }) => isPlain);
  if (plain) return patterns.every((pattern) => pattern.matches(plain.text));
  const [start, end] = [longest(patterns.map((it) => it.start)), longest(patterns.map((it) => it.end))];
  return patterns.every((pattern) => start.startsWith(pattern.start) && end.endsWith(pattern.end));
}

const longest = (texts: readonly string[]) =>
  texts.reduce((one, other) => (other.length > one.length ? other : one), '');
