/** Tokenizer of the filter line: terms separated by spaces, each a word or `key:value,value`, optionally quoted or negated with `!`. */

/** A value or word, with its position in the line. */
export interface TermPart {
  text: string;
  at: number;
  length: number;
  /** Whether it ends the line, so that it may still be incomplete. */
  isLast: boolean;
}

export interface Term {
  at: number;
  length: number;
  isNegated: boolean;
  /** The key in lower case; null for a word. */
  key: string | null;
  /** One part for a word; one per comma-separated value for a key. */
  parts: readonly TermPart[];
  /** Position of the values or of the word. */
  valueAt: number;
  /** It has a quote that is not closed. */
  isOpen: boolean;
}

// `10:30` is a word, because keys consist of letters.
const KEY = /([a-z_]+):/iy;

export function termsOf(line: string): Term[] {
  const terms: Term[] = [];
  for (let at = 0; at < line.length;) {
    if (/\s/.test(line[at] ?? '')) {
      at += 1;
      continue;
    }
    const term = termAt(line, at);
    terms.push(term);
    at += term.length;
  }
  return terms;
}

function termAt(line: string, at: number): Term {
  const isNegated = line[at] === '!';
  const keyAt = isNegated ? at + 1 : at;
  KEY.lastIndex = keyAt;
  const [written = '', name] = KEY.exec(line) ?? [];
  const key = name?.toLowerCase() ?? null;
  const valueAt = keyAt + written.length;
  const parts: TermPart[] = [];
  for (let from = valueAt; ; from += 1) {
    const { text, end, isOpen } = partAt(line, from, key !== null);
    parts.push({ text, at: from, length: end - from, isLast: end === line.length });
    if (line[end] !== ',' || key === null) return { at, length: end - at, isNegated, key, parts, valueAt, isOpen };
    from = end;
  }
}

/** Reads up to an unquoted space, or an unquoted comma between values. */
function partAt(line: string, from: number, hasCommas: boolean) {
  let text = '';
  let isQuoted = false;
  let at = from;
  for (; at < line.length; at++) {
    const letter = line[at] ?? '';
    if (letter === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (/\s/.test(letter) || (hasCommas && letter === ','))) break;
    else text += letter;
  }
  return { text, end: at, isOpen: isQuoted };
}

/** Quotes a value if needed, so that it is read literally. */
export const quotedValue = (text: string): string => (/[\s,"]|^!/.test(text) ? `"${text.replaceAll('"', '')}"` : text);
