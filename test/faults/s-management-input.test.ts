import { expect } from 'chai';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { LINGER_MS } from '../../daemon/http/connection-ends.js';
import { bodyOf, storedIn } from '../support/management.js';
import { chunk, type Fields, head, type RawResponse, type RawClient } from '../support/raw.js';
import { expectPlain } from '../support/refusals.js';
import { addTokens } from './support/add-tokens.js';
import { staged } from './support/fault-fixture.js';

const KEY = canary('upstream');
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const JSON_TYPE: Fields = { 'Content-Type': 'application/json' };
const CHUNKED: Fields = { ...JSON_TYPE, 'Transfer-Encoding': 'chunked', 'Content-Length': [] };

const ask = (start: string, fields: Fields = {}) => head(start, MANAGEMENT_TOKEN, fields);
const send = (start: string, body: string, fields: Fields = {}) =>
  ask(start, { ...JSON_TYPE, 'Content-Length': String(Buffer.byteLength(body, 'latin1')), ...fields }) + body;

/** Checks an error that every client can read and that reveals nothing of the implementation. */
function expectProblem(answer: RawResponse, status: number, code: string): string {
  expect({ status: answer.status, code: answer.json.code }, answer.text).to.deep.equal({ status, code });
  expectPlain(answer.json);
  expect(answer.header('content-type')).to.equal('application/json; charset=utf-8');
  expect(answer.header('x-request-id')).to.equal(answer.json.request_id);
  expect(answer.text).not.to.match(/<!?\w+|node_modules|\.js\b|\bat .+:\d/i);
  return String(answer.json.error);
}

