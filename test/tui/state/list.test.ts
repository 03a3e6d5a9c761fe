import { expect } from 'chai';
import { incidentExample } from '../../../daemon/api/schemas.js';
import type { WireRequestEvent, WireToken } from '../../../daemon/api/contract.js';
import { lastMinuteRequests } from '../../../tui/state/token.js';
import { Operator } from '../operator.js';
import { at, DENIED, project, REFUSED, SimulatedDaemon, token, topRow } from '../simulated.js';

const HOUR_MS = 3_600_000;
const many = (count: number) => Array.from({ length: count }, (_, index) => token(index));
const watching = (tokens: WireToken[], projects = [project('web')]) =>
  new Operator({ daemon: new SimulatedDaemon({ tokens, projects }) });

describe('list of tokens', () => {
  it('moves with j and k, and stops at its ends', () => {
    const operator = watching(many(3)).press('j', 'j', 'j', 'j');
    expect(operator.cursor?.name).to.equal('name-2');
    expect(operator.press('k', 'up', 'up', 'up').cursor?.name).to.equal('name-0');
    expect(operator.press('down', 'ctrl+d', 'pagedown').cursor?.name).to.equal('name-2');
    expect(operator.press('ctrl+u').cursor?.name).to.equal('name-0');
  });

  it('starts with live tokens that expire next, and ends with expired and revoked ones (finding A10)', () => {
    const operator = watching([
      token(0, { name: 'dead for years', state: 'expired', expires_at: at(-9_000 * HOUR_MS) }),
      token(1, { name: 'dies later', expires_at: at(9 * HOUR_MS) }),
      token(2, { name: 'revoked', is_active: false, expires_at: at(HOUR_MS) }),
      token(3, { name: 'dies next', expires_at: at(2 * HOUR_MS) }),
      token(4, { name: 'dead since yesterday', state: 'expired', expires_at: at(-24 * HOUR_MS) }),
    ]);
    const names = [0, 1, 2, 3, 4].map((row) => operator.rowAt(row)?.name);
    expect(names).to.deep.equal(['dies next', 'dies later', 'revoked', 'dead since yesterday', 'dead for years']);
    const sorts = operator.effects.flatMap((effect) =>
      effect.do === 'load' && effect.request.of === 'tokens' ? [effect.request.query.sort] : [],
    );
    expect(sorts[0], 'the daemon puts them in order, page by page').to.equal('live');
  });

  it('jumps to the last and the first of 100,000, with the total of the API', () => {
    const operator = watching(many(100_000)).forgets().press('G');
    expect(operator.cursor?.name).to.equal('name-99999');
    expect(operator.length).to.equal(100_000);
    expect(operator.asked('tokens')).to.be.lessThan(5);
    for (let row = 0; row < 300; row++) operator.press('k');
    expect(operator.cursor?.name).to.equal('name-99699');
    expect(operator.press('g').cursor?.name).to.equal('name-0');
  }).timeout(60_000);

  it('keeps the cursor on its token when others are added and removed', () => {
    const operator = watching(many(10)).press('j', 'j', 'j');
    operator.daemon.tokens = [token(50, { expires_at: at(1_000) }), ...operator.daemon.tokens.slice(1)];
    operator.daemon.tokens.push(token(51, { expires_at: at(2_000) }));
    operator.passes(4_000);
    expect(operator.cursor?.name).to.equal('name-3');
    expect(operator.state.tokens.window.cursorIndex).to.equal(4);
  });

  it('sorts by the next column, and in reverse', () => {
    const operator = watching(many(5)).press('s');
    expect(operator.did('load')?.request).to.have.nested.property('query.sort', '-created_at');
    operator.press('S');
    expect(operator.did('load')?.request).to.have.nested.property('query.sort', 'created_at');
    operator.press('s', 's', 's');
    expect(operator.state.tokens.order).to.equal('name');
    expect(operator.press('S').cursor?.name).to.equal('name-4');
  });

  it('reports that it is empty when a key needs a token', () => {
    const operator = watching([]);
    for (const key of ['enter', 'x', 'a', 'space', 'v', 'ctrl+a', '*', 'y']) {
      expect(operator.press(key).says, key).to.equal('No token here');
    }
  });

  it('fits another height, on any screen', () => {
    const operator = watching(many(100)).press('G', '1').forgets().resizes(80, 12);
    expect(operator.asked('tokens')).to.equal(0);
    operator.press('2');
    const { top, cursorIndex } = operator.state.tokens.window;
    expect(cursorIndex - top).to.be.within(0, 4);
  });

  it('copies the ID, or the IDs of all marked tokens', () => {
    const operator = watching(many(3)).press('y');
    expect(operator.did('copy')).to.deep.include({ text: '00000000-token', what: 'The ID' });
    operator.press('space', 'space', 'y');
    expect(operator.did('copy')).to.deep.include({ text: '00000000-token\n00000001-token', what: '2 IDs' });
    operator.acts({ on: 'copied', what: '2 IDs', to: 'terminal' });
    expect(operator.says).to.equal("2 IDs was sent to the terminal's clipboard");
  });
});

