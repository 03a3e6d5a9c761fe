import type { TerminalIo } from '../../console/terminal-io.js';

export type Colours = 'none' | '16' | '256' | 'truecolor';

export interface Capabilities {
  colours: Colours;
  /** Whether symbols beyond ASCII may be drawn. */
  hasSymbols: boolean;
  /** Whether the terminal reads UTF-8 at all; where not, text is shown in ASCII. */
  isUtf8: boolean;
  /** Whether something may move that nobody asked for: spinners, blinking. */
  hasMotion: boolean;
  /** Why nothing can be shown in full screen, for a person; undefined where it can. */
  unusable: string | undefined;
}

type Streams = Pick<TerminalIo, 'env'> & { stdin: { isTTY?: boolean }; stdout: { isTTY?: boolean } };

// The levels of chalk, in Ink.
const LEVELS: readonly Colours[] = ['none', '16', '256', 'truecolor'];
const TRUE_COLOUR_TERMS = /^xterm-(?:kitty|ghostty)$|^wezterm$|^alacritty|^foot|-direct$/;

/** Set, and not to 0. */
const isOn = (value: string | undefined) => value !== undefined && value !== '' && value !== '0';

function forced(value: string | undefined): Colours | undefined {
  if (value === undefined) return undefined;
  if (value === 'false') return 'none';
  const level = /^\d+$/.test(value) ? Math.min(Number(value), 3) : 1;
  return LEVELS[level];
}

function coloursOf({ NO_COLOR, FORCE_COLOR, COLORTERM, TERM = '' }: NodeJS.ProcessEnv): Colours {
  if (NO_COLOR || TERM === 'dumb') return 'none';
  const wanted = forced(FORCE_COLOR);
  if (wanted) return wanted;
  if (/^(?:truecolor|24bit)$/.test(COLORTERM ?? '') || TRUE_COLOUR_TERMS.test(TERM)) return 'truecolor';
  if (/-256(?:color)?$/.test(TERM)) return '256';
  return /^vt\d/.test(TERM) ? 'none' : '16';
}

function isUtf8({ LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): boolean {
  return /utf-?8/i.test(LC_ALL || LC_CTYPE || LANG || 'C');
}

function hasSymbols(env: NodeJS.ProcessEnv): boolean {
  if (env.LLMP_ASCII) return env.LLMP_ASCII === '0';
  // The console's font has 256 or 512 glyphs, arrows and check marks seldom among them.
  return isUtf8(env) && env.TERM !== 'linux';
}

/** What the terminal can do, by what is known of it from outside: nothing is asked, so nothing is waited for. */
export function capabilitiesOf({ env, stdin, stdout }: Streams): Capabilities {
  let unusable: string | undefined;
  if (!stdin.isTTY) unusable = 'the input is not a terminal';
  else if (!stdout.isTTY) unusable = 'the output is not a terminal';
  else if (!env.TERM || env.TERM === 'dumb') unusable = 'the terminal cannot place text (TERM)';
  return {
    colours: coloursOf(env),
    hasSymbols: hasSymbols(env),
    isUtf8: isUtf8(env) || env.LLMP_ASCII === '0',
    hasMotion: !isOn(env.LLMP_REDUCED_MOTION),
    unusable,
  };
}

/**
 * Tells React, Ink and chalk, who read the environment as they are imported and never again. So it comes before the
 * first import of anything that imports them.
 */
export function prepareLibraries(env: NodeJS.ProcessEnv, { colours }: Pick<Capabilities, 'colours'>): void {
  env.NODE_ENV = 'production'; // Else React keeps a measurement of every frame for ever.
  env.FORCE_COLOR = String(LEVELS.indexOf(colours));
  // In CI Ink shows nothing but the last frame.
  delete env.CI;
  delete env.CONTINUOUS_INTEGRATION;
}
