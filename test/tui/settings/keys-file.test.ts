import { expect } from 'chai';
import { frameLines, plainLines } from '../screens/rendering.js';
import { BINDINGS, bindingsOn } from '../../../tui/keys/press.js';
import { keysFileText, readKeysFile } from '../../../tui/settings/keys-file.js';
import { layer, view } from '../../../tui/state/state.js';
import { scene } from '../screens/scenes.js';
import { type Setting } from '../screens/screen-fixture.js';

const problemsOf = (text: string) => readKeysFile(text).problems.map(({ line, message }) => `${line}: ${message}`);

/** A terminal UI with that keys file, which must have no problems. */
function withKeys(text: string, setting: Setting = {}) {
  const { keys, problems } = readKeysFile(text);
  expect(problems).to.deep.equal([]);
  return scene({ ...setting, settings: { customKeys: keys } });
}
const shown = (it: ReturnType<typeof scene>) => plainLines(it.state);

describe('keys.toml', () => {
  it('gives an action another key, and its default key has no effect any more', () => {
    const it = withKeys('[tokens]\nrevoke = "d"');
    expect(layer(it.press('x').state)).to.equal(undefined);
    expect(layer(it.press('d').state)).to.include({ kind: 'dialog', action: 'Revoke' });
  });

  it('gives an action several keys, in any way of writing them', () => {
    const written = '["^t", "Alt+X", "shift+up", "F7", "Ins", "+", "shift+z", "é"]';
    const { keys } = readKeysFile(`tokens.revoke = ${written}`);
    expect(keys.get('tokens.revoke')).to.deep.equal([
      ...['ctrl+t', 'alt+X', 'shift+up', 'f7', 'insert', '+', 'Z', 'é'],
    ]);
  });

  it('swaps the keys of two actions', () => {
    const it = withKeys('[tokens]\nrevoke = "a"\nreactivate = "x"');
    expect(layer(it.press('a').state)).to.include({ kind: 'dialog', action: 'Revoke' });
  });

  for (const [columns, rows] of [
    [80, 24],
    [120, 40],
  ] as const) {
    it(`is what footer, help and messages show, at ${columns}x${rows}`, () => {
      const text =
        '[tokens]\nrevoke = "f3"\nnew = "alt+n"\n[global]\nfilter = "ctrl+f"\nhelp = "f1"\n[lists]\npage-down = "pgdn"';
      const it = withKeys(text, { columns, rows });
      const footer = shown(it).at(-1);
      expect(footer).to.contain('f3 revoke').and.to.contain('alt+n new').and.to.contain('f1 help');
      expect(footer).not.to.match(/ (?:x|n|\?) /);
      it.press('f1');
      expect(shown(it).join('\n')).to.match(/│ +f3 +revoke/);
      const none = withKeys(text, { columns, rows, tokens: [] });
      expect(shown(none).join('\n')).to.contain('alt+n issues the first one');
    });
  }

  it('takes the key of an action, which the command line still finds', () => {
    const it = withKeys('[tokens]\nrevoke = []');
    expect(layer(it.press('x').state)).to.equal(undefined);
    expect(shown(it).at(-1)).not.to.contain('revoke');
    it.press(':', 'r', 'e', 'v', 'o', 'k', 'e', 'enter');
    expect(layer(it.state)).to.include({ kind: 'dialog', action: 'Revoke' });
  });

  it('never takes away escape and ^c', () => {
    const it = withKeys('[dialog]\ncancel = "f9"');
    expect(layer(it.press('x', 'escape').state)).to.equal(undefined);
    expect(layer(it.press('x', 'ctrl+c').state)).to.equal(undefined);
    expect(layer(it.press('x', 'f9').state)).to.equal(undefined);
  });

  it('applies to the screens that several groups share', () => {
    const it = withKeys(
      '[global]\nprojects = "f3"\n[lists]\ndown = "n"\n[tokens]\nnew = "f2"\n[projects]\nnew = "f2"\n[access]\nnew-operator = "f2"',
    );
    expect(view(it.press('n').state)).to.deep.equal({ screen: 'tokens' });
    expect(it.state.tokens.window.cursorIndex).to.equal(1);
    expect(view(it.press('f3').state)).to.deep.equal({ screen: 'projects' });
  });

  describe('reports, with the line, and uses the default key for', () => {
    const cases: readonly (readonly [what: string, text: string, ...problems: string[]])[] = [
      ['a text that is not TOML', '[tokens]\nrevoke = x', '2: this is not TOML: invalid value'],
      ['an unknown group', '[token]\nrevoke = "d"', '1: there is no group "token"; did you mean tokens?'],
      [
        'an action without a group',
        'revoke = "d"',
        '1: there is no group "revoke"; the groups are overview, tokens, projects',
      ],
      ['a group that is a value', '\ntokens = "d"', '2: tokens is a group of actions: write [tokens]'],
      [
        'an unknown action',
        '[tokens]\n\nrevok = "d"',
        '3: there is no action "revok" in [tokens]; did you mean revoke?',
      ],
      [
        'an action that is like no other',
        '[tokens]\nfrobnicate = "d"',
        '2: there is no action "frobnicate" in [tokens]; llmp tui --print-keys lists all actions',
      ],
      [
        'an unknown key',
        '[tokens]\nrevoke = "hyper+x"',
        '2: tokens.revoke: there is no key "hyper+x"; keys are written',
      ],
      ['a key that is a number', '[tokens]\nrevoke = 1', '2: tokens.revoke: write a key, or a list of keys, in quotes'],
      [
        'a key that terminals cannot tell apart',
        '[tokens]\nrevoke = "ctrl+i"',
        '2: tokens.revoke: terminals send the same',
      ],
      [
        'a key that terminals cannot send',
        '[tokens]\nrevoke = "ctrl+5"',
        '2: tokens.revoke: terminals cannot send ctrl+5',
      ],
      ['a letter where text is typed', '[dialog]\nnext = "n"', '2: dialog.next: n is text where you type'],
      ['a key that always cancels', '[tokens]\nrevoke = "esc"', '2: tokens.revoke: esc always cancels or quits'],
      ['an action that needs a key', '[global]\nquit = []', '2: global.quit: this action needs a key'],
      ['an action of a layer without a key', '[dialog]\nnext = []', '2: dialog.next: this action needs a key'],
      [
        'too many keys',
        `[tokens]\nrevoke = [${'bdefijklo'
          .split('')
          .map((key) => `"${key}"`)
          .join()}]`,
        '2: tokens.revoke: an action can have up to 8 keys',
      ],
      [
        'a key that has a meaning',
        '[tokens]\nrevoke = "a"',
        '2: tokens.revoke: a is the key of tokens.reactivate; give one of them another key',
      ],
      [
        'a key that is given twice',
        '[tokens]\nrevoke = "f3"\nreactivate = ["f2", "f3"]',
        '3: tokens.reactivate: f3 is the key of tokens.revoke',
      ],
      [
        'the second half of a swap whose first half is wrong',
        '[tokens]\nrevoke = "a"\nreactivate = "nonsense"',
        '2: tokens.revoke: a is the key of tokens.reactivate',
        '3: tokens.reactivate: there is no key "nonsense"',
      ],
      [
        'several things at once',
        '[tokens]\nrevok = "d"\n[lists]\ndown = "zz"\n[nothing]',
        '2: there is no action "revok"',
        '4: lists.down: there is no key "zz"',
        '5: there is no group "nothing"',
      ],
    ];
    for (const [what, text, ...problems] of cases) {
      it(what, () => {
        const found = problemsOf(text);
        expect(found, found.join('\n')).to.have.length(problems.length);
        problems.forEach((problem, at) => expect(found[at]).to.contain(problem));
        expect(readKeysFile(text).keys.get('tokens.reactivate')).to.equal(undefined);
        const it = scene({ settings: { customKeys: readKeysFile(text).keys } });
        expect(layer(it.press('a').state) ?? it.state.message, 'a reactivates').to.exist;
      });
    }

    it('nothing that is right: the rest of the file applies', () => {
      const { keys } = readKeysFile('[tokens]\nrevok = "d"\nreactivate = "f2"\n');
      expect([...keys]).to.deep.equal([['tokens.reactivate', ['f2']]]);
    });

    it('hostile text, shortened and escaped', () => {
      const [problem = ''] = problemsOf(`[tokens]\n"\\u001b[2J${'x'.repeat(5_000)}" = "d"`);
      expect(problem.length).to.be.below(200);
      const it = scene({ settings: { problems: [problem] } });
      expect(frameLines(it.state).join('')).not.to.contain('\u001b[2J');
    });
  });

  it('has one meaning per key in each scope, whatever is rebound', () => {
    const { keys } = readKeysFile(
      '[tokens]\nrevoke = "d"\n[lists]\ndown = "ctrl+n"\n[choices]\ndown = "n"\n[global]\nquit = "Q"',
    );
    for (const scope of new Set(BINDINGS.flatMap(({ on }) => on))) {
      const all = bindingsOn(scope, { customKeys: keys }).flatMap((binding) => binding.keys);
      expect(
        all.filter((key, at) => all.indexOf(key) !== at),
        scope,
      ).to.deep.equal([]);
    }
  });

  it('can be printed, and read again', () => {
    const { keys } = readKeysFile('[tokens]\nrevoke = ["d", "f8"]\nrange = []\n');
    const text = keysFileText(keys);
    expect(text).to.match(/^revoke = \["d", "f8"\] {2}# revoke it/m);
    expect(text).to.match(/^# reactivate = \["a"\] {2}# /m);
    expect(readKeysFile(text)).to.deep.equal({ keys, problems: [] });
    const all = readKeysFile(text.replaceAll(/^# (?=[\w-]+ =)/gm, ''));
    expect(all.problems).to.deep.equal([]);
  });
});
