import { expect } from 'chai';
import type { Action } from '../../../tui/state/exchange.js';
import { view } from '../../../tui/state/state.js';
import { Operator } from '../operator.js';
import { project, REFUSED, SimulatedDaemon, token, topRow, UNREACHABLE } from '../simulated.js';

/** The token of row 2 has the most errors, and the model of row 0 the most model tokens. */
function watching(): Operator {
  const daemon = new SimulatedDaemon({
    tokens: [token(0), token(1), token(2)],
    projects: [project('web'), project('My API')],
  });
  const ofOther = { project_id: 'project-My API', project_name: 'My API' };
  daemon.topRows = [
    topRow(0, { requests: 900, errors: 1, prompt_tokens: 5_000, p95_ms: null }),
    topRow(1, { requests: 20, errors: 7, prompt_tokens: 10, p95_ms: 80, ...ofOther }),
    topRow(2, { requests: 30, errors: 12, prompt_tokens: 20, p95_ms: 900 }),
  ];
  return new Operator({ daemon, tab: 'overview' });
}

const names = ({ state }: Operator) =>
  state.top.window.head.pages.flatMap(({ rows }) => rows?.map((row) => row.token_name));
const models = ({ state }: Operator) =>
  state.top.window.head.pages.flatMap(({ rows }) => rows?.map((row) => row.model));
const entered = (it: Operator, text: string) => it.press(':').types(text).press('enter');
const asked = (it: Operator) =>
  it.effects.flatMap((effect) => (effect.do === 'load' && effect.request.of === 'top' ? [effect.request.query] : []));
const copied = (it: Operator) => it.press('Y').did('copy')?.text;

describe('the Top screen', () => {
  it('opens the token with the most errors of the last hour with two keys', () => {
    const it = watching().press('7', 'enter');
    expect(it.screen).to.equal('token');
    expect(it.state.token?.token?.id).to.equal('00000002-token');
    expect(it.press('q').screen).to.equal('top');
  });

  it('opens it also if Enter is pressed before the rows are loaded', () => {
    const it = watching();
    it.isHeld = true;
    it.press('7', 'enter').hears();
    expect(it.state.token?.token?.id).to.equal('00000002-token');
    it.press('q', 'w', 'enter', '1').hears();
    expect(it.screen).to.equal('overview');
  });

  it('shows the model that uses the most model tokens with two keys', () => {
    const it = watching().press('7', 'm');
    expect(models(it)).to.deep.equal(['model-0', 'model-2', 'model-1']);
  });

  it('asks for what it shows, and again at each refresh', () => {
    const it = watching().forgets().press('7', 'w');
    expect(asked(it)).to.deep.equal([
      { by: 'token', window: '1h', sort: 'errors', limit: '200' },
      { by: 'token', window: '24h', sort: 'errors', limit: '200' },
    ]);
    expect(asked(it.forgets().passes(4_000))).to.have.length(2);
    expect(asked(it.press('p').forgets().passes(10_000))).to.be.empty;
  });

  it('sorts by each column, the largest first, and names from A', () => {
    const it = watching().press('7');
    expect(names(it)).to.deep.equal(['name-2', 'name-1', 'name-0']);
    expect(names(it.press('s'))).to.deep.equal(['name-0', 'name-2', 'name-1']);
    expect(names(it.press('S'))).to.deep.equal(['name-1', 'name-2', 'name-0']);
    const orders = Array.from({ length: 9 }, () => it.press('s').state.top.orders.token);
    expect(orders).to.deep.equal([
      'cost',
      'p50',
      'p95',
      'last_used',
      'name',
      'project',
      'requests',
      'errors',
      'tokens',
    ]);
    expect(names(it.press('s', 's', 's'))).to.deep.equal(['name-2', 'name-1', 'name-0']);
    expect(names(it.press('s', 's'))).to.deep.equal(['name-0', 'name-1', 'name-2']);
  });

  it('keeps the cursor on its row when the order changes at a refresh', () => {
    const it = watching().press('7', 'j');
    const under = () => it.state.top.window.cursorId;
    const before = under();
    it.daemon.topRows = [topRow(1, { errors: 99, project_id: 'project-My API' }), ...it.daemon.topRows.slice(2)];
    it.passes(2_000);
    expect(under()).to.equal(before);
    expect(it.state.top.window.cursorIndex).to.equal(0);
  });

  it('begins with the first row when it is opened again, and when the order changes', () => {
    const it = watching().press('7', 'G', '1', '7');
    expect(it.state.top.window.cursorIndex).to.equal(0);
    expect(it.press('G', 's').state.top.window.cursorIndex).to.equal(0);
  });

  it('does not show figures of an earlier question', () => {
    const it = watching().press('7');
    it.isHeld = true;
    it.press('w');
    expect(it.state.top.response).to.equal(null);
    expect(names(it)).to.be.empty;
    it.press('w').hears();
    expect(it.state.top.response?.window).to.equal('5m');
  });

  it('opens a project, and the events of a model', () => {
    const it = watching().press('7', 'o', 'j', 'enter');
    expect(view(it.state)).to.deep.include({ screen: 'project', id: 'project-My API' });
    it.press('q', 'm', 'enter');
    expect([it.screen, it.state.events.filter]).to.deep.equal(['events', 'project:web model:model-0']);
    it.press('q', 't', 'f');
    expect([it.screen, it.state.events.filter]).to.deep.equal(['events', 'token:00000002-token']);
  });

  it('filters by project at the daemon, and by names and models among the rows', () => {
    const it = watching().press('7', '/').types('project:web').press('enter');
    expect(names(it)).to.deep.equal(['name-2', 'name-0']);
    expect(asked(it).at(-1)).to.include({ project_id: 'project-web' });
    it.press('escape', '/').types('NAME-1').press('enter');
    expect(names(it)).to.deep.equal(['name-1']);
    it.press('escape', 'm', '/').types('!model:model-1').press('enter');
    expect(models(it)).to.deep.equal(['model-0', 'model-2']);
  });

  it('tells why a filter is refused', () => {
    const it = watching().press('7', '/').types('state:active').press('enter');
    expect(it.top).to.have.property('problem').that.contains('no such key: state; use project, model');
  });

  for (const [failure, is] of [
    [REFUSED, 'stale'],
    [UNREACHABLE, 'offline'],
  ] as const) {
    it(`keeps its rows and says that they are old, if the daemon fails: ${failure.code}`, () => {
      const it = watching().press('7');
      it.daemon.failing = (request) => (request.of === 'top' ? failure : null);
      it.passes(2_000);
      expect(it.state.connection.is).to.equal(is);
      expect(names(it)).to.have.length(3);
    });
  }

  it('ignores a response that comes after another question', () => {
    const it = watching().press('7');
    const late: Action = it.daemon.data({ of: 'top', query: { by: 'model', window: '5m' } });
    const before = it.state.top;
    expect(it.acts(late).state.top).to.equal(before);
  });
});

