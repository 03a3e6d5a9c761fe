import { expect } from 'chai';
import { bindingsOn } from '../../../tui/keys/press.js';
import { focused } from '../../../tui/state/dialog.js';
import { layer } from '../../../tui/state/state.js';
import { frameLines, screenText } from './rendering.js';
import { scene, SECRET, withSecret } from './scenes.js';
import { at, token } from './screen-fixture.js';

describe('dialog', () => {
  it('shows the action and the affected tokens, with the focus on Cancel', () => {
    const text = screenText(scene().press('space', 'space', 'j', 'space', 'x').state);
    expect(text).to.contain('┌ Revoke 3 tokens in prod ─');
    expect(text).to.match(/3fa91c2e {2}ci-deploy +last used 6s ago +!/);
    expect(text).to.match(/! 1 token is in use right now; its clients will get 401\./);
    expect(text).to.match(/Reason: +\[ {42}\] {2}for the audit record/);
    expect(text).to.match(/\[ Cancel \] {4}Revoke 3/);
  });

  it('shows what to type in a protected context', () => {
    expect(screenText(scene().press('x').state)).to.contain('Type web to confirm:');
    expect(screenText(scene({ place: { isProtected: false } }).press('x').state)).to.not.contain('to confirm');
  });

  it('shows the input, the caret and the problem', () => {
    const it = scene().press('x', 'shift+tab', 'n', 'o');
    expect(screenText(it.state)).to.match(/> Type web to confirm: \[ no█ +\]/);
    expect(screenText(it.press('enter', 'enter').state)).to.contain('! Type web to confirm');
  });

  it('shows the number of tokens that are not listed', () => {
    const text = screenText(scene({ rows: 40 }).press('ctrl+a', 'x').state);
    expect(text).to.match(/… and \d\d more/);
  });

  it("never shows the provider's key", () => {
    const it = scene({ tab: 'projects' })
      .press('n')
      .goesTo("Provider's key")
      .press(...'sk-live'.split(''));
    expect(screenText(it.state)).to.contain('[ •••••••█').and.to.not.contain('sk-live');
  });

  it('shows how many responses a purge removes before anything is sent', () => {
    expect(screenText(scene({ tab: 'cache' }).press('x').state)).to.contain('This removes 12 cached responses.');
  });

  it('warns of a long lifetime', () => {
    const it = scene().press('n').goesTo('Expires in').press('ctrl+u', '9', '9', '9', 'h');
    expect(screenText(it.state)).to.contain('! longer than the recommended 30 days');
  });

  for (const [columns, rows] of [
    [50, 10],
    [60, 15],
    [80, 24],
    [120, 40],
  ] as const) {
    const size = { columns, rows };
    const stopped = { tab: 'projects', ...size } as const;

    for (const [what, it_, action, keys] of [
      ['one token', () => scene(size).press('x'), 'Revoke', 2],
      ['many tokens', () => scene(size).press('ctrl+a', 'x'), 'Revoke', 2],
      ['a new token', () => scene(size).press('n'), 'Create', 4],
      ['a new project', () => scene(stopped).press('n'), 'Create', 2],
      ['a name', () => scene(stopped).press('e'), 'Rename', 2],
      ['a key', () => scene(stopped).press('K'), 'Set key', 2],
      ['a project that is switched off', () => scene(stopped).press('j', 'd'), 'Deactivate', 2],
      ['all tokens of a project', () => scene(stopped).press('X'), 'Revoke all', 2],
      ['a purge', () => scene({ tab: 'cache', ...size }).press('x'), 'Purge', 5],
    ] as const) {
      it(`shows its buttons at ${columns}x${rows} with any focus: ${what} (finding A9)`, () => {
        const it = it_();
        for (let at = 0; at < keys + 2; at++) {
          const text = screenText(it.state);
          expect(text, `focus ${at}`).to.contain('Cancel').and.to.contain(action);
          const lines = text.split('\n');
          expect(lines.at(-1)).to.contain('esc cancel');
          const top = layer(it.state);
          const field = top?.kind === 'dialog' ? focused(top) : undefined;
          if (field) expect(text, 'the field that is filled in is in sight').to.match(new RegExp(`> ${field.label}`));
          it.press('tab');
        }
        // The problem is visible beside the buttons.
        for (let n = 0; n < 8 && layer(it.state)?.kind === 'dialog'; n++) {
          it.press('shift+tab', 'enter');
          const top = layer(it.state);
          if (top?.kind === 'dialog' && top.problem !== null) {
            expect(screenText(it.state))
              .to.contain(`! ${top.problem.slice(0, 20)}`)
              .and.to.contain('Cancel');
          }
        }
      });
    }

    it(`scrolls through the whole text at ${columns}x${rows} (finding A9)`, () => {
      const it = scene(size).press('ctrl+a', 'x');
      const top = layer(it.state);
      const notes = top?.kind === 'dialog' ? top.notes.map(({ words }) => words.slice(0, 20)) : [];
      let all = screenText(it.state);
      for (let n = 0; n < 12; n++) all += screenText(it.press('pagedown').state);
      for (const words of [...notes, '… and', 'Reason:']) expect(all).to.contain(words);
      expect(screenText(it.state)).to.contain('Cancel');
    });

    it(`shows the secret and its keys at ${columns}x${rows} (finding A9)`, () => {
      const it = withSecret(scene(size)).press('v');
      const shown = () => screenText(it.state);
      expect(shown()).to.contain('I have stored it');
      expect(shown().replace(/[^\w-]+/g, '')).to.contain(SECRET.replace(/[^\w-]+/g, ''));
      expect(shown().split('\n').at(-1)).to.contain('I have stored it');
      expect(screenText(it.press('escape').state)).to.contain('! Press ⏎ to close');
      expect(screenText(it.press('w').state)).to.contain('Write to:');
    });
  }

  it('leaves header and footer visible at the minimum size', () => {
    const lines = screenText(scene({ columns: 50, rows: 10 }).press('x').state).split('\n');
    expect(lines[0]).to.contain('PROTECTED');
    expect(lines.at(-1)).to.contain('esc cancel');
  });
});

