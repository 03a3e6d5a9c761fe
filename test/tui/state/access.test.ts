/** Who is logged in, what an issuer's form begins with, refusals in words, and the lists of operators and trusts. */
import { expect } from 'chai';
import type { Failure } from '../../../tui/state/exchange.js';
import { shownFields } from '../../../tui/state/dialog.js';
import { view } from '../../../tui/state/state.js';
import { Operator } from '../operator.js';
import {
  DENIED,
  operator,
  OPERATOR_SECRET,
  project,
  REFUSED,
  self,
  SimulatedDaemon,
  token,
  trust,
} from '../simulated.js';

const refusal = (status: number, code: string, message: string): Failure => ({ ...REFUSED, status, code, message });

describe('an issuer', () => {
  const CEILINGS = {
    hours: 8,
    requests: 500,
    active_tokens: 2,
    models: ['gpt-5-mini'],
    limits: { concurrent: 4 },
    budget: { usd: '20', period: 'month', mode: 'hard' },
  } as const;

  function issuer(ceilings: object | null): Operator {
    const daemon = new SimulatedDaemon();
    daemon.self = self('issuer', { ceilings: ceilings as never });
    return new Operator({ daemon });
  }

  it('issues a token within the ceilings with the defaults of the form', () => {
    const operator = issuer(CEILINGS).press('n', 'ctrl+s');
    expect(operator.daemon.made.map(({ change }) => change)).to.deep.equal([
      {
        what: 'create-token',
        body: {
          project_id: 'project-web',
          duration_hours: 8,
          max_requests: 500,
          allow: { models: ['gpt-5-mini'] },
          limits: { concurrent: 4 },
          budget: { usd: '20.00', period: 'month', mode: 'hard' },
        },
      },
    ]);
  });

  it('has the defaults of everybody where there is no ceiling, and where it is above them', () => {
    for (const ceilings of [null, {}, { hours: 48 }]) {
      const operator = issuer(ceilings).press('n', 'ctrl+s');
      const [made] = operator.daemon.made;
      expect(made?.change).to.deep.equal({
        what: 'create-token',
        body: { project_id: 'project-web', duration_hours: 24 },
      });
    }
  });

  it('reads which ceiling a token would be above, at its field, and loses nothing', () => {
    const operator = issuer(CEILINGS).press('n').fills('Expires in', '9h');
    const words = 'beyond your ceiling hours: a token may last 8 h at most, and this one would last 9 h';
    operator.daemon.refusing = refusal(403, 'beyond_ceiling', words);
    operator.press('ctrl+s');
    expect(operator.dialog.problem).to.equal(`${words}; nothing was changed`);
    expect([operator.field, operator.value('Expires in'), operator.value('Request cap')]).to.deep.equal([
      'Expires in',
      '9h',
      '500',
    ]);
  });

  it('is told of a role that was changed meanwhile, and is then offered what is left', () => {
    const operator = issuer(null).press('n');
    operator.daemon.self = self('viewer');
    operator.daemon.refusing = refusal(403, 'not_permitted', 'not permitted: the role viewer may not issue tokens');
    operator.press('ctrl+s');
    expect(operator.dialog.problem).to.equal(
      'not permitted: the role viewer may not issue tokens; nothing was changed',
    );
    expect(operator.press('escape').footer).not.to.include('n');
    expect(operator.press('n').says).to.equal('not permitted: the role viewer may not issue tokens');
  });

  it('reads who is logged in, and what that allows', () => {
    const { top } = issuer(CEILINGS).press(':').types('whoami').press('enter');
    expect(top).to.include({ kind: 'notice' });
    expect(top?.kind === 'notice' && top.sentences).to.deep.equal([
      'You are ana (operator:ana).',
      'Your role is issuer: issues tokens, and revokes its own.',
      'Your projects: all.',
      'Your ceilings, the most that a token of yours may have: 8 h, 500 requests, 2 active tokens, models gpt-5-mini, 4 at a time, $20 a month, hard.',
    ]);
  });
});

describe('a session that has ended', () => {
  const ENDED = refusal(401, 'session_ended', 'the session has ended');

  function ended(context: string | null): Operator {
    const operator = new Operator({ place: { context } });
    operator.daemon.failing = () => ENDED;
    return operator.passes(2_000);
  }

  it('reads the secret of the new session from the context, at the key that retries', () => {
    const operator = ended('prod');
    expect(operator.state.connection.is).to.equal('denied');
    operator.press('ctrl+r');
    expect(operator.did('connect')).to.deep.equal({ do: 'connect', context: 'prod' });
  });

  it('retries as it is without a context, as after a refused secret', () => {
    expect(ended(null).press('ctrl+r').did('connect')).to.equal(undefined);
    const operator = new Operator({ place: { context: 'prod' } });
    operator.daemon.failing = () => DENIED;
    expect(operator.passes(2_000).press('ctrl+r').did('connect')).to.equal(undefined);
  });
});

