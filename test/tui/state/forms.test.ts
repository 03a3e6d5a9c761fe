import { inspect } from 'node:util';
import { expect } from 'chai';
import { Operator, type Beginning } from '../operator.js';
import { cursorRow } from '../../../tui/state/window.js';
import { project, REFUSED, SECRET, SimulatedDaemon, token, UNREACHABLE } from '../simulated.js';

const PROJECTS = [project('off', { is_active: false }), project('web'), project('shop')];
const watching = (more: Beginning = {}) =>
  new Operator({ daemon: new SimulatedDaemon({ tokens: [token(0)], projects: PROJECTS }), ...more });
const dumped = ({ state, effects }: Operator) =>
  JSON.stringify([state, effects]) + inspect([state, effects], { depth: Infinity, showHidden: true });
const created = () => watching().press('n').fills('Name', 'mine').submits();

describe('form for a new token', () => {
  it('preselects an active project: that of the filter, or of the context', () => {
    expect(watching().press('n').value('Project')).to.equal('project-web');
    const empty = new SimulatedDaemon({ projects: PROJECTS });
    const inShop = new Operator({ daemon: empty, place: { project: 'shop' } });
    expect(inShop.press('n').value('Project')).to.equal('project-shop');
    const daemon = new SimulatedDaemon({ projects: PROJECTS });
    const there = new Operator({ daemon, tab: 'projects' }).press('enter');
    expect(there.press('q', 'j').press('n').dialog.title).to.equal('New project');
  });

  it('preselects the project of the shown token, unless it is inactive', () => {
    const tokens = [token(0, { project_id: 'project-shop' }), token(1, { project_id: 'project-off' })];
    const operator = new Operator({ daemon: new SimulatedDaemon({ tokens, projects: PROJECTS }) });
    expect(operator.press('enter', 'n').value('Project')).to.equal('project-shop');
    expect(operator.press('escape', 'escape', 'j', 'enter', 'n').value('Project')).to.equal('project-web');
  });

  it('preselects the project of the token under the cursor (finding A5)', () => {
    const tokens = [token(0), token(1, { project_id: 'project-shop' }), token(2, { project_id: 'project-off' })];
    const daemon = new SimulatedDaemon({ tokens, projects: PROJECTS });
    const operator = new Operator({ daemon, place: { project: 'web' } }).press('j', 'n');
    expect(operator.value('Project')).to.equal('project-shop');
    operator.press('escape', 'j', 'n');
    expect(operator.value('Project'), 'what is off issues none').to.equal('project-web');
    expect(operator.dialog.notes[0]?.words).to.equal('Project off is inactive; another one is preselected.');
  });

  it('preselects the project under the cursor (finding A5)', () => {
    const operator = watching({ tab: 'projects' }).press('j', 'N');
    expect(operator.dialog.title).to.equal('New token');
    const under = operator.press('escape').state.projects.window;
    expect(operator.press('N').value('Project')).to.equal(cursorRow(under)?.id);
    expect(operator.value('Project')).to.equal('project-shop');
  });

  it('does not open without an active project', () => {
    const daemon = new SimulatedDaemon({ projects: [project('off', { is_active: false })] });
    expect(new Operator({ daemon }).press('n').says).to.match(/No active project/);
  });

  it('accepts hours, minutes and a cap', () => {
    const operator = watching().press('n', 'right').fills('Name', 'q n 1').fills('Expires in', '90m');
    operator.fills('Request cap', '500').press('enter', 'enter');
    // As JSON, which has no field for a term that was left out.
    expect(JSON.parse(JSON.stringify(operator.daemon.made[0]?.change))).to.deep.equal({
      what: 'create-token',
      body: { project_id: 'project-shop', duration_minutes: 90, max_requests: 500, name: 'q n 1' },
    });
  });

  for (const [given, field, problem] of [
    ['0', 'Expires in', /hours from 1 to 8760/],
    ['366d', 'Expires in', /hours from 1 to 8760/],
    ['8761h', 'Expires in', /hours from 1 to 8760/],
    ['soon', 'Expires in', /hours from 1 to 8760/],
    ['-1', 'Request cap', /Request cap: /],
    ['2147483648', 'Request cap', /Request cap: /],
    ['n'.repeat(101), 'Name', /up to 100/],
  ] as const) {
    it(`reports a problem with ${given.slice(0, 12)} at its field, and sends nothing`, () => {
      const operator = watching().press('n').fills(field, given).submits();
      expect(operator.dialog.problem).to.match(problem);
      expect(operator.field).to.equal(field);
      expect(operator.daemon.made).to.be.empty;
    });
  }

  for (const [given, body] of [
    ['2d', { duration_hours: 48 }],
    ['1w', { duration_hours: 168 }],
    ['36h', { duration_hours: 36 }],
    ['12', { duration_hours: 12 }],
  ] as const) {
    it(`accepts ${given} as the lifetime`, () => {
      const operator = watching().press('n').fills('Expires in', given).submits();
      expect(operator.daemon.made[0]?.change).to.deep.nested.include({ what: 'create-token' });
      expect(operator.daemon.made[0]?.change).to.have.property('body').that.includes(body);
    });
  }

  it('opens again with its values when the daemon refuses it', () => {
    const operator = watching();
    operator.daemon.refusing = { ...REFUSED, status: 409, message: 'the project is inactive' };
    operator.press('n').fills('Name', 'mine').submits();
    expect(operator.dialog.problem).to.equal('the project is inactive; nothing was changed');
    expect(operator.value('Name')).to.equal('mine');
    operator.daemon.refusing = null;
    operator.press('enter');
    expect(operator.top?.kind).to.equal('reveal');
  });

  it('reports an unknown result without a response', () => {
    const operator = watching();
    operator.daemon.refusing = UNREACHABLE;
    operator.press('n').submits();
    expect(operator.says).to.match(/the result is unknown/);
  });
});

