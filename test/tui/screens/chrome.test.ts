import { expect } from 'chai';
import { keyShown, labelOf } from '../../../tui/keys/binding.js';
import { bindingsOn, spotOf } from '../../../tui/keys/press.js';
import { type State, TABS } from '../../../tui/state/state.js';
import { frameLines, screenText, withoutColors } from './rendering.js';
import { scene, SCENES } from './scenes.js';
import { STATUS } from './states.js';

const linesOf = (state: State) => frameLines(state).map(withoutColors);
const header = (state: State) => linesOf(state)[0]!;
const tabs = (state: State) => linesOf(state)[1]!;
const message = (state: State) => linesOf(state).at(-2)!;
const footer = (state: State) => linesOf(state).at(-1)!;

describe('the header', () => {
  it('says which context is looked at, that it is protected, where it is, and what is shown', () => {
    const { state } = scene();
    expect(header(state)).to.match(/^ llmp {2}prod ▌PROTECTED▐ {2}llmp\.example:8443 {2}tokens .*● live \d\d:03:11 $/);
  });

  it('says that nothing can be changed', () => {
    expect(header(scene({ place: { isReadonly: true } }).state)).to.contain('▌READ-ONLY▐');
  });

  it('keeps the protection in sight where it is narrow', () => {
    expect(header(scene({ columns: 50 }).state))
      .to.contain('▌PROTECTED▐')
      .and.not.to.contain('llmp.example');
  });

  it('names what a view was come to by, and the filter', () => {
    expect(header(scene({ columns: 120 }).press('enter').state)).to.contain('tokens › ci-deploy');
    expect(header(scene().press('/', 'j', 'o', 'b', 'enter').state)).to.contain('tokens › job');
  });

  it('says what became of the daemon', () => {
    expect(header(scene().lose().state)).to.contain('✗ offline');
    expect(header(scene().lose({ kind: 'refused', status: 503 }).state)).to.contain('▲ stale');
    expect(header(scene().lose({ kind: 'refused', status: 401 }).state)).to.contain('✗ denied');
    expect(header(scene().press('p').state)).to.contain('‖ paused');
  });
});

describe('the tabs', () => {
  it('number the screens, and count what is in them', () => {
    expect(tabs(scene().state)).to.match(
      /^ 1 Overview {2}2 Tokens 80 {2}3 Projects 3 {2}4 Audit {2}5 Cache {2}6 Events/,
    );
  });

  it('keep the name of the one that is shown where it is narrow', () => {
    const narrow = tabs(scene({ columns: 50, tab: 'projects' }).state);
    expect(narrow).to.contain('3 Projects').and.not.to.contain('Tokens');
  });

  it('say how many the filter lets through, and how many are marked', () => {
    expect(tabs(scene().press('/', 'j', 'enter', 'space').state)).to.match(/filter 80\/80 {3}marks 1 $/);
  });
});

describe('the message line', () => {
  it('shows how much traffic there is', () => {
    expect(message(scene().state)).to.match(/req 14\/s {2}errors 0\/s $/);
  });

  it('says why nobody answers, when it is tried again, and how old what is shown is', () => {
    const { state } = scene({ columns: 120 }).lose().wait(0);
    expect(message(state)).to.match(
      /^ ! cannot reach the daemon at llmp\.example:8443: ECONNREFUSED · retry in 1s · data from \d\d:03:11, 0s old/,
    );
    expect(message(scene({ columns: 72 }).lose().wait(38_000).state)).to.match(
      /^ ! cannot reach the d.*… · retry in 0s · data from \d\d:03:11, 38s old/,
    );
  });

  it('says how the refused management token can be tried again', () => {
    expect(message(scene().lose({ kind: 'refused', status: 401 }).state)).to.contain(
      'the management token was refused · ^r asks again',
    );
  });

  it('counts down how long a change can be taken back', () => {
    const changed = scene({ place: { isProtected: false } });
    const [first] = changed.setting.tokens!;
    changed.act({
      on: 'changed',
      change: { what: 'revoke', tokens: [first!] },
      outcome: { done: 1, doneIds: [first!.id], failures: [] },
    });
    expect(message(changed.state)).to.contain('Revoked ci-deploy. u undo (30s)');
    expect(message(changed.wait(10_000).state)).to.contain('u undo (20s)');
    expect(message(changed.wait(21_000).state)).to.not.contain('undo');
  });

  it('tells that the clocks differ', () => {
    expect(message(scene().act({ on: 'heard', skewMs: -42_000 }).state)).to.contain(
      "! the daemon's clock is 42s behind this one",
    );
    expect(message(scene().act({ on: 'heard', skewMs: 900 }).state)).to.not.contain('clock');
  });

  it('shows how far a change of many has come', () => {
    const { state } = scene()
      .press('space', 'space', 'x', 'shift+tab', '2', 'enter', 'enter')
      .act({ on: 'progress', words: 'revoking', done: 20, of: 80 });
    expect(message(state)).to.match(/revoking █{5}░{15} 20\/80 {2}esc stop/);
  });

  it('is where the filter is typed, with what is wrong with it', () => {
    const { state } = scene().press('/', 'u', 's', 'e', 'd', ':', 'x');
    expect(message(state)).to.match(/^ \/ used:x█ +! /);
  });

  it('never shows a secret that was pasted there', () => {
    const { state } = scene().press('/').act({ on: 'paste', text: 'sk-wt-abcdefgh' });
    expect(screenText(state)).to.not.contain('abcdefgh');
    expect(message(state)).to.contain('sk-wt-••••••••');
  });

  it('says that errors are errors', () => {
    const status = { ...STATUS, requests: { in_flight: 0, per_second: 3, errors_per_second: 2.5 } };
    expect(message(scene({ status }).state)).to.contain('errors 2.5/s');
  });
});

describe('the footer', () => {
  for (const tab of TABS) {
    it(`always has help and the way out: ${tab} (finding A9)`, () => {
      for (const columns of [50, 60, 80, 120]) {
        const line = screenText(scene({ tab, columns, rows: 24 }).state)
          .split('\n')
          .at(-1);
        expect(line, String(columns)).to.contain('? help').and.to.contain('q quit');
      }
    });
  }

  it('names the keys of the screen in their order', () => {
    expect(footer(scene({ columns: 120 }).state)).to.match(
      /^ ⏎ detail {2}x revoke {2}a reactivate {2}n new {2}space mark {2}\/ filter {2}: command {2}s sort {2}\? help {2}q quit/,
    );
  });

  it('drops the least important where it is narrow', () => {
    expect(footer(scene({ columns: 50 }).state))
      .to.match(/^ ⏎ detail {2}x revoke/)
      .and.not.to.contain('new');
  });

  it('shows faintly what cannot be done now', () => {
    const line = frameLines(scene({ columns: 120 }).lose().state).at(-1)!;
    expect(line).to.contain('\x1b[2mx revoke').and.to.not.contain('\x1b[2m⏎');
  });

  for (const { name, make } of SCENES) {
    it(`names only keys that mean something: ${name}`, () => {
      for (const ascii of [false, true]) {
        const { state } = make({ columns: 200, rows: 40, look: { ascii } });
        const known = bindingsOn(spotOf(state)).map(
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
