/** Requirements of client generators on the description. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { operations as declared } from '../../../daemon/api/operations.js';
import type { WireProject, WireToken } from '../../../daemon/api/contract.js';
import { daemonForSuite } from '../../support/daemon.js';
import { DESCRIPTION, type Described, expectShape, resolved, type Shape } from '../../support/description.js';
import { bodyOf, problemOf, rawRequest } from '../../support/management.js';

const { schemas, parameters } = DESCRIPTION.components;
const operations = Object.entries(DESCRIPTION.paths).flatMap(([path, methods]) =>
  ['get', 'post', 'patch', 'delete'].flatMap((method) => {
    const described = methods[method];
    return described ? [{ path, method, described }] : [];
  }),
);
const named = (id: string): Described => operations.find(({ described }) => described.operationId === id)!.described;
const queryOf = (id: string, name: string) =>
  named(id)
    .parameters.map(resolved)
    .find((it) => it.name === name)!;

/** Every object in the document, with its location. */
function* everyObject(at: unknown, where = '#'): Generator<[string, Record<string, unknown>]> {
  if (typeof at !== 'object' || at === null) return;
  if (!Array.isArray(at)) yield [where, at as Record<string, unknown>];
  for (const [key, value] of Object.entries(at)) yield* everyObject(value, `${where}/${key}`);
}

