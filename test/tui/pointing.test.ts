import { expect } from 'chai';
import { layer, type State, view } from '../../tui/state/state.js';
import { NOTHING_SAVED } from '../../tui/state/saved.js';
import { indexOf } from '../../tui/state/feed.js';
import { screenText } from './screens/rendering.js';
import { scene } from './screens/scenes.js';
import type { ScreenFixture, Setting } from './screens/screen-fixture.js';

const SIZES = [
  [80, 24],
  [120, 40],
] as const;

const click = (it: ScreenFixture, column: number, row: number) => it.act({ on: 'mouse', what: 'click', column, row });
const wheel = (it: ScreenFixture, what: 'wheelup' | 'wheeldown', times = 1) => {
  for (let time = 0; time < times; time++) it.act({ on: 'mouse', what, column: 10, row: 10 });
  return it;
};
const linesOf = (it: ScreenFixture) => screenText(it.state).split('\n');
/** The row of the screen that has the cursor of a list. */
const cursorRow = (it: ScreenFixture) => linesOf(it).findIndex((line) => /^.> /.test(line));
const cursor = ({ tokens, projects, audit, events, ...state }: State) => {
  const { screen } = view({ tokens, projects, audit, events, ...state });
  if (screen === 'tokens') return tokens.window.cursorIndex;
  if (screen === 'projects') return projects.window.cursorIndex;
  return screen === 'audit' ? indexOf(audit) : indexOf(events);
};

describe('the mouse', () => {
  for (const [columns, rows] of SIZES) {
    describe(`at ${columns}x${rows}`, () => {
      const at = (setting: Setting = {}) => scene({ columns, rows, ...setting });

      it('selects the token that is clicked, and opens it with a second click', () => {
        const it = at();
        for (const row of [9, 4, 12]) {
          click(it, 30, row);
          expect(cursorRow(it)).to.equal(row);
          it.wait(5_000);
        }
        click(it, 30, 12);
        expect(view(it.state).screen).to.equal('token');
      });

      it('selects rows of a list that is scrolled', () => {
        const it = at().press('G', 'k', 'k');
        click(it, 30, 6);
        expect(cursorRow(it)).to.equal(6);
        expect(cursor(it.state)).to.equal(it.state.tokens.window.top + 2);
      });

      it('opens the tokens of a project with two clicks', () => {
        const it = at({ tab: 'projects' });
        click(click(it, 5, 6), 5, 6);
        expect(view(it.state).screen).to.equal('tokens');
        expect(it.state.tokens.filter).to.equal('project:web');
      });

      it('selects a row of Top, and opens it with a second click', () => {
        const it = at({ tab: 'top' });
        click(it, 5, 7);
        expect(cursorRow(it)).to.equal(7);
        click(it, 5, 7);
        expect(view(it.state).screen).to.equal('token');
      });

      for (const tab of ['audit', 'events'] as const) {
        it(`selects a row of ${tab}, and opens what was clicked although the list moves`, () => {
          const it = at({ tab });
          const row = 8;
          const line = linesOf(it)[row]!;
          click(it, 30, row);
          const chosen = linesOf(it)[cursorRow(it)]!.slice(3);
          expect(line).to.contain(chosen.slice(0, 40));
          const before = cursor(it.state);
          click(it, 30, row);
          expect(it.state[tab].opened).not.to.equal(null);
          expect(cursor(it.state)).to.equal(before);
        });
      }

      it('opens the tab that is clicked', () => {
        for (const [name, screen] of [
          ['3', 'projects'],
          ['1', 'overview'],
          ['6', 'events'],
          ['5', 'cache'],
        ] as const) {
          const it = at();
          const column = linesOf(it)[1]!.search(new RegExp(`(?<!\\d)${name}(?!\\d)`));
          expect(view(click(it, column, 1).state).screen, name).to.equal(screen);
        }
      });

      it('opens the saved view whose tab is clicked', () => {
        const views = ['a', 'b', 'c', 'd'].map(
          (name) => ({ name: `v${name}`, screen: 'tokens', filter: name, sort: null, columns: null }) as const,
        );
        const it = at({ settings: { saved: { ...NOTHING_SAVED, views } } });
        click(it, linesOf(it)[1]!.indexOf('vd'), 1);
        expect(it.state.tokens.filter).to.equal('d');
      });

      it('scrolls with the wheel', () => {
        const it = at();
        expect(cursor(wheel(it, 'wheeldown', 2).state)).to.equal(6);
        expect(cursor(wheel(it, 'wheelup').state)).to.equal(3);
        expect(cursor(wheel(it, 'wheelup', 9).state)).to.equal(0);
        const detail = at().press('enter');
        const before = screenText(detail.state);
        wheel(detail, 'wheeldown', 9);
        if (rows < 40) expect(screenText(detail.state)).not.to.equal(before);
      });

      it('does nothing outside of the rows', () => {
        const it = at({ tokens: at().setting.tokens?.slice(0, 3) ?? [] });
        const before = screenText(it.state);
        for (const row of [0, 2, 3, 7, rows - 2, rows - 1, rows + 5]) click(it, 30, row);
        click(it, columns - 1, 1);
        expect(screenText(it.state)).to.equal(before);
      });
    });
  }

  it('takes two clicks far apart in time, or in different rows, as two selections', () => {
    const it = scene();
    click(click(it, 5, 8), 5, 9);
    expect(view(it.state).screen).to.equal('tokens');
    expect(cursorRow(it)).to.equal(9);
  });

  it('moves the selection in a layer with the wheel, and ignores clicks there', () => {
    for (const key of ['?', ':', 'c']) {
      const it = scene().press(key);
      wheel(it, 'wheeldown');
      expect(layer(it.state)).to.include({ selected: 1 });
      wheel(it, 'wheelup', 2);
      expect(layer(it.state)).to.include({ selected: 0 });
      const before = screenText(it.state);
      for (const row of [1, 5, 10, 15]) click(it, 40, row);
      expect(screenText(it.state)).to.equal(before);
    }
  });

  it('presses no button of a dialog', () => {
    const it = scene().press('x');
    const before = screenText(it.state);
    for (let row = 0; row < 24; row++) for (let column = 0; column < 100; column += 7) click(it, column, row);
    expect(screenText(it.state)).to.equal(before);
  });

  it('is ignored where the screen is too small', () => {
    const it = scene({ columns: 40, rows: 8 });
    click(wheel(it, 'wheeldown'), 5, 5);
    expect(cursor(it.state)).to.equal(0);
  });
});
