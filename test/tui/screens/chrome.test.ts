import { expect } from 'chai';
import { keyShown, labelOf } from '../../../tui/keys/binding.js';
import { bindingsOn, keyScopeOf } from '../../../tui/keys/press.js';
import { type State, TABS } from '../../../tui/state/state.js';
import { frameLines, plainLines as linesOf, screenText } from './rendering.js';
import { NOTHING_SAVED } from '../../../tui/state/saved.js';
import { scene, SCENES } from './scenes.js';
import { STATUS } from './screen-fixture.js';
import { self } from '../simulated.js';

const header = (state: State) => linesOf(state)[0]!;
const tabs = (state: State) => linesOf(state)[1]!;
const message = (state: State) => linesOf(state).at(-2)!;
const footer = (state: State) => linesOf(state).at(-1)!;

describe('header', () => {
  it('shows the context, its protection, the address and the view', () => {
    const { state } = scene();
    expect(header(state)).to.match(/^ llmp {2}prod ▌PROTECTED▐ {2}llmp\.example:8443 {2}tokens .*● live \d\d:03:11 $/);
  });

  it('shows that the context is read-only', () => {
    expect(header(scene({ place: { isReadonly: true } }).state)).to.contain('▌READ-ONLY▐');
  });

  it('keeps the protection visible on a narrow screen', () => {
    expect(header(scene({ columns: 50 }).state))
      .to.contain('▌PROTECTED▐')
      .and.not.to.contain('llmp.example');
  });

  it('shows the path to the view, and the filter', () => {
    expect(header(scene({ columns: 120 }).press('enter').state)).to.contain('tokens › ci-deploy');
    expect(header(scene().press('/', 'j', 'o', 'b', 'enter').state)).to.contain('tokens › job');
    expect(header(scene({ columns: 80 }).press('f').state)).to.match(/tokens › events › token:[0-9a-f]{8}… /);
  });

  it('shows the state of the connection', () => {
    expect(header(scene().lose().state)).to.contain('✗ offline');
    expect(header(scene().lose({ kind: 'refused', status: 503 }).state)).to.contain('▲ stale');
    expect(header(scene().lose({ kind: 'refused', status: 401 }).state)).to.contain('✗ denied');
    expect(header(scene().press('p').state)).to.contain('‖ paused');
  });
});

describe('who is logged in', () => {
  const ana = self('issuer', { name: 'ana' });

  it('is in the header at every width, with the role; the holder of the management token is nobody', () => {
    expect(header(scene({ self: ana, columns: 120 }).state)).to.match(
      / prod .* {2}ana \(issuer\) {2}llmp\.example:8443 {2}tokens /,
    );
    expect(header(scene({ self: ana, columns: 80 }).press('enter').state)).to.contain(
      '▌PROTECTED▐  ana (issuer)  tokens › ci-deploy ',
    );
    const long = self('operator', { name: 'Ana Maria Lima de Albuquerque e Castro' });
    expect(header(scene({ self: long, columns: 80 }).state))
      .to.contain('(operator)')
      .and.to.contain('tokens');
    expect(header(scene({ self: long, columns: 50, place: { isProtected: false } }).state)).to.match(
      /Ana Maria… \(operator\) /,
    );
    expect(header(scene().state)).not.to.contain('(');
  });

  it('has the tabs of the role, with the numbers that they have for all', () => {
    expect(tabs(scene({ self: ana }).state)).to.match(/^ 1 Overview {2}2 Tokens 80 {2}3 Projects 3 {2}7 Top +$/);
  });

  it('is in the words of a refusal, which say what to do', () => {
    const denied = { kind: 'refused', status: 401 } as const;
    expect(message(scene({ self: ana }).lose(denied).state)).to.contain('! the secret of ana was refused · ^r retries');
    const ended = { ...denied, code: 'session_ended' };
    expect(message(scene({ self: ana }).lose(ended).state)).to.contain(
      '! the session has ended · run `llmp login`, then press ^r',
    );
    expect(message(scene({ self: ana, place: { context: null } }).lose(ended).state)).to.contain(
      '! the session has ended · run `llmp login`, and start again',
    );
  });
});

