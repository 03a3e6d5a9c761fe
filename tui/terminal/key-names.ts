/** Maps the sequences of terminals to names of keys: modifiers in the order `ctrl+alt+shift+`, then the key. */

// Bits of xterm's modifier parameter minus one; Caps Lock and Num Lock are ignored.
const MODIFIERS = [
  [4, 'ctrl+'],
  [2, 'alt+'],
  [1, 'shift+'],
  [8 | 16 | 32, 'super+'],
] as const;
const SHIFT = 1;
const ALT = 2;
const CTRL = 4;
const RELEASED = '3';

const LETTERS: Record<string, string> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  F: 'end',
  H: 'home',
  P: 'f1',
  Q: 'f2',
  R: 'f3',
  S: 'f4',
};

const RXVT_ARROWS: Record<string, string> = { a: 'up', b: 'down', c: 'right', d: 'left' };

const NUMBERS: Record<number, string> = {
  1: 'home',
  2: 'insert',
  3: 'delete',
  4: 'end',
  5: 'pageup',
  6: 'pagedown',
  7: 'home',
  8: 'end',
  11: 'f1',
  12: 'f2',
  13: 'f3',
  14: 'f4',
  15: 'f5',
  17: 'f6',
  18: 'f7',
  19: 'f8',
  20: 'f9',
  21: 'f10',
  23: 'f11',
  24: 'f12',
};
const RXVT_MODIFIERS: Record<string, number> = { $: SHIFT, '^': CTRL, '@': CTRL | SHIFT };
const CONSOLE: Record<string, string> = { A: 'f1', B: 'f2', C: 'f3', D: 'f4', E: 'f5' };

/** The keypad in application mode (SS3). */
const KEYPAD: Record<string, string> = { M: 'enter', I: 'tab', X: '=', ' ': 'space' };
const KEYPAD_CHARACTERS = 'jklmnopqrstuvwxy';
const KEYPAD_MEANINGS = '*+,-./0123456789';

/** First code of Kitty's numbers for the keypad. */
const KITTY_KEYPAD = 57399;
const KITTY_KEYPAD_KEYS =
  '0 1 2 3 4 5 6 7 8 9 . / * - + enter = , left right up down pageup pagedown home end insert delete'.split(' ');

const SPECIAL: Record<number, string> = {
  0x08: 'backspace', // Some terminals send it for Backspace; ^H itself has no use here.
  0x09: 'tab',
  0x0a: 'enter', // Sent by scripts.
  0x0d: 'enter',
  0x1b: 'escape',
  0x20: 'space',
  0x7f: 'backspace',
};

/** The names of all keys but characters, without modifiers. */
export const KEY_NAMES: ReadonlySet<string> = new Set(
  [LETTERS, NUMBERS, SPECIAL].flatMap((names): string[] => Object.values(names)),
);

function withModifiers(key: string, bits: number): string {
  const prefix = MODIFIERS.map(([bit, name]) => (bits & bit ? name : '')).join('');
  return prefix + key;
}

const isPrintable = (code: number) => code >= 0x20 && code !== 0x7f && (code < 0x80 || code > 0x9f);

/** The key for a code point or control code. @returns undefined for codes that no key sends. */
export function textKey(code: number, hasAlt: boolean): string | undefined {
  const alt = hasAlt ? ALT : 0;
  const special = SPECIAL[code];
  if (special) return withModifiers(special, alt);
  if (isPrintable(code)) return withModifiers(String.fromCodePoint(code), alt);
  if (code >= 0x20) return undefined;
  return withModifiers(code === 0 ? 'space' : String.fromCharCode(code | 0x40).toLowerCase(), CTRL | alt);
}