describe('what is requested before it is known who calls', () => {
  it('is what every role may read; the rest follows', () => {
    const operator = new Operator({ tab: 'tokens' });
    operator.isHeld = true;
    operator.forgets().acts({ on: 'connected', target: operator.state.target }).press('4');
    expect([operator.asked('self') > 0, operator.asked('status') > 0, operator.asked('audit')]).to.deep.equal([
      true,
      true,
      0,
    ]);
    operator.isHeld = false;
    operator.hears();
    expect(operator.asked('audit')).to.be.above(0);
    expect(operator.followed.map(({ of }) => of)).to.deep.equal(['audit']);
  });
});

describe('a stream that the daemon refuses after a change of the role', () => {
  it('is a reason to ask who calls', () => {
    const operator = new Operator({ tab: 'events' });
    operator.daemon.self = self('viewer');
    const failure = refusal(403, 'not_permitted', 'not permitted: the role viewer may not read events');
    operator.acts({ on: 'stream', of: 'events', is: 'lost', failure });
    expect([operator.screen, operator.says]).to.deep.equal(['tokens', failure.message]);
  });
});

describe('the lists of operators and trusts', () => {
  function root(): Operator {
    const daemon = new SimulatedDaemon({ tokens: [token(0)], projects: [project('web'), project('api')] });
    daemon.operators = [operator('ana', { role: 'issuer' }), operator('gone', { is_active: false })];
    daemon.trusts = [trust('gha')];
    return new Operator({ daemon });
  }
  const shownLabels = (it: Operator) => shownFields(it.dialog).map(({ label }) => label);

  it('take each other’s place, and go back to the screen before', () => {
    const it = root().press('O', 'T');
    expect(it.state.views).to.deep.equal([{ screen: 'tokens' }, { screen: 'trusts' }]);
    expect(view(it.press('enter').state)).to.deep.equal({ screen: 'trust', id: 'trust-gha' });
    expect(it.press('q', 'q').screen).to.equal('tokens');
  });

  it('create an operator, whose secret is shown once', () => {
    const it = root().press('O', 'n').fills('Name', 'bo').fills('Projects', 'web, api').fills('Expires in', '1d');
    expect(shownLabels(it)).to.deep.equal(['Name', 'Role', 'Projects', 'Expires in', 'Ceilings']);
    it.goesTo('Ceilings').press('space').fills('Most hours', '8').fills('Active tokens', '2').fills('Models', 'gpt-*');
    it.fills('Budget, USD', '20').submits();
    expect(it.daemon.made.map(({ change }) => change)).to.deep.equal([
      {
        what: 'create-operator',
        body: {
          name: 'bo',
          role: 'issuer',
          projects: ['project-web', 'project-api'],
          expires_at: new Date(it.nowMs + 86_400_000).toISOString(),
          ceilings: {
            hours: 8,
            active_tokens: 2,
            models: ['gpt-*'],
            budget: { usd: '20.00', period: 'none', mode: 'soft' },
          },
        },
      },
    ]);
    expect(it.says).to.equal('Created operator bo.');
    const { top } = it;
    expect(top?.kind === 'reveal' && [top.of.is, top.secret.reveal()]).to.deep.equal(['operator', OPERATOR_SECRET]);
    expect(JSON.stringify(it.state)).not.to.contain(OPERATOR_SECRET);
    it.press('w');
    expect(it.top?.kind === 'reveal' && it.top.path?.text).to.equal('operator.txt');
  });

  it('offer ceilings only for roles that issue tokens, and send none for others', () => {
    const it = root().press('O', 'n').fills('Name', 'bo').goesTo('Ceilings').press('space').fills('Most hours', '8');
    it.goesTo('Role').press('left');
    expect(it.value('Role')).to.equal('auditor');
    expect(shownLabels(it)).to.deep.equal(['Name', 'Role', 'Projects', 'Expires in']);
    it.submits();
    const [made] = it.daemon.made;
    expect(made?.change).to.deep.equal({ what: 'create-operator', body: { name: 'bo', role: 'auditor' } });
  });

  it('say what is wrong in the form', () => {
    for (const [label, text, words] of [
      ['Name', '', 'Enter a name'],
      ['Projects', 'nowhere', 'There is no project "nowhere"'],
      ['Expires in', 'soon', 'Expires in: a time such as 30m, 2h, 7d or 2w'],
      ['Most hours', '0', 'Most hours: a whole number from 1 to 8760'],
    ] as const) {
      const it = root().press('O', 'n').fills('Name', 'bo').goesTo('Ceilings').press('space').fills(label, text);
      it.submits();
      expect([it.dialog.problem, it.field], label).to.deep.equal([words, label]);
      expect(it.daemon.made).to.be.empty;
    }
  });

  it('deactivate an operator with its tokens, or without, and activate it again', () => {
    for (const keepsTokens of [false, true]) {
      const it = root().press('O', 'd');
      if (keepsTokens) it.goesTo('Keep tokens').press('space');
      it.submits();
      const [made] = it.daemon.made;
      expect(made?.change).to.deep.include({ what: 'deactivate-operator', keepsTokens });
      expect(it.says).to.equal('Deactivated operator ana. Revoked 2 tokens.');
      expect(it.press('d').says).to.equal('The operator is already inactive');
      it.press('a').submits();
      expect(it.says).to.equal('Activated operator ana.');
      expect(it.state.undoHistory.undo).to.be.empty;
    }
  });
});
