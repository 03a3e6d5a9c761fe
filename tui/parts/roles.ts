/** Roles of text. A skin gives each role a style. No information is conveyed by colour alone. */

/** The roles, with the SGR parameters of each role without colours. */
export const PLAIN_STYLES = {
  plain: '',
  strong: '1',
  /** Secondary text: frames, units, unknown values. */
  faint: '2',
  title: '1',
  key: '1',
  accent: '',
  good: '',
  warning: '1',
  bad: '1',
  /** Must not be overlooked. */
  alarm: '1',
  /** The row under the cursor. */
  selected: '7',
  selectedFound: '1;4;7',
  /** Words of the filter. */
  found: '1;4',
  /** The current tab. */
  current: '1;7',
  caret: '7',
  red: '1',
  yellow: '1',
  green: '1',
  cyan: '1',
  blue: '1',
  magenta: '1',
} as const satisfies Record<string, string>;

export type Role = keyof typeof PLAIN_STYLES;
/** SGR parameters of each role. */
export type Styles = Readonly<Record<Role, string>>;

export const isRole = (name: string): name is Role => Object.hasOwn(PLAIN_STYLES, name);
