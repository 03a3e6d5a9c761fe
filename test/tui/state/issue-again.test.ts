import { expect } from 'chai';
import type { WireToken } from '../../../daemon/api/contract.js';
import { Operator, type Beginning } from '../operator.js';
import { at, project, SECRET, SimulatedDaemon, token, UNREACHABLE } from '../simulated.js';

const MS_PER_HOUR = 3_600_000;

/** An operator in front of one token, in this state. */
function before(more: Partial<WireToken>, beginning: Beginning = {}) {
  const daemon = new SimulatedDaemon({ tokens: [token(0, more)] });
  return new Operator({ daemon, ...beginning });
}

const issued = ({ daemon }: Operator) =>
  daemon.made.map(({ change, reason }) => ({ body: change.what === 'create-token' && change.body, reason }));

describe('issuing a token again', () => {
  for (const state of ['expired', 'revoked', 'rate_limited', 'active'] as const) {
    it(`takes two keys for a token that is ${state}, and shows the new secret`, () => {
      const operator = before({ state, is_active: state !== 'revoked' }).press('R', 'enter');
      expect(issued(operator)).to.deep.equal([{ body: { like: '00000000-token' }, reason: null }]);
      expect(operator.says).to.equal('Created name-0.');
      const { top } = operator;
      expect(top?.kind).to.equal('reveal');
      expect(top?.kind === 'reveal' && [top.token.name, top.secret.reveal(), top.isShown]).to.deep.equal([
        'name-0',
        SECRET,
        false,
      ]);
    });
  }

  it('names in its question what will be issued, and where', () => {
    const terms = {
      max_requests: 1500,
      created_at: at(-48 * MS_PER_HOUR),
      expires_at: at(0),
      state: 'expired',
    } as const;
    const { dialog } = before(terms).press('R');
    expect(dialog.title).to.equal('Issue name-0 again in 127.0.0.1:8080');
    expect(dialog.notes.map(({ words }) => words)).to.deep.equal([
      'A new token named name-0 for web: 2d, up to 1,500 requests.',
    ]);
    const nameless = before({ name: null, expires_at: at(0.5 * MS_PER_HOUR), max_requests: 0 }).press('R').dialog;
    expect(nameless.title).to.equal('Issue 00000000 again in 127.0.0.1:8080');
    expect(nameless.notes.map(({ words }) => words)).to.deep.equal([
      'A new token without a name for web: 90m, unlimited requests.',
      'The existing token stays active.',
    ]);
  });

  it('issues nothing after Escape, and sends a typed reason', () => {
    expect(issued(before({}).press('R', 'escape'))).to.be.empty;
    expect(issued(before({}).press('R').types('for the audit').press('enter', 'enter'))).to.deep.equal([
      { body: { like: '00000000-token' }, reason: 'for the audit' },
    ]);
  });

  it('works in the detail of the token', () => {
    expect(issued(before({ state: 'expired' }).press('enter', 'R', 'enter'))).to.have.length(1);
  });

  it('is refused with a sentence while the project is inactive, whatever the state of the token', () => {
    const daemon = new SimulatedDaemon({ tokens: [token(0, { state: 'expired' })] });
    daemon.projects = [project('web', { is_active: false })];
    const operator = new Operator({ daemon }).press('R');
    expect(operator.top).to.equal(undefined);
    expect(operator.says).to.equal('Project web is inactive; activate it to issue tokens');
  });

  it('is refused for several marked tokens, because each secret is shown once', () => {
    const daemon = new SimulatedDaemon({ tokens: [token(0), token(1)] });
    const operator = new Operator({ daemon }).press('space', 'space', 'R');
    expect(operator.top).to.equal(undefined);
    expect(operator.says).to.match(/^Tokens are issued again one at a time/);
    const { dialog } = operator.press('escape', 'space', 'R');
    expect(dialog.title).to.match(/^Issue name-\d again/);
  });

  it('is refused in a read-only context, and reports a failure', () => {
    expect(before({}, { place: { isReadonly: true } }).press('R').says).to.equal('read-only: changes are disabled');
    const operator = before({});
    operator.press('R').daemon.refusing = UNREACHABLE;
    expect(operator.press('enter').says).to.match(/the result is unknown$/);
  });

  it('is found on the command line, and is what a token that cannot be reactivated needs', () => {
    const operator = before({ state: 'expired' }).press(':').types('issue again').press('enter');
    expect(operator.dialog.title).to.match(/^Issue name-0 again/);
    expect(before({ state: 'expired' }).press('a').says).to.equal('Expired, not revoked; press R to issue it again');
    const settings = { customKeys: new Map([['tokens.issue-again', ['i']]]) };
    expect(before({ state: 'rate_limited' }, { settings }).press('a').says).to.equal(
      'Used up, not revoked; press i to issue it again',
    );
  });
});
