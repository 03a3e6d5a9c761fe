import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { frameLines } from '../screens/rendering.js';
import { PLAIN_STYLES } from '../../../tui/parts/roles.js';
import { SKIN_NAMES } from '../../../tui/parts/skins.js';
import { type ColorDepth, sgrOf } from '../../../tui/parts/style.js';
import { readKeysFile } from '../../../tui/settings/keys-file.js';
import { readThemeFile, shippedSkins } from '../../../tui/settings/theme-file.js';
import { scene } from '../screens/scenes.js';

/** The styles of the current skin. */
function stylesOf(text: string, depth: ColorDepth = 'truecolor') {
  const { skins, problems } = readThemeFile(text, depth);
  expect(problems).to.deep.equal([]);
  return skins.all.get(skins.current)!;
}
const problemsOf = (text: string) =>
  readThemeFile(text, '16').problems.map(({ line, message }) => `${line}: ${message}`);
const screen = (text: string, depth: ColorDepth, hasColor = true) => {
  const { skins } = readThemeFile(text, depth);
  return frameLines(scene({ settings: { skins }, look: { hasColor } }).state).join('\n');
};

// eslint-disable-next-line no-control-regex
const COLOR = /\x1b\[(?:[\d;]*;)?(?:3[0-8]|4[0-8]|9\d|10\d)/;

describe('theme.toml', () => {
  for (const name of SKIN_NAMES) {
    it(`chooses the skin ${name}`, () => {
      const { skins, problems } = readThemeFile(`skin = "${name}"`, '256');
      expect(problems).to.deep.equal([]);
      expect(skins.current).to.equal(name);
      expect([...skins.all.keys()]).to.deep.equal(['default', 'light', 'color-blind', 'none']);
      expect(Object.keys(skins.all.get(name)!)).to.have.members(Object.keys(PLAIN_STYLES));
    });
  }

  it('shows the default skin in the 16 colors of the terminal, whatever it can show', () => {
    expect(shippedSkins('truecolor').all.get('default')).to.deep.equal(shippedSkins('16').all.get('default'));
    expect(screen('', '16')).to.contain('\x1b[32m● active').and.to.contain('\x1b[1;36mx');
  });

  it('shows the other skins in exact colors where the terminal can', () => {
    expect(screen('skin = "light"', 'truecolor')).to.contain('\x1b[38;2;17;99;41m● active');
    expect(screen('skin = "light"', '256')).to.match(/\x1b\[38;5;\d+m● active/); // eslint-disable-line no-control-regex
    expect(screen('skin = "light"', '16')).to.contain('\x1b[32m● active');
  });

  it('tells good from bad without red and green in the skin for the color-blind', () => {
    for (const depth of ['16', '256', 'truecolor'] as const) {
      const { good, warning, bad, alarm } = stylesOf('skin = "color-blind"', depth);
      expect(new Set([good, warning, bad, alarm]).size).to.equal(4);
      for (const style of [good, warning, bad, alarm]) expect(style?.split(';')).not.to.include.members(['31', '32']);
    }
  });

  for (const text of ['skin = "none"', 'skin = "light"\n[colors]\nplain = "#ff0000 on #00ff00"\ngood = "red"']) {
    it(`shows no color with NO_COLOR, or with the skin none: ${text}`, () => {
      expect(screen(text, 'truecolor', false)).not.to.match(COLOR);
      if (!text.includes('none')) return;
      expect(screen(text, 'truecolor')).not.to.match(COLOR);
      expect(screen(text, 'truecolor')).to.contain('\x1b[1m');
    });
  }

  it('gives roles other styles, on top of the skin', () => {
    const text =
      'skin = "light"\n[colors]\ngood = "bold underline #fff on black"\nbad = "bright-red"\nplain = "default"\n';
    const styles = stylesOf(text);
    expect(styles).to.include({ good: '1;4;38;2;255;255;255;40', bad: '91', plain: '', accent: '38;2;5;80;174' });
    expect(readThemeFile(text, '16').skins.current).to.equal('own');
    expect([...readThemeFile(text, '16').skins.all.keys()]).to.deep.equal([...SKIN_NAMES, 'own']);
  });

  it('takes a style for 16 colors and one for more', () => {
    const text = '[colors]\nkey = { basic = "bold magenta", truecolor = "#ff8800" }';
    expect(stylesOf(text, '16').key).to.equal('1;35');
    expect(stylesOf(text, '256').key).to.equal('38;5;208');
    expect(stylesOf(text, 'truecolor').key).to.equal('38;2;255;136;0');
  });

  describe('has styles that', () => {
    const cases: readonly (readonly [style: string, depth: ColorDepth, sgr: string])[] = [
      ['', '16', ''],
      ['red', '16', '31'],
      ['bright-white on gray', '16', '97;100'],
      ['  Bold   DIM italic underline reverse cyan ', '16', '1;2;3;4;7;36'],
      ['#f00', '16', '91'],
      ['on #000080', '16', '44'],
      ['#808080', '256', '38;5;244'],
      ['#5f87af on #000000', '256', '38;5;67;48;5;16'],
      ['#ABCDEF', 'truecolor', '38;2;171;205;239'],
      ['default on default', 'truecolor', ''],
    ];
    for (const [style, depth, sgr] of cases) {
      it(`are written as ${JSON.stringify(style)}, at ${depth}`, () => {
        expect(sgrOf(style, depth)).to.deep.equal({ sgr });
      });
    }
  });

  describe('reports, with the line, and ignores', () => {
    const cases: readonly (readonly [what: string, text: string, problem: string])[] = [
      ['an unknown skin', 'skin = "ligth"', '1: there is no skin "ligth"; did you mean light?'],
      [
        'the British spelling',
        'skin = "colour-blind"',
        '1: there is no skin "colour-blind"; did you mean color-blind?',
      ],
      ['a skin that is no text', 'skin = 3', '1: skin must be the name of a skin, in quotes'],
      ['an unknown setting', '\ncolor = "red"', '2: there is no setting "color"; the settings are skin and [colors]'],
      ['colors that are no table', 'colors = "red"', '1: colors must be a table'],
      ['an unknown role', '[colors]\nwarnin = "red"', '2: warnin: there is no such role; did you mean warning?'],
      ['an unknown color', '[colors]\nbad = "bold pinkish"', '2: bad: "pinkish" is neither a color (black, red'],
      ['an unknown background', '[colors]\nbad = "red on dim"', '2: bad: "dim" is not a color'],
      ['a missing background', '[colors]\nbad = "red on"', '2: bad: a color must follow "on"'],
      ['a color that is not hexadecimal', '[colors]\nbad = "#12345"', '2: bad: "#12345" is neither'],
      ['a control sequence', '[colors]\nbad = "\\u001b[31m"', '2: bad: "\\u001b[31m" is neither'],
      ['half a pair', '[colors]\nbad = { basic = "red" }', '2: bad: write a style in quotes, or { basic'],
      [
        'a wrong style for other terminals',
        '[colors]\nbad = { basic = "rd", truecolor = "red" }',
        '2: bad: "rd" is neither',
      ],
    ];
    for (const [what, text, problem] of cases) {
      it(what, () => {
        const [found, ...others] = problemsOf(text);
        expect(found).to.contain(problem);
        expect(others).to.deep.equal([]);
        const { skins } = readThemeFile(`${text}\n`, 'truecolor');
        expect(skins.current).to.equal('default');
      });
    }

    it('nothing that is right', () => {
      const { skins, problems } = readThemeFile('skin = "lit"\n[colors]\nbad = "nope"\ngood = "blue"', '16');
      expect(problems.map(({ line }) => line)).to.deep.equal([1, 3]);
      expect(skins.all.get('own')).to.include({ good: '34', bad: '31' });
    });
  });
});

describe('docs/themes-and-keys.md', () => {
  const page = readFileSync(resolve(import.meta.dirname, '../../../../docs/themes-and-keys.md'), 'utf8');

  it('names every skin and every role', () => {
    for (const name of [...SKIN_NAMES, ...Object.keys(PLAIN_STYLES)]) expect(page).to.contain(`\`${name}\``);
  });

  it('has examples without mistakes', () => {
    const examples = [...page.matchAll(/^```toml\n([^]*?)^```$/gm)].map(([, text = '']) => text);
    const problems = examples.flatMap(
      (text) => (text.includes('[tokens]') ? readKeysFile(text) : readThemeFile(text, '256')).problems,
    );
    expect(examples).to.have.length(3);
    expect(problems).to.deep.equal([]);
  });
});
