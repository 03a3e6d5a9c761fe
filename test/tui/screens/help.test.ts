import { expect } from 'chai';
import { bindingsOn } from '../../../tui/keys/press.js';
import { filterKeys } from '../../../tui/state/filtering.js';
import { layer, SCREENS, type Screen, type Tab, TABS } from '../../../tui/state/state.js';
import { NOTHING_SAVED, type SavedView } from '../../../tui/state/saved.js';
import { screenText } from './rendering.js';
import { scene } from './scenes.js';
import type { ScreenFixture, Setting } from './screen-fixture.js';

/** How to reach the screens that have no tab. */
const WAYS: Partial<Record<Screen, readonly [tab: Tab, ...keys: string[]]>> = {
  token: ['tokens', 'enter'],
  project: ['projects', 'enter'],
  operators: ['tokens', 'O'],
  operator: ['tokens', 'O', 'enter'],
  trusts: ['tokens', 'T'],
  trust: ['tokens', 'T', 'enter'],
};

/** Opens help on a screen. */
function helpOf(screen: Screen, setting: Setting, prepared = (it: ScreenFixture) => it): ScreenFixture {
  const [tab, ...keys] = WAYS[screen] ?? [TABS.find((it) => it === screen) ?? 'tokens'];
  return prepared(scene({ ...setting, tab }).press(...keys)).press('?');
}

/** The text in the frame of the panel, with single spaces. */
function panelText({ state }: ScreenFixture): string {
  const lines = screenText(state).split('\n');
  const top = lines.findIndex((line) => line.includes('┌ Keys of'));
  const [from, to] = [lines[top]!.indexOf('┌ Keys of'), lines[top]!.indexOf('┐', lines[top]!.indexOf('┌ Keys of'))];
  const height = lines.slice(top).findIndex((line) => line.charAt(from) === '└');
  const inside = lines.slice(top + 1, top + height).map((line) => line.slice(from + 1, to));
  return inside.join(' ').replace(/\s+/g, ' ');
}

describe('help', () => {
  for (const screen of SCREENS) {
    for (const columns of [50, 80, 120]) {
      for (const [condition, prepared] of [
        ['connected', undefined],
        ['offline', (it: ScreenFixture) => it.lose()],
      ] as const) {
        it(`cuts no line at ${columns} columns: ${screen}, ${condition}`, () => {
          const it = helpOf(screen, { columns, rows: 200 }, prepared);
          const text = panelText(it);
          expect(text).to.not.contain('…');
          for (const binding of bindingsOn(screen).filter((binding) => !binding.isUnlisted?.(it.state))) {
            const why = binding.whyDisabled?.(it.state) ?? null;
            expect(text).to.contain(`${binding.label} ${binding.meaning}${why === null ? '' : ` (${why})`}`);
          }
          for (const { name, what } of filterKeys(it.state)) expect(text).to.contain(`${name}: ${what}`);
        });
      }
    }
  }

  it('shows the whole filter syntax at 80 columns', () => {
    const text = panelText(helpOf('tokens', { columns: 80, rows: 200 }));
    expect(text).to.contain('Filter words and key:value, all must match; !x: not x; a,b: a or b; "two words"');
  });

  it('shows each line at 80x24 when it is scrolled', () => {
    const it = helpOf('tokens', { columns: 80, rows: 24 });
    for (const { meaning } of bindingsOn('tokens').filter((binding) => !binding.isUnlisted?.(it.state))) {
      expect(panelText(it)).to.contain(meaning);
      it.press('j');
    }
  });

  it('says once that there are no saved views, and lists the keys of those that there are', () => {
    const none = panelText(helpOf('tokens', { columns: 80, rows: 200 }));
    expect(none.match(/There are no saved views/g)).to.have.length(1);
    const view: SavedView = { name: 'leaks', screen: 'tokens', filter: 'leak', sort: null, columns: null };
    const saved = { ...NOTHING_SAVED, views: [view] };
    const one = panelText(helpOf('tokens', { columns: 80, rows: 200, settings: { saved } }));
    expect(one)
      .to.contain('8 view 1 show the first saved view')
      .and.not.to.match(/no saved view| 9 view 2 /);
    expect(one).to.contain('show the next saved view').and.to.contain('show the previous saved view');
  });
});

describe('search in help', () => {
  const searching = (words: string, setting: Setting = {}) => {
    const keys = Array.from(words, (letter) => (letter === ' ' ? 'space' : letter));
    return scene({ columns: 80, rows: 24, ...setting }).press('?', '/', ...keys);
  };

  it('narrows the lines to those with all words, in any order', () => {
    const it = searching('clipboard');
    expect(panelText(it)).to.contain('/ clipboard█').and.to.contain('copy id').and.to.contain('copy command');
    expect(panelText(it)).to.not.contain('issue a new token');
    expect(screenText(it.state)).to.contain('1 of 2');
    expect(panelText(it.press('space', 'i', 'd')))
      .to.contain('copy id')
      .and.to.not.contain('copy command');
    it.press('backspace', 'backspace', 'backspace');
    expect(panelText(it), 'Backspace widens').to.contain('copy command');
  });

  it('finds keys and filter keys, too', () => {
    expect(panelText(searching('^r'))).to.contain('refresh now');
    expect(panelText(searching('expires:')))
      .to.contain('expires: for example')
      .and.to.not.contain('revoke it');
  });

  it('says when nothing is found', () => {
    const it = searching('frobnicate');
    expect(panelText(it)).to.contain('no line has these words');
    expect(screenText(it.press('enter').state)).to.contain('No matching command');
  });

  it('runs the line under the cursor', () => {
    expect(screenText(searching('issue').press('enter').state)).to.contain('┌ New token ─');
  });

  it('goes back one step with each escape, and stays on the line', () => {
    const it = searching('reverse').press('escape');
    expect(panelText(it)).to.contain('invert').and.to.not.contain('/ reverse');
    expect(screenText(it.state)).to.match(/> S +reverse/);
    expect(layer(it.press('escape').state)).to.equal(undefined);
  });

  it('takes every letter as text', () => {
    expect(panelText(searching('q jk?'))).to.contain('/ q jk?█');
  });
});