describe('marks', () => {
  it('are set and cleared with space, which moves down', () => {
    const operator = watching(many(3)).press('space', 'space');
    expect(operator.marks).to.have.lengthOf(2);
    expect(operator.cursor?.name).to.equal('name-2');
    expect(operator.press('k', 'space').marks).to.deep.equal(['00000000-token']);
  });

  it('are set from v to v, which escape cancels', () => {
    const operator = watching(many(9)).press('j', 'v', 'j', 'j', 'v');
    expect(operator.marks).to.deep.equal(['00000001-token', '00000002-token', '00000003-token']);
    operator.press('v', 'escape', 'j', 'v');
    expect(operator.state.tokens.rangeFrom).to.not.equal(null);
  });

  it('of all filtered tokens are added to existing marks', () => {
    const tokens = [token(0, { name: 'ci' }), token(1, { name: 'night' }), token(2, { name: 'ci-two' })];
    const operator = watching(tokens).press('j', 'space', '/').types('ci').press('enter', 'ctrl+a');
    expect(operator.marks).to.have.members(tokens.map(({ id }) => id));
    expect(operator.says).to.equal('3 marked');
  });

  it('are inverted within the filter, and unchanged outside it', () => {
    const tokens = [token(0, { name: 'ci' }), token(1, { name: 'night' }), token(2, { name: 'ci-two' })];
    const operator = watching(tokens).press('space', 'space', '/').types('ci').press('enter', '*');
    expect(operator.marks).to.have.members(['00000001-token', '00000002-token']);
  });

  it('stay when the filter changes or the list is refreshed', () => {
    const operator = watching(many(3)).press('space', '/').types('name-2').press('enter').passes(6_000);
    expect(operator.length).to.equal(1);
    expect(operator.marks).to.deep.equal(['00000000-token']);
  });

  it('are not set after the operator stopped loading', () => {
    const operator = watching(many(3));
    operator.isHeld = true;
    operator.press('ctrl+a', 'ctrl+a');
    expect(operator.says).to.equal('Marking is in progress; esc stops it');
    operator.acts({ on: 'progress', words: 'Marking', done: 1, of: 3 }).press('escape');
    expect(operator.did('stop')).to.not.equal(undefined);
    expect(operator.hears().marks).to.be.empty;
    expect(operator.state.progress).to.equal(null);
  });

  it('can be set again after the daemon refused the list', () => {
    const operator = watching(many(3));
    operator.daemon.failing = ({ of }) => (of === 'allTokens' ? REFUSED : null);
    operator.press('ctrl+a');
    operator.daemon.failing = () => null;
    expect(operator.press('ctrl+a').marks).to.have.lengthOf(3);
  });
});

