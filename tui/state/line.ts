/** A line of text with a caret, and the keys that edit it. */

export interface Line {
  text: string;
  /** Position of the caret in UTF-16 units; always between two graphemes. */
  caret: number;
}

/** A line whose text is secret. It is a private field, so that no dump of the state contains it. */
class SecretLine implements Line {
  readonly caret: number;
  readonly #text: string;

  constructor(text: string, caret: number) {
    this.caret = caret;
    this.#text = text;
  }

  get text(): string {
    return this.#text;
  }
}

export const concealed = ({ text, caret }: Line): Line => new SecretLine(text, caret);

export const lineOf = (text: string): Line => ({ text, caret: text.length });
export const EMPTY_LINE = lineOf('');

const characters = new Intl.Segmenter();

/** Lengths of the graphemes before and after the caret; 0 at the ends. */
function around({ text, caret }: Line): { before: number; after: number } {
  const before = [...characters.segment(text.slice(0, caret))].at(-1)?.segment.length ?? 0;
  const after = [...characters.segment(text.slice(caret))][0]?.segment.length ?? 0;
  return { before, after };
}

const cut = ({ text }: Line, from: number, to: number): Line => ({
  text: text.slice(0, from) + text.slice(to),
  caret: from,
});
const at = ({ text }: Line, caret: number): Line => ({ text, caret });

/** Start of the word before the caret. */
const wordStart = ({ text, caret }: Line) => text.slice(0, caret).replace(/\S+\s*$/, '').length;
const wordEnd = ({ text, caret }: Line) => caret + (/^\s*\S+/.exec(text.slice(caret))?.[0].length ?? 0);

const EDITS: Readonly<Record<string, (line: Line) => Line>> = {
  left: (line) => at(line, line.caret - around(line).before),
  right: (line) => at(line, line.caret + around(line).after),
  home: (line) => at(line, 0),
  end: (line) => at(line, line.text.length),
  'ctrl+left': (line) => at(line, wordStart(line)),
  'ctrl+right': (line) => at(line, wordEnd(line)),
  backspace: (line) => cut(line, line.caret - around(line).before, line.caret),
  delete: (line) => cut(line, line.caret, line.caret + around(line).after),
  'ctrl+w': (line) => cut(line, wordStart(line), line.caret),
  'ctrl+u': (line) => cut(line, 0, line.caret),
  'ctrl+k': ({ text, caret }) => lineOf(text.slice(0, caret)),
};
/** The same keys as in shells. */
const ALIASES: Readonly<Record<string, string>> = {
  'ctrl+a': 'home',
  'ctrl+e': 'end',
  'ctrl+b': 'left',
  'ctrl+f': 'right',
  'ctrl+d': 'delete',
  'ctrl+h': 'backspace',
  'alt+b': 'ctrl+left',
  'alt+f': 'ctrl+right',
  'alt+backspace': 'ctrl+w',
};

/** @returns undefined for a key that means nothing to a line. */
export function edited(line: Line, key: string): Line | undefined {
  const edit = EDITS[ALIASES[key] ?? key];
  if (edit) return edit(line);
  return isTextKey(key) ? inserted(line, key === 'space' ? ' ' : key) : undefined;
}

/** Whether the key is text in an input line. */
export const isTextKey = (key: string) => key === 'space' || [...characters.segment(key)].length === 1;

/** In UTF-16 units: longer than any reasonable path, key or filter. */
const MAX_LENGTH = 4_096;

/** Inserts text. Line breaks and tabs of pasted text become spaces. */
export function inserted({ text, caret }: Line, what: string): Line {
  const clean = what.replace(/[\r\n\t]+/g, ' ').replace(/\p{Cc}/gu, '');
  // Do not leave half of a surrogate pair at the limit.
  const fit = clean.slice(0, Math.max(0, MAX_LENGTH - text.length)).replace(/[\ud800-\udbff]$/, '');
  return { text: text.slice(0, caret) + fit + text.slice(caret), caret: caret + fit.length };
}
