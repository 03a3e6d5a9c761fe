import { expect } from 'chai';
import type { WireToken } from '../../../daemon/api/contract.js';
import { Operator } from '../operator.js';
import { at, DENIED, project, REFUSED, SimulatedDaemon, token } from '../simulated.js';

const HOUR_MS = 3_600_000;
const many = (count: number) => Array.from({ length: count }, (_, index) => token(index));
const watching = (tokens: WireToken[], projects = [project('web')]) =>
  new Operator({ daemon: new SimulatedDaemon({ tokens, projects }) });

describe('the list of tokens', () => {
  it('is walked with j and k, and ends at its ends', () => {
    const operator = watching(many(3)).press('j', 'j', 'j', 'j');
    expect(operator.cursor?.name).to.equal('name-2');
    expect(operator.press('k', 'up', 'up', 'up').cursor?.name).to.equal('name-0');
    expect(operator.press('down', 'ctrl+d', 'pagedown').cursor?.name).to.equal('name-2');
    expect(operator.press('ctrl+u').cursor?.name).to.equal('name-0');
  });

  it('begins with the live ones that expire next, and ends with the dead (finding A10)', () => {
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
      effect.do === 'ask' && effect.question.of === 'tokens' ? [effect.question.query.sort] : [],
    );
    expect(sorts[0], 'the daemon puts them in order, page by page').to.equal('live');
  });

  it('goes to the last and the first of 100,000, whose total comes from the API', () => {
    const operator = watching(many(100_000)).forgets().press('G');
    expect(operator.cursor?.name).to.equal('name-99999');
    expect(operator.length).to.equal(100_000);
    expect(operator.asked('tokens')).to.be.lessThan(5);
    for (let row = 0; row < 300; row++) operator.press('k');
    expect(operator.cursor?.name).to.equal('name-99699');
    expect(operator.press('g').cursor?.name).to.equal('name-0');
  }).timeout(60_000);

  it('keeps the cursor on its token when others come and go', () => {
    const operator = watching(many(10)).press('j', 'j', 'j');
    operator.daemon.tokens = [token(50, { expires_at: at(1_000) }), ...operator.daemon.tokens.slice(1)];
    operator.daemon.tokens.push(token(51, { expires_at: at(2_000) }));
    operator.passes(4_000);
    expect(operator.cursor?.name).to.equal('name-3');
    expect(operator.state.tokens.window.cursorIndex).to.equal(4);
  });

  it('sorts by the next column, and the other way round', () => {
    const operator = watching(many(5)).press('s');
    expect(operator.did('ask')?.question).to.have.nested.property('query.sort', '-created_at');
    operator.press('S');
    expect(operator.did('ask')?.question).to.have.nested.property('query.sort', 'created_at');
    operator.press('s', 's', 's');
    expect(operator.state.tokens.order).to.equal('name');
    expect(operator.press('S').cursor?.name).to.equal('name-4');
  });

  it('says that there is nothing to act on where there is nothing', () => {
    const operator = watching([]);
    for (const key of ['enter', 'x', 'a', 'space', 'v', 'ctrl+a', '*', 'y']) {
      expect(operator.press(key).says, key).to.equal('There is no token here');
    }
  });

  it('fits a window of another height, whatever is looked at', () => {
    const operator = watching(many(100)).press('G', '1').forgets().resizes(80, 12);
    expect(operator.asked('tokens')).to.equal(0);
    operator.press('2');
    const { top, cursorIndex } = operator.state.tokens.window;
    expect(cursorIndex - top).to.be.within(0, 4);
  });

  it('copies the id, or all that are marked', () => {
    const operator = watching(many(3)).press('y');
    expect(operator.did('copy')).to.deep.include({ text: '00000000-token', what: 'The id' });
    operator.press('space', 'space', 'y');
    expect(operator.did('copy')).to.deep.include({ text: '00000000-token\n00000001-token', what: '2 ids' });
    operator.acts({ on: 'copied', what: '2 ids' });
    expect(operator.says).to.equal("2 ids was sent to the terminal's clipboard");
  });
});

