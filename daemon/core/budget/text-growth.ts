/**
 * Computes how many bytes Unicode's normal forms NFC and NFKC can add to a text, because a tokenizer may normalize it first. U+FDFA has three
 * bytes, and 33 in NFKC.
 *
 * It is counted by characters, because normalizing a text takes time that grows with the square of the number of its combining marks. A
 * character that no mark follows becomes its own normal form, or less when it is composed with the next one. A mark may keep the character
 * before it from being composed again, so both count what they decompose to. Composing never adds a byte.
 */

/** For the characters of a page, in bytes of UTF-8. */
interface Page {
  composed: Uint8Array;
  decomposed: Uint8Array;
  isMark: Uint8Array;
}

const PAGE_SIZE = 256;
/** Each page is computed when a text first has one of its characters. */
const pages: (Page | undefined)[] = [];

const BACKSLASH = 0x5c;
/** Of a character outside the basic plane, of which an escape has one half. */
const MAX_ASTRAL_GROWTH = 12;

/** @returns how many bytes of UTF-8 the texts of a value, including its names, can grow by. */
export function growthOf(value: unknown): number {
  if (typeof value === 'string') return growthOfText(value);
  if (typeof value !== 'object' || value === null) return 0;
  let growth = 0;
  if (Array.isArray(value)) for (const entry of value) growth += growthOf(entry);
  else for (const name in value) growth += growthOfText(name) + growthOf((value as Record<string, unknown>)[name]);
  return growth;
}

function growthOfText(text: string): number {
  let growth = 0;
  /** What a mark adds to the character before it. */
  let further = 0;
  for (let at = 0; at < text.length; at++) {
    let code = text.charCodeAt(at);
    if (code < 0x80) {
      further = 0;
      // Arguments are JSON within JSON, and may have escapes of their own.
      if (code === BACKSLASH && text.charCodeAt(at + 1) === 0x75) growth += growthOfEscape(text.slice(at + 2, at + 6));
      continue;
    }
    if (code >= 0xd800 && code <= 0xdfff) {
      code = text.codePointAt(at) ?? 0;
      if (code > 0xffff) at += 1;
    }
    const { composed, decomposed, isMark } = (pages[code >> 8] ??= pageOf(code >> 8));
    const index = code & 0xff;
    const whole = decomposed[index] ?? 0;
    if (isMark[index] === 1) {
      growth += whole + further;
      further = 0;
    } else {
      const own = composed[index] ?? 0;
      growth += own;
      further = whole - own;
    }
  }
  return growth;
}

/** What the text can grow by if an escape is read as its character. */
function growthOfEscape(hex: string): number {
  if (!/^[0-9a-f]{4}$/i.test(hex)) return 0;
  const code = Number.parseInt(hex, 16);
  if (code >= 0xd800 && code <= 0xdfff) return MAX_ASTRAL_GROWTH;
  return (pages[code >> 8] ??= pageOf(code >> 8)).decomposed[code & 0xff] ?? 0;
}

function pageOf(number: number): Page {
  const page = {
    composed: new Uint8Array(PAGE_SIZE),
    decomposed: new Uint8Array(PAGE_SIZE),
    isMark: new Uint8Array(PAGE_SIZE),
  };
  for (let index = 0; index < PAGE_SIZE; index++) {
    const character = String.fromCodePoint(number * PAGE_SIZE + index);
    const bytes = Buffer.byteLength(character);
    const growthIn = (...forms: string[]) =>
      Math.max(0, ...forms.map((form) => Buffer.byteLength(character.normalize(form)) - bytes));
    page.composed[index] = growthIn('NFC', 'NFKC');
    page.decomposed[index] = growthIn('NFD', 'NFKD');
    page.isMark[index] = /^\p{M}/u.test(character.normalize('NFKD')) ? 1 : 0;
  }
  return page;
}
