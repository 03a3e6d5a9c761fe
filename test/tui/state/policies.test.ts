/** What tokens and projects may use, and how fast: in the forms of the terminal UI, and on its screens. */
import { expect } from 'chai';
import { usedModels } from '../../../console/columns/policy-fields.js';
import { canary } from '../../support/canaries.js';
import { Operator } from '../operator.js';
import { screenText } from '../screens/rendering.js';
import { project, REFUSED, SimulatedDaemon, token } from '../simulated.js';

const ALLOW = { routes: ['inference'], models: ['gpt-5-mini'] };
const LIMITS = { requests_per_minute: 60, concurrent: 4 };
const BUDGET = { usd: '25.00', period: 'month', mode: 'soft' } as const;
const MODELS = { 'project-web': ['gpt-5-mini', 'gpt-5', 'claude-haiku-4-5'], 'project-shop': ['o3'] };

function watching(more: object = {}, ofProject: object = {}): Operator {
  const daemon = new SimulatedDaemon({
    tokens: [token(0, more), token(1)],
    projects: [project('web', ofProject), project('shop')],
  });
  daemon.models = MODELS;
  return new Operator({ daemon, rows: 40 });
}
const change = ({ daemon }: Operator) => daemon.made.at(-1)?.change;
const shows = ({ state }: Operator) => screenText(state);

describe('the policies of a new token', () => {
  it('are asked for on request only', () => {
    const operator = watching().press('n');
    expect(shows(operator)).not.to.contain('Models');
    operator.submits();
    expect(JSON.parse(JSON.stringify(change(operator)))).to.deep.equal({
      what: 'create-token',
      body: { project_id: 'project-web', duration_hours: 24 },
    });
  });

  it('are sent as they are entered', () => {
    const operator = watching().press('n').goesTo('Restrict').press('space');
    operator.fills('Models', 'gpt-5*, o3').fills('Routes', 'inference').fills('Requests/min', '60').submits();
    expect(change(operator))
      .to.have.property('body')
      .that.deep.includes({
        allow: { models: ['gpt-5*', 'o3'], routes: ['inference'] },
        limits: { requests_per_minute: 60 },
      });
  });

  it('are not sent if the operator has turned them off again', () => {
    const operator = watching().press('n').goesTo('Restrict').press('space').fills('Models', 'o3');
    operator.goesTo('Restrict').press('space').submits();
    expect(change(operator)).to.have.property('body').that.not.includes.keys('allow', 'limits');
  });

  for (const [field, given, problem] of [
    ['Models', 'a b', /^Models: names of models such as gpt-5-mini/],
    ['Routes', '/v1/models', /^Routes: routes such as/],
    ['Requests/min', '0', /^Requests\/min: a whole number from 1/],
    ['At a time', 'many', /^At a time: a whole number/],
    ['Budget, USD', '1.0000001', /^Budget, USD: US dollars above 0 and up to 1000000/],
    ['Budget, USD', '0', /^Budget, USD: US dollars above 0/],
    ['Budget, USD', '1000001', /^Budget, USD: US dollars above 0/],
    ['Budget, tokens', '1e6', /^Budget, tokens: a whole number from 1/],
  ] as const) {
    it(`are not ${given} in ${field}`, () => {
      const operator = watching().press('n').goesTo('Restrict').press('space').fills(field, given).submits();
      expect(operator.dialog.problem).to.match(problem);
      expect(operator.field).to.equal(field);
      expect(operator.daemon.made).to.be.empty;
    });
  }
});

describe('the policies of a new project', () => {
  const form = () => watching().press('3', 'n').fills('Name', 'night').fills("Provider's key", canary('upstream'));

  it('are asked for on request only', () => {
    const operator = form();
    expect(shows(operator))
      .to.contain('models, routes, rates and budget of all its tokens')
      .and.not.to.contain('Models');
    operator.submits();
    expect(change(operator)).to.deep.include({ what: 'create-project', policies: {} });
  });

  it('are sent as they are entered', () => {
    const operator = form().goesTo('Restrict').press('space').fills('Models', 'gpt-5*, o3').fills('At a time', '4');
    expect(operator.asked('models'), 'it has used none').to.equal(0);
    operator.submits();
    const policies = { allow: { models: ['gpt-5*', 'o3'] }, limits: { concurrent: 4 } };
    expect(change(operator)).to.deep.include({ what: 'create-project', name: 'night', policies });
    expect(operator.daemon.projects.at(-1)).to.deep.include(policies);
  });

  it('are not sent if a field is wrong', () => {
    const operator = form().goesTo('Restrict').press('space').fills('Routes', '/v1/models').submits();
    expect(operator.dialog.problem).to.match(/^Routes: routes such as/);
    expect(operator.field).to.equal('Routes');
    expect(operator.daemon.made).to.be.empty;
  });
});

