import { expect } from 'chai';
import { EXIT } from '../../../console/failure.js';
import { candidates } from '../../../tui/keys/command-line/candidates.js';
import { COMMANDS } from '../../../tui/keys/command-line/commands.js';
import { MAX_HISTORY } from '../../../tui/state/command-line.js';
import type { CommandLine } from '../../../tui/state/layers.js';
import { type Beginning, Operator } from '../operator.js';
import { screenText } from '../screens/rendering.js';
import { scene, SECRET } from '../screens/scenes.js';
import { project, SimulatedDaemon, token } from '../simulated.js';

function daemon() {
  const simulated = new SimulatedDaemon({
    tokens: Array.from({ length: 30 }, (_, at) => token(at, { name: at === 7 ? 'ci-deploy' : `job-${at}` })),
    projects: [project('web'), project('My API'), project('research')],
  });
  simulated.contexts = ['here', 'prod', 'staging'].map((name) => ({
    ...{ name, server: `https://${name}.example`, isCurrent: name === 'here' },
    ...{ isProtected: false, isReadonly: false, color: null },
  }));
  return simulated;
}
const operator = (beginning: Beginning = {}) => new Operator({ daemon: daemon(), ...beginning });

/** Enters a command. */
const entered = (text: string, it = operator()) => it.press(':').types(text).press('enter');

const lineOf = (it: Operator): CommandLine => {
  if (it.top?.kind !== 'command') throw new Error(`no command line but ${it.top?.kind ?? 'nothing'}`);
  return it.top;
};
const offered = (it: Operator) =>
  candidates(it.state, lineOf(it)).options.map((option) =>
    option.kind === 'argument'
      ? option.insert
      : option.kind === 'command'
        ? `:${option.command.name}`
        : option.binding.label,
  );
const offeredFor = (text: string, it = operator()) => offered(it.press(':').types(text));