describe('filter', () => {
  const tokens = [token(0, { name: 'ci' }), token(1, { name: 'night' }), token(2, { name: 'ci-two' })];

  it('is applied after a pause in typing, and immediately with Enter', () => {
    const operator = watching(tokens).press('/').types('ci');
    expect(operator.length).to.equal(3);
    expect(operator.passes(249).length).to.equal(3);
    expect(operator.passes(1).length).to.equal(2);
    expect(operator.types('-two').press('enter').length).to.equal(1);
    expect(operator.top).to.equal(undefined);
    expect(operator.state.tokens.filter).to.equal('ci-two');
  });

  it('is restored with escape', () => {
    const operator = watching(tokens).press('/').types('ci').press('enter', '/').types('two').passes(300);
    expect(operator.length).to.equal(1);
    expect(operator.press('escape').length).to.equal(2);
    expect(operator.state.tokens.filter).to.equal('ci');
  });

  it('takes every letter, also those of key bindings', () => {
    const operator = watching(tokens).press('/').types('q1j?:x/ c');
    expect(operator.top).to.have.nested.property('line.text', 'q1j?:x/ c');
    expect(operator.did('quit')).to.equal(undefined);
  });

  it('reports problems, and is not applied then', () => {
    const operator = watching(tokens).press('/').types('state:wrong').passes(300).press('enter');
    expect(operator.top).to.have.property('problem').that.matches(/state/);
    expect(operator.length).to.equal(3);
    expect(operator.press('escape').top).to.equal(undefined);
  });

  it('is completed with tab', () => {
    const operator = watching(tokens).press('/').types('sta').press('tab').types('act').press('tab', 'enter');
    expect(operator.state.tokens.filter).to.equal('state:active');
  });

  it('is ready for the next term after a value that is the only one, and not before', () => {
    const lineAfter = (typed: string) => {
      const { top } = watching(tokens).press('/').types(typed).press('tab');
      return top?.kind === 'prompt' ? top.line : null;
    };
    expect(lineAfter('state:rat')).to.deep.equal({ text: 'state:rate_limited ', caret: 'state:rate_limited '.length });
    expect(lineAfter('sta')).to.include({ text: 'state:' });
    expect(lineAfter('state:')?.text).to.match(/^state:\S+$/);
  });

  it('reports an error of the API', () => {
    const operator = watching(tokens);
    operator.daemon.failing = ({ of }) => (of === 'tokens' ? { ...REFUSED, status: 400, message: 'q is wrong' } : null);
    operator.press('/').types('ci').press('enter');
    expect(operator.says).to.equal('q is wrong');
    expect(operator.state.connection.is).to.equal('live');
  });

  it('is cleared with escape, after the marks', () => {
    const operator = watching(tokens).press('/').types('ci').press('enter', 'space', 'escape');
    expect(operator.marks).to.be.empty;
    expect(operator.length).to.equal(2);
    expect(operator.press('escape').length).to.equal(3);
    expect(operator.press('escape').says).to.equal('q quits');
    expect(operator.did('quit')).to.equal(undefined);
  });

  it('of a renamed project is reported as no longer valid', () => {
    const operator = watching(tokens).press('/').types('project:web').press('enter');
    operator.daemon.projects = [project('shop', { id: 'project-web' })];
    operator.passes(4_000);
    expect(operator.says).to.match(/^The filter is no longer valid/);
    expect(operator.press('escape').length).to.equal(3);
  });

  it('takes pasted text on one line', () => {
    const operator = watching(tokens).press('/').pastes('ci\nnight\n');
    expect(operator.top).to.have.nested.property('line.text', 'ci night');
  });
});