describe('secret of a new token', () => {
  it('is in no dump of the state or of the effects', () => {
    const operator = created().press('v', 'y', 'w').types('x').press('enter');
    expect(operator.top?.kind).to.equal('reveal');
    expect(dumped(operator)).not.to.contain(SECRET.slice(8, 30));
  });

  it('is masked until v is pressed, and masked again by v', () => {
    const operator = created();
    expect(operator.top).to.include({ isShown: false });
    expect(operator.press('v').top).to.include({ isShown: true });
    expect(operator.press('v').top).to.include({ isShown: false });
  });

  it('is closed only by Enter', () => {
    const operator = created().press('v');
    for (const key of 'escape q ctrl+c h left 1 2 tab x n / : ? c p u space backspace'.split(' ')) {
      expect(operator.press(key).top?.kind, key).to.equal('reveal');
    }
    expect(operator.did('quit')).to.equal(undefined);
    expect(operator.press('enter').top).to.equal(undefined);
  });

  it('is not lost by an Enter typed when the dialog appears', () => {
    const operator = watching().press('n');
    operator.isHeld = true;
    operator.submits().press('/').types('web');
    operator.isHeld = false;
    operator.hears().press('enter');
    expect(operator.top).to.include({ kind: 'reveal' });
    expect(operator.press('enter').top?.kind).to.equal('prompt');
  });

  it('suspends refreshes and streams', () => {
    const operator = created().press('v').forgets().passes(60_000);
    expect(operator.effects.filter((effect) => effect.do === 'load')).to.be.empty;
    expect(operator.followed).to.be.empty;
    expect(operator.press('enter').asked('status')).to.equal(1);
  });

  it('is copied without claiming success', () => {
    const operator = created().press('y');
    expect(operator.did('copy')?.what).to.equal('The secret');
    operator.acts({ on: 'copied', what: 'The secret', to: 'terminal' });
    expect(operator.top).to.include({ notice: "The secret was sent to the terminal's clipboard" });
    operator.acts({ on: 'notCopied', what: 'The secret' });
    expect(operator.top)
      .to.have.property('problem')
      .that.matches(/too long/);
  });

  it('is written once to the path; errors are shown', () => {
    const operator = created().press('w', 'ctrl+u').types('~/q v/y').press('enter', 'enter');
    expect(operator.effects.filter((effect) => effect.do === 'write')).to.have.lengthOf(1);
    expect(operator.did('write')?.path).to.equal('~/q v/y');
    operator.acts({ on: 'notWritten', path: '~/q v/y', why: 'the file already exists' });
    expect(operator.top).to.include({ problem: 'Cannot write ~/q v/y: the file already exists' });
    operator.types('2').press('enter');
    operator.acts({ on: 'written', path: '/home/q v/y2' });
    expect(operator.top).to.include({ notice: 'Written to /home/q v/y2', path: null });
    expect(operator.press('w', 'escape').top).to.include({ path: null });
  });
});

