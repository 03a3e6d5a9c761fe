import { expect } from 'chai';
import { plainLines } from '../screens/rendering.js';
import type { ChangeRequest, Effect, ChangeResult } from '../../../tui/state/exchange.js';
import { cancelAt } from '../../../tui/state/dialog.js';
import { Operator, type Beginning } from '../operator.js';
import { at, project, REFUSED, SimulatedDaemon, token, UNREACHABLE } from '../simulated.js';

const daemonOf = (count: number, more: Parameters<typeof token>[1] = {}) =>
  new SimulatedDaemon({ tokens: Array.from({ length: count }, (_, index) => token(index, more)) });
const watching = (count: number, more: Beginning = {}) => new Operator({ daemon: daemonOf(count), ...more });
const changes = (operator: Operator) => operator.effects.filter((effect: Effect) => effect.do === 'change');

describe('revoking tokens', () => {
  it('asks first with the focus on Cancel, so that Enter changes nothing', () => {
    const operator = watching(3).press('x');
    expect(operator.dialog.title).to.equal('Revoke name-0 in 127.0.0.1:8080');
    expect(operator.dialog.focus).to.equal(cancelAt(operator.dialog));
    operator.press('enter');
    expect(operator.top).to.equal(undefined);
    expect(operator.says).to.equal('Nothing was changed.');
    expect(changes(operator)).to.be.empty;
    expect(operator.press('3').says, 'not on another screen').to.equal(undefined);
  });

  it('puts what is typed while a button has the focus into the reason, and sends it', () => {
    const operator = watching(3).press('x').types('leaked in CI');
    expect(operator.field).to.equal('Reason');
    expect(operator.value('Reason')).to.equal('leaked in CI');
    operator.press('enter', 'enter');
    expect(operator.daemon.made[0]?.reason).to.equal('leaked in CI');
    const pasted = watching(3).press('x', 'tab').pastes('a reason');
    expect(pasted.value('Reason')).to.equal('a reason');
    const letters = watching(3).press('x', 'y', 'enter');
    expect(changes(letters), 'a letter and one Enter revoke nothing').to.be.empty;
  });

  it('reports its result also on the next screen', () => {
    expect(watching(3).press('x', 'tab', 'enter', '3').says).to.equal('Revoked name-0.');
  });

  it('is confirmed with tab and Enter, reported, and undone with u', () => {
    const operator = watching(3).press('x', 'tab', 'enter');
    expect(operator.says).to.equal('Revoked name-0.');
    expect(operator.cursor?.state).to.equal('revoked');
    operator.press('u');
    expect(operator.says).to.equal('Reactivated name-0.');
    expect(operator.cursor?.state).to.equal('active');
    expect(operator.daemon.made.map(({ reason }) => reason)).to.deep.equal([null, 'undo']);
  });

  it('sends the typed reason, in which every key is text', () => {
    const operator = watching(3).press('x', 'up').types('x q: j? *V1 /').press('enter', 'enter');
    expect(operator.daemon.made[0]?.reason).to.equal('x q: j? *V1 /');
  });

  it('accepts a reason of up to 200 characters', () => {
    const operator = watching(1).press('x', 'up').pastes('é'.repeat(201)).press('enter', 'enter');
    expect(operator.dialog.problem).to.match(/up to 200/);
    expect(operator.dialog.focus).to.equal(0);
    operator.press('backspace', 'enter', 'enter');
    expect(operator.daemon.made[0]?.reason).to.have.lengthOf(200);
  });

  for (const key of ['escape', 'ctrl+c']) {
    it(`is cancelled with ${key}, which does not quit the program`, () => {
      const operator = watching(3).press('x', 'tab', key);
      expect(operator.top).to.equal(undefined);
      expect(operator.did('quit')).to.equal(undefined);
      expect(changes(operator)).to.be.empty;
    });
  }

  it('reports a token that is already revoked', () => {
    const operator = new Operator({ daemon: daemonOf(1, { is_active: false }) }).press('x');
    expect(operator.says).to.equal('The token is already revoked');
    expect(operator.top).to.equal(undefined);
  });

  it('warns of a token in use, by the clock of the daemon', () => {
    const operator = new Operator({ daemon: daemonOf(1, { last_used_at: at(600_000 - 3_000) }) });
    operator.acts({ on: 'heard', skewMs: 600_000 }).press('x');
    expect(operator.dialog.notes[0]?.words).to.match(/1 token is in use right now; its clients/);
    expect(operator.dialog.items[0]?.cells).to.include('last used 3s ago');
  });

  it('skips tokens that are already revoked, with a note', () => {
    const tokens = [token(0), token(1, { is_active: false }), token(2)];
    const operator = new Operator({ daemon: new SimulatedDaemon({ tokens }) }).press('ctrl+a', 'x');
    expect(operator.dialog.title).to.match(/^Revoke 2 tokens/);
    expect(operator.dialog.notes[0]?.words).to.equal('1 of the marked tokens is already revoked.');
    operator.press('tab', 'enter');
    expect(operator.says).to.equal('Revoked 2 tokens.');
    expect(operator.marks).to.deep.equal([tokens[1]?.id]);
  });

  it('of 25 tokens requires typing the name of their project', () => {
    const operator = watching(25).press('ctrl+a', 'x', 'tab', 'enter');
    expect(operator.dialog.problem).to.equal('Type web to confirm');
    expect(changes(operator)).to.be.empty;
    operator.types('wex').press('enter', 'enter');
    expect(operator.dialog.problem).to.equal('Type web to confirm');
    operator.press('backspace').types('b').press('enter', 'enter');
    expect(operator.says).to.equal('Revoked 25 tokens.');
  });

  it('of 25 tokens of several projects requires typing their number, of 24 not', () => {
    const tokens = Array.from({ length: 25 }, (_, index) => token(index, { project_id: index % 2 ? 'a' : 'b' }));
    const many = new Operator({ daemon: new SimulatedDaemon({ tokens }) }).press('ctrl+a', 'x');
    expect(many.dialog.fields.map(({ label }) => label)).to.include('Type 25 to confirm');
    const fewer = watching(24).press('ctrl+a', 'x');
    expect(fewer.dialog.fields.map(({ label }) => label)).to.deep.equal(['Reason']);
  });

  it('of one token requires typing in a protected context, even if the name ends with a space', () => {
    const daemon = new SimulatedDaemon({
      tokens: [token(0, { project_id: 'odd' })],
      projects: [project('our web ', { id: 'odd' })],
    });
    const operator = new Operator({ daemon, place: { context: 'prod', isProtected: true } });
    operator.press('x', 'up').types('our web').press('enter', 'enter');
    expect(operator.says).to.equal('Revoked name-0.');
  });

  it('reports failures, keeps those tokens marked, and undoes only what was changed', () => {
    const operator = watching(3);
    operator.daemon.stubborn.add(operator.cursor?.id ?? '');
    operator.press('ctrl+a', 'x', 'tab', 'enter');
    expect(operator.says).to.equal('Revoked 2 tokens. Result unknown: name-0: the database does not answer');
    expect(operator.marks).to.deep.equal(['00000000-token']);
    operator.press('u');
    expect(operator.dialog.title).to.equal('Undo: Reactivate 2 tokens in 127.0.0.1:8080');
    operator.press('enter');
    expect(operator.says).to.equal('Reactivated 2 tokens.');
  });

  it('reports a token that no longer exists, and unmarks it', () => {
    const operator = watching(3).press('space', 'space', 'x');
    operator.daemon.tokens.shift();
    operator.press('tab', 'enter');
    expect(operator.says).to.match(/^Revoked 1 token\. Failed: name-0: token not found/);
    expect(operator.marks).to.be.empty;
  });

  it('can be stopped, and reports the tokens not changed', () => {
    const operator = watching(5).press('ctrl+a', 'x');
    operator.isHeld = true;
    operator.press('tab', 'enter');
    operator.acts({ on: 'progress', words: 'Revoking', done: 2, of: 5 });
    expect(operator.state.progress).to.deep.equal({ words: 'Revoking', done: 2, of: 5 });
    operator.press('x');
    expect(operator.says).to.equal('Revoking is in progress; esc stops it');
    operator.press('q');
    expect(operator.did('quit')).to.equal(undefined);
    operator.press('escape');
    expect(operator.did('stop')).to.not.equal(undefined);
    const { change } = operator.did('change') ?? {};
    operator.loses();
    const doneIds = ['00000000-token', '00000001-token'];
    operator.acts({ on: 'changed', change: change!, outcome: { done: 2, doneIds, failures: [] } });
    expect(operator.says).to.equal('Revoked 2 tokens; 3 not changed.');
    expect(operator.marks).to.have.lengthOf(3);
    operator.acts({ on: 'progress', words: 'Revoking', done: 3, of: 5 });
    expect(operator.state.progress).to.equal(null);
  });
});

