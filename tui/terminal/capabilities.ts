import type { TerminalIo } from '../../console/terminal-io.js';

export type Colours = 'none' | '16' | '256' | 'truecolor';

export interface Capabilities {
  colours: Colours;
  /** Whether symbols beyond ASCII may be drawn. */
  hasSymbols: boolean;
  /** Whether the terminal reads UTF-8; otherwise text is converted to ASCII. */
  isUtf8: boolean;
  /** Whether animations are allowed: spinners, blinking. */
  hasMotion: boolean;
  /** Why full screen is not possible, as a message; undefined if it is possible. */
  unusable: string | undefined;
}

type Streams = Pick<TerminalIo, 'env'> & { stdin: { isTTY?: boolean }; stdout: { isTTY?: boolean } };

// The levels of FORCE_COLOR.
const LEVELS: readonly Colours[] = ['none', '16', '256', 'truecolor'];
const TRUE_COLOUR_TERMS = /^xterm-(?:kitty|ghostty)$|^wezterm$|^alacritty|^foot|-direct$/;

/** Whether a variable is set, and not to 0. */
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
  // The font of the Linux console has 256 or 512 glyphs, mostly without arrows and check marks.
  return isUtf8(env) && env.TERM !== 'linux';
}

/** Detects the abilities of the terminal from the environment. The terminal is not queried, so there is no wait for its response. */
export function capabilitiesOf({ env, stdin, stdout }: Streams): Capabilities {
  let unusable: string | undefined;
  if (!stdin.isTTY) unusable = 'the input is not a terminal';
  else if (!stdout.isTTY) unusable = 'the output is not a terminal';
  else if (!env.TERM || env.TERM === 'dumb') unusable = 'the terminal cannot position text (TERM is not set, or dumb)';
  return {
    colours: coloursOf(env),
    hasSymbols: hasSymbols(env),
    isUtf8: isUtf8(env) || env.LLMP_ASCII === '0',
    hasMotion: !isOn(env.LLMP_REDUCED_MOTION),
    unusable,
  };
}