describe('key of a project', () => {
  const KEY = 'sk-providers-key-nobody-may-see';
  const filling = () => watching({ tab: 'projects' }).press('n').fills('Name', 'night').goesTo("Provider's key");

  it('is in no dump while it is typed, in flight, or shown again after an error', () => {
    const operator = filling().types(KEY);
    expect(operator.value("Provider's key")).to.equal(KEY);
    expect(dumped(operator)).not.to.contain(KEY);
    operator.daemon.refusing = { ...REFUSED, status: 409, message: 'the name is taken' };
    operator.press('enter');
    operator.isHeld = true;
    operator.press('enter');
    expect(dumped(operator)).not.to.contain(KEY);
    operator.isHeld = false;
    expect(operator.hears().dialog.problem).to.match(/the name is taken/);
    expect(operator.value("Provider's key")).to.equal(KEY);
    expect(dumped(operator)).not.to.contain(KEY);
  });

  it('is pasted without the trailing newline, and edited like any other text', () => {
    const operator = filling().pastes(`${KEY}\n`).press('left', 'backspace').types('e');
    expect(operator.value("Provider's key")).to.equal(KEY);
    operator.press('enter', 'enter');
    expect(operator.says).to.equal('Created project night.');
  });

  it('must be non-empty visible ASCII', () => {
    expect(filling().press('enter', 'enter').dialog.problem).to.match(/Enter the provider's key/);
    expect(filling().types('clé').press('enter', 'enter').dialog.problem).to.match(/visible ASCII/);
  });
});

describe('purge', () => {
  const purging = (more: Beginning = {}) => watching({ tab: 'cache', ...more }).press('x');

  it('shows how many responses it would remove, after a pause in typing', () => {
    const operator = purging();
    expect(operator.state.cache.preview).to.deep.include({ count: 3 });
    operator.forgets().goesTo('Path').types('models');
    expect(operator.asked('purgeable')).to.equal(0);
    expect(operator.state.cache.preview).to.equal(null);
    operator.passes(250);
    expect(operator.asked('purgeable')).to.equal(1);
    expect(operator.state.cache.preview).to.deep.include({ count: 3 });
    operator.fills('Reason', 'why').passes(1_000);
    expect(operator.asked('purgeable')).to.equal(1);
  });

  it('is not started by Enter alone', () => {
    const operator = purging();
    for (let presses = 0; presses < 9; presses++) operator.press('enter');
    expect(operator.daemon.made.filter(({ change }) => change.what === 'purge')).to.be.empty;
  });

  it('purges one URL, one project or everything', () => {
    const made = (...keys: string[]) => purging().press(...keys).daemon.made[0]?.change;
    expect(made('up', 'enter')).to.deep.include({ body: { method: 'GET', url: '/v1/' } });
    expect(made('right', 'up', 'enter')).to.deep.include({ body: { project_id: 'project-off' } });
    expect(made('left', 'up', 'enter')).to.deep.include({ body: { all: true } });
  });

  it('must be confirmed by typing in a protected context', () => {
    const operator = purging({ place: { isProtected: true } }).press('left', 'up', 'enter');
    expect(operator.dialog.problem).to.equal('Type purge to confirm');
    operator.types('purge').press('up', 'up', 'up', 'enter');
    expect(operator.says).to.equal('Purged 3 cached responses.');
  });

  it('is not available if the cache is off', () => {
    const daemon = new SimulatedDaemon();
    daemon.cache = { ...daemon.cache, backend: 'off' };
    expect(new Operator({ daemon, tab: 'cache' }).press('x').says).to.match(/cache is off/);
  });
});