describe('S: input for the management API', () => {
  const { stage, it } = staged();

  /** Checks that the request gets this response, nothing is stored, and the next request on the connection is parsed correctly. */
  const refused = async (bytes: string, status: number, code: string): Promise<string> => {
    const before = await storedIn(stage.daemon);
    const client = await stage.client(bytes);
    const error = expectProblem(await client.response(), status, code);
    await expectInStep(client);
    // A body that arrives complete, but later than its response, does not end the connection, neither now nor later.
    stage.daemon.clock.advance(LINGER_MS);
    await expectInStep(client);
    expect(await storedIn(stage.daemon)).to.deep.equal(before);
    await stage.expectNothingSpent();
    return error;
  };
  const expectInStep = async (client: RawClient) => {
    client.send(ask('GET /manage/projects?limit=1', { 'X-Request-ID': 'the-next' }));
    const next = await client.response();
    expect([next.status, next.header('x-request-id')]).to.deep.equal([200, 'the-next']);
    expect(client.pending.toString('latin1'), 'bytes that no request asked for').to.equal('');
  };
  const rows = ({ json }: RawResponse) => json as unknown as WireToken[];

  describe('numbers that JSON can contain', () => {
    const create = (field: string, number: string) =>
      send('POST /manage/tokens', `{"project_id":"${stage.project.id}","${field}":${number}}`);

    for (const [field, wrong] of [
      [
        'duration_hours',
        [
          '0',
          '-0',
          '-1',
          '1.5',
          '1e9',
          '2.4e9',
          '1e300',
          '1e999',
          '-1e999',
          '5e-324',
          '8761',
          '"24"',
          'null',
          'true',
          '{}',
        ],
      ],
      ['duration_minutes', ['0', '-1', '0.5', '"60"', 'null', '525601']],
      [
        'max_requests',
        ['-1', '0.5', '2147483648', '9007199254740993', '1e300', '1e999', '"10"', 'true', 'null', '[10]'],
      ],
    ] as const) {
      const id = field === 'max_requests' ? 'S02' : 'S01';
      for (const number of wrong) {
        it(`${id} ${field} ${number} gets 400 with the permitted range`, async () => {
          expect(await refused(create(field, number), 400, 'invalid_request')).to.match(
            new RegExp(`^${field} must be a whole number from [01] to \\d+$`),
          );
        });
      }
      for (const number of ['NaN', 'Infinity', '0x10', '01', '.5', '1_000', '1n', '+1']) {
        it(`${id} ${field} ${number} is invalid JSON`, async () => {
          expect(await refused(create(field, number), 400, 'invalid_request')).to.equal('the body is not valid JSON');
        });
      }
    }

    for (const id of ['""', '7', 'null', '["x"]', '{"ne":"x"}']) {
      it(`S03 project_id ${id} gets 400`, async () => {
        const error = await refused(send('POST /manage/tokens', `{"project_id":${id}}`), 400, 'invalid_request');
        expect(error).to.match(/^project_id must be /);
      });
    }

    it('S01 S02 whole numbers are accepted in all notations', async () => {
      const body = `{"project_id":"${stage.project.id}","duration_hours":2.4e1,"max_requests":1.0}`;
      const created = await bodyOf<WireToken>(stage.daemon.manage('POST', '/manage/tokens', body), 201);
      const { created_at, expires_at, max_requests } = created;
      expect(Date.parse(expires_at) - Date.parse(created_at)).to.equal(24 * 3_600_000);
      expect(max_requests).to.equal(1);
    });
  });

  describe('filters', () => {
    let other: WireProject;
    const list = (query: string) => stage.ask(ask(`GET /manage/tokens?${query}`));

    before(async () => {
      other = await stage.daemon.createProject();
      await stage.daemon.createToken(other.id, { name: 'of another project' });
    });

    for (const [what, query] of Object.entries({
      'two ids': 'project_id=<mine>&project_id=<other>',
      'an id and its older name': 'project_id=<mine>&projectId=<other>',
      'an id in an array': 'project_id[]=<other>',
      'an operator': 'project_id[ne]=<mine>',
      'an encoded name': 'project_id=<mine>&%70roject_id=<other>',
      'a list with a gap': 'project_id=<mine>,',
      'no id': 'project_id=',
      'a name without a value': 'project_id',
      'a pattern that a NUL makes empty': 'q=%00',
      'a pattern cut by a NUL': 'q=%00of%20another',
      'bytes that are not UTF-8': 'q=%ff',
      'half a surrogate pair': 'q=%ED%A0%80',
      'half an escape': 'q=%',
      'an invalid escape': 'q=%zz',
    })) {
      it(`S03 a filter with ${what} gets 400`, async () => {
        const asked = query.replace('<mine>', stage.project.id).replace('<other>', other.id);
        await refused(ask(`GET /manage/tokens?${asked}`), 400, 'invalid_request');
      });
    }

    for (const [what, query] of Object.entries({
      'a part of an id': 'project_id=<part>',
      SQL: "project_id=<mine>'%20OR%20'1'='1",
      'an id with a NUL after it': 'project_id=<mine>%00',
      'a pattern of SQL': 'project_id=%25',
      'a pattern in a search': 'q=%25',
      'one character of SQL in a search': 'q=_',
    })) {
      it(`S03 a filter with ${what} finds nothing`, async () => {
        const { id } = stage.project;
        const answer = await list(
          query.replace('<mine>', id).replace('<other>', other.id).replace('<part>', id.slice(0, 8)),
        );
        expect({ status: answer.status, rows: rows(answer) }).to.deep.equal({ status: 200, rows: [] });
        expect(answer.header('x-total-count')).to.equal('0');
      });
    }

    for (const written of ['TRUE', '', '1', 'yes', 'false%00', 'true&active_only=true', 'true,false']) {
      it(`S04 active_only=${written} gets 400`, async () => {
        await refused(ask(`GET /manage/tokens?active_only=${written}`), 400, 'invalid_request');
      });
    }

    it('S04 active_only can be true or false', async () => {
      const revoked = await stage.issue();
      await stage.daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
      const idsWith = async (query: string) => rows(await list(query)).map(({ id }) => id);
      expect(await idsWith('active_only=true&limit=1000'))
        .to.include(stage.token.id)
        .and.not.to.include(revoked.id);
      expect(await idsWith('active_only=false&limit=1000')).to.include.members([stage.token.id, revoked.id]);
    });
  });

  describe('names', () => {
    for (const [what, name] of Object.entries({
      'that are empty': '',
      'of 101 characters': 'x'.repeat(101),
      'of 101 pairs': '\\ud83d\\udd11'.repeat(101),
      'of 10 KB': 'x'.repeat(10_000),
      'of spaces': '   ',
      'of other white space': '\\u2003\\u00a0',
      'with a NUL': 'a\\u0000b',
      'with a newline': 'a\\nb',
      'with an escape sequence': '\\u001b[2J',
      'with a C1 control character': 'a\\u009bb',
      'with DEL': 'a\\u007fb',
      'with a line separator': 'a\\u2028b',
      'with half a surrogate pair': 'a\\ud800b',
      'with a change of the writing direction': '\\u202eright to left',
      'with another change of the writing direction': 'a\\u200fb\\u2066c',
      'of zero width': '\\u200b\\u200d',
      'with a character of zero width': 'a\\u200bb',
      'of invisible letters': '\\u3164\\u2800\\ufe0f',
    })) {
      it(`S05 names ${what} are refused, for projects and tokens`, async () => {
        const problem =
          'name must be 1 to 100 characters, not only spaces, without control characters, characters that change the writing direction, and secrets';
        const project = send('POST /manage/projects', `{"api_key":"${KEY}","name":"${name}"}`);
        expect(await refused(project, 400, 'invalid_request')).to.equal(problem);
        const token = send('POST /manage/tokens', `{"project_id":"${stage.project.id}","name":"${name}"}`);
        expect(await refused(token, 400, 'invalid_request')).to.equal(problem);
      });
    }

    for (const value of ['7', 'null', '["x"]']) {
      it(`S05 names ${value} are refused, for projects and tokens`, async () => {
        for (const [path, more] of [
          ['projects', `"api_key":"${KEY}"`],
          ['tokens', `"project_id":"${stage.project.id}"`],
        ] as const) {
          const bytes = send(`POST /manage/${path}`, `{${more},"name":${value}}`);
          expect(await refused(bytes, 400, 'invalid_request')).to.match(/^name must be 1 to 100 characters/);
        }
      });
    }

    for (const name of [
      'x',
      'x'.repeat(100),
      '\\ud83d\\udd11'.repeat(100), // Characters, not UTF-16 units.
      'Gr\\u00f6\\u00dfe \\u4e2d\\u6587 \\ud83d\\udc69\\u200d\\ud83d\\ude80',
      '\\u05e9\\u05dc\\u05d5\\u05dd',
      '\\u0645\\u06cc\\u200c\\u062e',
      'a \\u00a0 b',
      "Robert'); DROP TABLE projects;--",
      '<img src=x onerror=alert(1)>&amp;',
    ]) {
      it(`S05 ${name.slice(0, 40)} is a valid name and is returned unchanged`, async () => {
        const sent = JSON.parse(`"${name}"`) as string;
        const answer = await stage.ask(send(`PATCH /manage/projects/${stage.project.id}`, `{"name":"${name}"}`));
        expect(answer.status).to.equal(200);
        expect(answer.json.name).to.equal(sent);
      });
    }
  });

  describe('fields', () => {
    const path = () => `/manage/tokens/${stage.token.id}`;

    for (const body of [
      '{}',
      '{"is_active":"false"}',
      '{"is_active":0}',
      '{"is_active":null}',
      '{"is_active":[false]}',
      '{"is_active":false,"extra":1}',
      '{"is_active":false,"__proto__":{"is_active":false}}',
      '{"Is_Active":false}',
      '{"is_active":false,"name":null}',
      '{"name":""}',
      '{"api_key":""}',
      '{"id":"00000000-0000-4000-8000-000000000000"}',
    ]) {
      it(`S06 ${body} neither revokes a token nor deactivates its project`, async () => {
        await refused(send(`PATCH ${path()}`, body), 400, 'invalid_request');
        await refused(send(`PATCH /manage/projects/${stage.project.id}`, body), 400, 'invalid_request');
        expect((await stage.daemon.token(stage.token.id)).state).to.equal('active');
        expect((await stage.ask(stage.get())).status).to.equal(200);
      });
    }
  });

  describe('purges', () => {
    for (const body of [
      '{}',
      '[]',
      '{"all":false}',
      '{"all":"true"}',
      '{"all":1}',
      '{"all":true,"extra":1}',
      '{"all":true,"project_id":null}',
      '{"all":true,"__proto__":{"dry_run":true}}',
      '{"All":true}',
      '{"dry_run":true}',
      '{"all":true,"dry_run":"false"}',
      '{"project_id":["<mine>"]}',
      '{"project_id":{"ne":"<mine>"}}',
      '{"project_id":""}',
      '{"method":["GET"],"url":"/v1/models"}',
      '{"method":"GET","url":["/v1/models"]}',
      '{"method":"GET","url":"/v1/models","path":"/v1/models"}',
      '{"method":"GET /v1/models","url":"/v1/models"}',
      '{"method":"GET","url":"/v1/models\\n"}',
      '{"method":"GET","url":"/v1/models\\u0000"}',
      '{"method":"GET","url":"/v1/*"}{"all":true}',
    ]) {
      it(`S06 ${body} purges nothing`, async () => {
        const bytes = send('POST /manage/cache/purge', body.replace('<mine>', stage.project.id));
        await refused(bytes, 400, 'invalid_request');
      });
    }

    it('S07 a form, which a browser could send from any page, gets 415', async () => {
      const type = { 'Content-Type': 'application/x-www-form-urlencoded' };
      await refused(send('POST /manage/cache/purge', 'all=true', type), 415, 'unsupported_media_type');
    });
  });

  describe('bodies', () => {
    // If it were read as a separate request, it would create a project.
    const inner = send('POST /manage/projects', `{"name":"smuggled","api_key":"${KEY}"}`);

    for (const [what, fields] of Object.entries<Fields>({
      'without a type': { 'Content-Type': [] },
      'of text': { 'Content-Type': 'text/plain' },
      'of a form': { 'Content-Type': 'application/x-www-form-urlencoded' },
      'in UTF-7': { 'Content-Type': 'application/json; charset=utf-7' },
      'in Latin 1': { 'Content-Type': 'application/json; charset=iso-8859-1' },
      'of a JSON dialect': { 'Content-Type': 'application/vnd.api+json' },
      'of a type with a longer name': { 'Content-Type': 'application/jsonp' },
      'of two types': { 'Content-Type': 'application/json, text/plain' },
      'compressed with gzip': { 'Content-Encoding': 'gzip' },
      'compressed with br': { 'Content-Encoding': 'br' },
    })) {
      it(`S07 bodies ${what} get 415, and are not parsed as a request`, async () => {
        await refused(send('POST /manage/projects', inner, fields), 415, 'unsupported_media_type');
        await refused(
          send('POST /manage/projects', chunk(inner) + '0\r\n\r\n', { ...CHUNKED, ...fields }),
          415,
          'unsupported_media_type',
        );
      });
    }

    it('S07 without the management token bodies are not read or parsed as requests', async () => {
      const fields = { Authorization: [], 'X-Request-ID': 'first' };
      await refused(send('POST /manage/projects', inner, fields), 401, 'management_token_refused');
    });

    it('S07 E03 bodies above 64 KiB get 413 at once: by their stated length, or as soon as they exceed it', async () => {
      for (const bytes of [
        send('POST /manage/projects', '{', { 'Content-Length': '65537' }),
        send('POST /manage/projects', chunk(`{"name":"${'x'.repeat(65_536)}`), CHUNKED),
      ]) {
        const client = await stage.client(bytes);
        expectProblem(await client.response(), 413, 'body_too_large');
        stage.daemon.clock.advance(2_000);
        await client.closed;
      }
    });

    it('S07 bodies of 64 KiB are read', async () => {
      const body = `{"name":"x","api_key":"${KEY}"`.padEnd(65_535) + '}';
      expect((await stage.ask(send('POST /manage/projects', body))).status).to.equal(201);
    });

    it('S07 A21 bodies that do not arrive within CLIENT_BODY_TIMEOUT get 408, however slowly they continue', async () => {
      const client = await stage.client(send('POST /manage/projects', '{', { 'Content-Length': '1000' }));
      await eventually('it is refused', () => {
        if (client.pending.length > 0) return true;
        client.send(' ');
        stage.daemon.clock.advance(5_000);
        return false;
      });
      expectProblem(await client.response(), 408, 'request_timeout');
      stage.daemon.clock.advance(2_000);
      await client.closed;
    });

    it('S07 A21 unread bodies do not keep their connection open: it closes after 2 s', async () => {
      const client = await stage.client(
        send('POST /manage/projects', '{', { Authorization: [], 'Content-Length': '100' }),
      );
      expectProblem(await client.response(), 401, 'management_token_refused');
      stage.daemon.clock.advance(2_000);
      await client.closed;
    });

    it('S07 A10 bodies with broken framing get 400, and the connection closes', async () => {
      const client = await stage.client(send('POST /manage/projects', chunk('{"name":') + 'zz\r\n', CHUNKED));
      expectProblem(await client.response(), 400, 'malformed_request');
      await client.closed;
    });

    it('S07 A10 bodies whose framing breaks after their response get no second one', async () => {
      for (const start of ['POST /manage/projects', 'POST /v1/echo']) {
        const client = await stage.client(send(start, chunk('{'), { ...CHUNKED, Authorization: [] }));
        expect((await client.response()).status).to.equal(401);
        const socket = stage.serverSocket(client);
        const before = socket.bytesRead;
        client.send('zz\r\n\r\n');
        await eventually('it is read', () => socket.bytesRead > before);
        stage.daemon.clock.advance(LINGER_MS);
        await client.closed;
        expect(client.pending.toString('latin1')).to.equal('');
      }
    });

    it('S07 A32 the client gets 100 when its body is needed, and not before a refusal', async () => {
      const body = `{"name":"continued","api_key":"${KEY}"}`;
      const fields: Fields = { ...JSON_TYPE, 'Content-Length': String(body.length), Expect: '100-continue' };
      const client = await stage.client(ask('POST /manage/projects', fields));
      expect((await client.response()).status).to.equal(100);
      client.send(body);
      expect((await client.response()).status).to.equal(201);
      for (const [wrong, status] of [
        [{ Authorization: [] }, 401],
        [{ 'Content-Type': 'text/plain' }, 415],
        [{ 'Content-Length': '65537' }, 413],
      ] as const) {
        const refusedFirst = await stage.client(ask('POST /manage/projects', { ...fields, ...wrong }));
        const answer = await refusedFirst.response();
        // The body may or may not follow, so nothing can be read after it.
        expect([answer.status, answer.header('connection')]).to.deep.equal([status, 'close']);
        await refusedFirst.closed;
        expect(refusedFirst.pending.toString('latin1')).to.equal('');
      }
    });
  });

  describe('paths', () => {
    const NOT_FOUND: readonly [string, string, string][] = [
      ['an unknown token', `/manage/tokens/${UNKNOWN_ID}`, 'token not found'],
      ['an unknown project', `/manage/projects/${UNKNOWN_ID}`, 'project not found'],
      ['an impossible id', '/manage/tokens/nonsense', 'token not found'],
      ['an id of 2,000 characters', `/manage/projects/${'x'.repeat(2_000)}`, 'project not found'],
      ['an id in capitals', `/manage/tokens/${UNKNOWN_ID.toUpperCase()}`, 'token not found'],
      ['an id with a NUL after it', `/manage/tokens/${UNKNOWN_ID}%00`, 'token not found'],
      ['SQL for an id', "/manage/projects/'%20OR%201=1", 'project not found'],
      ['a property name of every object', '/manage/projects/__proto__', 'project not found'],
      ['a path that leads out', '/manage/projects/%2e%2e%2ftokens', 'project not found'],
    ];
    for (const [what, path, error] of NOT_FOUND) {
      it(`S08 a request for ${what} gets 404 in JSON`, async () => {
        expect(await refused(ask(`GET ${path}`), 404, 'not_found')).to.equal(error);
      });
    }

    for (const path of [
      '/manage/tokens/%zz',
      '/manage/projects/%',
      '/manage/tokens/%ff',
      '/manage/projects/%E0%A4%A',
    ]) {
      it(`S08 a path that cannot be decoded gets 400 in JSON: ${path}`, async () => {
        expect(await refused(ask(`GET ${path}`), 400, 'invalid_request')).to.equal('malformed request');
      });
    }

    for (const id of ['<known>', UNKNOWN_ID, 'nonsense', '%zz']) {
      it(`S09 DELETE of the project ${id} is never done: ${id === '%zz' ? 400 : 405}, after authentication`, async () => {
        const start = `DELETE /manage/projects/${id.replace('<known>', stage.project.id)}`;
        const client = await stage.client(ask(start, { Authorization: [] }) + ask(start));
        expectProblem(await client.response(), 401, 'management_token_refused');
        const answer = await client.response();
        if (id === '%zz') expectProblem(answer, 400, 'invalid_request');
        else expect(expectProblem(answer, 405, 'method_not_allowed')).to.match(/; deactivate instead$/);
        expect(answer.header('allow')).to.equal(id === '%zz' ? undefined : 'GET, PATCH, HEAD, OPTIONS');
        await expectInStep(client);
        expect((await stage.daemon.token(stage.token.id)).state).to.equal('active');
        await stage.expectNothingSpent();
      });
    }

    for (const path of [
      '/manage',
      '/manage/',
      '/manage/nothing',
      '/manage/tokens/',
      '/manage//tokens',
      '/Manage/tokens',
      '/manage/Tokens',
      `/manage/tokens/${UNKNOWN_ID}/x`,
      '/',
      '/v1x',
      '/v2/models',
      '/index.html',
    ]) {
      it(`S11 an unknown path gets 404 in JSON: ${path}`, async () => {
        for (const method of ['GET', 'POST', 'DELETE']) {
          expect(await refused(ask(`${method} ${path}`), 404, 'not_found')).to.equal('no such path');
        }
      });
    }

    it('S11 unknown paths under /v1 are left to the provider', async () => {
      stage.upstream.script = (exchange) => {
        exchange.respond(404, '', '{"error":{"message":"Unknown request URL"}}');
      };
      const answer = await stage.ask(stage.get({}, '/v1/nothing'));
      expect([answer.status, answer.text]).to.deep.equal([404, '{"error":{"message":"Unknown request URL"}}']);
      expect((await stage.upstream.only()).target).to.equal('/v1/nothing');
    });

    for (const path of [
      '/manage/projects',
      `/manage/tokens/${UNKNOWN_ID}`,
      '/manage/nothing',
      '/manage/tokens?limit=0',
      '/manage/usage',
      `/manage/audit/${UNKNOWN_ID}`,
      '/manage/audit/stream?actor=nobody',
      '/manage/events/stream?kind=nothing',
      '/manage/openapi.json',
      '/live',
    ]) {
      it(`S12 HEAD ${path} is GET without a single byte of a body`, async () => {
        const got = await stage.ask(ask(`GET ${path}`, { 'X-Request-ID': 'answered-to-GET-' }));
        const client = await stage.client(ask(`HEAD ${path}`, { 'X-Request-ID': 'answered-to-HEAD' }));
        const answer = await client.response('HEAD');
        const shown = ({ status, fields }: RawResponse) => [
          status,
          ...fields.filter(([name]) => name !== 'Date' && name !== 'X-Request-ID'),
        ];
        expect(shown(answer)).to.deep.equal(shown(got));
        await expectInStep(client);
      });
    }

    it('S12 OPTIONS lists the methods, after authentication and without a body', async () => {
      const client = await stage.client(
        ask('OPTIONS /manage/tokens', { Authorization: [] }) + ask('OPTIONS /manage/tokens'),
      );
      expectProblem(await client.response(), 401, 'management_token_refused');
      const answer = await client.response();
      expect([answer.status, answer.header('allow')]).to.deep.equal([204, 'POST, GET, HEAD, OPTIONS']);
      await expectInStep(client);
    });
  });

  describe('lists of many', () => {
    const MANY = 20_000;
    let crowded: WireProject;

    before(async () => {
      crowded = await stage.daemon.createProject();
      await addTokens(stage.daemon, crowded.id, MANY);
    });

    it('S10 a list has pages of up to 1000, whose cost does not grow with the list', async () => {
      const { database } = stage.daemon.daemon.stores;
      const path = `/manage/tokens?project_id=${crowded.id}&limit=1000`;
      await refused(ask(`GET ${path.replace('1000', '1001')}`), 400, 'invalid_request');
      let next: string | undefined = path;
      const seen = new Set<string>();
      let most = 0;
      while (next !== undefined) {
        const before = database.statements;
        const answer: RawResponse = await stage.ask(ask(`GET ${next}`));
        most = Math.max(most, database.statements - before);
        expect(answer.header('x-total-count')).to.equal(String(MANY));
        expect(answer.body.length, 'bytes of a page').to.be.below(650 * 1000);
        for (const { id } of rows(answer)) seen.add(id);
        next = /^<([^>]+)>; rel="next"$/.exec(answer.header('link') ?? '')?.[1];
      }
      expect(seen.size).to.equal(MANY);
      // One each for the total, the page, and what its tokens have spent. The total may already be known.
      expect(most, 'statements for a page').to.equal(3);
    });

    it('S10 a page has 100 entries without a limit', async () => {
      expect(rows(await stage.ask(ask(`GET /manage/tokens?project_id=${crowded.id}`)))).to.have.lengthOf(100);
    });
  });
});