/** The key for a code point with separate modifiers. Shift becomes part of the character if that has an upper-case form. */
function modifiedKey(code: number, bits: number, shifted: number | undefined): string | undefined {
  const special = SPECIAL[code];
  if (special) return withModifiers(special, bits);
  const keypad = KITTY_KEYPAD_KEYS[code - KITTY_KEYPAD];
  if (keypad) return withModifiers(keypad, bits);
  const isPrivate = code >= 0xe000 && code <= 0xf8ff; // Kitty's codes for keys without a name here.
  if (!isPrintable(code) || isPrivate || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return undefined;
  const character = String.fromCodePoint(code);
  if (bits & CTRL) return withModifiers(character.toLowerCase(), bits);
  if (!(bits & SHIFT)) return withModifiers(character, bits);
  const upper = shifted === undefined ? character.toUpperCase() : String.fromCodePoint(shifted);
  const isShifted = shifted !== undefined || upper !== character || character.toLowerCase() !== character;
  return withModifiers(isShifted ? upper : character, isShifted ? bits & ~SHIFT : bits);
}

interface Parameters {
  first: number;
  /** The second number of the first parameter in Kitty's protocol. */
  shifted: number | undefined;
  bits: number;
  isReleased: boolean;
}

function parametersOf(text: string, hasAlt: boolean): Parameters | undefined {
  // Responses to terminal queries begin with one of `<=>?`; keys never do.
  if (!/^[\d;:]*$/.test(text)) return undefined;
  const [keys = '', modifiers = ''] = text.split(';');
  const [first, shifted] = keys.split(':');
  const [modifier, event] = modifiers.split(':');
  return {
    first: Number(first === '' ? 1 : first),
    shifted: shifted ? Number(shifted) : undefined,
    bits: Math.max(0, Number(modifier) - 1) | (hasAlt ? ALT : 0),
    isReleased: event === RELEASED,
  };
}

/** The key for a control sequence, CSI `text` `final`. @returns undefined for reports, responses and unknown sequences. */
export function controlSequenceKey(text: string, final: string, hasAlt: boolean): string | undefined {
  if (text === '[') return CONSOLE[final];
  const parameters = parametersOf(text, hasAlt);
  if (!parameters || parameters.isReleased) return undefined;
  const { first, shifted, bits } = parameters;
  if (final === 'u') return text === '' ? undefined : modifiedKey(first, bits, shifted);
  if (final === '~' && first === 27) return otherKey(text, bits);
  const rxvt = RXVT_MODIFIERS[final];
  const key = final === '~' || rxvt !== undefined ? NUMBERS[first] : specialLetter(final, first);
  if (final in RXVT_ARROWS) return withModifiers(RXVT_ARROWS[final] ?? '', bits | SHIFT);
  if (final === 'Z') return withModifiers('tab', bits | SHIFT);
  return key && withModifiers(key, bits | (rxvt ?? 0));
}

/** `CSI 27 ; modifiers ; code ~`: in xterm the code already includes Shift. */
function otherKey(text: string, bits: number): string | undefined {
  const code = Number(text.split(';')[2] ?? '');
  return Number.isNaN(code) ? undefined : modifiedKey(code, bits, bits & SHIFT ? code : undefined);
}

/** A first parameter other than 1 means a report, such as the position of the cursor. */
function specialLetter(final: string, first: number): string | undefined {
  return first === 1 ? LETTERS[final] : undefined;
}

/** The key for SS3 `text` `final`: the keypad or a function key. */
export function shiftSequenceKey(text: string, final: string, hasAlt: boolean): string | undefined {
  const parameters = parametersOf(text, hasAlt);
  if (!parameters) return undefined;
  // Some terminals send the modifiers alone, others after `1;`.
  const bits =
    text.includes(';') || text === '' ? parameters.bits : Math.max(0, parameters.first - 1) | parameters.bits;
  if (final in RXVT_ARROWS) return withModifiers(RXVT_ARROWS[final] ?? '', bits | CTRL);
  const keypad = KEYPAD[final] ?? KEYPAD_MEANINGS[KEYPAD_CHARACTERS.indexOf(final)];
  const key = LETTERS[final] ?? keypad;
  return key && withModifiers(key, bits);
}