describe('projects', () => {
  it('lead to their tokens and back, with any name', () => {
    const id = '0193a1b2-0000-7000-8000-000000000001';
    for (const name of ['web', 'two words', 'say "so"', '!not', 'a,b', 'project:x']) {
      const daemon = new SimulatedDaemon({
        tokens: [token(0, { project_id: id }), token(1, { project_id: 'other' })],
        projects: [project(name, { id }), project('zzz', { id: 'other' })],
      });
      const operator = new Operator({ daemon, tab: 'projects' }).press('t');
      expect(operator.screen, name).to.equal('tokens');
      expect(operator.length, name).to.equal(1);
      expect(operator.cursor?.project_id, name).to.equal(id);
      expect(operator.press('h').screen, name).to.equal('projects');
    }
  });

  it('open in a detail, from which their tokens are opened, and are changed there', () => {
    const id = '0193a1b2-0000-7000-8000-000000000001';
    const daemon = new SimulatedDaemon({
      tokens: [token(0, { project_id: id })],
      projects: [project('web', { id }), project('zzz')],
    });
    const operator = new Operator({ daemon, tab: 'projects' }).press('enter');
    expect(operator.screen).to.equal('project');
    expect([operator.asked('projectAudit'), operator.asked('usage')]).to.deep.equal([1, 1]);
    expect(operator.press('enter').screen).to.equal('tokens');
    expect(operator.cursor?.project_id).to.equal(id);
    expect(operator.press('q').screen).to.equal('project');
    operator.press('d', 'tab', 'enter');
    expect(daemon.made.at(-1)?.change)
      .to.deep.include({ what: 'update-project' })
      .and.nested.include({ 'project.id': id });
    expect(operator.press('escape').screen).to.equal('projects');
  });

  it('are sorted by figures, the highest first, and by their last use, the latest first', () => {
    const projects = [
      project('a', { requests_24h: 1, errors_24h: 9, last_used_at: null }),
      project('b', { requests_24h: 20, errors_24h: 3, last_used_at: at(0) }),
      project('c', { requests_24h: 3, errors_24h: NaN, last_used_at: at(HOUR_MS) }),
    ];
    const operator = new Operator({ daemon: new SimulatedDaemon({ projects }), tab: 'projects' });
    const names = () => operator.state.projects.window.head.pages[0]?.rows?.map(({ name }) => name).join('');
    const orders = ['requests_24h', 'errors_24h', 'last_used_at'].map((order) => {
      operator.press('s');
      return [operator.state.projects.order === order, names()];
    });
    expect(orders).to.deep.equal([
      [true, 'bca'],
      [true, 'abc'],
      [true, 'cba'],
    ]);
  });

  it('are sorted, reversed and filtered locally', () => {
    const projects = [project('b', { created_at: at(0) }), project('a', { created_at: at(HOUR_MS) })];
    const operator = new Operator({ daemon: new SimulatedDaemon({ projects }), tab: 'projects' });
    const names = () => operator.state.projects.window.head.pages[0]?.rows?.map(({ name }) => name);
    expect(names()).to.deep.equal(['a', 'b']);
    operator.press('S');
    expect(names()).to.deep.equal(['b', 'a']);
    operator.press('s', 'S');
    expect(names()).to.deep.equal(['b', 'a']);
    operator.press('/').types('a').press('enter');
    expect(names()).to.deep.equal(['a']);
  });

  it('are deactivated after confirmation, activated immediately, and both can be undone', () => {
    const operator = new Operator({ tab: 'projects' }).press('d');
    expect(operator.dialog.notes[0]?.words).to.match(/403/);
    operator.press('enter');
    expect(operator.daemon.made).to.be.empty;
    operator.press('d', 'tab', 'enter');
    expect(operator.says).to.equal('Deactivated web.');
    expect(operator.press('d').says).to.equal('The project is already inactive');
    expect(operator.press('u').says).to.equal('Activated web.');
  });

  it('are renamed, which can be undone', () => {
    const operator = new Operator({ tab: 'projects' })
      .press('e', 'ctrl+u')
      .types('shop')
      .press('enter', 'enter', 'enter');
    expect(operator.says).to.equal('Renamed web to shop.');
    expect(operator.press('u').says).to.equal('Renamed shop to web.');
    expect(operator.daemon.projects[0]?.name).to.equal('web');
  });

  it('have all tokens revoked only after typing their name', () => {
    const operator = new Operator({ tab: 'projects' }).press('X', 'tab', 'enter');
    expect(operator.dialog.problem).to.equal('Type web to confirm');
    operator.types('web').press('enter', 'enter');
    expect(operator.says).to.equal('Revoked 3 tokens of web.');
  });
});

