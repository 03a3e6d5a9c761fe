/** The provider of a project: set in forms, shown, and checked. */
import { expect } from 'chai';
import { Operator } from '../operator.js';
import { screenText } from '../screens/rendering.js';
import { project, REFUSED, SimulatedDaemon, UNREACHABLE } from '../simulated.js';
import { canary } from '../../support/canaries.js';

const KEY = canary('upstream');
const GROQ = { upstream_base_url: 'https://api.groq.com/openai', upstream_auth: 'bearer' } as const;
const OWN = { upstream_base_url: 'https://llm.example:8443', upstream_auth: 'x-api-key' } as const;

const lastChange = ({ daemon }: Operator) => daemon.made.at(-1)?.change;
const shows = ({ state }: Operator) => screenText(state);

describe('the provider of a new project', () => {
  const form = () => new Operator().press('3', 'n').fills('Name', 'night');
  const created = (operator: Operator) => {
    operator.goesTo("Provider's key").types(KEY).submits();
    return lastChange(operator);
  };
  const upstreamOf = (operator: Operator) => {
    const change = created(operator);
    return change?.what === 'create-project' ? change.upstream : undefined;
  };

  it('is the default of the daemon', () => {
    expect(upstreamOf(form())).to.deep.equal({});
  });

  it('is one of the presets', () => {
    const operator = form().goesTo('Provider').types('groq').press('enter');
    expect(upstreamOf(operator)).to.deep.equal(GROQ);
    expect(shows(operator)).to.contain('Groq');
  });

  it('has a base URL and a header of its own', () => {
    const operator = form().goesTo('Provider').types('other').press('enter');
    operator.fills('Base URL', OWN.upstream_base_url).goesTo('Key sent as').types('x-api').press('enter');
    expect(upstreamOf(operator)).to.deep.equal(OWN);
  });

  it('needs a base URL for Azure', () => {
    const operator = form().goesTo('Provider').types('azure').press('enter');
    expect(upstreamOf(operator)).to.equal(undefined);
    expect(operator.dialog.problem).to.equal('Azure OpenAI requires a base URL');
    expect(operator.field).to.equal('Base URL');
    operator.types('https://mine.openai.azure.com').submits();
    expect(lastChange(operator)).to.deep.include({
      upstream: { upstream_base_url: 'https://mine.openai.azure.com', upstream_auth: 'api-key' },
    });
  });

  it('may ask for the usage that chat streams do not report', () => {
    const operator = form().goesTo('Missing usage').types('inject').press('enter');
    expect(upstreamOf(operator)).to.deep.equal({ missing_usage: 'inject' });
  });

  it('has no field for a base URL if the provider has one', () => {
    const labels = (operator: Operator) => /Base URL|Key sent as/.test(shows(operator));
    expect(labels(form())).to.equal(false);
    expect(labels(form().goesTo('Provider').types('mistral').press('enter'))).to.equal(false);
    expect(labels(form().goesTo('Provider').types('azure').press('enter'))).to.equal(true);
  });
});

