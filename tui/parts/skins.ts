/** The skins that llmp ships. */
import type { State } from '../state/state.js';
import { PLAIN_STYLES, type Role, type Styles } from './roles.js';
import { type ColorDepth, sgrOf } from './style.js';

/** A style as people write it. `truecolor` is for terminals with 256 colors or more. */
export type Style = string | { basic: string; truecolor: string };
type Skin = Readonly<Record<Role, Style>>;

/** The colors of the terminal's own palette, so that it fits the operator's terminal. */
const DEFAULT: Skin = {
  plain: '',
  strong: 'bold',
  faint: 'dim',
  title: 'bold',
  key: 'bold cyan',
  accent: 'cyan',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
  alarm: 'bold red',
  selected: 'reverse',
  selectedFound: 'bold underline reverse',
  found: 'bold underline yellow',
  current: 'bold reverse',
  caret: 'reverse',
  red: 'bold red',
  yellow: 'bold yellow',
  green: 'bold green',
  cyan: 'bold cyan',
  blue: 'bold blue',
  magenta: 'bold magenta',
};

/** Dark colors for a light background. Yellow and bright colors are not readable on it. */
const LIGHT: Skin = {
  ...DEFAULT,
  faint: { basic: 'dim', truecolor: '#5c6370' },
  key: { basic: 'bold blue', truecolor: 'bold #0550ae' },
  accent: { basic: 'blue', truecolor: '#0550ae' },
  good: { basic: 'green', truecolor: '#116329' },
  warning: { basic: 'magenta', truecolor: '#8a4600' },
  bad: { basic: 'red', truecolor: '#b3161e' },
  alarm: { basic: 'bold red', truecolor: 'bold #b3161e' },
  selected: { basic: 'reverse', truecolor: '#000000 on #cfe3ff' },
  selectedFound: { basic: 'bold underline reverse', truecolor: 'bold underline #000000 on #cfe3ff' },
  found: { basic: 'bold underline magenta', truecolor: 'bold underline #8a4600' },
  red: { basic: 'bold red', truecolor: 'bold #b3161e' },
  yellow: { basic: 'bold magenta', truecolor: 'bold #8a4600' },
  green: { basic: 'bold green', truecolor: 'bold #116329' },
  cyan: { basic: 'bold cyan', truecolor: 'bold #0b6478' },
  blue: { basic: 'bold blue', truecolor: 'bold #0550ae' },
  magenta: { basic: 'bold magenta', truecolor: 'bold #8250df' },
};

/** Blue for what is well and orange for what is not: also people who do not tell red from green can tell these. After Okabe and Ito. */
const COLOR_BLIND: Skin = {
  ...DEFAULT,
  key: { basic: 'bold bright-cyan', truecolor: 'bold #56b4e9' },
  accent: { basic: 'bright-cyan', truecolor: '#56b4e9' },
  good: { basic: 'bright-blue', truecolor: '#56b4e9' },
  warning: { basic: 'bright-yellow', truecolor: '#f0e442' },
  bad: { basic: 'bold yellow', truecolor: 'bold #e69f00' },
  alarm: { basic: 'bold reverse yellow', truecolor: 'bold reverse #e69f00' },
  found: { basic: 'bold underline bright-white', truecolor: 'bold underline #ffffff' },
};

const COLORED: Readonly<Record<string, Skin>> = { default: DEFAULT, light: LIGHT, 'color-blind': COLOR_BLIND };

/** `none`: no colors, only bold, dim, underlined and reversed text. */
export const SKIN_NAMES = [...Object.keys(COLORED), 'none'] as const;

export function skinFor(name: string, depth: ColorDepth): Styles {
  const skin = COLORED[name];
  if (!skin) return PLAIN_STYLES;
  const styles = Object.entries(skin).map(([role, style]) => [role, sgrFor(style, depth)] as const);
  return Object.fromEntries(styles) as Record<Role, string>;
}

function sgrFor(style: Style, depth: ColorDepth): string {
  const written = typeof style === 'string' ? style : depth === '16' ? style.basic : style.truecolor;
  const found = sgrOf(written, depth);
  if ('problem' in found) throw new Error(`${written}: ${found.problem}`);
  return found.sgr;
}

const BUILT_IN = skinFor('default', '16');

/** The styles of the current skin. */
export function stylesOf({ look, skins }: Pick<State, 'look' | 'skins'>): Styles {
  if (!look.hasColor) return PLAIN_STYLES;
  return (skins.all.get(skins.current) as Styles | undefined) ?? BUILT_IN;
}
