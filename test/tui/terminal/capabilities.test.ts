import { expect } from 'chai';
import { capabilitiesOf } from '../../../tui/terminal/capabilities.js';

type Env = Record<string, string>;
const TTY = { isTTY: true };
const of = (env: Env) =>
  capabilitiesOf({ env: { TERM: 'xterm', LANG: 'en_US.UTF-8', ...env }, stdin: TTY, stdout: TTY });

describe('terminal capabilities', () => {
  const colours: [Env, string][] = [
    [{}, '16'],
    [{ TERM: 'xterm-256color' }, '256'],
    [{ TERM: 'xterm-256color', COLORTERM: 'truecolor' }, 'truecolor'],
    [{ COLORTERM: '24bit' }, 'truecolor'],
    [{ TERM: 'xterm-kitty' }, 'truecolor'],
    [{ TERM: 'xterm-direct' }, 'truecolor'],
    [{ TERM: 'linux' }, '16'],
    [{ TERM: 'screen' }, '16'],
    [{ TERM: 'vt220' }, 'none'],
    [{ TERM: 'dumb', COLORTERM: 'truecolor', FORCE_COLOR: '3' }, 'none'],
    [{ NO_COLOR: '1' }, 'none'],
    [{ NO_COLOR: '1', FORCE_COLOR: '3' }, 'none'],
    [{ NO_COLOR: '' }, '16'],
    [{ FORCE_COLOR: '0' }, 'none'],
    [{ FORCE_COLOR: 'false' }, 'none'],
    [{ FORCE_COLOR: '' }, '16'],
    [{ FORCE_COLOR: 'true', TERM: 'vt100' }, '16'],
    [{ FORCE_COLOR: '2' }, '256'],
    [{ FORCE_COLOR: '9' }, 'truecolor'],
  ];
  for (const [env, expected] of colours) {
    it(`detects ${expected} colours with ${JSON.stringify(env)}`, () => {
      expect(of(env).colours).to.equal(expected);
    });
  }

  const characters: [Env, { isUtf8: boolean; hasSymbols: boolean }][] = [
    [{}, { isUtf8: true, hasSymbols: true }],
    [{ LANG: 'de_DE.utf8' }, { isUtf8: true, hasSymbols: true }],
    [{ LANG: 'C' }, { isUtf8: false, hasSymbols: false }],
    [{ LANG: '' }, { isUtf8: false, hasSymbols: false }],
    [
      { LC_ALL: 'C', LANG: 'en_US.UTF-8' },
      { isUtf8: false, hasSymbols: false },
    ],
    [
      { LC_CTYPE: 'C.UTF-8', LANG: 'C' },
      { isUtf8: true, hasSymbols: true },
    ],
    [
      { LC_ALL: '', LC_CTYPE: 'C.UTF-8' },
      { isUtf8: true, hasSymbols: true },
    ],
    [{ LLMP_ASCII: '1' }, { isUtf8: true, hasSymbols: false }],
    [
      { LLMP_ASCII: '0', LANG: 'C' },
      { isUtf8: true, hasSymbols: true },
    ],
    [{ LLMP_ASCII: '' }, { isUtf8: true, hasSymbols: true }],
    [{ TERM: 'linux' }, { isUtf8: true, hasSymbols: false }],
  ];
  for (const [env, expected] of characters) {
    it(`with ${JSON.stringify(env)} detects ${expected.isUtf8 ? 'UTF-8' : 'ASCII'}${expected.hasSymbols ? ' and symbols' : ''}`, () => {
      expect(of(env)).to.include(expected);
    });
  }

  it('allow animations unless LLMP_REDUCED_MOTION is set', () => {
    expect(of({}).hasMotion).to.equal(true);
    expect(of({ LLMP_REDUCED_MOTION: '0' }).hasMotion).to.equal(true);
    expect(of({ LLMP_REDUCED_MOTION: '1' }).hasMotion).to.equal(false);
  });

  it('allow full screen if input and output are a terminal that can position text', () => {
    const PIPE = {};
    const unusable = (env: Env, stdin: object, stdout: object) => capabilitiesOf({ env, stdin, stdout }).unusable;
    expect(unusable({ TERM: 'xterm' }, TTY, TTY)).to.equal(undefined);
    expect(unusable({ TERM: 'xterm' }, PIPE, TTY)).to.match(/input is not a terminal/);
    expect(unusable({ TERM: 'xterm' }, TTY, PIPE)).to.match(/output is not a terminal/);
    expect(unusable({ TERM: 'dumb' }, TTY, TTY)).to.match(/TERM/);
    expect(unusable({}, TTY, TTY)).to.match(/TERM/);
  });
});
