/**
 * The theme file, `theme.toml`: a skin, and other styles for some roles of text.
 *
 *     skin = "light"
 *     [colors]
 *     key = "bold #0550ae"
 *     bad = { basic = "bold red", truecolor = "bold #b3161e" }
 */
import { didYouMean } from '../../config/nearest.js';
import { isRole, PLAIN_STYLES, type Styles } from '../parts/roles.js';
import { SKIN_NAMES, skinFor } from '../parts/skins.js';
import { type ColorDepth, sgrOf } from '../parts/style.js';
import type { Skins } from '../state/state.js';
import { isProblem, isTable, readToml, type SettingsProblem, type Toml } from './toml.js';

/** The name of the skin with the styles of the theme file. */
const OWN = 'own';

/** All shipped skins, on a terminal with these colors. */
export function shippedSkins(depth: ColorDepth): Skins {
  return { current: 'default', all: new Map(SKIN_NAMES.map((name) => [name, skinFor(name, depth)])) };
}

export interface ThemeFile {
  skins: Skins;
  problems: readonly SettingsProblem[];
}

export function readThemeFile(text: string, depth: ColorDepth): ThemeFile {
  const shipped = shippedSkins(depth);
  const read = readToml(text);
  if (isProblem(read)) return { skins: shipped, problems: [read] };
  const { skin = 'default', colors = {}, ...others } = read.table;
  const problems: SettingsProblem[] = Object.keys(others).map((name) => ({
    line: read.lineOf(name),
    message: `there is no setting ${JSON.stringify(name)}; the settings are skin and [colors]`,
  }));
  const isKnown = typeof skin === 'string' && shipped.all.has(skin);
  if (!isKnown) problems.push({ line: read.lineOf('skin'), message: whyNoSkin(skin) });
  const base = isKnown ? skin : 'default';
  const own = stylesIn(read, colors, depth);
  problems.push(...own.problems);
  const styles: Styles = { ...skinFor(base, depth), ...own.styles };
  const hasOwn = Object.keys(own.styles).length > 0;
  return {
    skins: hasOwn ? { current: OWN, all: new Map([...shipped.all, [OWN, styles]]) } : { ...shipped, current: base },
    problems: problems.sort((one, other) => (one.line ?? 0) - (other.line ?? 0)),
  };
}

function whyNoSkin(given: unknown): string {
  if (typeof given !== 'string') return 'skin must be the name of a skin, in quotes';
  const advice = didYouMean(given, SKIN_NAMES, `the skins are ${SKIN_NAMES.join(', ')}`);
  return `there is no skin ${JSON.stringify(given)}; ${advice}`;
}

function stylesIn(read: Toml, colors: unknown, depth: ColorDepth) {
  const styles: Partial<Record<string, string>> = {};
  const problems: SettingsProblem[] = [];
  if (!isTable(colors)) {
    problems.push({
      line: read.lineOf('colors'),
      message: 'colors must be a table: write [colors], and the roles below it',
    });
    return { styles, problems };
  }
  for (const [role, style] of Object.entries(colors)) {
    const found = isRole(role) ? sgrIn(style, depth) : { problem: whyNoRole(role) };
    if ('sgr' in found) styles[role] = found.sgr;
    else problems.push({ line: read.lineOf('colors', role), message: `${role}: ${found.problem}` });
  }
  return { styles, problems };
}

function whyNoRole(given: string): string {
  const roles = Object.keys(PLAIN_STYLES);
  return `there is no such role; ${didYouMean(given, roles, `the roles are ${roles.join(', ')}`)}`;
}

/** A table has a style for 16 colors, and one for more. */
function sgrIn(style: unknown, depth: ColorDepth): ReturnType<typeof sgrOf> {
  if (typeof style === 'string') return sgrOf(style, depth);
  const expected = { problem: 'write a style in quotes, or { basic = "…", truecolor = "…" }' };
  if (!isTable(style)) return expected;
  const { basic, truecolor, ...others } = style;
  if (typeof basic !== 'string' || typeof truecolor !== 'string' || Object.keys(others).length > 0) return expected;
  const [onBasic, onOthers] = [sgrOf(basic, '16'), sgrOf(truecolor, depth)];
  return 'problem' in onBasic ? onBasic : 'problem' in onOthers || depth !== '16' ? onOthers : onBasic;
}
