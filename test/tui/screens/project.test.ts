import { expect } from 'chai';
import type { WireProject } from '../../../daemon/api/contract.js';
import { incidentExample } from '../../../daemon/api/schemas.js';
import { aTop, aTopRow } from '../../support/factories.js';
import { Operator } from '../operator.js';
import { SimulatedDaemon, project, topRow } from '../simulated.js';
import { screenText } from './rendering.js';
import { scene } from './scenes.js';
import { at, record, type Setting } from './screen-fixture.js';

const opened = (setting: Setting = {}) => scene({ tab: 'projects', ...setting }).press('j', 'enter');
const shown = (setting: Setting = {}) => screenText(opened(setting).state);
const first = (): WireProject => scene().setting.projects![1]!;

describe('the screen of a project', () => {
  it('shows the tokens and models with the most requests in the last hour', () => {
    const rows = [
      aTopRow({ token_name: 'nightly', model: 'gpt-4o', requests: 1_204, errors: 12 }),
      aTopRow({ token_name: null, token_id: '0123456789abcdef', model: null, requests: 3 }),
      aTopRow({ token_name: 'idle', model: 'idle-model', requests: 0 }),
    ];
    const text = shown({ columns: 80, rows: 40, top: aTop({ rows, from: at(-60), to: at(0) }) });
    expect(text).to.match(/Tokens, last hour +requests +failures +Models, last hour +requests +failures/);
    expect(text).to.match(/nightly +1,204 +12 +gpt-4o +1,204 +12 /);
    expect(text).to.match(/01234567 +3 +0 +no model +3 +0 /);
    expect(text).not.to.contain('idle');
  });

  it('shows the requests of the last five minutes', () => {
    const rows = [aTopRow({ requests: 84, errors: 3, history: [0, 1, 5, 9], error_history: [0, 0, 0, 3] })];
    const text = shown({ top: aTop({ rows, window: '5m', from: at(-5), to: at(0), step_seconds: 60 }) });
    expect(text).to.match(/now +84 requests in the last 5 minutes {2}.[▁▂▃▄▅▆▇█]{3} {2}3 failures/);
  });

  it('asks for the figures of this project, with each refresh', () => {
    const daemon = new SimulatedDaemon({ projects: [project('api'), project('web')] });
    daemon.topRows = [topRow(1), topRow(2, { project_id: 'project-api' })];
    const operator = new Operator({ daemon, tab: 'projects' }).press('j').forgets().press('enter');
    expect(operator.asked('top')).to.equal(3);
    const { busiest, now } = operator.state.project!;
    for (const top of [busiest.token, busiest.model, now]) {
      expect(top?.rows.map(({ project_id: id }) => id)).to.deep.equal(['project-web']);
    }
    expect(operator.state.top.response, 'not the screen Top').to.equal(null);
    expect(operator.passes(2_000).asked('top')).to.equal(6);
  });

  it('shows what is wrong with it, and what to do', () => {
    const incidents = [
      { ...incidentExample, project_id: first().id },
      { ...incidentExample, project_id: 'another', why: 'cap spent' },
    ];
    expect(shown({ incidents })).to.match(/│ ✗ key refused, 84 of 91 requests; give the project a key/);
    expect(shown({ incidents, columns: 80 })).to.match(
      /│ ✗ key refused; give the project a key that its provider accepts/,
    );
    expect(shown({ incidents })).not.to.contain('cap spent');
    expect(shown()).not.to.contain('✗');
  });

  it('has whole names of tokens in its changes where there is room', () => {
    const token_name = 'support-bot-user-1358';
    const audit = [record(5, { project_id: first().id, token_id: 'x', token_name })];
    expect(shown({ columns: 120, rows: 40, audit })).to.contain(`${token_name} `);
  });

  describe('shows who made its changes, and why', () => {
    const reason = 'published in the log of a build, see ticket 4711';
    const change = (fields: Parameters<typeof record>[1] = {}) =>
      record(5, {
        project_id: first().id,
        user: 'anastasia@build-17',
        actor: 'cli',
        reason,
        token_id: 'x',
        token_name: 'x',
        ...fields,
      });
    const lineOf = (columns: number, fields: Parameters<typeof record>[1] = {}) => {
      const lines = shown({ columns, rows: 40, audit: [change(fields)] }).split('\n');
      const at = lines.findIndex((line) => line.includes('token.revoke'));
      return lines.slice(at, at + 2).map((line) => line.replaceAll('│', '').trimEnd());
    };

    it('in one line if there is room', () => {
      const [line, next] = lineOf(170);
      expect(line).to.match(
        /\d\d:\d\d:11 {2}7h ago +● {2}token\.revoke +x +anastasia@build-17 \(cli\) +“published.*4711”/,
      );
      expect(next).to.equal('');
    });

    it('with the reason in the next line otherwise', () => {
      for (const columns of [80, 120]) {
        const [line, next] = lineOf(columns);
        expect(line, String(columns)).to.match(/ago +● {2}token\.revoke +x +anastasia@build-17 \(cli\)$/);
        expect(next, String(columns)).to.match(/^ +“published in the log of a build, see ticket 4711”$/);
      }
    });

    it('with the address, if no user is known', () => {
      expect(lineOf(80, { user: null, client_ip: '10.1.2.3', reason: 'leaked' })[0]).to.match(/cli 10\.1\.2\.3/);
    });

    it('to the last line, and no further', () => {
      const audit = Array.from({ length: 30 }, (_, number) => ({
        ...change(),
        id: `r${number}`,
        reason: `${reason} ${number}`,
      }));
      for (const columns of [80, 170]) {
        const it = opened({ columns, rows: 24, audit }).press('G');
        expect(screenText(it.state).split('\n').at(-4), String(columns)).to.contain(`${reason} 0”`);
        expect(screenText(it.press('j').state).split('\n').at(-4)).to.contain(`${reason} 0”`);
      }
    });
  });
});
