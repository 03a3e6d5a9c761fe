import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { apiPage } from '../../../daemon/http/manage/api-page.js';
import { openApi } from '../../../daemon/http/manage/openapi.js';
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect } from 'chai';
import * as z from 'zod';
import type { WireProject } from '../../../daemon/api/contract.js';
import { type Route, ROUTES } from '../../../daemon/api/routes.js';
import { daemonForSuite, startDaemon, type TestResponse } from '../../support/daemon.js';
import { type Described, DESCRIPTION, expectDescribed, resolved } from '../../support/description.js';
import { problemOf, rawRequest } from '../../support/management.js';
import { aProject } from '../../support/factories.js';

const ID = '00000000-0000-4000-8000-000000000000';
const METHODS = ['get', 'post', 'patch', 'delete', 'put', 'head', 'options', 'trace'];

interface Operation {
  path: string;
  method: string;
  described: Described;
}
const operations: Operation[] = Object.entries(DESCRIPTION.paths).flatMap(([path, methods]) =>
  METHODS.flatMap((method) => {
    const described = methods[method];
    return described ? [{ path, method, described }] : [];
  }),
);
const queryOf = ({ described }: Operation) => described.parameters.map(resolved).filter((it) => it.in === 'query');
const theListOfTokens = () => operations.find(({ described }) => described.operationId === 'listTokens')!;

const ROOT = resolve(import.meta.dirname, '../../../..');

