import { expect } from 'chai';
import type { WireEvent } from '../../../daemon/api/contract.js';
import { plainLines } from '../screens/rendering.js';
import { curlCommand } from '../../../console/query/command.js';
import { request } from '../screens/screen-fixture.js';
import { Operator } from '../operator.js';
import { at, project, SimulatedDaemon, token } from '../simulated.js';

const WEB = '11111111-1111-4111-8111-111111111111';
const ID = '77ab10f3-0000-4000-8000-000000000000';
const REFUSED = {
  status: 429,
  outcome: 'refused',
  code: 'request_limit_reached',
  error: 'token request limit reached: ask for another token',
} as const;

function operatorOf(events: readonly WireEvent[], tab: 'events' | 'tokens' = 'tokens'): Operator {
  const daemon = new SimulatedDaemon({
    tokens: [token(1, { id: ID, project_id: WEB, name: 'ci' })],
    projects: [project('web', { id: WEB })],
  });
  daemon.events = [...events];
  return new Operator({ daemon, tab });
}
const shown = (operator: Operator) => plainLines(operator.state).join('\n');
const opens = (operator: Operator) => operator.acts({ on: 'stream', of: 'events', is: 'open', failure: null });
const comes = (operator: Operator, ...events: WireEvent[]) =>
  operator.acts({ on: 'streamed', streamed: events.map((item) => ({ of: 'events', item })) });
const indexes = (operator: Operator) => operator.state.events.items.map(({ id }) => Number(id.slice(-12)));
const event = (number: number, fields: Parameters<typeof request>[1] = {}) =>
  request(number, { time: at(number), token_id: ID, project_id: WEB, ...fields });

describe('keys of events', () => {
  it('show a failing request, and why it failed, in three keys; it stays while others come', () => {
    const operator = operatorOf([event(1), event(2, REFUSED), event(3)]);
    operator.press('6');
    opens(operator.press('e', 'enter'));
    const why = /why +token request limit reached: ask for another token/;
    expect(shown(operator))
      .to.match(/request +429/)
      .and.to.match(why);
    for (let from = 10; from < 9_000; from += 500) {
      comes(
        operator,
        ...Array.from({ length: 500 }, (_, index) => event(from + index, { ...REFUSED, error: 'other' })),
      );
    }
    expect(shown(operator)).to.match(why);
  });

  it('open the newest event as soon as it is loaded, if the operator types faster', () => {
    const operator = operatorOf([event(1), event(2, REFUSED), event(3)]);
    operator.isHeld = true;
    operator.press('6', 'e', 'enter');
    expect(operator.state.events.opened).to.equal(null);
    operator.isHeld = false;
    operator.hears();
    expect(operator.state.events.opened?.id).to.equal(event(2).id);
    const none = operatorOf([]);
    none.isHeld = true;
    none.press('6', 'enter');
    none.isHeld = false;
    opens(none.hears());
    expect(comes(none, event(4)).state.events.opened, 'not much later').to.equal(null);
  });

  it('e shows only failures, with the rest of the filter, and then all again', () => {
    const operator = operatorOf([event(1), event(2, REFUSED), event(3, { status: 404, outcome: 'upstream_refused' })]);
    opens(operator.press('6'));
    operator.press('e');
    expect(operator.state.events.filter).to.equal('outcome:failed');
    expect(indexes(operator)).to.deep.equal([2, 3]);
    operator.press('e');
    expect(operator.state.events.filter).to.equal('');
    expect(indexes(operator)).to.deep.equal([1, 2, 3]);
    operator.press('/').types('status:4xx').press('enter', 'e');
    expect(operator.state.events.filter).to.equal('status:4xx outcome:failed');
    operator.press('/').types('kind:request.completed').press('enter', 'e');
    expect(operator.state.events.filter).to.equal('status:4xx kind:request.completed');
  });

  it('f shows the events of a token, from the list and from its detail, and q goes back', () => {
    for (const way of [[], ['enter']]) {
      const operator = operatorOf([event(1), event(2, { token_id: null }), event(3)]);
      operator.press(...way, 'f');
      expect(operator.screen).to.equal('events');
      expect(operator.state.events.filter).to.equal(`token:${ID}`);
      expect(operator.followed).to.deep.equal([{ of: 'events', query: { token_id: ID, since: '5s' } }]);
      expect(indexes(operator)).to.deep.equal([1, 3]);
      expect(operator.press('q').screen).to.equal(way.length === 0 ? 'tokens' : 'token');
    }
  });

  it('f shows the events of a project', () => {
    const operator = operatorOf([event(1), event(2, { token_id: null, project_id: null })]).press('3', 'f');
    expect(operator.state.events.filter).to.equal('project:web');
    expect(indexes(operator)).to.deep.equal([1]);
    expect(operator.press('q').screen).to.equal('projects');
  });

  it('f closes the details of another event', () => {
    const operator = operatorOf([event(1), event(2)]).press('6', 'enter', '2', 'f');
    expect(operator.state.events).to.include({ opened: null, isFollowing: true });
  });

  it('Y copies an open request as a curl command, or else the command that streams the same events', () => {
    const operator = operatorOf([event(1)]).press('6', 'Y');
    expect(operator.did('copy')?.text).to.equal('llmp events tail');
    operator.press('e', 'Y');
    expect(operator.did('copy')?.text).to.equal("llmp events tail 'outcome:failed'");
    operator.press('e', 'enter', 'Y');
    expect(operator.did('copy')).to.deep.include({
      text: curlCommand(event(1), '127.0.0.1:8080'),
      what: 'The curl command',
    });
  });
});

describe('the curl command of a request', () => {
  const server = 'https://llmp.example:8443';

  it('has a placeholder for the token, and reads an unknown body from a file', () => {
    expect(curlCommand(event(1), server)).to.equal(
      `curl -sS -i -X 'POST' 'https://llmp.example:8443/v1/chat/completions' -H "Authorization: Bearer $LLMP_TOKEN" -H 'Content-Type: application/json' --data-binary @request.json`,
    );
    expect(curlCommand(event(1, { method: 'GET', path: '/v1/models', bytes_in: 0 }), 'unix:/run/llmp.sock')).to.equal(
      `curl -sS -i --unix-socket '/run/llmp.sock' 'http://localhost/v1/models' -H "Authorization: Bearer $LLMP_TOKEN"`,
    );
  });

  it('contains a captured JSON body on one line, unless it was cut', () => {
    const body = '{\n\t"model": "it\'s \\u001b[201~\u202e"\n}';
    const command = curlCommand(event(1, { request_body: body }), server);
    expect(command).to.contain(`--data-binary '{"model":"it'\\''s \\u001b[201~\\u202e"}'`);
    for (const other of ['{"a":"\u001b"}', '{"a":1…[cut: 6 of 900 bytes]', '--boundary\r\n', ''])
      expect(curlCommand(event(1, { request_body: other }), server)).to.match(/--data-binary @request\.json$/);
  });

  it('cannot leave its quotes, whatever a client has sent', () => {
    const path = "/v1/'; rm -rf ~ #\n\u0003$(id)`id`";
    const command = curlCommand(event(1, { path, method: "X'\n" }), server);
    expect(command).to.not.match(/[\p{Cc}]/u);
    expect(command).to.contain(`'https://llmp.example:8443/v1/'\\''; rm -rf ~ #\\x0a\\x03$(id)\`id\`'`);
  });
});