describe(':top', () => {
  it('takes what to show, the window and a filter', () => {
    const it = watching();
    entered(it, 'top model 24h project:web');
    expect(it.screen).to.equal('top');
    expect(asked(it).at(-1)).to.deep.equal({
      by: 'model',
      window: '24h',
      sort: 'tokens',
      limit: '200',
      project_id: 'project-web',
    });
    entered(it, 'top');
    expect(it.state.top).to.include({ by: 'token', period: '1h', filter: '' });
  });

  it('shows the place of a problem', () => {
    const it = entered(watching(), 'top 24h state:active');
    expect(it.top).to.have.property('problem').that.contains('no such key: state');
  });

  it('completes what to show, the window, and names of projects', () => {
    const options = (text: string) => {
      const it = watching().press(':').types(text).press('tab');
      return it.top?.kind === 'command' ? it.top.line.text : '';
    };
    expect(options('top mo')).to.equal('top model');
    expect(options('top model 24')).to.equal('top model 24h');
    expect(options('top 5m project:w')).to.equal('top 5m project:web');
  });

  it('is what Y copies, as a command', () => {
    const it = watching().press('7');
    expect(copied(it)).to.equal('llmp top token --window 1h --sort errors');
    expect(copied(entered(it, 'top model 5m project:"My API"'))).to.equal(
      `llmp top model 'project:"My API"' --window 5m --sort tokens`,
    );
  });

  it('can be saved as a view, with its window and order', () => {
    const it = entered(watching(), 'top model 24h project:web').press('S');
    entered(it, 'save spenders').press('1', '8');
    const { by, period, orders, isReversed, filter } = it.state.top;
    expect({ by, period, order: orders.model, isReversed, filter }).to.deep.equal({
      by: 'model',
      period: '24h',
      order: 'tokens',
      isReversed: true,
      filter: 'project:web',
    });
  });
});
