import { expect } from 'chai';
import stringWidth from 'string-width';
import { isShownBy } from '../../../console/columns/column.js';
import { keysOf } from '../../../console/query/keys.js';
import { COLUMNS, columnsOf } from '../../../tui/state/columns.js';
import { NOTHING_SAVED, type Saved, SAVED_SCREENS, type SavedView } from '../../../tui/state/saved.js';
import { layer } from '../../../tui/state/state.js';
import { screenText } from '../screens/rendering.js';
import { scene } from '../screens/scenes.js';
import { type ScreenFixture, type Setting, token } from '../screens/screen-fixture.js';

const withSaved = (saved: Partial<Saved>, setting: Setting = {}) =>
  scene({ columns: 120, ...setting, settings: { saved: { ...NOTHING_SAVED, ...saved } } });
/** The titles of the list. */
const titles = (it: ScreenFixture) =>
  (screenText(it.state).split('\n')[3] ?? '')
    .replace(/^│|[│█]$/g, '')
    .trim()
    .split(/ {2,}/);
const choice = (it: ScreenFixture) => {
  const top = layer(it.state);
  if (top?.kind !== 'columns') throw new Error('no choice of columns');
  return top;
};
const down = (count: number) => Array.from({ length: count }, () => 'j');

describe('the columns of a list', () => {
  for (const screen of SAVED_SCREENS) {
    it(`can all be shown on ${screen}, each with a description`, () => {
      const ids = columnsOf(screen).map(({ id }) => id);
      expect(new Set(ids).size).to.equal(ids.length);
      const all = withSaved({ columns: { [screen]: ids } }, { tab: screen, columns: 600 });
      expect(titles(all), ids.join()).to.have.length(ids.length);
      const keys = keysOf(screen, { projects: [] }).map(({ name }) => name);
      for (const { id, what, key } of columnsOf(screen)) {
        if (key !== undefined) expect(keys, id).to.include(key);
        expect(id).to.match(/^[a-z]+(?:_[a-z]+)*$/);
        expect(what).to.match(/^[^\s].*[^\s.]$/);
      }
    });

    it(`are the default ones on ${screen}, without the optional ones`, () => {
      const shown = columnsOf(screen).filter((column) => isShownBy(column, 'tui'));
      expect(titles(withSaved({}, { tab: screen, columns: 600 }))).to.have.length(shown.length);
    });
  }

  for (const [columns, rows] of [
    [80, 24],
    [120, 40],
  ] as const) {
    it(`are chosen, moved and stored, at ${columns}x${rows}`, () => {
      const it = scene({ columns, rows }).press('C');
      expect(screenText(it.state)).to.match(/┌ Columns of tokens ─/);
      expect(screenText(it.state)).to.match(/> \[x\] id +beginning of the ID/);
      it.press('space', ...down(3), 'K', 'K', 'K', 'enter');
      expect(layer(it.state)).to.equal(undefined);
      expect(titles(it).slice(0, 3)).to.deep.equal(['STATE', 'NAME', 'PROJECT']);
      const { tokens = [] } = it.state.saved.columns;
      expect(tokens.slice(0, 3)).to.deep.equal(['state', 'name', 'project']);
      expect(tokens).not.to.include('id');
    });
  }

  it('are moved with shift and arrows too, and the list shows them at once', () => {
    const it = scene({ columns: 120 }).press('C', 'down', 'down', 'shift+up', 'shift+up', 'shift+down');
    expect(
      choice(it)
        .entries.map(({ id }) => id)
        .slice(0, 3),
    ).to.deep.equal(['id', 'project', 'name']);
    expect(it.state.saved.columns).to.deep.equal({});
  });

  it('of chosen ones, the last are left out on a narrow screen', () => {
    const saved = { columns: { tokens: ['requests', 'hits', 'name', 'expiry', 'issued', 'secret'] } };
    expect(titles(withSaved(saved, { columns: 200 }))).to.deep.equal([
      ...['REQUESTS', 'HITS', 'NAME', 'EXPIRY', 'ISSUED', 'SECRET'],
    ]);
    expect(titles(withSaved(saved, { columns: 66 }))).to.deep.equal(['REQUESTS', 'HITS', 'NAME', 'EXPIRY']);
  });

  it('are not changed by escape', () => {
    const it = scene({ columns: 120 }).press('C', 'space', 'J', 'escape');
    expect(titles(it)[0]).to.equal('ID');
    expect(it.state.saved.columns).to.deep.equal({});
  });

  it('are the default ones after a reset', () => {
    const it = withSaved({ columns: { tokens: ['name', 'hits'] } });
    expect(titles(it)).to.deep.equal(['NAME', 'HITS']);
    it.press('C', 'r', 'enter');
    expect(titles(it).slice(0, 2)).to.deep.equal(['ID', 'NAME']);
    expect(it.state.saved.columns).to.deep.equal({});
  });

  it('are at least one', () => {
    const it = withSaved({ columns: { tokens: ['name'] } }).press('C', 'space');
    expect(screenText(it.state)).to.contain('A list needs at least one column');
    expect(titles(it.press('enter'))).to.deep.equal(['NAME']);
  });

  it('stop at the first and the last one', () => {
    const it = scene().press('C', 'K');
    expect(screenText(it.state)).to.contain('This is the first column');
    it.press(...down(60));
    expect(choice(it).selected).to.equal(COLUMNS.tokens.length - 1);
    expect(screenText(it.press('J').state)).to.contain('This is the last column');
  });

  it('of a later release are ignored', () => {
    expect(titles(withSaved({ columns: { tokens: ['weight', 'name', 'id'] } }))).to.deep.equal(['NAME', 'ID']);
    expect(titles(withSaved({ columns: { tokens: ['weight'] } }))[0]).to.equal('ID');
  });

  it('belong to one list: others have their own', () => {
    const it = withSaved({ columns: { tokens: ['name'], projects: ['key', 'name'] } }, { tab: 'projects' });
    expect(titles(it)[0]).to.equal('KEY');
    expect(titles(it.press('2'))).to.deep.equal(['NAME']);
    expect(titles(it.press('4'))[0]).to.equal('TIME');
  });

  it('are not chosen where there is no list', () => {
    for (const tab of ['overview', 'cache'] as const) {
      expect(layer(scene({ tab }).press('C').state)).to.equal(undefined);
    }
  });

  describe('of a saved view', () => {
    const view = (columns: SavedView['columns']): SavedView => ({
      ...{ name: 'leaks', screen: 'tokens', filter: '', sort: null, columns },
    });

    it('are stored with it, and shown with it', () => {
      const it = withSaved({ views: [view(['name', 'hits'])], columns: { tokens: ['id', 'name'] } });
      expect(titles(it)).to.deep.equal(['ID', 'NAME']);
      expect(titles(it.press('8'))).to.deep.equal(['NAME', 'HITS']);
      expect(titles(it.press('2'))).to.deep.equal(['ID', 'NAME']);
    });

    it('change with the view while it is shown', () => {
      const it = withSaved({ views: [view(null)], columns: { tokens: ['id', 'name'] } }).press(
        '8',
        'C',
        'space',
        'enter',
      );
      expect(it.state.saved.views[0]?.columns).to.deep.equal(['name']);
      expect(it.state.saved.columns).to.deep.equal({ tokens: ['id', 'name'] });
      expect(it.state.message?.words).to.equal('Saved the columns of the view leaks');
    });

    it('are those of the list when it is saved', () => {
      const it = withSaved({ columns: { tokens: ['name', 'id'] } }).press(':');
      it.act({ on: 'paste', text: 'save mine' }).press('enter');
      expect(it.state.saved.views[0]?.columns).to.deep.equal(['name', 'id']);
    });
  });
});