describe('tabs', () => {
  it('show the number of each screen and of its items', () => {
    expect(tabs(scene().state)).to.match(
      /^ 1 Overview {2}2 Tokens 80 {2}3 Projects 3 {2}4 Audit {2}5 Cache {2}6 Events/,
    );
  });

  it('show the number of tokens now, not when the list was last open', () => {
    const it = scene();
    expect(tabs(it.state)).to.contain('2 Tokens 80 ');
    const status = { ...STATUS, tokens: { active: 90, expired: 1, revoked: 0, rate_limited: 0, project_inactive: 0 } };
    it.press('4').act({ on: 'loaded', request: { of: 'status' }, data: status });
    expect(tabs(it.state)).to.contain('2 Tokens 91 ');
  });

  it('keep the name of the current one on a narrow screen', () => {
    const narrow = tabs(scene({ columns: 50, tab: 'projects' }).state);
    expect(narrow).to.contain('3 Projects').and.not.to.contain('Tokens');
  });

  describe('of saved views', () => {
    const line = (columns: number, ...names: string[]) => {
      const views = names.map((name) => ({ name, screen: 'tokens' as const, filter: '', sort: null, columns: null }));
      return tabs(scene({ columns, settings: { saved: { ...NOTHING_SAVED, views } } }).press('8').state).trimEnd();
    };

    it('are cut before the names of the screens are dropped', () => {
      expect(line(120, 'leaked-in-2026')).to.match(/^ 1 Overview {2}2 Tokens 80 .* {2}7 Top {2}8 leaked-in-2026 80$/);
      expect(line(80, 'leaked-in-2026')).to.match(/^ 1 Overview {2}2 Tokens {2}3 .* {2}7 Top {2}8 leaked…$/);
    });

    it('have their whole name beside the numbers of the screens, if there are several', () => {
      expect(line(80, 'leaked', 'idle-for-30d', 'ci')).to.equal(
        ' 1  2  3  4  5  6  7  8 leaked 80  9 idle-for-30d 80  0 ci 80',
      );
    });
  });

  it('show the number of filtered rows and of marks', () => {
    expect(tabs(scene().press('/', 'j', 'enter', 'space').state)).to.match(/filter 80\/4,213 {3}marked 1 $/);
    const narrow = tabs(scene({ columns: 80 }).press('/', 'j', 'enter').state);
    expect(narrow).to.match(/^ 1 Overview {2}2 Tokens {2}3 Projects .* 7 Top +80\/4,213 $/);
  });
});