describe('marks', () => {
  it('are made and taken away with space, which goes on', () => {
    const operator = watching(many(3)).press('space', 'space');
    expect(operator.marks).to.have.lengthOf(2);
    expect(operator.cursor?.name).to.equal('name-2');
    expect(operator.press('k', 'space').marks).to.deep.equal(['00000000-token']);
  });

  it('are made from v to v, and v is given up with escape', () => {
    const operator = watching(many(9)).press('j', 'v', 'j', 'j', 'v');
    expect(operator.marks).to.deep.equal(['00000001-token', '00000002-token', '00000003-token']);
    operator.press('v', 'escape', 'j', 'v');
    expect(operator.state.tokens.rangeFrom).to.not.equal(null);
  });

  it('of all that the filter lets through come to those that are there', () => {
    const tokens = [token(0, { name: 'ci' }), token(1, { name: 'night' }), token(2, { name: 'ci-two' })];
    const operator = watching(tokens).press('j', 'space', '/').types('ci').press('enter', 'ctrl+a');
    expect(operator.marks).to.have.members(tokens.map(({ id }) => id));
    expect(operator.says).to.equal('3 marked');
  });

  it('are inverted within the filter, and stay beyond it', () => {
    const tokens = [token(0, { name: 'ci' }), token(1, { name: 'night' }), token(2, { name: 'ci-two' })];
    const operator = watching(tokens).press('space', 'space', '/').types('ci').press('enter', '*');
    expect(operator.marks).to.have.members(['00000001-token', '00000002-token']);
  });

  it('stay when the filter changes and when what is shown is refreshed', () => {
    const operator = watching(many(3)).press('space', '/').types('name-2').press('enter').passes(6_000);
    expect(operator.length).to.equal(1);
    expect(operator.marks).to.deep.equal(['00000000-token']);
  });

  it('are not made any more when that was stopped', () => {
    const operator = watching(many(3));
    operator.isHeld = true;
    operator.press('ctrl+a', 'ctrl+a');
    expect(operator.says).to.equal('Marking goes on; esc stops it');
    operator.acts({ on: 'progress', words: 'Marking', done: 1, of: 3 }).press('escape');
    expect(operator.did('stop')).to.not.equal(undefined);
    expect(operator.hears().marks).to.be.empty;
    expect(operator.state.progress).to.equal(null);
  });

  it('can be made again after the daemon refused to say which', () => {
    const operator = watching(many(3));
    operator.daemon.failing = ({ of }) => (of === 'everyToken' ? REFUSED : null);
    operator.press('ctrl+a');
    operator.daemon.failing = () => null;
    expect(operator.press('ctrl+a').marks).to.have.lengthOf(3);
  });
});

describe('the filter', () => {
  const tokens = [token(0, { name: 'ci' }), token(1, { name: 'night' }), token(2, { name: 'ci-two' })];

  it('holds after a pause in typing, and at once with Enter', () => {
    const operator = watching(tokens).press('/').types('ci');
    expect(operator.length).to.equal(3);
    expect(operator.passes(249).length).to.equal(3);
    expect(operator.passes(1).length).to.equal(2);
    expect(operator.types('-two').press('enter').length).to.equal(1);
    expect(operator.top).to.equal(undefined);
    expect(operator.state.tokens.filter).to.equal('ci-two');
  });

  it('is what it was after escape', () => {
    const operator = watching(tokens).press('/').types('ci').press('enter', '/').types('two').passes(300);
    expect(operator.length).to.equal(1);
    expect(operator.press('escape').length).to.equal(2);
    expect(operator.state.tokens.filter).to.equal('ci');
  });

  it('takes every letter, also those that are keys', () => {
    const operator = watching(tokens).press('/').types('q1j?:x/ c');
    expect(operator.top).to.have.nested.property('line.text', 'q1j?:x/ c');
    expect(operator.did('quit')).to.equal(undefined);
  });

  it('says what is wrong with it, and does not hold', () => {
    const operator = watching(tokens).press('/').types('state:wrong').passes(300).press('enter');
    expect(operator.top).to.have.property('problem').that.matches(/state/);
    expect(operator.length).to.equal(3);
    expect(operator.press('escape').top).to.equal(undefined);
  });

  it('is completed with tab', () => {
    const operator = watching(tokens).press('/').types('sta').press('tab').types('act').press('tab', 'enter');
    expect(operator.state.tokens.filter).to.equal('state:active');
  });

  it('that the API refuses is told of', () => {
    const operator = watching(tokens);
    operator.daemon.failing = ({ of }) => (of === 'tokens' ? { ...REFUSED, status: 400, message: 'q is wrong' } : null);
    operator.press('/').types('ci').press('enter');
    expect(operator.says).to.equal('q is wrong');
    expect(operator.state.connection.is).to.equal('live');
  });

  it('goes with escape, after the marks', () => {
    const operator = watching(tokens).press('/').types('ci').press('enter', 'space', 'escape');
    expect(operator.marks).to.be.empty;
    expect(operator.length).to.equal(2);
    expect(operator.press('escape').length).to.equal(3);
    expect(operator.press('escape').says).to.equal('q quits');
    expect(operator.did('quit')).to.equal(undefined);
  });

  it('of a project that was renamed says that it does not hold any more', () => {
    const operator = watching(tokens).press('/').types('project:web').press('enter');
    operator.daemon.projects = [project('shop', { id: 'project-web' })];
    operator.passes(4_000);
    expect(operator.says).to.match(/^The filter does not hold any more/);
    expect(operator.press('escape').length).to.equal(3);
  });

  it('is what was in the prompt when it was pasted, on one line', () => {
    const operator = watching(tokens).press('/').pastes('ci\nnight\n');
    expect(operator.top).to.have.nested.property('line.text', 'ci night');
  });
});