describe('secret of a new token', () => {
  it('is masked until it is revealed, and can be masked again', () => {
    const it = withSecret(scene());
    expect(screenText(it.state)).to.contain('Token created · shown once').and.to.contain('sk-wt-••••••••');
    expect(screenText(it.state)).to.not.contain(SECRET.slice(6, 14));
    expect(screenText(it.press('v').state)).to.contain(SECRET);
    expect(screenText(it.press('v').state)).to.not.contain(SECRET.slice(6, 14));
  });

  it('is complete at the minimum size', () => {
    const { state } = withSecret(scene({ columns: 50, rows: 10 })).press('v');
    const shown = screenText(state)
      .split('\n')
      .map((line) => line.replace(/[^\w-]/g, ''))
      .join('');
    expect(shown).to.contain(SECRET);
  });

  it('disappears with its dialog', () => {
    const it = withSecret(scene()).press('v', 'enter');
    expect(frameLines(it.state).join('\n')).to.not.contain(SECRET.slice(6, 14));
  });

  it('shows the keys, and the result of each', () => {
    const it = withSecret(scene());
    expect(screenText(it.state)).to.match(/v reveal +y copy +w write to file[^]*⏎ I have stored it/);
    it.act({ on: 'copied', what: 'The secret', to: 'terminal' });
    expect(screenText(it.state)).to.contain("The secret was sent to the terminal's clipboard");
    it.press('w').act({ on: 'notWritten', path: 'token.txt', why: 'it exists' });
    expect(screenText(it.state)).to.contain('! Cannot write token.txt: it exists');
    expect(screenText(it.state)).to.match(/Write to: \[ token\.txt█/);
  });
});

describe('command line and help', () => {
  it('find an action by name', () => {
    const text = screenText(scene().press(':', 'c', 'o', 'p', 'y').state);
    expect(text).to.contain(': copy█').and.to.contain('copy the ID to the').and.not.to.contain('issue a new token');
    expect(text).to.match(/> copy id +y +copy the ID/);
  });

  it('show why a command has no effect', () => {
    expect(screenText(scene({ columns: 160 }).lose().press(':', 'n', 'e', 'w').state)).to.contain(
      '(offline: cannot send changes)',
    );
  });

  it('show every description whole at 80 columns', () => {
    const bindings = bindingsOn('tokens').filter(({ action }) => action.startsWith('tokens.'));
    for (const { label, meaning } of bindings) {
      const { state } = scene({ columns: 80, rows: 24 }).press(
        ':',
        ...Array.from(label, (it) => (it === ' ' ? 'space' : it)),
      );
      const words = screenText(state)
        .split('\n')
        .map((line) => line.replace(/^│.{35}/, ' ').replace(/│.*$/, ''))
        .join(' ')
        .replace(/\s+/g, ' ');
      expect(words, label).to.contain(meaning);
    }
  });

  it('scroll to the selected command', () => {
    const keys = Array.from({ length: 30 }, () => 'j');
    expect(screenText(scene({ rows: 16 }).press('?', ...keys).state)).to.match(/│ > .*31 of/s);
  });

  it('show the filter syntax, if the screen has a filter and there is room', () => {
    expect(screenText(scene({ rows: 60 }).press('?').state)).to.match(/Filter[^]*state:[^]*expires:/);
    expect(screenText(scene({ rows: 60, tab: 'cache' }).press('?').state)).to.not.contain('key:value');
  });
});

describe('contexts', () => {
  it('show the current one, and which are protected or read-only', () => {
    const text = screenText(scene({ columns: 120 }).press('c').state);
    expect(text).to.match(/> ● prod +https:\/\/llmp\.example:8443 {2}PROTECTED/);
    expect(text).to.match(/laptop +http:\/\/127\.0\.0\.1:8080 {2}READ-ONLY/);
  });

  it('show how to add one if there are none', () => {
    expect(screenText(scene({ contexts: [] }).press('c').state)).to.contain('llmp context add');
  });
});

describe('filter completions', () => {
  it('are offered while typing', () => {
    const text = screenText(scene().press('/', 's', 't', 'a', 't', 'e', ':').state);
    expect(text)
      .to.match(/> active/)
      .and.to.contain('expired');
    expect(screenText(scene().press('/').state)).to.match(/> state:[^]*project:[^]*expires:[^]*used:/);
  });

  it('include the projects', () => {
    expect(screenText(scene().press('/', ...'project:'.split('')).state)).to.match(/> batch[^]*research[^]*web/);
  });
});

describe('a panel over the screen', () => {
  it('does not shift the screen below, with characters of any width', () => {
    const wide = Array.from({ length: 30 }, (_, number) =>
      token(number, { name: '漢'.repeat(40), created_at: at(-1) }),
    );
    const lines = screenText(scene({ columns: 100, tokens: wide }).press('c').state).split('\n');
    for (const line of lines.slice(2, -2)) expect(line).to.match(/[│█┐┘]$/);
  });
});
