/** Finds JSON that `JSON.parse` accepts but other parsers may read differently. */

export type Ambiguity = 'repeated name' | 'rounded number';

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/y;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/y;

/**
 * Returns why the text is ambiguous, or null: an object has a field twice, of which `JSON.parse` takes the last (`"\u0061"` is `"a"`), or
 * a number would be rounded to an integer (`2147483647.0000001`). One pass over the text.
 *
 * @param text valid JSON.
 */
export function ambiguityIn(text: string): Ambiguity | null {
  /** Field names of each open object; null for an array. */
  const open: (Set<string> | null)[] = [];
  let isName = false;
  for (let at = 0; at < text.length;) {
    const character = text.charAt(at);
    if (character === '"') {
      const literal = taken(STRING, text, at);
      const names = open.at(-1);
      if (isName && names) {
        const name = JSON.parse(literal) as string;
        if (names.has(name)) return 'repeated name';
        names.add(name);
        isName = false;
      }
      at += literal.length;
    } else if (character === '-' || (character >= '0' && character <= '9')) {
      const literal = taken(NUMBER, text, at);
      if (!isExact(literal)) return 'rounded number';
      at += literal.length;
    } else {
      if (character === '{') open.push(new Set());
      else if (character === '[') open.push(null);
      else if (character === '}' || character === ']') open.pop();
      if (character === '{' || character === ',') isName = open.at(-1) instanceof Set;
      at += 1;
    }
  }
  return null;
}

function taken(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? text.charAt(at);
}

/**
 * Whether JavaScript reads the number exactly, if it reads it as an integer. Other numbers are refused by the fields that require
 * integers.
 */
function isExact(literal: string): boolean {
  const value = Number(literal);
  if (!Number.isSafeInteger(value)) return true;
  const [digits, exponent] = significantOf(literal);
  const [kept, keptExponent] = significantOf(String(value));
  return digits === kept && (digits === '' || exponent === keptExponent);
}

/** The significant digits of a number, without zeros at either end, and their power of ten. */
function significantOf(literal: string): [digits: string, exponent: number] {
  const [mantissa = '', power = '0'] = literal.toLowerCase().replace(/^-/, '').split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const all = (whole + fraction).replace(/^0+/, '');
  let end = all.length;
  while (end > 0 && all.charAt(end - 1) === '0') end -= 1;
  return [all.slice(0, end), Number(power) - fraction.length + (all.length - end)];
}
