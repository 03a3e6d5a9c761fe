import { expect } from 'chai';
import { NOTHING_SAVED, type SavedView } from '../../../tui/state/saved.js';
import { shownView } from '../../../tui/state/saved-views.js';
import { type Beginning, Operator } from '../operator.js';
import { screenText } from '../screens/rendering.js';
import { scene } from '../screens/scenes.js';
import { project, REFUSED, SimulatedDaemon, token } from '../simulated.js';

const view = (name: string, more: Partial<SavedView> = {}): SavedView => ({
  ...{ name, screen: 'tokens', filter: '', sort: null, columns: null },
  ...more,
});
const LEAKS = view('leaks', { filter: 'ci', sort: '-last_used_at' });
const LIVE = view('live', { screen: 'projects', filter: 'state:active', sort: '-created_at' });
const FAILED = view('failed', { screen: 'events', filter: 'status:5xx' });

const daemon = () =>
  new SimulatedDaemon({
    tokens: Array.from({ length: 20 }, (_, at) => token(at, { name: at < 3 ? `ci-${at}` : `job-${at}` })),
    projects: [project('web'), project('old', { is_active: false })],
  });
const operator = (views: readonly SavedView[] = [], more: Beginning = {}) =>
  new Operator({ daemon: daemon(), ...more, settings: { saved: { ...NOTHING_SAVED, views } } });
const entered = (it: Operator, text: string) => it.press(':').types(text).press('enter');
const problemOf = (it: Operator) => (it.top?.kind === 'command' ? it.top.problem : null);
const shown = (it: Operator) => shownView(it.state)?.name;

