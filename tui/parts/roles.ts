/** Roles of text, and the colours of each role. No information is conveyed by colour alone. */

/** SGR parameters of each role: with colours, and without. */
export const ROLES = {
  plain: ['', ''],
  strong: ['1', '1'],
  /** Secondary text: frames, units, unknown values. */
  faint: ['2', '2'],
  title: ['1', '1'],
  key: ['1;36', '1'],
  accent: ['36', ''],
  good: ['32', ''],
  warning: ['33', '1'],
  bad: ['31', '1'],
  /** Must not be overlooked. */
  alarm: ['1;31', '1'],
  /** The row under the cursor. */
  selected: ['7', '7'],
  selectedFound: ['1;4;7', '1;4;7'],
  /** Words of the filter. */
  found: ['1;4;33', '1;4'],
  /** The current tab. */
  current: ['1;7', '1;7'],
  caret: ['7', '7'],
  red: ['1;31', '1'],
  yellow: ['1;33', '1'],
  green: ['1;32', '1'],
  cyan: ['1;36', '1'],
  blue: ['1;34', '1'],
  magenta: ['1;35', '1'],
} as const satisfies Record<string, readonly [colored: string, plain: string]>;

export type Role = keyof typeof ROLES;

export const isRole = (name: string): name is Role => Object.hasOwn(ROLES, name);