describe('token detail', () => {
  it('opens, follows the token, and closes', () => {
    const operator = watching(many(3)).press('j', 'enter');
    expect(operator.screen).to.equal('token');
    expect(operator.followed).to.deep.equal([{ of: 'tokenEvents', id: '00000001-token', since: '1m' }]);
    expect(operator.press('escape').screen).to.equal('tokens');
    expect(operator.followed).to.be.empty;
    expect(operator.cursor?.name).to.equal('name-1');
  });

  it('reports a token that no longer exists, and sends no change', () => {
    const operator = watching(many(3)).press('enter');
    operator.daemon.tokens.shift();
    operator.passes(2_000);
    expect(operator.state.token?.isGone).to.equal(true);
    expect(operator.press('x').says).to.equal('This token no longer exists');
    expect(operator.state.connection.is).to.equal('live');
  });

  describe('counts the requests of the last minute', () => {
    const used = (id: string, ageMs: number, tokenId = '00000000-token') => ({
      of: 'tokenEvents' as const,
      item: { kind: 'request.completed', id, time: at(-ageMs), token_id: tokenId } as WireRequestEvent,
    });
    const counted = (operator: Operator) => lastMinuteRequests(operator.state);

    it('also those before the token was opened, each once', () => {
      const operator = watching(many(1)).press('enter');
      operator.acts({ on: 'streamed', streamed: [used('a', 50_000), used('b', 10_000), used('c', 0, 'other')] });
      operator.acts({ on: 'streamed', streamed: [used('b', 10_000), used('d', 0)] });
      expect(counted(operator)).to.deep.equal([50_000, 10_000, 0]);
      expect(counted(operator.passes(15_000))).to.deep.equal([25_000, 15_000]);
    });

    it('by the clock of the daemon', () => {
      const operator = watching(many(1)).press('enter').acts({ on: 'heard', skewMs: 90_000 });
      operator.acts({ on: 'streamed', streamed: [used('a', 0), used('b', -80_000), used('c', -95_000)] });
      expect(counted(operator)).to.deep.equal([10_000, 0]);
    });

    it('of a token that is not loaded yet', () => {
      const daemon = new SimulatedDaemon({ tokens: many(1) });
      daemon.events = [used('a', 0).item];
      const operator = new Operator({ daemon, tab: 'events' });
      operator.isHeld = true;
      operator.press('t');
      operator.acts({ on: 'streamed', streamed: [used('a', 0)] });
      expect(operator.state.token?.token).to.equal(null);
      expect(counted(operator)).to.deep.equal([0]);
    });
  });
});

describe('tabs', () => {
  it('open by number, and in a circle with tab', () => {
    const operator = watching([]);
    for (const [key, screen] of Object.entries({ 1: 'overview', 4: 'audit', 6: 'events', 7: 'top' })) {
      expect(operator.press(key).screen).to.equal(screen);
    }
    expect(operator.press('tab').screen).to.equal('overview');
    expect(operator.press('shift+tab', 'shift+tab').screen).to.equal('events');
  });

  it('keep their state', () => {
    const operator = watching(many(5)).press('j', 'j', 'space', '3', '2');
    expect(operator.cursor?.name).to.equal('name-3');
    expect(operator.marks).to.have.lengthOf(1);
  });
});