describe('the command line', () => {
  describe('opens a screen', () => {
    for (const [text, screen, filter] of [
      ['tokens', 'tokens', ''],
      ['t state:active job', 'tokens', 'state:active job'],
      ['  tokens   project:"My API"  ', 'tokens', 'project:"My API"'],
      ['p we', 'projects', 'we'],
      ['projects state:active', 'projects', 'state:active'],
      ['e status:5xx', 'events', 'status:5xx'],
      ['audit action:token.revoke', 'audit', 'action:token.revoke'],
      ['a', 'audit', ''],
      ['overview', 'overview', undefined],
      ['o', 'overview', undefined],
      ['cache', 'cache', undefined],
    ] as const) {
      it(`with :${text}`, () => {
        const it = entered(text, operator({ tab: 'cache' }));
        expect(it.screen).to.equal(screen);
        expect(it.top).to.equal(undefined);
        const { tokens, projects, audit, events } = it.state;
        const filters: Record<string, string> = {
          ...{ tokens: tokens.filter, projects: projects.filter, audit: audit.filter, events: events.filter },
        };
        expect(filters[screen]).to.equal(filter);
      });
    }

    it('with all of its rows, if it had a filter', () => {
      const it = entered('tokens ci-deploy');
      expect(it.length).to.equal(1);
      entered('tokens', it);
      expect(it.length).to.equal(30);
    });

    it('from the detail of a token, and replaces what was opened before', () => {
      const it = operator().press('enter');
      expect(it.screen).to.equal('token');
      entered('t ci', it);
      expect(it.state.views).to.have.length(1);
      expect(it.length).to.equal(1);
    });
  });

  describe('opens a token', () => {
    it('by its name, and by the beginning of its ID', () => {
      const it = entered('token ci-deploy');
      const { id } = it.daemon.tokens[7]!;
      expect(it.state.views.at(-1)).to.deep.equal({ screen: 'token', id });
      expect(entered(`token ${id.slice(0, 8)}`).state.views.at(-1)).to.deep.equal({ screen: 'token', id });
    });

    it('by its whole ID, if it is not loaded', () => {
      const id = '77777777-7777-4777-8777-777777777777';
      expect(entered(`token ${id}`).state.views.at(-1)).to.deep.equal({ screen: 'token', id });
    });

    for (const [text, problem] of [
      ['token nobody', 'no loaded token is called "nobody"; search all tokens with :tokens nobody'],
      ['token', 'which token? give its name, or the beginning of its ID'],
    ] as const) {
      it(`unless there is none: ${text}`, () => {
        const it = entered(text);
        expect(lineOf(it).problem).to.equal(problem);
        expect(it.screen).to.equal('tokens');
      });
    }

    it('unless several have that name', () => {
      const it = operator();
      it.daemon.tokens[8]!.name = 'ci-deploy';
      entered('token ci-deploy', it.press('ctrl+r'));
      expect(lineOf(it).problem).to.equal('2 tokens are called "ci-deploy"; give the beginning of the ID');
    });
  });

  it('switches to a context, or lists them', () => {
    expect(entered('ctx prod').did('connect')).to.deep.equal({ do: 'connect', context: 'prod' });
    expect(entered('c staging').did('connect')).to.deep.equal({ do: 'connect', context: 'staging' });
    expect(entered('ctx').top?.kind).to.equal('contexts');
    const it = entered('ctx prd');
    expect(lineOf(it).problem).to.equal('there is no context "prd"; did you mean prod?');
    expect(it.did('connect')).to.equal(undefined);
  });

  it('changes the skin', () => {
    const skins = { current: 'default', all: new Map(['default', 'light'].map((name) => [name, {}])) };
    const it = operator({ settings: { skins } });
    expect(entered('skin light', it).state.skins.current).to.equal('light');
    expect(entered('skin ligth', it).top).to.include({ problem: 'there is no skin "ligth"; did you mean light?' });
    expect(entered('skin', it.press('escape')).top).to.include({
      problem: 'which skin? choose one of default, light',
    });
  });

  it('quits, and shows the keys', () => {
    expect(entered('q').did('quit')).to.deep.equal({ do: 'quit', code: EXIT.done });
    expect(entered('quit', operator().press('enter')).did('quit')).to.deep.equal({ do: 'quit', code: EXIT.done });
    expect(entered('help').top?.kind).to.equal('help');
  });

  describe('runs an action of the screen', () => {
    it('by the beginning of its name', () => {
      expect(entered('rev').dialog.action).to.equal('Revoke');
      expect(entered('copy comm').did('copy')).to.include({ what: 'The command' });
    });

    it('by words of its description, and by some of its letters', () => {
      expect(entered('issue token').dialog.title).to.contain('token');
      expect(offeredFor('mka')).to.deep.equal(['mark all']);
    });

    it('or says why it cannot', () => {
      expect(entered('undo').says).to.equal('Nothing to undo');
    });

    it('only once the screen has it', () => {
      expect(offeredFor('revoke')).to.include('revoke');
      expect(offeredFor('revoke', operator({ tab: 'cache' }))).not.to.include('revoke');
    });
  });

  describe('completes', () => {
    it('commands first, then actions; the best match first', () => {
      const all = offeredFor('');
      expect(all.slice(0, COMMANDS.length)).to.deep.equal(COMMANDS.map(({ name }) => `:${name}`));
      expect(all).to.include.members(['revoke', 'contexts', 'sort']);
      expect(new Set(all).size, 'each once').to.equal(all.length);
      expect(offeredFor('tok').slice(0, 2)).to.deep.equal([':tokens', ':token']);
      expect(offeredFor('p')[0]).to.equal(':projects');
      expect(offeredFor('pjs')).to.deep.equal([':projects']);
    });

    for (const [text, completed] of [
      ['tok', 'tokens '],
      ['tokens pro', 'tokens project:'],
      ['tokens project:res', 'tokens project:research'],
      ['t project:api', 't project:"My API"'],
      ['t state:active project:w', 't state:active project:web'],
      ['t state:lim', 't state:rate_limited'],
      ['ctx stg', 'ctx staging'],
      ['token dep', 'token ci-deploy'],
      ['skin li', 'skin light'],
      ['audit action:rev', 'audit action:token.revoke'],
      ['q', 'quit'],
      ['mark a', 'mark all'],
      ['zzz', 'zzz'],
    ] as const) {
      it(`:${text} to :${completed}`, () => {
        const skins = { current: 'default', all: new Map(['default', 'light'].map((name) => [name, {}])) };
        const it = operator({ settings: { skins } }).press(':').types(text).press('tab');
        expect(lineOf(it).line).to.deep.equal({ text: completed, caret: completed.length });
      });
    }

    it('the word at the caret, and leaves the rest', () => {
      const it = operator()
        .press(':')
        .types('t sta job')
        .press(...Array.from({ length: 4 }, () => 'left'), 'tab');
      expect(lineOf(it).line).to.deep.equal({ text: 't state: job', caret: 8 });
    });

    it('what is selected', () => {
      const it = operator().press(':').types('ctx ').press('down', 'tab');
      expect(lineOf(it).line.text).to.equal('ctx prod');
      const other = operator().press(':').types('ctx ').press('ctrl+n', 'ctrl+n', 'ctrl+p', 'enter');
      expect(other.did('connect')).to.deep.equal({ do: 'connect', context: 'prod' });
    });

    it('an argument that goes on, and runs the command with the next Enter', () => {
      const it = operator().press(':').types('t state:').press('down', 'enter');
      expect(lineOf(it).line.text).to.match(/^t state:\w+$/);
      expect(it.press('enter').top).to.equal(undefined);
      expect(it.state.tokens.filter).to.match(/^state:\w+$/);
    });

    it('a command that needs an argument, instead of running it', () => {
      const it = operator().press(':').types('tok').press('down', 'enter');
      expect(lineOf(it)).to.deep.include({ line: { text: 'token ', caret: 6 }, problem: null });
    });
  });

  describe('says what is wrong and where: the caret is after it', () => {
    for (const [text, problem, before] of [
      ['tokens pojects:web', /^no such key: pojects; use state, project/, 'tokens pojects:web'],
      ['tokens state:activ job', /^state must be one of active/, 'tokens state:activ'],
      ['tokens used:>101% expires:<2h', /percentage from 0% to 100%/, 'tokens used:>101%'],
      ['tokens project:nope ', /^no such project/, 'tokens project:nope'],
      ['tokens state:', /^the filter is incomplete/, 'tokens state:'],
      ['events status:999', /^status must be like/, 'events status:999'],
      ['cache all', /^cache takes no argument/, 'cache all'],
      ['tokns state:active', /^there is no command "tokns"; did you mean tokens\?/, 'tokns'],
      ['frobnicate', /^there is no command "frobnicate"; :help lists/, 'frobnicate'],
      ['ctx  prodd', /^there is no context "prodd"; did you mean prod\?/, 'ctx  prodd'],
    ] as const) {
      it(`:${text}`, () => {
        const it = entered(text);
        const { line, problem: found } = lineOf(it);
        expect(found).to.match(problem);
        expect(line.text.slice(0, line.caret)).to.equal(before);
        expect(lineOf(it.types('x')).problem, 'until it is edited').to.equal(null);
      });
    }

    it('never sends a secret', () => {
      const it = operator().forgets();
      entered(`tokens ${SECRET}`, it);
      expect(lineOf(it).problem).to.match(/this is a secret and was not sent/);
      expect(it.asked('tokens')).to.equal(0);
    });
  });

  describe('has a history', () => {
    const withHistory = () => {
      const it = operator();
      for (const text of ['t one', 'p two', 'cache']) entered(text, it);
      return it;
    };

    it('that up and down go through, and that ends at what was typed', () => {
      const it = withHistory().press(':').types('dra');
      const texts = ['up', 'up', 'up', 'up', 'down', 'down', 'down'].map((key) => lineOf(it.press(key)).line.text);
      expect(texts).to.deep.equal(['cache', 'p two', 't one', 't one', 'p two', 'cache', 'dra']);
    });

    it('whose commands can be edited and run again', () => {
      const it = withHistory().press(':', 'up', 'up').types('x').press('enter');
      expect(it.state.projects.filter).to.equal('twox');
      expect(it.state.commandHistory).to.deep.equal(['t one', 'p two', 'cache', 'p twox']);
    });

    it('without repetitions, and without commands that failed', () => {
      const it = entered('cache', entered('cache', withHistory()));
      entered('tokens nope:x', it);
      expect(it.state.commandHistory).to.deep.equal(['t one', 'p two', 'cache']);
    });

    it('that is stored for the next start', () => {
      expect(entered('t one').did('remember')).to.deep.equal({ do: 'remember', line: 't one' });
      const next = operator({ settings: { commandHistory: ['p earlier'] } }).press(':', 'up');
      expect(lineOf(next).line.text).to.equal('p earlier');
    });

    it('of a limited length', () => {
      const it = operator();
      for (let at = 0; at < MAX_HISTORY + 5; at++) entered(`t x${at}`, it);
      expect(it.state.commandHistory).to.have.length(MAX_HISTORY);
      expect(it.state.commandHistory.at(-1)).to.equal(`t x${MAX_HISTORY + 4}`);
      entered(`t ${'y'.repeat(99)} ${'z'.repeat(500)}`, it);
      expect(it.state.commandHistory.at(-1)).to.equal(`t x${MAX_HISTORY + 4}`);
    });

    it('without secrets', () => {
      const it = entered('e sk-live-0123456');
      expect(it.screen).to.equal('events');
      expect(it.state.commandHistory).to.deep.equal([]);
      expect(it.did('remember')).to.equal(undefined);
    });
  });

  it('closes with escape, and with Enter on an empty line', () => {
    for (const key of ['escape', 'ctrl+c', 'enter']) expect(operator().press(':', key).top).to.equal(undefined);
  });

  it('stops at the last completion', () => {
    const it = operator().press(':');
    const last = offered(it).length - 1;
    for (let presses = 0; presses < 200; presses++) it.press('down');
    expect(lineOf(it).selected).to.equal(last);
    expect(lineOf(it.press('pageup')).selected).to.equal(last - 8);
  });

  for (const [columns, rows] of [
    [80, 24],
    [120, 40],
  ] as const) {
    it(`shows the line, completions and problems, at ${columns}x${rows}`, () => {
      const it = scene({ columns, rows }).press(':', 't', 'o', 'k');
      const text = screenText(it.state);
      expect(text).to.match(/\n : tok█ *\n/);
      expect(text).to.match(/> tokens \[FILTER\] +:t +show all tokens, or those of a filter/);
      expect(text).to.match(/\n ⏎ run {2}tab complete {2}↑ earlier {2}esc back/);
      it.act({ on: 'paste', text: 'ens nope:web' }).press('enter');
      expect(screenText(it.state)).to.match(/│ ?! no such key: nope; use state, project/);
      it.press('ctrl+u').act({ on: 'paste', text: 't project:' });
      expect(screenText(it.state)).to.match(/> batch [^]*research[^]*web/);
    });
  }
});
