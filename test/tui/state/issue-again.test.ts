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
      expect(top?.kind === 'reveal' && [top.of, top.secret.reveal(), top.isShown]).to.deep.equal([
        { is: 'token', token: operator.daemon.tokens[1] },
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

  describe('of several marked tokens', () => {
    const marked = (...tokens: WireToken[]) => {
      const daemon = new SimulatedDaemon({ tokens, projects: [project('web'), project('old', { is_active: false })] });
      return new Operator({ daemon }).press(...tokens.map(() => 'space'));
    };
    const sent = ({ daemon }: Operator) => daemon.made.map(({ change }) => change);

    it('takes two keys, sends the secrets to a new file, and shows its path', () => {
      const operator = marked(token(0, { state: 'expired' }), token(1, { state: 'revoked' })).press('R');
      expect(operator.dialog.title).to.equal('Issue 2 tokens again in 127.0.0.1:8080');
      expect(operator.value('File')).to.equal('secrets-20261123-140311.csv');
      operator.press('enter');
      expect(sent(operator)[0]).to.include({ what: 'issue-again', path: 'secrets-20261123-140311.csv' });
      const { top } = operator;
      expect(top?.kind === 'notice' && top.sentences).to.deep.equal([
        'They are in /home/ana/secrets-20261123-140311.csv, readable by you only. They are not shown again.',
      ]);
      expect(operator.says).to.equal('Issued 2 tokens again.');
      expect(operator.marks).to.be.empty;
    });

    it('takes another path, and needs one', () => {
      const operator = marked(token(0), token(1)).press('R').fills('File', '').submits();
      expect(operator.dialog.problem).to.equal('Enter the path of a new file');
      expect(sent(operator.fills('File', '~/again.json').submits())[0]).to.include({ path: '~/again.json' });
    });

    it('leaves out those of inactive projects, and says how many', () => {
      const operator = marked(token(0), token(1, { project_id: 'project-old' }), token(2)).press('R');
      expect(operator.dialog.title).to.equal('Issue 2 tokens again in 127.0.0.1:8080');
      expect(operator.dialog.notes.map(({ words }) => words)).to.include(
        '1 token of inactive projects cannot be issued again.',
      );
      const none = marked(token(0, { project_id: 'project-old' }), token(1, { project_id: 'project-old' })).press('R');
      expect(none.top).to.equal(undefined);
      expect(none.says).to.equal('Project old is inactive; activate it to issue tokens');
    });

    it('shows the form again if the file cannot be created', () => {
      const operator = marked(token(0), token(1)).press('R');
      operator.daemon.refusing = {
        ...UNREACHABLE,
        kind: 'refused',
        status: 400,
        code: 'file_not_created',
        message: 'The file already exists',
      };
      operator.press('enter');
      expect(operator.dialog.problem).to.equal('The file already exists; nothing was changed');
      expect(operator.field).to.equal('File');
      expect(operator.marks).to.have.length(2);
    });

    it('needs a confirmation in a protected context', () => {
      const daemon = new SimulatedDaemon({ tokens: [token(0), token(1)] });
      const operator = new Operator({ daemon, place: { isProtected: true } }).press('space', 'space', 'R', 'enter');
      expect(operator.daemon.made).to.be.empty;
      expect(operator.dialog.problem).to.match(/^Type /);
    });
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