describe('the description, for client generators', () => {
  let project: WireProject;
  let token: WireToken;
  const daemon = daemonForSuite();
  before(async () => {
    project = await daemon.createProject();
    token = await daemon.createToken(project.id);
  });

  it('has no aliases, which the daemon still accepts', async () => {
    for (const { described } of operations) {
      for (const parameter of described.parameters) expect(resolved(parameter)).not.to.have.property('deprecated');
    }
    expect(named('listTokens').parameters.map((it) => resolved(it).name)).not.to.include('projectId');
    expect(declared.listTokens.aliases).to.deep.equal({ projectId: 'project_id' });
    const list = await bodyOf<WireToken[]>(daemon.manage('GET', `/manage/tokens?projectId=${project.id}`));
    expect(list.map(({ id }) => id)).to.deep.equal([token.id]);
  });

  it('has each header once, with a type', () => {
    for (const { described } of operations) {
      for (const parameter of described.parameters) {
        if (resolved(parameter).in === 'header') expect(parameter).to.have.property('$ref');
      }
    }
    for (const { name, schema } of Object.values(parameters)) {
      expect(resolved(schema as { type?: string }).type, name).to.be.a('string');
    }
    expect(resolved(parameters['X-Llmp-Actor']!.schema)).to.include({ type: 'string' });
    expect(parameters['X-Llmp-Client-IP']!.description).to.match(/IPv4 or IPv6/);
  });

  it('has portable patterns, and none together with a format', () => {
    for (const [where, { pattern, format }] of everyObject(DESCRIPTION)) {
      if (typeof pattern !== 'string') continue;
      expect(pattern, where).not.to.match(/\\[puPdDwWbB]|\(\?[=!<]/);
      expect(pattern.length, where).to.be.lessThan(300);
      expect(format, where).to.equal(undefined);
      new RegExp(pattern, 'u');
    }
    expect(schemas.project!.properties!.created_at).to.include({ type: 'string', format: 'date-time' });
  });

  it('has an integer as the version of an event', () => {
    expect(schemas.requestEvent!.properties!.schema).to.include({ type: 'integer' });
    for (const [where, { type, const: value }] of everyObject(schemas)) {
      if (Number.isInteger(value)) expect(type, where).to.equal('integer');
    }
  });

  it('has one type for each query parameter', () => {
    for (const { described } of operations) {
      for (const parameter of described.parameters.map(resolved)) {
        expect(resolved(parameter.schema), parameter.name).not.to.have.any.keys('anyOf', 'oneOf', 'allOf');
      }
    }
    for (const name of ['expires_after', 'expires_before']) {
      expect(queryOf('listTokens', name).schema).to.include({ type: 'string' });
      expect(queryOf('listTokens', name).description).to.include('RFC 3339').and.to.include('2h');
    }
  });

  it('refers to its schemas in lists and streams; events have a discriminator', () => {
    const content = (id: string, type: string) => resolved(named(id).responses['200']!).content![type]!.schema;
    expect(content('readUsage', 'application/json')).to.deep.equal({
      type: 'array',
      items: { $ref: '#/components/schemas/usageLine' },
    });
    expect(content('streamEvents', 'text/event-stream')).to.deep.equal({ $ref: '#/components/schemas/event' });
    expect(content('followAudit', 'text/event-stream')).to.deep.equal({ $ref: '#/components/schemas/auditRecord' });
    const { oneOf, discriminator } = schemas.event as unknown as {
      oneOf: { $ref: string }[];
      discriminator: { propertyName: string; mapping: Record<string, string> };
    };
    expect(discriminator.propertyName).to.equal('kind');
    for (const [kind, place] of Object.entries(discriminator.mapping)) {
      expect(oneOf.map(({ $ref }) => $ref)).to.include(place);
      const { const: one, enum: several = [one] } = resolved<Shape>({ $ref: place }).properties!.kind!;
      expect(several, kind).to.include(kind);
    }
  });

  it('has plain objects as bodies; rules between fields are described in text', async () => {
    for (const { path, described } of operations) {
      if (!described.requestBody) continue;
      const shape = resolved<Shape>(described.requestBody.content['application/json'].schema);
      expect(shape, path).not.to.have.any.keys('oneOf', 'anyOf', 'not', 'dependentRequired');
      expect(shape.type).to.equal('object');
    }
    expect(schemas.cachePurge!.properties!.all).to.include({ type: 'boolean' });
    expect(schemas.cachePurge!.description).to.include('exactly one');
    for (const body of [{}, { method: 'GET' }, { url: '/v1/models' }, { all: false }, { all: true, method: 'GET' }]) {
      problemOf(await daemon.manage('POST', '/manage/cache/purge', body), 400, 'invalid_request');
    }
  });

  it('describes rules outside of the schemas, and all statuses', () => {
    expect(queryOf('listTokens', 'active_only').description).to.include('state');
    for (const id of ['readUsage', 'listAudit']) expect(named(id).description).to.include('must not be after `until`');
    for (const { described } of operations) {
      expect(described.responses, described.operationId).to.include.keys('400', '401', '417', '431');
    }
  });

  it('has no cache headers outside of /v1', async () => {
    const headers = Object.fromEntries(Array.from({ length: 120 }, (_, index) => [`x-${index}`, 'x']));
    const tooMany = await rawRequest(daemon, { path: '/manage/projects', headers });
    problemOf(tooMany, 431, 'headers_too_large');
    const expecting = await rawRequest(daemon, { path: '/manage/projects', headers: { expect: 'a miracle' } });
    problemOf(expecting, 417, 'expectation_failed');
    for (const answer of [tooMany, expecting]) expect(answer.headers.has('x-proxy-cache')).to.equal(false);
    const proxied = await fetch(`${daemon.url}/v1/models`);
    expect(proxied.headers.get('x-proxy-cache')).to.equal('miss');
  });

  it('describes every field of every schema, and every parameter', () => {
    for (const [where, { properties }] of everyObject(schemas)) {
      if (where.endsWith('/properties')) continue;
      for (const [name, field] of Object.entries((properties ?? {}) as Record<string, Shape>)) {
        expect(field.description ?? field.$ref, `${where} ${name}`).to.be.a('string').that.is.not.empty;
      }
    }
    for (const { described } of operations) {
      for (const { name, description } of described.parameters.map(resolved)) {
        expect(description, `${described.operationId} ${name}`).to.be.a('string').that.is.not.empty;
      }
    }
    for (const shape of ['tokenCreate', 'token']) {
      expect(schemas[shape]!.properties!.max_requests!.description).to.match(/0(?:, the default,)? means no cap/);
    }
  });

  it('lists every error code with its meaning', () => {
    const { enum: codes, description } = schemas.problem!.properties!.code as { enum: string[]; description: string };
    expect(codes).to.include.members(['invalid_request', 'not_found', 'name_taken', 'unavailable']);
    for (const code of codes) expect(description).to.match(new RegExp(`\`${code}\`: \\S`));
    for (const answer of Object.values(DESCRIPTION.components.responses)) {
      for (const [, code] of answer.description.matchAll(/`(\w+)`: /g)) expect(codes).to.include(code);
    }
  });

  it('has one type for IDs and one for booleans', () => {
    const isUuid = (field: Shape | undefined) => field?.format === 'uuid';
    for (const [name, shape] of Object.entries(schemas)) {
      for (const field of ['project_id', 'token_id']) {
        if (shape.properties?.[field]) expect(isUuid(shape.properties[field]), `${name}.${field}`).to.equal(true);
      }
    }
    for (const name of ['project', 'token', 'session', 'auditRecord', 'requestEvent']) {
      expect(isUuid(schemas[name]!.properties!.id), name).to.equal(true);
    }
    expect(queryOf('listTokens', 'active_only').schema).to.deep.equal({ type: 'boolean' });
    expect(queryOf('listProjects', 'is_active').schema).to.deep.equal({ type: 'boolean' });
    expect(operations.map(({ described }) => described.operationId)).not.to.include('deleteProject');
  });

  it('accepts IDs in any letter case everywhere', async () => {
    const upper = { project: project.id.toUpperCase(), token: token.id.toUpperCase() };
    expect((await bodyOf<WireProject>(daemon.manage('GET', `/manage/projects/${upper.project}`))).id).to.equal(
      project.id,
    );
    expect((await bodyOf<WireToken>(daemon.manage('GET', `/manage/tokens/${upper.token}`))).id).to.equal(token.id);
    const created = await daemon.createToken(upper.project);
    expect(created.project_id).to.equal(project.id);
    const of = (id: string) => daemon.manage('GET', `/manage/tokens?project_id=${id}`);
    expect((await of(upper.project)).body).to.deep.equal((await of(project.id)).body);
    const audit = (id: string) => daemon.manage('GET', `/manage/audit?token_id=${id}`);
    expect((await audit(upper.token)).body)
      .to.deep.equal((await audit(token.id)).body)
      .and.to.have.lengthOf(1);
    await bodyOf(daemon.manage('POST', '/manage/cache/purge', { project_id: upper.project }));
  });

  it('has groups, titles and texts, a licence and a contact', () => {
    const tags = DESCRIPTION.tags.map(({ name }) => name);
    for (const { described } of operations) {
      expect(described.tags).to.have.lengthOf(1);
      expect(tags).to.include(described.tags[0]);
      expect(described.summary).to.match(/^[A-Z][^.]{3,39}$/);
      expect(described.description).to.match(/^[\s\S]{15,}\.$|OpenAPI 3\.1\.$/);
    }
    expect(DESCRIPTION.info).to.include.keys('license', 'contact', 'description');
    expect(JSON.stringify(DESCRIPTION).length, 'characters').to.be.lessThan(300_000);
  });

  /** The ID of something that a path can be about. */
  async function idFor(path: string): Promise<string> {
    const created = async (what: string, body: object) =>
      (await bodyOf<{ id: string }>(daemon.manage('POST', `/manage/${what}`, body), 201)).id;
    if (path.includes('operators')) return created('operators', { name: randomUUID(), role: 'viewer' });
    if (path.includes('trusts')) {
      const terms = { issuer: 'https://issuer.example', audience: 'llmp', match: { sub: 'job' }, duration_minutes: 5 };
      return created('trusts', { ...terms, project_id: project.id });
    }
    return path.includes('projects') ? project.id : token.id;
  }

  for (const { path, method, described } of operations) {
    const { operationId, requestBody, responses } = described;
    const query = described.parameters.map(resolved).filter(({ example }) => example !== undefined);
    // The examples use the project and token of this test.
    const filled = (text: string) => text.replaceAll(EXAMPLE.project, project.id).replaceAll(EXAMPLE.token, token.id);

    for (const { summary, value } of Object.values(requestBody?.content['application/json'].examples ?? {})) {
      it(`has an example of ${operationId} that is accepted: ${summary}`, async () => {
        const isOfBatch = operationId === 'undoBatch';
        const id = isOfBatch ? randomUUID() : await idFor(path);
        if (isOfBatch)
          await daemon.manage('PATCH', `/manage/tokens/${token.id}`, { is_active: true }, { 'x-audit-batch': id });
        const target = path.replace('{id}', id);
        const answer = await daemon.manage(method.toUpperCase(), target, filled(JSON.stringify(value)));
        // An example with a secret cannot be valid.
        if (operationId === 'lookUpToken') problemOf(answer, 404, 'not_found');
        else if (operationId === 'logIn') problemOf(answer, 403, 'log_in_refused');
        // This daemon has no identity provider.
        else if (path.startsWith('/manage/login/')) problemOf(answer, 404, 'not_found');
        else expect(answer.status, JSON.stringify(answer.body)).to.be.within(200, 201);
        await daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: true });
      });
    }

    if (query.length > 0 && operationId !== 'streamEvents') {
      it(`has examples of the query of ${operationId} that are accepted`, async () => {
        const search = new URLSearchParams(
          query.map(({ name, example }): [string, string] => [name, filled(String(example))]),
        );
        expect((await daemon.manage('GET', `${path}?${search.toString()}`)).status).to.equal(200);
      });
    }

    for (const [status, response] of Object.entries(responses)) {
      const { schema, example } = resolved(response).content?.['application/json'] ?? {};
      if (schema && example !== undefined) {
        it(`has an example of the ${status} response of ${operationId} that matches its schema`, () => {
          expectShape(schema, example);
        });
      }
    }
  }

  it('is mentioned in the documentation and the manual', () => {
    const root = join(import.meta.dirname, '../../../..');
    for (const name of ['docs/api.md', 'man/llmp-daemon.8']) {
      expect(readFileSync(join(root, name), 'utf8').replaceAll('\\', ''), name).to.include('GET /manage/openapi.json');
    }
  });

  it('has an example for each request body', () => {
    for (const { described } of operations) {
      if (!described.requestBody) continue;
      expect(described.requestBody.content['application/json'].examples, described.operationId).to.be.an('object');
    }
  });
});

const EXAMPLE = {
  project: '6f1c9a52-5f0e-4c7b-9f43-2a9d1c3b7e10',
  token: '0b8e7c1d-3a52-4f6b-8d1e-9c4f2a6b5d70',
};
