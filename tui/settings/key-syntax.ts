/** How keys are written in the keys file, and which of them a terminal can send. */
import { KEY_NAMES } from '../terminal/key-names.js';

const ALIASES: Readonly<Record<string, string>> = {
  esc: 'escape',
  return: 'enter',
  pgup: 'pageup',
  pgdn: 'pagedown',
  pgdown: 'pagedown',
  del: 'delete',
  ins: 'insert',
  ' ': 'space',
};

const MODIFIERS = ['ctrl', 'alt', 'shift', 'super'] as const;

/** Control characters that are the same byte as another key. */
const SAME_BYTE: Readonly<Record<string, string>> = {
  'ctrl+i': 'tab',
  'ctrl+j': 'enter',
  'ctrl+m': 'enter',
  'ctrl+h': 'backspace',
  'ctrl+[': 'escape',
};

const KEY_EXAMPLES = 'x, X, ctrl+x, alt+x, shift+tab, f5, enter, esc, space, up, pgdn';

/** @returns the name that the terminal UI uses for the key; or why there is no such key. */
export function keyOfName(written: string): { key: string } | { problem: string } {
  const unknown = { problem: `there is no key ${JSON.stringify(written)}; keys are written like ${KEY_EXAMPLES}` };
  const text = written.replace(/^\^(?=.)/, 'ctrl+');
  const [prefix = ''] = /^(?:(?:ctrl|alt|shift|super)\+(?=.))*/i.exec(text) ?? [];
  const modifiers = new Set(prefix.toLowerCase().split('+').filter(Boolean));
  const name = text.slice(prefix.length);
  const isCharacter = [...new Intl.Segmenter().segment(name)].length === 1 && /^[^\p{C}\p{Z}]/u.test(name);
  if (!isCharacter) {
    const base = ALIASES[name.toLowerCase()] ?? name.toLowerCase();
    return KEY_NAMES.has(base) ? { key: withModifiers(modifiers, base) } : unknown;
  }
  if (modifiers.has('ctrl')) {
    const key = withModifiers(modifiers, name.toLowerCase());
    const same = SAME_BYTE[key];
    if (same !== undefined) return { problem: `terminals send the same for ${written} as for ${same}` };
    return /^[a-z\\\]_]$/i.test(name) ? { key } : { problem: `terminals cannot send ${written}` };
  }
  // Shift with a letter is the capital letter.
  const isShifted = modifiers.delete('shift');
  return { key: withModifiers(modifiers, isShifted ? name.toUpperCase() : name) };
}

function withModifiers(modifiers: ReadonlySet<string>, base: string): string {
  return [...MODIFIERS.filter((one) => modifiers.has(one)), base].join('+');
}