describe('the budget of a token', () => {
  it('is set from its row with the sum and one key more', () => {
    const operator = watching().press('$', '2', '0', 'ctrl+s');
    const budget = { usd: '20.00', period: 'none', mode: 'soft' };
    expect(change(operator)).to.deep.include({ what: 'update-token', body: { budget } });
    expect(operator.says).to.equal('Changed what name-0 may spend.');
    operator.press('u');
    expect(operator.daemon.token(token(0).id)).to.deep.include({ budget: null });
    expect(operator.says).to.match(/^Changed what name-0 may spend\./);
  });

  it('says what happens at its limit, as it is filled in', () => {
    const operator = watching().press('$');
    expect(shows(operator)).to.contain('What token name-0 may spend').and.not.to.contain('At the limit');
    operator.fills('Budget, USD', '$1.50').goesTo('Budget period').press('right').goesTo('Budget mode').press('left');
    expect(shows(operator).replace(/[│\s]+/g, ' ')).to.contain(
      'At the limit, requests that could cost more than is left are refused with 402 until the next day (UTC).',
    );
    operator.press('right', 'right');
    expect(shows(operator)).to.contain('At the limit, nothing is refused');
    operator.fills('Reason', 'trial').submits();
    const budget = { usd: '1.50', period: 'day', mode: 'shadow' };
    expect(change(operator)).to.deep.include({ body: { budget } });
    expect(operator.daemon.made.at(-1)?.reason).to.equal('trial');
  });

  it('stays when limits are changed, and is removed without amounts', () => {
    const operator = watching({ budget: BUDGET }).press('L').fills('At a time', '9');
    expect(operator.value('Budget, USD')).to.equal('25.00');
    operator.submits();
    expect(change(operator)).to.deep.include({ body: { limits: { concurrent: 9 } } });
    operator.press('$').fills('Budget, USD', '').submits();
    expect(change(operator)).to.deep.include({ body: { budget: null } });
    operator.press('u');
    expect(operator.daemon.token(token(0).id)).to.deep.include({ budget: BUDGET });
  });

  it('is not sent by a key for the whole form where a button confirms', () => {
    expect(watching().press('x', 'ctrl+s').says).to.equal('Go to the button to confirm it');
  });

  it('is that of a new token', () => {
    const operator = watching().press('n').goesTo('Restrict').press('space').fills('Budget, tokens', '1000');
    operator.goesTo('Budget period').press('left').press('ctrl+s');
    const budget = { tokens: 1000, period: 'month', mode: 'soft' };
    expect(change(operator)).to.have.property('body').that.deep.includes({ budget });
    expect(change(operator)).to.have.property('body').that.not.includes.keys('allow', 'limits');
  });
});

describe('the budget of a project', () => {
  it('is changed from its row, and undone', () => {
    const operator = watching({}, { budget: BUDGET }).press('3', 'G', '$');
    expect(shows(operator)).to.contain('What all tokens of web together may spend');
    operator.fills('Budget, tokens', '2000000').press('ctrl+s');
    expect(change(operator)).to.deep.include({ body: { budget: { ...BUDGET, tokens: 2_000_000 } } });
    expect(operator.says).to.equal('Changed what the tokens of web may spend.');
    operator.press('u');
    expect(operator.daemon.projects[0]?.budget).to.deep.equal(BUDGET);
  });
});