describe('undo of several tokens', () => {
  /** Revoked 5 tokens, and their undo is pending without a response. */
  function undoing(): { operator: Operator; change: ChangeRequest } {
    const operator = watching(5).press('ctrl+a', 'x', 'tab', 'enter');
    expect(operator.says).to.equal('Revoked 5 tokens.');
    operator.isHeld = true;
    operator.press('u');
    operator.acts({ on: 'progress', words: 'Undoing', done: 2, of: 5 });
    return { operator, change: operator.did('change')!.change };
  }
  const partly = (change: ChangeRequest, done: number): ChangeResult => ({
    batch: 'batch-9',
    done,
    doneIds: 'tokens' in change ? change.tokens.slice(0, done).map(({ id }) => id) : [],
    failures: [],
  });

  it('is stopped by ^c only; escape shows a message (finding A3)', () => {
    const { operator } = undoing();
    const shown = () => plainLines(operator.state).join('\n');
    expect(shown()).to.contain('Undoing').and.not.contain('esc stop');
    operator.press('escape');
    expect(operator.did('stop')).to.equal(undefined);
    expect(operator.says).to.equal('The undo is in progress and cannot be stopped');
    operator.press('q');
    expect(operator.did('quit')).to.equal(undefined);
    expect(operator.says).to.equal('The undo is in progress and cannot be stopped; ^c quits anyway');
    operator.press('u');
    expect(operator.effects.filter((effect) => effect.do === 'change')).to.have.lengthOf(2);
    operator.hears();
    expect(operator.daemon.tokens.every((it) => it.is_active)).to.equal(true);
  });

  it('cannot be undone itself: u revokes nothing (finding A3)', () => {
    const { operator } = undoing();
    operator.isHeld = false;
    operator.hears().forgets().press('u');
    expect(operator.says).to.equal('Nothing to undo');
    expect(changes(operator)).to.be.empty;
    expect(operator.daemon.tokens.every((it) => it.is_active)).to.equal(true);
  });

  it('whose response is lost can be repeated: it is the undo of the same batch', () => {
    const { operator, change } = undoing();
    operator.loses();
    operator.acts({ on: 'refused', change, failure: UNREACHABLE });
    operator.isHeld = false;
    operator.passes(1_000).forgets().press('u');
    expect(operator.did('change')?.change).to.deep.equal(change);
    expect(operator.daemon.tokens.every((it) => it.is_active)).to.equal(true);
  });

  it('leaves tokens that somebody else has changed since, and says so', () => {
    const operator = watching(5).press('ctrl+a', 'x', 'tab', 'enter');
    for (const at of [1, 3]) operator.daemon.touched.add(operator.daemon.tokens[at]!.id);
    operator.press('u');
    expect(operator.says).to.equal('Reactivated 3 tokens. 2 were changed again since and stay as they are.');
    expect(operator.daemon.tokens.map((it) => it.is_active)).to.deep.equal([true, false, true, false, true]);
    operator.press('U');
    expect(operator.dialog.title).to.equal('Redo: Revoke 3 tokens in 127.0.0.1:8080');
  });

  it('of a stopped change asks for confirmation (finding A3)', () => {
    const operator = watching(5).press('ctrl+a', 'x');
    operator.isHeld = true;
    operator.press('tab', 'enter', 'escape');
    const { change } = operator.did('change') ?? {};
    operator.loses();
    operator.acts({ on: 'changed', change: change!, outcome: partly(change!, 2) });
    operator.loses().forgets().press('u');
    expect(changes(operator)).to.be.empty;
    expect(operator.dialog.title).to.equal('Undo: Reactivate 2 tokens in 127.0.0.1:8080');
    operator.press('escape').press('u');
    expect(operator.dialog.title, 'it is still there').to.match(/^Undo/);
  });
});