describe('message line', () => {
  it('shows the current traffic', () => {
    expect(message(scene().state)).to.match(/req 14\/s {2}failures 0\/s $/);
  });

  it('shows why the daemon is unreachable, the next retry, and the age of the data', () => {
    const { state } = scene({ columns: 120 }).lose().wait(0);
    expect(message(state)).to.match(
      /^ ! cannot reach the daemon at llmp\.example:8443: ECONNREFUSED · retry in 1s · data from \d\d:03:11, 0s old/,
    );
    expect(message(scene({ columns: 72 }).lose().wait(38_000).state)).to.match(
      /^ ! cannot reach the d.*… · retry in 0s · data from \d\d:03:11, 38s old/,
    );
  });

  it('shows how to retry a refused management token', () => {
    expect(message(scene().lose({ kind: 'refused', status: 401 }).state)).to.contain(
      'the management token was refused · ^r retries',
    );
  });

  it('counts down the time left to undo', () => {
    const changed = scene({ place: { isProtected: false } });
    const [first] = changed.setting.tokens!;
    changed.act({
      on: 'changed',
      change: { what: 'revoke', tokens: [first!] },
      outcome: { done: 1, doneIds: [first!.id], failures: [], batch: 'batch-1' },
    });
    expect(message(changed.state)).to.contain('Revoked ci-deploy. u undo (30s)');
    expect(message(changed.wait(10_000).state)).to.contain('u undo (20s)');
    expect(message(changed.wait(21_000).state)).to.not.contain('undo');
  });

  it('is not cut while there is room in place of the traffic', () => {
    const long = 'Changed the key of a project. The provider accepted the key.';
    const { state } = scene({ columns: 80 });
    const line = message({ ...state, message: { words: long, tone: 'good', untilMs: state.nowMs, isResult: true } });
    expect(line).to.contain(long).and.not.to.contain('req ');
  });

  it('warns of a clock difference', () => {
    expect(message(scene().act({ on: 'heard', skewMs: -42_000 }).state)).to.contain(
      "! the daemon's clock is 42s behind this one",
    );
    expect(message(scene().act({ on: 'heard', skewMs: 900 }).state)).to.not.contain('clock');
  });

  it('shows the progress of a bulk change', () => {
    const { state } = scene()
      .press('space', 'space', 'x', 'shift+tab', '2', 'enter', 'enter')
      .act({ on: 'progress', words: 'revoking', done: 20, of: 80 });
    expect(message(state)).to.match(/revoking █{5}░{15} 20\/80 {2}esc stop/);
  });

  it('shows the filter line and its problem', () => {
    const { state } = scene().press('/', 'u', 's', 'e', 'd', ':', 'x');
    expect(message(state)).to.match(/^ \/ used:x█ +! /);
  });

  it('never shows a pasted secret', () => {
    const { state } = scene().press('/').act({ on: 'paste', text: 'sk-wt-abcdefgh' });
    expect(screenText(state)).to.not.contain('abcdefgh');
    expect(message(state)).to.contain('sk-wt-••••••••');
  });

  it('shows failures as failures', () => {
    const status = { ...STATUS, requests: { in_flight: 0, per_second: 3, errors_per_second: 2.5 } };
    expect(message(scene({ status }).state)).to.contain('failures 2.5/s');
  });
});

describe('footer', () => {
  for (const tab of TABS) {
    it(`always shows the keys for help and back: ${tab} (finding A9)`, () => {
      for (const columns of [50, 60, 80, 120]) {
        const line = screenText(scene({ tab, columns, rows: 24 }).state)
          .split('\n')
          .at(-1);
        expect(line, String(columns)).to.contain('? help').and.to.contain('q quit');
      }
    });
  }

  it('shows the keys of the screen in their order', () => {
    expect(footer(scene({ columns: 130 }).state)).to.match(
      /^ ⏎ detail {2}x revoke {2}R issue again {2}n new {2}space mark {2}\/ filter {2}a reactivate {2}: command {2}s sort {2}\$ budget {2}\? help {2}q quit/,
    );
  });

  it('has the keys for a token that expired at 80 columns', () => {
    const { state } = scene({ columns: 80 });
    expect(footer(state)).to.contain('R issue again');
    expect(footer(scene({ columns: 80 }).press('enter').state))
      .to.contain('R issue again')
      .and.contain('a reactivate');
  });

  it('drops the least important keys on a narrow screen', () => {
    expect(footer(scene({ columns: 50 }).state))
      .to.match(/^ ⏎ detail {2}x revoke/)
      .and.not.to.contain('new');
  });

  it('dims keys without effect', () => {
    const line = frameLines(scene({ columns: 120 }).lose().state).at(-1)!;
    expect(line).to.contain('\x1b[2mx revoke').and.to.not.contain('\x1b[2m⏎');
  });

  for (const { name, make } of SCENES) {
    it(`shows only keys that have a meaning: ${name}`, () => {
      for (const ascii of [false, true]) {
        const { state } = make({ columns: 200, rows: 40, look: { ascii } });
        const known = bindingsOn(keyScopeOf(state)).map(
          (binding) => `${keyShown(binding.keys[0]!, ascii)} ${labelOf(binding, state)}`,
        );
        const named = footer(state)
          .trim()
          .split(/ {2,}/)
          .filter((it) => it !== '');
        expect(known).to.include.members(named);
      }
    });
  }
});