describe('the width of a column', () => {
  const nameWidth = (names: readonly string[], columns = 160) => {
    const tokens = names.map((name, at) => token(at, { name, project_name: 'web' }));
    const line = screenText(scene({ columns, tokens }).state).split('\n')[3] ?? '';
    return line.indexOf('PROJECT') - line.indexOf('NAME') - 2;
  };

  it('is that of its widest content, within limits', () => {
    expect(nameWidth(['short'])).to.equal(10);
    expect(nameWidth(['short', 'a-name-of-twenty-one-'])).to.equal(21);
    expect(nameWidth(['x'.repeat(100)])).to.equal(40);
    expect(nameWidth(['漢'.repeat(9)])).to.equal(stringWidth('漢'.repeat(9)));
  });

  it('does not change while scrolling through the rows in memory', () => {
    const tokens = Array.from({ length: 90 }, (_, at) =>
      token(at, { name: at === 80 ? 'the-longest-name-of-all' : `n${at}` }),
    );
    const it = scene({ columns: 160, tokens });
    const before = screenText(it.state).split('\n')[3];
    expect(screenText(it.press('G').state).split('\n')[3]).to.equal(before);
  });

  it('leaves room for other columns on a narrow screen', () => {
    const it = scene({ columns: 80, tokens: [token(0, { name: 'x'.repeat(100) })] });
    expect(titles(it)).to.include.members(['NAME', 'STATE']);
    for (const line of screenText(it.state).split('\n')) expect(stringWidth(line)).to.be.at.most(80);
  });
});