describe('another provider of a project', () => {
  const form = (more: object = {}) =>
    new Operator({ daemon: new SimulatedDaemon({ projects: [project('web', more)] }) }).press('3', 'P');

  it('is sent with its key, which is checked', () => {
    const operator = form().goesTo('Provider').types('groq').press('enter').goesTo("Provider's key").types(KEY);
    operator.daemon.keyCheck = 'accepted';
    operator.submits();
    expect(operator.says).to.equal('Changed the provider of web. The provider accepted the key.');
    const change = lastChange(operator);
    expect(change).to.deep.include({ what: 'update-project', body: { upstream_base_url: GROQ.upstream_base_url } });
    expect(change && 'key' in change && change.key.isToCheck).to.equal(true);
    expect(shows(operator)).not.to.contain(KEY);
  });

  it('begins with the current one, and only changes what differs', () => {
    const operator = form(OWN);
    expect([operator.value('Provider'), operator.value('Base URL'), operator.value('Key sent as')]).to.deep.equal([
      'other',
      OWN.upstream_base_url,
      'x-api-key',
    ]);
    operator.goesTo('Key sent as').types('api-key').press('enter').submits();
    expect(lastChange(operator)).to.deep.include({ body: { upstream_auth: 'api-key' } });
    expect(lastChange(operator)).not.to.have.property('key');
    expect(operator.says).to.equal('Changed the provider of web.');
  });

  it('can be the default of the daemon again', () => {
    const operator = form(OWN).goesTo('Provider').types('default').press('enter').submits();
    expect(lastChange(operator)).to.deep.include({ body: { upstream_base_url: null, upstream_auth: 'bearer' } });
  });

  it('may have another value for missing usage only', () => {
    const operator = form({ missing_usage: 'inject' });
    expect(operator.value('Missing usage')).to.equal('inject');
    operator.goesTo('Missing usage').types('off').press('enter').submits();
    expect(lastChange(operator)).to.deep.include({ body: { missing_usage: 'off' } });
    expect(operator.says).to.equal('Changed the missing usage of web to off.');
  });

  it('must differ', () => {
    for (const more of [{}, { upstream_auth: 'x-api-key' }, GROQ, OWN]) {
      const operator = form(more).submits();
      expect(operator.dialog.problem).to.equal('This is the provider of the project already');
      expect(operator.daemon.made).to.have.length(0);
    }
  });

  it('on another host needs its key: the form opens again, at that field', () => {
    const operator = form().goesTo('Provider').types('groq').press('enter');
    operator.daemon.refusing = { ...REFUSED, status: 400, code: 'key_required', message: 'give api_key, too' };
    operator.submits();
    expect(operator.dialog.problem).to.equal('This provider is on another host: enter its key. Nothing was changed');
    expect(operator.field).to.equal("Provider's key");
    expect(operator.value('Provider')).to.equal('groq');
  });

  it('is not changed in a read-only context', () => {
    const operator = new Operator({ place: { isReadonly: true } }).press('3', 'P');
    expect(operator.top).to.equal(undefined);
    expect(operator.says).to.contain('read-only');
  });
});

describe('the provider on the screens', () => {
  const daemon = () => new SimulatedDaemon({ projects: [project('web', GROQ), project('own', OWN), project('plain')] });

  it('is in the detail, with the header for the key', () => {
    const operator = new Operator({ daemon: daemon() }).press('3', 'g');
    const of = (row: number) => {
      operator.press(...Array.from({ length: row }, () => 'j'), 'enter');
      const shown = shows(operator);
      operator.press('escape', 'g');
      return shown;
    };
    const all = [of(0), of(1), of(2)].join('\n');
    expect(all).to.match(/provider +Groq +https:\/\/api\.groq\.com\/openai +key ….* in Authorization: Bearer/);
    expect(all).to.match(/provider +llm\.example:8443 +https:\/\/llm\.example:8443 +key ….* in x-api-key/);
    expect(all).to.match(/provider +default of the daemon/);
  });

  it('selects projects in the filter', () => {
    const operator = new Operator({ daemon: daemon() }).press('3', '/').types('provider:groq').press('enter');
    expect(shows(operator)).to.contain('web').and.not.to.contain('plain');
  });
});

describe('the check of a project', () => {
  const checked = (daemon = new SimulatedDaemon()) => new Operator({ daemon }).press('3', 'v');

  it('says how the provider responded, on the list and on the detail', () => {
    expect(checked().says).to.equal('web: The provider accepted the key, after 84 ms.');
    const operator = new Operator().press('3', 'enter');
    operator.daemon.projectCheck = {
      result: 'key_refused',
      reason: 'the provider refused the key with status 401',
      status: 401,
      latency_ms: 12,
    };
    operator.press('v');
    expect(operator.says).to.equal('web: The provider refused the key with status 401.');
    expect(operator.state.message?.tone).to.equal('bad');
  });

  it('says that it waits, and works in a read-only context', () => {
    const operator = new Operator({ place: { isReadonly: true } }).press('3');
    operator.isHeld = true;
    operator.press('v');
    expect(operator.says).to.equal('Checking the provider of web…');
    operator.hears();
    expect(operator.says).to.contain('accepted the key');
  });

  it('says why the daemon refused, without going offline', () => {
    const message = 'too many keys are being checked, try again';
    const daemon = new SimulatedDaemon();
    daemon.failing = ({ of }) => (of === 'projectCheck' ? { ...REFUSED, message } : null);
    const operator = checked(daemon);
    expect(operator.says).to.contain(message);
    expect(operator.state.connection.is).to.equal('live');
  });

  it('fails with the connection to the daemon', () => {
    const daemon = new SimulatedDaemon();
    daemon.failing = ({ of }) => (of === 'projectCheck' ? UNREACHABLE : null);
    expect(checked(daemon).state.connection.failing).to.include('projectCheck');
  });
});
