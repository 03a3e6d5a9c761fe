/** What terminals send for keys, and what we call them: `ctrl+alt+shift+` in this order, then the key. */

// xterm's parameter less one, bit by bit; Caps Lock and Num Lock are left out.
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

/** The keypad in application mode, SS3. */
const KEYPAD: Record<string, string> = { M: 'enter', I: 'tab', X: '=', ' ': 'space' };
const KEYPAD_CHARACTERS = 'jklmnopqrstuvwxy';
const KEYPAD_MEANINGS = '*+,-./0123456789';

/** Kitty's numbers for the keypad. */
const KITTY_KEYPAD = 57399;
const KITTY_KEYPAD_KEYS =
  '0 1 2 3 4 5 6 7 8 9 . / * - + enter = , left right up down pageup pagedown home end insert delete'.split(' ');

const SPECIAL: Record<number, string> = {
  0x08: 'backspace', // What some terminals send for it; nobody means ^H.
  0x09: 'tab',
  0x0a: 'enter', // What a script sends for it.
  0x0d: 'enter',
  0x1b: 'escape',
  0x20: 'space',
  0x7f: 'backspace',
};

function withModifiers(key: string, bits: number): string {
  const prefix = MODIFIERS.map(([bit, name]) => (bits & bit ? name : '')).join('');
  return prefix + key;
}

const isPrintable = (code: number) => code >= 0x20 && code !== 0x7f && (code < 0x80 || code > 0x9f);

/** A key of text: a code point as it came, or a control code. @returns undefined for what no key sends. */
export function textKey(code: number, hasAlt: boolean): string | undefined {
  const alt = hasAlt ? ALT : 0;
  const special = SPECIAL[code];
  if (special) return withModifiers(special, alt);
  if (isPrintable(code)) return withModifiers(String.fromCodePoint(code), alt);
  if (code >= 0x20) return undefined;
  return withModifiers(code === 0 ? 'space' : String.fromCharCode(code | 0x40).toLowerCase(), CTRL | alt);
}

/** A code point told apart from its modifiers. Shift is in the character where nothing else changes it. */
function modifiedKey(code: number, bits: number, shifted: number | undefined): string | undefined {
  const special = SPECIAL[code];
  if (special) return withModifiers(special, bits);
  const keypad = KITTY_KEYPAD_KEYS[code - KITTY_KEYPAD];
  if (keypad) return withModifiers(keypad, bits);
  const isPrivate = code >= 0xe000 && code <= 0xf8ff; // Kitty's numbers for keys that have no name here.
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
  /** Kitty's second number of the first parameter. */
  shifted: number | undefined;
  bits: number;
  isReleased: boolean;
}

function parametersOf(text: string, hasAlt: boolean): Parameters | undefined {
  // Answers to questions begin with one of `<=>?`; no key does.
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

/** A control sequence, CSI `text` `final`. @returns undefined for what is no key: reports, answers, the unknown. */
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

/** `CSI 27 ; modifiers ; code ~`, where xterm has Shift in the code already. */
function otherKey(text: string, bits: number): string | undefined {
  const code = Number(text.split(';')[2] ?? '');
  return Number.isNaN(code) ? undefined : modifiedKey(code, bits, bits & SHIFT ? code : undefined);
}

/** With another first parameter than 1 it is a report, of the cursor's place for one. */
function specialLetter(final: string, first: number): string | undefined {
  return first === 1 ? LETTERS[final] : undefined;
}

/** A key of the keypad or a function key, SS3 `text` `final`. */
export function shiftSequenceKey(text: string, final: string, hasAlt: boolean): string | undefined {
  const parameters = parametersOf(text, hasAlt);
  if (!parameters) return undefined;
  // Some send the modifiers alone, others `1;` before them.
  const bits =
    text.includes(';') || text === '' ? parameters.bits : Math.max(0, parameters.first - 1) | parameters.bits;
  if (final in RXVT_ARROWS) return withModifiers(RXVT_ARROWS[final] ?? '', bits | CTRL);
  const keypad = KEYPAD[final] ?? KEYPAD_MEANINGS[KEYPAD_CHARACTERS.indexOf(final)];
  const key = LETTERS[final] ?? keypad;
  return key && withModifiers(key, bits);
}