describe('reactivating tokens', () => {
  it('reactivates one token immediately', () => {
    const operator = new Operator({ daemon: daemonOf(1, { is_active: false }) }).press('a');
    expect(operator.top).to.equal(undefined);
    expect(operator.says).to.equal('Reactivated name-0.');
  });

  it('asks for several tokens, and in a protected context for one', () => {
    const several = new Operator({ daemon: daemonOf(2, { is_active: false }) }).press('ctrl+a', 'a');
    expect(several.dialog.title).to.match(/^Reactivate 2 tokens/);
    const guarded = new Operator({ daemon: daemonOf(1, { is_active: false }), place: { isProtected: true } }).press(
      'a',
    );
    expect(guarded.dialog.title).to.match(/^Reactivate name-0/);
  });

  it('asks if several are marked, even if only one is revoked', () => {
    const tokens = [token(0), token(1, { is_active: false })];
    const operator = new Operator({ daemon: new SimulatedDaemon({ tokens }) }).press('ctrl+a', 'a');
    expect(operator.dialog.notes.map(({ words }) => words)).to.deep.equal(['1 of the marked tokens is not revoked.']);
    expect(changes(operator)).to.be.empty;
  });

  it('reports why it has no effect', () => {
    const says = (state: 'active' | 'expired' | 'rate_limited') =>
      new Operator({ daemon: daemonOf(1, { state }) }).press('a').says;
    expect(says('active')).to.equal('The token is not revoked');
    expect(says('expired')).to.match(/^Expired/);
    expect(says('rate_limited')).to.match(/^Used up/);
  });
});