describe('the description of the management API', () => {
  let project: WireProject;

  const daemon = daemonForSuite();
  before(async () => {
    project = await daemon.createProject();
  });

  it('is OpenAPI 3.1 at /manage/openapi.json, and needs the management token', async () => {
    const answer = await daemon.manage('GET', '/manage/openapi.json');
    expect(answer.body).to.deep.equal(DESCRIPTION);
    expect(answer.body).to.include({ openapi: '3.1.1' });
    expect(answer.headers.get('content-type')).to.equal('application/json; charset=utf-8');
    const headers = { authorization: undefined };
    const refused = await rawRequest(daemon, { path: '/manage/openapi.json', headers });
    problemOf(refused, 401, 'management_token_refused');
  });

  it('is valid according to the OpenAPI schema', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(
      structuredClone(DESCRIPTION) as unknown as Record<string, unknown>,
    );
    expect(errors ?? []).to.deep.equal([]);
    expect(valid).to.equal(true);
    expect(validator.version).to.equal('3.1');
  });

  it('lists each operation once, except the one that is always refused', () => {
    expect(operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`)).to.have.members(
      Object.values<Route>(ROUTES)
        .filter(({ path, method }) => `${method} ${path}` !== 'DELETE /manage/projects/{id}')
        .map(({ method, path }) => `${method} ${path}`),
    );
    const ids = operations.map(({ described }) => described.operationId);
    expect(new Set(ids).size).to.equal(ids.length);
  });

  it('S09 S12 has the allowed methods of each path: OPTIONS names them, and any other is 405', async () => {
    const ofProbes = ['/live', '/ready', '/health'].map((path): [string, string[]] => [path, ['GET']]);
    const ofManagement = Object.keys(DESCRIPTION.paths).map((path): [string, string[]] => [
      path,
      operations.filter((it) => it.path === path).map(({ method }) => method.toUpperCase()),
    ]);
    for (const [path, methods] of [...ofProbes, ...ofManagement]) {
      const ask = (method: string) => rawRequest(daemon, { method, path: path.replace('{id}', ID) });
      const allowed = [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'];
      const named = await ask('OPTIONS');
      expect([named.status, named.text], path).to.deep.equal([204, '']);
      expect(named.headers.get('allow')?.split(', '), path).to.have.members(allowed);
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'TRACE']) {
        if (allowed.includes(method)) continue;
        const refused = await ask(method);
        expect(refused.status, `${method} ${path}`).to.equal(405);
        expect(refused.headers.get('allow')).to.equal(named.headers.get('allow'));
        if (method !== 'HEAD') problemOf(refused, 405, 'method_not_allowed');
      }
    }
  });

  it('has no dangling references', () => {
    const references = [...JSON.stringify(DESCRIPTION).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path]) => path!);
    expect(references).not.to.be.empty;
    for (const path of new Set(references)) {
      const target = path
        .split('/')
        .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], DESCRIPTION);
      expect(target, path).to.be.an('object');
    }
    expect(DESCRIPTION.components).to.have.all.keys('securitySchemes', 'schemas', 'headers', 'parameters', 'responses');
    expect(DESCRIPTION.security).to.deep.equal([{ managementToken: [] }]);
  });

  it('has path parameters and response descriptions for each operation', () => {
    for (const { path, method, described } of operations) {
      const declared = (DESCRIPTION.paths[path]!.parameters ?? []).map((it) => resolved(it).name);
      expect(declared, path).to.deep.equal([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
      expect(described.summary, `${method} ${path}`).to.be.a('string');
      for (const response of Object.values(described.responses)) {
        expect(resolved(response).description, `${method} ${path}`).to.be.a('string').and.not.equal('');
      }
    }
  });

  it('has no upstream key in any response, and a secret only in the response that creates it', () => {
    const answers = operations.flatMap(({ method, path, described }) =>
      Object.values(described.responses).map((response) => [`${method} ${path}`, JSON.stringify(response)] as const),
    );
    const shapes = DESCRIPTION.components.schemas;
    expect(Object.keys(shapes).filter((name) => 'api_key' in (shapes[name]!.properties ?? {}))).to.deep.equal([
      'projectCreate',
      'projectPatch',
    ]);
    expect(answers.filter(([, text]) => /projectCreate|projectPatch/.test(text))).to.be.empty;
    expect(answers.filter(([, text]) => text.includes('tokenCreated')).map(([where]) => where)).to.deep.equal([
      'post /manage/tokens',
    ]);
  });

  it('has exactly the query parameters that the daemon accepts', async () => {
    for (const operation of operations) {
      const { path, method } = operation;
      const names = queryOf(operation).map(({ name }) => name);
      const target = path.replace('{id}', ID);
      for (const name of [...names, 'unheard_of']) {
        const others = queryOf(operation).filter((other) => other.required && other.name !== name);
        const more = others.map((other) => `&${other.name}=${String(other.example)}`).join('');
        const answer = await daemon.manage(method.toUpperCase(), `${target}?${name}=${more}`);
        expect(answer.status, `${method} ${path}?${name}`).to.equal(400);
        const isUnknown = (answer.body as { error: string }).error === `unknown query parameter: ${name}`;
        expect(isUnknown, `${method} ${path}?${name}`).to.equal(name === 'unheard_of');
      }
    }
  });

  for (const [name, query] of [
    ['limit', { type: 'integer', minimum: 1, maximum: 1000, default: 100 }],
    ['used_over', { type: 'integer', minimum: 0, maximum: 100 }],
    ['active_only', { type: 'boolean' }],
  ] as const) {
    it(`describes the values of ${name}`, () => {
      expect(queryOf(theListOfTokens()).find((it) => it.name === name)?.schema).to.deep.equal(query);
    });
  }

  for (const [method, path, body] of [
    ['POST', '/manage/projects', { name: 'a', api_key: 'key', color: 'red' }],
    ['POST', '/manage/projects', { name: ' ', api_key: 'key' }],
    ['POST', '/manage/projects', { name: 'a' }],
    ['PATCH', '/manage/projects/{id}', {}],
    ['PATCH', '/manage/projects/{id}', { is_active: 'true' }],
    ['POST', '/manage/tokens', { project_id: ID, duration_hours: 1.5 }],
    ['POST', '/manage/tokens', { project_id: ID, max_requests: 2 ** 31 }],
    ['PATCH', '/manage/tokens/{id}', {}],
    ['POST', '/manage/tokens/lookup', { token: '' }],
    ['POST', '/manage/cache/purge', { method: 'PUT', url: '/v1/models' }],
    ['POST', '/manage/cache/purge', { method: 'GET', url: 'v1/models' }],
    ['POST', '/manage/cache/purge', { method: 'GET', url: '/v1/models', dry_run: 'true' }],
  ] as const) {
    it(`rejects, as the daemon does, ${JSON.stringify(body)} for ${method} ${path}`, async () => {
      const { requestBody } = DESCRIPTION.paths[path]![method.toLowerCase()]!;
      const { $ref } = requestBody!.content['application/json'].schema;
      const shape = DESCRIPTION.components.schemas[$ref.split('/').at(-1)!]!;
      expect(accepts(shape, body)).to.equal(false);
      problemOf(await daemon.manage(method, path.replace('{id}', project.id), body), 400, 'invalid_request');
    });
  }

  describe('is checked against every response in these tests:', () => {
    const answer = (status: number, body: unknown, headers: Record<string, string> = {}): TestResponse => ({
      status,
      headers: new Headers({ 'x-request-id': 'id', ...headers }),
      body,
    });
    const problem = { error: 'no', code: 'not_found', request_id: 'id' };

    it('a described response passes', async () => {
      const shown = await daemon.manage('GET', `/manage/projects/${project.id}`);
      expectDescribed('GET', `/manage/projects/${project.id}`, { ...shown, status: 200 });
      expectDescribed('GET', `/manage/projects/${ID}`, answer(404, problem));
      expectDescribed('PUT', `/manage/projects/${ID}`, answer(405, problem));
    });

    for (const [what, method, path, given] of [
      ['a status', 'GET', '/manage/projects', answer(202, [])],
      ['a refusal', 'GET', '/manage/projects', answer(409, problem)],
      ['a path', 'GET', '/manage/secrets', answer(200, [])],
      ['a method', 'PUT', '/manage/projects', answer(200, [])],
      ['a success of what is always refused', 'DELETE', `/manage/projects/${ID}`, answer(200, { message: 'deleted' })],
      ['a field', 'GET', `/manage/projects/${ID}`, answer(404, { ...problem, stack: '' })],
      ['a body', 'HEAD', '/manage/migrations', answer(200, {}, { etag: '"x"' })],
      ['an element of a list', 'GET', '/manage/tokens', answer(200, [{}], { etag: '"x"', 'x-total-count': '1' })],
      ['the lack of a header', 'GET', '/manage/tokens', answer(200, [], { 'x-total-count': '0' })],
      ['the lack of a field', 'DELETE', `/manage/tokens/${ID}`, answer(200, {})],
    ] as const) {
      it(`${what} that is not described fails the test`, () => {
        expect(() => {
          expectDescribed(method, path, given);
        }).to.throw(`${method} ${path} answered ${given.status}`);
      });
    }

    it('a request with such a response fails in both test clients', async () => {
      const own = await startDaemon();
      const { records } = own.daemon.stores;
      records.projects = () => Promise.resolve({ rows: [aProject({ apiKeyHint: 5 as never })], next: null, total: 1 });
      for (const ask of [own.manage('GET', '/manage/projects'), rawRequest(own, { path: '/manage/projects' })]) {
        const failure = await ask.catch((error: unknown) => error);
        expect(failure).to.be.an('error').with.property('message').that.includes('which the description does not have');
      }
      await own.stop();
    });
  });
});

/** JSON Schema keywords that zod does not support; zod handles the rest. */
function accepts(described: object, body: object): boolean {
  const { minProperties = 0, ...shape } = described as { minProperties?: number };
  return Object.keys(body).length >= minProperties && z.fromJSONSchema(shape).safeParse(body).success;
}

describe('docs/api.md', () => {
  it('is up to date: run `npm run docs`', () => {
    const page = readFileSync(join(ROOT, 'docs/api.md'), 'utf8');
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(page).to.equal(apiPage(openApi(version)));
  });
});