describe('the models that a project has used', () => {
  const form = () => watching().press('n').goesTo('Restrict').press('space').goesTo('Models');

  it('are offered in the field for models, and taken with right', () => {
    const operator = form();
    expect(shows(operator)).to.contain('→ gpt-5-mini  gpt-5, claude-haiku-4-5');
    operator.press('right');
    expect(operator.value('Models')).to.equal('gpt-5-mini');
    operator.types(', cl');
    expect(shows(operator)).to.contain('→ claude-haiku-4-5');
    operator.press('right');
    expect(operator.value('Models')).to.equal('gpt-5-mini, claude-haiku-4-5');
    operator.types(',zzz');
    expect(shows(operator)).not.to.contain('→ gpt');
    operator.press('left', 'right');
    expect(operator.value('Models')).to.equal('gpt-5-mini, claude-haiku-4-5,zzz');
  });

  it('are those of the chosen project', () => {
    const operator = form().goesTo('Project').press('right').goesTo('Models');
    expect(shows(operator)).to.contain('→ o3').and.not.to.contain('gpt-5');
    expect(operator.asked('models')).to.equal(2);
  });

  it('are not missed if they cannot be loaded', () => {
    const operator = watching();
    operator.daemon.failing = ({ of }) => (of === 'models' ? { ...REFUSED, status: 400 } : null);
    operator.press('n').goesTo('Restrict').press('space').goesTo('Models').press('right');
    expect(operator.says).to.equal(undefined);
    expect(operator.value('Models')).to.equal('');
  });

  it('are those that answered, the most used first, and no sum of others', () => {
    const line = (model: string | null, requests: number, errors = 0) => ({ model, requests, errors });
    const lines = [line('a', 1), line('b', 5), line(null, 9), line('other', 9), line('wrong', 3, 3), line('c,d', 4)];
    expect(usedModels(lines)).to.deep.equal(['b', 'a']);
  });
});

describe('the policies of a token', () => {
  const form = (more: object = { allow: ALLOW, limits: LIMITS }) => watching(more).press('L');

  it('are shown on its screen', () => {
    const text = shows(watching({ allow: ALLOW, limits: LIMITS }).press('enter'));
    expect(text).to.contain('routes inference; models gpt-5-mini').and.to.contain('60 requests/min, 4 at a time');
  });

  it('are changed one object at a time: the other is not sent', () => {
    const operator = form();
    expect(operator.value('Models')).to.equal('gpt-5-mini');
    operator.fills('Requests/min', '').fills('Reason', 'load test').submits();
    expect(change(operator)).to.deep.include({ what: 'update-token', body: { limits: { concurrent: 4 } } });
    expect(operator.daemon.made.at(-1)?.reason).to.equal('load test');
    expect(operator.says).to.equal('Changed what name-0 may use.');
  });

  it('are removed with empty fields, and undone', () => {
    const operator = form().fills('Models', '').fills('Routes', '').submits();
    expect(operator.daemon.token(token(0).id)?.allow).to.equal(null);
    operator.press('u');
    expect(operator.daemon.token(token(0).id)).to.deep.include({ allow: ALLOW, limits: LIMITS });
  });

  it('are not sent without a change', () => {
    const operator = form().submits();
    expect(operator.dialog.problem).to.equal('Nothing is changed');
  });

  it('are those of one token at a time', () => {
    const operator = watching().press('space', 'space', 'L');
    expect(operator.says).to.equal('Only one token at a time');
  });

  it('are named before it is issued again', () => {
    const notes = watching({ allow: ALLOW, limits: LIMITS })
      .press('R')
      .dialog.notes.map(({ words }) => words);
    expect(notes.join(' ')).to.contain('may use routes inference; models gpt-5-mini; limits: 60 requests/min');
  });
});

describe('the policies of a project', () => {
  it('are shown on its screen, above all of its changes', () => {
    const text = shows(watching({}, { allow: ALLOW, limits: LIMITS }).press('3', 'G', 'enter'));
    expect(text).to.match(/allows +routes inference; models gpt-5-mini/);
    expect(text).to.match(/limits +60 requests\/min, 4 at a time/);
    expect(text).to.contain('Changes  newest first');
  });

  it('are changed and undone', () => {
    const operator = watching({}, { limits: LIMITS }).press('3', 'G', 'L').fills('At a time', '9').submits();
    const limits = { requests_per_minute: 60, concurrent: 9 };
    expect(change(operator)).to.deep.include({ what: 'update-project', body: { limits } });
    expect(operator.says).to.equal('Changed what the tokens of web may use.');
    operator.press('u');
    expect(operator.daemon.projects[0]?.limits).to.deep.equal(LIMITS);
  });
});