describe('undo', () => {
  /** Revokes the tokens one after the other, by their names, which the order of the list does not affect. */
  const revoking = (count: number) => {
    const operator = watching(count);
    for (let at = 0; at < count; at++) {
      operator.press('g');
      for (let row = 0; operator.cursor?.name !== `name-${at}` && row < count; row++) operator.press('j');
      operator.press('x', 'tab', 'enter');
    }
    return operator;
  };
  const activeNames = (operator: Operator) =>
    operator.daemon.tokens.filter((it) => it.is_active).map(({ name }) => name);

  it('reports that there is nothing to undo or redo', () => {
    expect(watching(1).press('u').says).to.equal('Nothing to undo');
    expect(watching(1).press('U').says).to.equal('Nothing to redo');
  });

  it('goes back change by change, for the last ten', () => {
    const operator = revoking(12);
    expect(activeNames(operator)).to.be.empty;
    for (let at = 11; at >= 2; at--) expect(operator.press('u').says).to.equal(`Reactivated name-${at}.`);
    expect(operator.press('u').says).to.equal('Nothing to undo');
    expect(activeNames(operator)).to.have.lengthOf(10);
  });

  it('is repeated by redo, which asks before it revokes', () => {
    const operator = revoking(2).press('u');
    expect(operator.says).to.equal('Reactivated name-1.');
    operator.press('U');
    expect(operator.dialog.title).to.equal('Redo: Revoke name-1 in 127.0.0.1:8080');
    operator.press('enter');
    expect(activeNames(operator), 'Enter alone cancels').to.deep.equal(['name-1']);
    operator.press('U', 'tab', 'enter');
    expect(operator.says).to.equal('Revoked name-1.');
    expect(operator.daemon.made.at(-1)?.reason).to.equal('redo');
    expect(operator.press('u').says, 'and can be undone again').to.equal('Reactivated name-1.');
    expect(operator.press('u').says).to.equal('Reactivated name-0.');
  });

  it('forgets what could be redone after another change', () => {
    const operator = revoking(1).press('u', 'x', 'tab', 'enter');
    expect(operator.press('U').says).to.equal('Nothing to redo');
  });

  it('asks first after 30 seconds, and says how long ago the change was', () => {
    const operator = watching(1).press('x', 'tab', 'enter').passes(29_000);
    expect(plainLines(operator.state).join('\n')).to.contain('u undo (1s)');
    operator.passes(61_000).press('u');
    expect(operator.dialog.title).to.equal('Undo: Reactivate name-0 in 127.0.0.1:8080');
    expect(operator.dialog.notes[0]?.words).to.equal('The change was made 90s ago.');
    expect(operator.daemon.made).to.have.lengthOf(1);
    operator.press('enter');
    expect(operator.says).to.equal('Reactivated name-0.');
  });

  it('is available again if it could not be sent', () => {
    const operator = watching(1).press('x', 'tab', 'enter');
    operator.daemon.refusing = UNREACHABLE;
    operator.press('u');
    expect(operator.says).to.match(/the result is unknown/);
    operator.daemon.refusing = null;
    operator.passes(1_000);
    expect(operator.press('u').says).to.equal('Reactivated name-0.');
  });

  it('is not sent if changes are not possible', () => {
    const operator = watching(1).press('x', 'tab', 'enter');
    const { target } = operator.state;
    operator.state = { ...operator.state, target: { ...target, isReadonly: true } };
    operator.press('u');
    expect(operator.says).to.match(/read-only/);
    operator.state = { ...operator.state, target };
    expect(operator.press('u').says).to.equal('Reactivated name-0.');
  });
});

