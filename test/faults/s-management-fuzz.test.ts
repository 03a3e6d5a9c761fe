import { expect } from 'chai';
import { LINGER_MS } from '../../daemon/http/connection-ends.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { head } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';

const REQUESTS = 600;
const SEED = 20_300_131;

const METHODS = ['GET', 'GET', 'POST', 'POST', 'PATCH', 'DELETE', 'HEAD', 'PUT'];
const FIELDS = ['name', 'is_active', 'project_id', 'duration_hours', 'max_requests', 'token', '__proto__', 'id'];
const NAMES = ['limit', 'cursor', 'is_active', 'project_id', 'projectId', 'active_only', 'state', 'expires_after'];
const MORE_NAMES = [
  'expires_before',
  'created_before',
  'idle_over',
  'errors_over',
  'model',
  'used_over',
  'q',
  'sort',
  'constructor',
  '__proto__',
  '',
];
const NUMBERS = ['0', '-1', '1', '24', '1.5', '1e400', '2147483647', '9007199254740993'];
const TEXTS = ['""', '"x"', '"\\u0000"', '"\\ud800"', '"\\u202e"', '"<id>"', `"${'x'.repeat(300)}"`];
const OTHERS = ['null', 'true', 'false', '[]', '{}', '[[[[]]]]', 'NaN'];
const ESCAPED = ['%00', '%', '%ff', '%zz', '%F0%9F%98%80', '%E2%80%AE', "'%20OR%201=1", '%5B%5D', '%31'];
const TIMES = [
  '2030-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999999999Z',
  '0000-01-01T00:00:00Z',
  '2030-02-30T00:00:00Z',
];
const WORDS = [
  '',
  '1',
  '1000',
  '0x10',
  'true',
  'false',
  'active',
  'name',
  '-created_at',
  '<id>',
  'eyJhIjoxfQ',
  '_',
  '!',
  '~',
];
const HEADERS: Record<string, string[]> = {
  'X-Llmp-Actor': ['cli', 'root', '', 'constructor'],
  'X-Audit-Reason': ['why', '%', '%00', '%ED%A0%80', 'x'.repeat(300)],
  'X-Llmp-Client-IP': ['203.0.113.7', '::1', '1.2.3.4:5', 'x'],
  'If-None-Match': ['*', '"x"', 'W/"x", "y"', ''],
  'Content-Type': ['application/json', 'text/plain', 'application/json; charset=utf-7'],
};

describe('S: random input for the management API', () => {
  const { stage, it } = staged();

  it('S01 S02 S03 S04 S06 S07 S08 S11 it always responds, never with 5xx, and the connection stays in sync', async () => {
    let state = SEED;
    const below = (count: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((state / 2 ** 32) * count);
    };
    const one = <T>(of: readonly T[]): T => of[below(of.length)]!;
    const upTo = (most: number, make: () => string) => Array.from({ length: below(most + 1) }, make);
    const paths = [
      '/manage/projects',
      '/manage/projects/<project>',
      '/manage/projects/<project>/tokens/revoke',
      '/manage/tokens',
      '/manage/tokens/<id>',
      '/manage/tokens/lookup',
      '/manage/migrations/up',
      '/manage/openapi.json',
      '/manage/tokens/%00',
      '/manage/nothing',
    ];
    const request = (id: string): string => {
      const { project, token } = stage;
      const written = (text: string) => text.replaceAll('<id>', token.id).replaceAll('<project>', project.id);
      const value = () => one([NUMBERS, TEXTS, OTHERS].map(one));
      const body = written(below(2) ? `{${upTo(3, () => `"${one(FIELDS)}":${value()}`).join()}}` : '');
      const query = upTo(3, () => `${one([NAMES, MORE_NAMES].map(one))}=${one([ESCAPED, TIMES, WORDS].map(one))}`);
      const target = written(one(paths) + (query.length > 0 ? `?${query.join('&')}` : ''));
      const given = Object.entries(HEADERS).filter(() => below(8) === 0);
      const fields = {
        'X-Request-ID': id,
        ...(body && { 'Content-Type': 'application/json', 'Content-Length': String(body.length) }),
        ...Object.fromEntries(given.map(([name, values]) => [name, one(values)])),
      };
      return head(`${one(METHODS)} ${target}`, MANAGEMENT_TOKEN, fields) + body;
    };

    const client = await stage.client();
    const statuses = new Set<number>();
    for (let count = 1; count <= REQUESTS; count++) {
      const bytes = request(`fuzzed-${count}`);
      client.send(bytes);
      const answer = await client.response(bytes.slice(0, bytes.indexOf(' ')));
      expect(answer.status, bytes).to.be.below(500);
      expect(client.pending.toString('latin1'), `after the response to ${bytes}`).to.equal('');
      if (answer.text !== '') expect(answer.json, bytes).to.be.an(answer.text.startsWith('[') ? 'array' : 'object');
      statuses.add(answer.status);
      if (count % 50 === 0) stage.daemon.clock.advance(LINGER_MS);
    }
    expect([...statuses]).to.include.members([200, 400, 404, 405, 415]);
    expect(stage.upstream.exchanges).to.be.empty;
  });
});
