/** Styles as people write them, such as `bold #ff8700 on black`, and their SGR parameters on a terminal. */

/** What a terminal can show. */
export type ColorDepth = '16' | '256' | 'truecolor';

const ATTRIBUTES: Readonly<Record<string, string>> = {
  bold: '1',
  dim: '2',
  italic: '3',
  underline: '4',
  reverse: '7',
};
const BASIC_COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const;

const HEX = /^#(?:[\da-f]{3}|[\da-f]{6})$/i;

/** @returns the SGR parameters; or what is wrong. */
export function sgrOf(style: string, depth: ColorDepth): { sgr: string } | { problem: string } {
  const parameters: string[] = [];
  const words = style.trim().split(/\s+/).filter(Boolean);
  for (let at = 0; at < words.length; at++) {
    const word = words[at]?.toLowerCase() ?? '';
    const attribute = ATTRIBUTES[word];
    const isBackground = word === 'on';
    const color = isBackground ? (words[++at]?.toLowerCase() ?? '') : word;
    const parameter = attribute ?? colorParameter(color, isBackground, depth);
    if (parameter === undefined) return { problem: whyNot(color, isBackground) };
    if (parameter !== '') parameters.push(parameter);
  }
  return { sgr: parameters.join(';') };
}

function whyNot(word: string, isBackground: boolean): string {
  if (word === '') return isBackground ? 'a color must follow "on"' : 'it is empty';
  const colors = `${BASIC_COLORS.join(', ')}, bright-red and so on, or #rrggbb`;
  if (isBackground) return `${JSON.stringify(word)} is not a color; colors are ${colors}`;
  return `${JSON.stringify(word)} is neither a color (${colors}) nor ${Object.keys(ATTRIBUTES).join(', ')}`;
}

/** @returns undefined if it is not a color; empty for the terminal's own color. */
function colorParameter(color: string, isBackground: boolean, depth: ColorDepth): string | undefined {
  if (color === 'default') return '';
  if (HEX.test(color)) return rgbParameter(rgbOf(color), isBackground, depth);
  const name = color === 'gray' || color === 'grey' ? 'bright-black' : color;
  const index = BASIC_COLORS.findIndex((basic) => basic === name.replace(/^bright-/, ''));
  return index === -1 ? undefined : basicParameter(index + (name.startsWith('bright-') ? 8 : 0), isBackground);
}

const basicParameter = (index: number, isBackground: boolean) =>
  String((index < 8 ? 30 : 90 - 8) + index + (isBackground ? 10 : 0));

type Rgb = readonly [red: number, green: number, blue: number];

function rgbOf(hex: string): Rgb {
  const digits = hex.length === 4 ? hex.slice(1).replace(/./g, '$&$&') : hex.slice(1);
  const value = Number.parseInt(digits, 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function rgbParameter(rgb: Rgb, isBackground: boolean, depth: ColorDepth): string {
  const kind = isBackground ? 48 : 38;
  if (depth === 'truecolor') return `${kind};2;${rgb.join(';')}`;
  if (depth === '256') return `${kind};5;${paletteIndex(rgb)}`;
  return basicParameter(nearestIn(PALETTE_16, rgb), isBackground);
}

/** The nearest of the colors 16 to 255 of xterm's palette, a cube and a ramp of grays, which terminals do not change, unlike the first 16. */
function paletteIndex([red, green, blue]: Rgb): number {
  if (red === green && green === blue && red >= 4 && red < 247) return 232 + Math.min(23, Math.round((red - 8) / 10));
  // 0, 95, 135, 175, 215, 255.
  const level = (value: number) => (value < 48 ? 0 : Math.max(1, Math.round((value - 55) / 40)));
  return 16 + 36 * level(red) + 6 * level(green) + level(blue);
}

/** Typical values: the terminal decides how these look. */
const PALETTE_16: readonly Rgb[] = [
  [0, 0, 0],
  [205, 0, 0],
  [0, 205, 0],
  [205, 205, 0],
  [0, 0, 238],
  [205, 0, 205],
  [0, 205, 205],
  [229, 229, 229],
  [127, 127, 127],
  [255, 0, 0],
  [0, 255, 0],
  [255, 255, 0],
  [92, 92, 255],
  [255, 0, 255],
  [0, 255, 255],
  [255, 255, 255],
];

function nearestIn(palette: readonly Rgb[], [red, green, blue]: Rgb): number {
  const distances = palette.map(([r, g, b]) => (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2);
  return distances.indexOf(Math.min(...distances));
}