describe('quitting', () => {
  it('works with q on the first view and with ^c everywhere; q goes back elsewhere', () => {
    const operator = watching(many(1)).press('enter', 'q');
    expect(operator.did('quit')).to.equal(undefined);
    expect(operator.press('q').did('quit')).to.deep.equal({ do: 'quit', code: 0 });
    expect(watching([]).press('ctrl+c').did('quit')).to.deep.equal({ do: 'quit', code: 130 });
  });

  it('asks once with q, if that also stops the demo', () => {
    const settings = { quitEnds: 'the demo' };
    const quits = (...keys: string[]) => new Operator({ settings }).press(...keys);
    expect(quits('q').did('quit')).to.equal(undefined);
    expect(quits('q').says).to.equal('Press q again to quit, which also stops the demo');
    expect(quits('q', 'q').did('quit')).to.deep.equal({ do: 'quit', code: 0 });
    expect(quits('3', 'q', '2', 'q').did('quit'), 'the question is over on another screen').to.equal(undefined);
    expect(quits('q').passes(10_000).press('q').did('quit'), 'and after a while').to.equal(undefined);
    expect(quits('ctrl+c').did('quit')).to.deep.equal({ do: 'quit', code: 130 });
    expect(quits(':', 'q', 'enter').did('quit')).to.deep.equal({ do: 'quit', code: 0 });
  });

  it('works if the management token was refused', () => {
    const operator = watching([]);
    operator.daemon.failing = () => DENIED;
    operator.passes(2_000).press('q');
    expect(operator.did('quit')).to.not.equal(undefined);
  });
});

describe('rows of the overview', () => {
  it('open what a problem names: its token, its project, or the events of unknown clients', () => {
    const daemon = new SimulatedDaemon({ tokens: [token(0)] });
    const ofProject = { ...incidentExample, project_id: 'project-web', project_name: 'web' };
    daemon.incidents = [
      ofProject,
      { ...ofProject, kind: 'failing_token', token_id: token(0).id, token_name: 'name-0', why: 'revoked' },
      { ...ofProject, kind: 'unknown_tokens', project_id: null, project_name: null, why: 'unknown token' },
    ];
    const operator = () => new Operator({ daemon, tab: 'overview' });
    expect(operator().press('enter').screen).to.equal('project');
    const ofToken = operator().press('j', 'enter');
    expect([ofToken.screen, ofToken.state.token?.token?.id]).to.deep.equal(['token', token(0).id]);
    const ofUnknown = operator().press('j', 'j', 'enter');
    expect([ofUnknown.screen, ofUnknown.state.events.filter]).to.deep.equal([
      'events',
      'outcome:failed why:"unknown token"',
    ]);
  });

  it('say what to do about a problem of llmp itself, which has no screen', () => {
    const daemon = new SimulatedDaemon();
    daemon.statusFields = { degraded: ['redis'] };
    const operator = new Operator({ daemon, tab: 'overview' });
    expect(operator.press('enter').says).to.contain('run `llmp doctor`');
  });

  it('open the tokens with the most failures', () => {
    const daemon = new SimulatedDaemon({ tokens: [token(0), token(1)] });
    daemon.topRows = [topRow(1, { errors: 4, failed: 4 }), topRow(0)];
    const operator = new Operator({ daemon, tab: 'overview' }).press('j', 'j', 'j', 'j', 'j', 'j', 'enter');
    expect([operator.screen, operator.state.token?.token?.id]).to.deep.equal(['token', token(1).id]);
  });

  it('open the tokens in a state, and the tokens that expire next', () => {
    const daemon = new SimulatedDaemon({ tokens: [token(0), token(1), token(2, { state: 'revoked' })] });
    const operator = new Operator({ daemon, tab: 'overview' }).press('enter');
    expect([operator.screen, operator.says]).to.deep.equal(['overview', 'No row is selected; j and k select one']);
    operator.press('j', 'j', 'j', 'enter');
    expect([operator.screen, operator.state.tokens.filter]).to.deep.equal(['tokens', 'state:revoked']);
    expect(operator.length).to.equal(1);
    const last = operator.press('q', 'G').state.overview.expiring.at(-1);
    expect(operator.press('enter').screen).to.equal('token');
    expect(operator.state.token?.token?.id).to.equal(last?.id).and.be.a('string');
    expect(operator.press('escape').screen).to.equal('overview');
    expect(operator.press('k', 'k', 'k', 'k', 'k', 'k', 'k', 'k', 'k').state.overview.selected).to.equal('active');
  });
});
