/** Converts text to ASCII of the same width, for terminals and fonts without other characters. */
import stringWidth from 'string-width';

const SIGNS: Readonly<Record<string, string>> = {
  '─': '-',
  '━': '-',
  '│': '|',
  '┌': '+',
  '┐': '+',
  '└': '+',
  '┘': '+',
  '├': '+',
  '┤': '+',
  '█': '#',
  '▌': '[',
  '▐': ']',
  '░': '.',
  '▁': '_',
  '▂': '.',
  '▃': '-',
  '▄': '=',
  '▅': '+',
  '▆': '*',
  '▇': '%',
  '▏': '.',
  '▎': ':',
  '▍': '|',
  '▋': '=',
  '▊': '=',
  '▉': '#',
  '●': '*',
  '○': '-',
  '✗': 'x',
  '▲': '!',
  '◌': '=',
  '▼': 'v',
  '✓': '+',
  '‖': '"',
  '↑': '^',
  '↓': 'v',
  '←': '<',
  '→': '>',
  '⏎': '<',
  '▸': '>',
  '›': '>',
  '∞': '-',
  '…': '~',
  '·': '.',
  '•': '*',
  '–': '-',
  '—': '-',
  '×': 'x',
  '’': "'",
  '‘': "'",
  '“': '"',
  '”': '"',
};

const BRAILLE = 0x2800;
/** Indexed by the number of dots. */
const DOTS = [' ', '.', '.', ':', ':', '|', '|', '#', '#'];

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

export function asciiOf(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  return [...graphemes.segment(text)].map(({ segment }) => signOf(segment)).join('');
}

function signOf(segment: string): string {
  if (/^[\x20-\x7e]$/.test(segment)) return segment;
  const known = SIGNS[segment];
  if (known !== undefined) return known;
  const dots = (segment.codePointAt(0) ?? 0) - BRAILLE;
  if (dots >= 0 && dots < 256) return DOTS[bits(dots)] ?? '#';
  // Drop accents, so that the letter stays readable.
  const [letter = ''] = segment.normalize('NFKD');
  const width = stringWidth(segment);
  return width === 1 && /^[\x20-\x7e]$/.test(letter) ? letter : '?'.repeat(width);
}

function bits(number: number): number {
  let count = 0;
  for (let rest = number; rest > 0; rest >>= 1) count += rest & 1;
  return count;
}