describe('projects', () => {
  it('lead to their tokens, whatever their name, and back', () => {
    const id = '0193a1b2-0000-7000-8000-000000000001';
    for (const name of ['web', 'two words', 'say "so"', '!not', 'a,b', 'project:x']) {
      const daemon = new SimulatedDaemon({
        tokens: [token(0, { project_id: id }), token(1, { project_id: 'other' })],
        projects: [project(name, { id }), project('zzz', { id: 'other' })],
      });
      const operator = new Operator({ daemon, tab: 'projects' }).press('enter');
      expect(operator.screen, name).to.equal('tokens');
      expect(operator.length, name).to.equal(1);
      expect(operator.cursor?.project_id, name).to.equal(id);
      expect(operator.press('h').screen, name).to.equal('projects');
    }
  });

  it('are sorted, reversed and filtered here', () => {
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

  it('are deactivated after a question, activated at once, and both is taken back', () => {
    const operator = new Operator({ tab: 'projects' }).press('d');
    expect(operator.dialog.notes[0]?.words).to.match(/403/);
    operator.press('enter');
    expect(operator.daemon.made).to.be.empty;
    operator.press('d', 'tab', 'enter');
    expect(operator.says).to.equal('Deactivated web.');
    expect(operator.press('d').says).to.equal('It is inactive already');
    expect(operator.press('u').says).to.equal('Activated web.');
  });

  it('are renamed, and get their name back', () => {
    const operator = new Operator({ tab: 'projects' })
      .press('e', 'ctrl+u')
      .types('shop')
      .press('enter', 'enter', 'enter');
    expect(operator.says).to.equal('Renamed web to shop.');
    expect(operator.press('u').says).to.equal('Renamed shop to web.');
    expect(operator.daemon.projects[0]?.name).to.equal('web');
  });

  it('lose all tokens only after their name was typed', () => {
    const operator = new Operator({ tab: 'projects' }).press('X', 'tab', 'enter');
    expect(operator.dialog.problem).to.equal('Type web to confirm');
    operator.types('web').press('enter', 'enter');
    expect(operator.says).to.equal('Revoked 3 tokens of web.');
  });
});

describe('a token looked at closely', () => {
  it('opens, is followed, and leads back', () => {
    const operator = watching(many(3)).press('j', 'enter');
    expect(operator.screen).to.equal('token');
    expect(operator.followed).to.deep.equal([{ of: 'tokenEvents', id: '00000001-token' }]);
    expect(operator.press('escape').screen).to.equal('tokens');
    expect(operator.followed).to.be.empty;
    expect(operator.cursor?.name).to.equal('name-1');
  });

  it('that is gone says so, and changes nothing', () => {
    const operator = watching(many(3)).press('enter');
    operator.daemon.tokens.shift();
    operator.passes(2_000);
    expect(operator.state.token?.isGone).to.equal(true);
    expect(operator.press('x').says).to.equal('This token is not there any more');
    expect(operator.state.connection.is).to.equal('live');
  });

  it('counts its requests of the last minute only, and not those of others', () => {
    const operator = watching(many(1)).press('enter');
    const event = { kind: 'request.completed', token_id: '00000000-token' } as never;
    operator.acts({ on: 'streamed', streamed: [{ of: 'tokenEvents', item: event }] });
    operator.acts({
      on: 'streamed',
      streamed: [{ of: 'tokenEvents', item: { kind: 'request.completed', token_id: 'other' } as never }],
    });
    expect(operator.state.token?.requestsMs).to.have.lengthOf(1);
  });
});

describe('tabs', () => {
  it('are reached by number and round and round with tab', () => {
    const operator = watching([]);
    for (const [key, screen] of Object.entries({ 1: 'overview', 4: 'audit', 6: 'events' })) {
      expect(operator.press(key).screen).to.equal(screen);
    }
    expect(operator.press('tab').screen).to.equal('overview');
    expect(operator.press('shift+tab', 'shift+tab').screen).to.equal('cache');
  });

  it('keep what was being looked at', () => {
    const operator = watching(many(5)).press('j', 'j', 'space', '3', '2');
    expect(operator.cursor?.name).to.equal('name-3');
    expect(operator.marks).to.have.lengthOf(1);
  });
});

describe('leaving', () => {
  it('is by q from the first view, back from any other, and at once with ^c', () => {
    const operator = watching(many(1)).press('enter', 'q');
    expect(operator.did('quit')).to.equal(undefined);
    expect(operator.press('q').did('quit')).to.deep.equal({ do: 'quit', code: 0 });
    expect(watching([]).press('ctrl+c').did('quit')).to.deep.equal({ do: 'quit', code: 130 });
  });

  it('is possible where the token was refused', () => {
    const operator = watching([]);
    operator.daemon.failing = () => DENIED;
    operator.passes(2_000).press('q');
    expect(operator.did('quit')).to.not.equal(undefined);
  });
});
