/** Takes the filter line apart: terms with spaces between, each a word or `key:value,value`, perhaps with `!` in front, perhaps in quotes. */

/** A value, or a word, and which characters of the line it is. */
export interface Part {
  text: string;
  at: number;
  length: number;
  /** Whether the line ends with it, so that it may go on. */
  isLast: boolean;
}

export interface Term {
  at: number;
  length: number;
  isNegated: boolean;
  /** In lower case; null for a word. */
  key: string | null;
  /** One for a word; several of a key stand with commas between. */
  parts: readonly Part[];
  /** Where the values, or the word, begin. */
  valueAt: number;
  /** A quote was opened and not closed. */
  isOpen: boolean;
}

// Only letters: `ci:2` and `10:30` are words.
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
  const parts: Part[] = [];
  for (let from = valueAt; ; from += 1) {
    const { text, end, isOpen } = partAt(line, from, key !== null);
    parts.push({ text, at: from, length: end - from, isLast: end === line.length });
    if (line[end] !== ',' || key === null) return { at, length: end - at, isNegated, key, parts, valueAt, isOpen };
    from = end;
  }
}

/** Up to a space, or a comma between values, that is not in quotes. */
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

/** As it is to be written to mean nothing but itself. */
export const quotedValue = (text: string): string => (/[\s,"]|^!/.test(text) ? `"${text.replaceAll('"', '')}"` : text);