describe('changes that cannot be sent', () => {
  it('are reported when offline', () => {
    const operator = watching(2);
    operator.daemon.failing = () => UNREACHABLE;
    operator.passes(2_000);
    for (const key of ['x', 'a', 'n']) expect(operator.press(key).says, key).to.equal('offline: cannot send changes');
    expect(changes(operator)).to.be.empty;
  });

  it('keep their form when the daemon becomes unreachable', () => {
    const operator = watching(2).press('x', 'up').types('leaked');
    operator.daemon.failing = () => UNREACHABLE;
    operator.passes(2_000).press('enter', 'enter');
    expect(operator.dialog.problem).to.equal('offline: cannot send changes');
    expect(operator.value('Reason')).to.equal('leaked');
    operator.daemon.failing = () => null;
    operator.passes(15_000).press('enter');
    expect(operator.says).to.equal('Revoked name-0.');
  });

  it('are reported in a read-only context', () => {
    const operator = watching(2, { place: { isReadonly: true } });
    for (const key of ['x', 'a', 'n']) expect(operator.press(key).says, key).to.match(/read-only/);
  });

  it('have an unknown result without a response', () => {
    const operator = watching(1);
    operator.daemon.refusing = UNREACHABLE;
    operator.press('x', 'tab', 'enter');
    expect(operator.says).to.match(/the result is unknown/);
    operator.daemon.refusing = { ...REFUSED, status: 409 };
    operator.passes(2_000).press('x', 'tab', 'enter');
    expect(operator.says).to.match(/nothing was changed/);
  });

  it('have an unknown result after a 5xx (finding A4)', () => {
    const operator = watching(2);
    operator.daemon.refusing = REFUSED;
    operator.press('x', 'tab', 'enter');
    expect(operator.says).to.equal('the database does not answer; the result is unknown');
  });
});