describe('saved views', () => {
  describe('are stored by :save', () => {
    it('with the screen, its filter and its order', () => {
      const it = entered(entered(operator(), 't ci').press('s', 's'), 'save leaks');
      const saved = view('leaks', { filter: 'ci', sort: '-last_used_at' });
      expect(it.did('save')).to.deep.equal({ do: 'save', change: { what: 'view', view: saved } });
      expect(it.state.saved.views).to.deep.equal([saved]);
      expect(it.says).to.equal('Saved the view leaks');
      expect(it.state.viewCounts.get('leaks'), 'counted at once').to.equal(3);
      expect(shown(it)).to.equal('leaks');
    });

    for (const [screen, filter, sort] of [
      ['projects', 'state:active', 'name'],
      ['audit', 'action:token.revoke', null],
      ['events', 'status:5xx', null],
    ] as const) {
      it(`of ${screen}`, () => {
        const it = entered(entered(operator(), `${screen} ${filter}`), 'save mine');
        expect(it.state.saved.views).to.deep.equal([{ name: 'mine', screen, filter, sort, columns: null }]);
      });
    }

    it('in the place of one with the same name', () => {
      const it = entered(operator([LEAKS, FAILED]), 'save leaks');
      expect(it.state.saved.views).to.deep.equal([view('leaks', { sort: 'live' }), FAILED]);
      expect(it.says).to.equal('Replaced the view leaks');
    });

    it('and reported if that fails; until the end they can be used', () => {
      const it = entered(operator(), 'save leaks').acts({
        on: 'notSaved',
        failure: { ...REFUSED, message: 'disk full' },
      });
      expect(it.says).to.equal('Cannot store it, so it ends with llmp: disk full');
      expect(it.state.saved.views).to.have.length(1);
    });

    it('together with those of other terminal UIs', () => {
      const it = entered(operator(), 'save leaks');
      it.acts({ on: 'saved', saved: { ...NOTHING_SAVED, views: [FAILED, LEAKS] } });
      expect(it.state.saved.views.map(({ name }) => name)).to.deep.equal(['failed', 'leaks']);
    });

    for (const [text, problem, more] of [
      ['save', 'save it under which name?', {}],
      ['save a b', 'a name has up to 32 letters, digits, and any of - _ .', {}],
      ['save -x', 'a name has up to 32 letters, digits, and any of - _ .', {}],
      ['save x', 'only tokens, projects, audit, events and top can be saved', { tab: 'cache' }],
    ] as const) {
      it(`unless there is a reason: :${text} ${JSON.stringify(more)}`, () => {
        const it = entered(operator([], more), text);
        expect(problemOf(it)).to.equal(problem);
        expect(it.did('save')).to.equal(undefined);
      });
    }

    it('unless the filter may contain a secret', () => {
      const it = entered(entered(operator(), 'e sk-live-0123456'), 'save x');
      expect(problemOf(it)).to.equal('the filter may contain a secret, and was not saved');
    });

    it('up to a maximum', () => {
      const views = Array.from({ length: 50 }, (_, at) => view(`v${at}`));
      expect(problemOf(entered(operator(views), 'save more'))).to.contain('there are 50 views, the maximum');
      expect(entered(operator(views), 'save v7').says).to.equal('Replaced the view v7');
    });
  });

  describe('are shown', () => {
    it('by :view, with their filter and order', () => {
      const it = entered(operator([LEAKS, LIVE, FAILED], { tab: 'cache' }), 'view leaks');
      expect(it.screen).to.equal('tokens');
      expect(it.state.tokens).to.include({ filter: 'ci', order: 'last_used_at', isDescending: true });
      expect(it.length).to.equal(3);
      entered(it, 'v live');
      expect(it.state.projects).to.include({ filter: 'state:active', order: 'created_at', isDescending: true });
      entered(it, 'view failed');
      expect(it.screen).to.equal('events');
      expect(it.state.events.filter).to.equal('status:5xx');
      expect(problemOf(entered(it, 'view leks'))).to.equal('there is no view "leks"; did you mean leaks?');
    });

    it('by their keys', () => {
      const it = operator([LEAKS, LIVE, FAILED]);
      expect(['8', '9', '0'].map((key) => shown(it.press(key)))).to.deep.equal(['leaks', 'live', 'failed']);
      const some = operator([LEAKS]).press('9');
      expect(some.says).to.equal('There is no saved view 2');
      expect(operator().press('8').says).to.equal('There are no saved views yet; :save NAME stores the current list');
    });

    it('one after the other, in a circle', () => {
      const it = operator([LEAKS, LIVE, FAILED]);
      expect([']', ']', ']', ']', '[', '['].map((key) => shown(it.press(key)))).to.deep.equal([
        ...['leaks', 'live', 'failed', 'leaks', 'failed', 'live'],
      ]);
      expect(shown(operator([LEAKS, LIVE]).press('['))).to.equal('live');
    });

    it('until the filter or the screen changes; the order is not a part of it', () => {
      const it = operator([LEAKS]).press('8');
      expect(shown(it.press('s'))).to.equal('leaks');
      expect(shown(it.press('/').types('x').press('enter'))).to.equal(undefined);
      expect(shown(it.press('8'))).to.equal('leaks');
      expect(shown(it.press('enter')), 'over it').to.equal('leaks');
      expect(shown(it.press('q', '3', '2'))).to.equal(undefined);
    });

    it('sorted by any column of the projects', () => {
      const it = entered(operator([view('busy', { screen: 'projects', sort: '-requests_24h' })]), 'view busy');
      expect(it.state.projects).to.include({ order: 'requests_24h', isDescending: true });
    });

    it('with the default order if theirs is not known', () => {
      const it = operator([view('x', { sort: '-size' })]).press('8');
      expect(it.state.tokens).to.include({ order: 'live', isDescending: false });
    });

    it('with a message if their filter is no longer valid', () => {
      const it = operator([view('x', { filter: 'project:gone' })]).press('8');
      expect(it.says).to.equal('The filter is no longer valid: no such project');
    });
  });

  it('are deleted by :delete-view', () => {
    const it = entered(operator([LEAKS, FAILED]).press('8'), 'delete-view leaks');
    expect(it.did('save')).to.deep.equal({ do: 'save', change: { what: 'delete-view', name: 'leaks' } });
    expect(it.state.saved.views).to.deep.equal([FAILED]);
    expect(shown(it)).to.equal(undefined);
  });

  it('of another context replace these', () => {
    const it = operator([LEAKS]);
    it.acts({
      on: 'connected',
      target: { ...it.state.target, context: 'prod' },
      saved: { ...NOTHING_SAVED, views: [LIVE] },
    });
    expect(it.state.saved.views).to.deep.equal([LIVE]);
    expect([...it.state.viewCounts.keys()]).to.deep.equal([]);
  });

  describe('have counts', () => {
    it('from one request each per refresh, for the first five views of tokens', () => {
      const views = [
        LEAKS,
        LIVE,
        FAILED,
        ...Array.from({ length: 4 }, (_, at) => view(`v${at}`, { filter: `job-1${at}` })),
      ];
      const it = operator(views, { tab: 'cache' }).forgets().passes(2_000);
      expect(it.asked('viewCount')).to.equal(3);
      expect([...it.state.viewCounts]).to.deep.equal([
        ['leaks', 3],
        ['v0', 1],
        ['v1', 1],
      ]);
      const requests = it.effects.flatMap((effect) =>
        effect.do === 'load' && effect.request.of === 'viewCount' ? [effect.request.query] : [],
      );
      expect(requests[0]).to.deep.equal({ q: 'ci', limit: '1' });
    });

    it('unless the filter is not valid, or the daemon refuses it', () => {
      const it = operator([view('x', { filter: 'project:gone' }), LEAKS], { tab: 'cache' });
      expect([...it.state.viewCounts]).to.deep.equal([['leaks', 3]]);
      it.daemon.failing = (request) => (request.of === 'viewCount' ? { ...REFUSED, status: 400 } : null);
      it.passes(2_000);
      expect([...it.state.viewCounts]).to.deep.equal([['leaks', null]]);
      expect(it.says, 'no message every two seconds').to.equal(undefined);
      expect(it.state.connection.is).to.equal('live');
    });
  });

  for (const [columns, rows] of [
    [80, 24],
    [120, 40],
  ] as const) {
    it(`have tabs with keys and counts, at ${columns}x${rows}`, () => {
      const settings = { saved: { ...NOTHING_SAVED, views: [LEAKS, view('漢字'), LIVE, view('four')] } };
      const it = scene({ columns, rows, settings });
      const tabs = () => screenText(it.state).split('\n')[1];
      expect(tabs()).to.match(/ 8 leaks 80 {2}9 漢字 80 {2}0 live 2 {2}four 80 /);
      it.press('8');
      expect(shownView(it.state)?.name).to.equal('leaks');
    });
  }
});
