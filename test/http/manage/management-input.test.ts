import { expect } from 'chai';
import type { WireProject } from '../../../daemon/api/contract.js';
import { canary } from '../../support/canaries.js';
import { daemonForSuite, UPSTREAM_KEY } from '../../support/daemon.js';
import { bodyOf, problemOf, rawRequest, type RawRequest, storedIn } from '../../support/management.js';

const JSON_TYPE = { 'content-type': 'application/json' };

const SECRET = canary('upstream');

describe('input of the management API', () => {
  let project: WireProject;
  let stored: Record<string, object[]>;

  const daemon = daemonForSuite();
  before(async () => {
    project = await daemon.createProject();
    await daemon.createToken(project.id);
  });

  // Invalid input never stores anything: no row, no change, no audit record.
  beforeEach(async () => {
    stored = await storedIn(daemon);
  });

  const refused = async (request: RawRequest, status: number, code: string) => {
    const answer = await rawRequest(daemon, request);
    const error = problemOf(answer, status, code);
    expect(await storedIn(daemon)).to.deep.equal(stored);
    return { error, text: answer.text };
  };
  const create = (body: string | Buffer, headers: RawRequest['headers'] = JSON_TYPE): RawRequest => ({
    method: 'POST',
    path: '/manage/projects',
    headers,
    body,
  });
  const good = () => JSON.stringify({ name: `project ${Math.random()}`, api_key: UPSTREAM_KEY });

  describe('the content type', () => {
    for (const type of [
      'application/json',
      'Application/JSON',
      'application/json; charset=utf-8',
      'application/json;charset="UTF-8"',
    ]) {
      it(`may be ${type}`, async () => {
        await bodyOf(rawRequest(daemon, create(good(), { 'content-type': type })), 201);
      });
    }

    it('does not matter without a body', async () => {
      const path = `/manage/projects/${project.id}/tokens/revoke`;
      await bodyOf(
        rawRequest(daemon, { method: 'POST', path, headers: { 'content-type': 'text/plain', 'content-length': '0' } }),
      );
    });
  });

  describe('JSON', () => {
    for (const [what, body] of [
      ['that ends too early', `{"name":"x","api_key":"${SECRET}"`],
      ['with something after it', `{"name":"x","api_key":"${SECRET}"} ${SECRET}`],
      ['in single quotes', `{'api_key':'${SECRET}'}`],
      ['with a bare word', SECRET],
      ['with a newline in a string', `{"name":"${SECRET}\n"}`],
      ['30,000 arrays deep and not closed', '['.repeat(30_000)],
      ['of blanks', '   '],
    ] as const) {
      it(`I05 ${what} is refused with 400 that does not quote it`, async () => {
        const { error, text } = await refused(create(body), 400, 'invalid_request');
        expect(error).to.equal('the body is not valid JSON');
        expect(text).not.to.include(SECRET).and.not.to.include('node_modules');
      });
    }

    it('in another encoding than UTF-8 is refused with 400, not repaired', async () => {
      const body = Buffer.from('{"name":"caf\xe9","api_key":"key"}', 'latin1');
      expect((await refused(create(body), 400, 'invalid_request')).error).to.equal('the body is not valid UTF-8');
    });

    for (const [what, body] of Object.entries({
      'a list': '[]',
      'a text': `"${SECRET}"`,
      null: 'null',
      'a number': '7',
      true: 'true',
    })) {
      it(`I05 that is ${what} is refused with 400 that does not quote it`, async () => {
        const { error } = await refused(create(body), 400, 'invalid_request');
        expect(error).to.equal('the body must be a JSON object');
      });
    }

    const DOUBLED: Record<string, string> = {
      'at the top': '{"name":"a","api_key":"k","name":"b"}',
      'with the same value': '{"name":"a","api_key":"k","name":"a"}',
      'spelled with an escape': '{"n\\u0061me":"a","api_key":"k","name":"b"}',
      'spelled with another escape': '{"\\/":1,"/":2}',
      nested: '{"name":"a","api_key":"k","x":[{"y":{"z":1,"z":2}}]}',
      'after a nested object': '{"name":{"name":1},"api_key":["name",{}],"name":"b"}',
      __proto__: '{"__proto__":1,"__proto__":2}',
    };
    for (const [what, body] of Object.entries(DOUBLED)) {
      it(`with a repeated field is refused with 400: ${what}`, async () => {
        const { error } = await refused(create(body), 400, 'invalid_request');
        expect(error).to.equal('the body names a field twice: send each field once');
      });
    }

    for (const number of [
      '2147483647.0000001',
      '1.00000000000000000001',
      '0.99999999999999999999',
      '1e-400',
      '-1e-999',
    ]) {
      it(`with a number that would be rounded is refused with 400: ${number}`, async () => {
        const body = `{"project_id":"${project.id}","duration_hours":1,"max_requests":${number}}`;
        const { error } = await refused({ ...create(body), path: '/manage/tokens' }, 400, 'invalid_request');
        expect(error).to.equal('the body holds a number that would be rounded: send a whole number');
      });
    }

    it('may contain any string, and numbers in any exact notation', async () => {
      const name = '","name":"{[2147483647.0000001\\"\\';
      const made = await bodyOf(rawRequest(daemon, create(JSON.stringify({ name, api_key: UPSTREAM_KEY }))), 201);
      expect(made).to.include({ name });
      for (const number of ['3', '3.0', '3.00e0', '30e-1', '0.3e1', '0.03E+2', '300E-2']) {
        const body = `{"project_id":"${project.id}","duration_hours":1,"max_requests":${number}}`;
        const token = await bodyOf(rawRequest(daemon, { ...create(body), path: '/manage/tokens' }), 201);
        expect(token).to.include({ max_requests: 3 });
      }
    });

    it('in chunks is read like any other', async () => {
      await bodyOf(rawRequest(daemon, create(good(), { ...JSON_TYPE, 'transfer-encoding': 'chunked' })), 201);
    });
  });

  describe('fields', () => {
    for (const [method, path, fields] of [
      ['POST', '/manage/projects', { name: 'x', api_key: canary('upstream') }],
      ['PATCH', '/manage/projects/<id>', { is_active: true }],
      ['POST', '/manage/projects/<id>/tokens/revoke', {}],
      ['POST', '/manage/tokens', { project_id: '<id>' }],
      ['POST', '/manage/tokens/lookup', { token: 'x' }],
      ['PATCH', '/manage/tokens/<id>', { is_active: true }],
      ['DELETE', '/manage/tokens/<id>', {}],
      ['POST', '/manage/migrations/up', {}],
    ] as const) {
      for (const extra of ['extra', '__proto__', 'constructor', 'toString', 'Is_Active']) {
        it(`S06 unknown to ${method} ${path} are refused with 400: ${extra}`, async () => {
          // Written as text: JSON.stringify would not write an own __proto__.
          const known = JSON.stringify(fields).replace('<id>', project.id).slice(1, -1);
          const body = `{${known}${known && ','}"${extra}":{"is_active":false}}`;
          const request = { method, path: path.replace('<id>', project.id), headers: JSON_TYPE, body };
          const { error } = await refused(request, 400, 'invalid_request');
          expect(error).to.equal(`unknown field: ${extra}`);
        });
      }
    }

    it('with errors are all reported at once, each with the accepted values', async () => {
      const body = JSON.stringify({ duration_hours: 0, max_requests: '5', name: '', color: 'red' });
      const { error } = await refused(
        { method: 'POST', path: '/manage/tokens', headers: JSON_TYPE, body },
        400,
        'invalid_request',
      );
      expect(error.split('; ')).to.have.members([
        'project_id is required: an ID',
        'duration_hours must be a whole number from 1 to 8760',
        'max_requests must be a whole number from 0 to 2147483647',
        'name must be 1 to 100 characters, not only spaces, without control characters, characters that change the writing direction, and secrets',
        'unknown field: color',
      ]);
    });

    it('cannot change the prototype of objects', () => {
      expect(({} as Record<string, unknown>).is_active).to.equal(undefined);
    });
  });

  describe('query parameters', () => {
    for (const [method, path] of [
      ['GET', '/manage/projects'],
      ['GET', '/manage/projects/<id>'],
      ['POST', '/manage/projects/<id>/tokens/revoke'],
      ['GET', '/manage/tokens/<id>'],
      ['DELETE', '/manage/tokens/<id>'],
      ['GET', '/manage/cache'],
      ['POST', '/manage/cache/purge'],
      ['GET', '/manage/migrations'],
    ] as const) {
      it(`unknown to ${method} ${path} are refused with 400`, async () => {
        const request = { method, path: `${path.replace('<id>', project.id)}?force=true` };
        expect((await refused(request, 400, 'invalid_request')).error).to.equal('unknown query parameter: force');
      });
    }

    it('that are repeated are refused with 400', async () => {
      const { error } = await refused({ path: '/manage/projects?limit=1&limit=2' }, 400, 'invalid_request');
      expect(error).to.equal('limit is given more than once');
    });
  });
});
