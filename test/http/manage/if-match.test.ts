/** `If-Match` on every change of one resource. */
import { expect } from 'chai';
import type { WireAuditRecord, WireProject, WireToken, WireTokenCreated } from '../../../daemon/api/contract.js';
import { ApiError, etagOf, ManagementClient } from '../../../daemon/api/client.js';
import { operations } from '../../../daemon/api/operations.js';
import { canSucceed, type Operation } from '../../../daemon/api/operation.js';
import { canary } from '../../support/canaries.js';
import { daemonForEachTest, MANAGEMENT_TOKEN } from '../../support/daemon.js';
import { DESCRIPTION, resolved } from '../../support/description.js';
import { bodyOf, problemOf, rawRequest } from '../../support/management.js';

const OLD = `"${'x'.repeat(65)}"`;

describe('If-Match', () => {
  let project: WireProject;
  let token: WireTokenCreated;

  const daemon = daemonForEachTest();
  beforeEach(async () => {
    project = await daemon.createProject();
    token = await daemon.createToken(project.id);
  });

  const tokenPath = () => `/manage/tokens/${token.id}`;
  const projectPath = () => `/manage/projects/${project.id}`;
  const createdAt = async (path: string, body: object) => {
    const { id } = await bodyOf<{ id: string }>(daemon.manage('POST', path, body), 201);
    return `${path}/${id}`;
  };
  const operatorPath = () => createdAt('/manage/operators', { name: 'ana', role: 'viewer' });
  const trustPath = () =>
    createdAt('/manage/trusts', {
      issuer: 'https://login.example.com',
      audience: 'llmp',
      match: { repository: 'acme/web' },
      project_id: project.id,
      duration_minutes: 5,
    });
  const tagOf = async (path: string) => (await daemon.manage('GET', path)).headers.get('etag')!;
  const send = (method: string, path: string, body: object | undefined, ifMatch: string) =>
    daemon.manage(method, path, body, { 'if-match': ifMatch });
  const isActive = async () => (await bodyOf<WireToken>(daemon.manage('GET', tokenPath()))).is_active;

  /** A path that has each of the operations, and a body for it. */
  const changes: Record<string, () => Promise<[path: string, body?: object]>> = {
    updateProject: () => Promise.resolve([projectPath(), { name: 'renamed' }]),
    updateToken: () => Promise.resolve([tokenPath(), { is_active: false }]),
    revokeToken: () => Promise.resolve([tokenPath()]),
    updateOperator: async () => [await operatorPath(), { role: 'auditor' }],
    deactivateOperator: async () => [await operatorPath()],
    updateTrust: async () => [await trustPath(), { max_requests: 1 }],
    deleteTrust: async () => [await trustPath()],
    logOut: async () => {
      const { id } = await bodyOf<{ id: string }>(
        daemon.manage('POST', '/manage/sessions', { token: MANAGEMENT_TOKEN }),
        201,
      );
      return [`/manage/sessions/${id}`];
    },
  };
  const conditional = Object.entries<Operation>(operations).filter(
    ([, operation]) => ['PATCH', 'DELETE'].includes(operation.method) && canSucceed(operation),
  );

  it('is declared by every PATCH and DELETE', () => {
    expect(conditional.map(([name]) => name)).to.have.members(Object.keys(changes));
    for (const [name, { method, path, refusals }] of conditional) {
      expect(refusals, name).to.include('precondition_failed');
      const described = DESCRIPTION.paths[path]![method.toLowerCase()]!;
      expect(described.parameters.map((it) => resolved(it).name)).to.include('If-Match');
      expect(described.responses).to.have.property('412');
    }
  });

  for (const [name, { method }] of conditional) {
    it(`${name} with another ETag is 412 and changes nothing; with the right one it is made`, async () => {
      const [path, body] = await changes[name]!();
      const before = await daemon.manage('GET', path);
      const error = problemOf(await send(method, path, body, OLD), 412, 'precondition_failed');
      expect(error).to.contain('ETag in If-Match');
      expect((await daemon.manage('GET', path)).body).to.deep.equal(before.body);
      expect((await send(method, path, body, before.headers.get('etag')!)).status).to.equal(200);
      const after = await daemon.manage('GET', path);
      expect(after.body).not.to.deep.equal(before.body);
      // It is another resource now, or none.
      const [status, code] = after.status === 404 ? [404, 'not_found'] : [412, 'precondition_failed'];
      problemOf(await send(method, path, body, before.headers.get('etag')!), status, code);
    });
  }

  for (const [what, header, status] of [
    ['a star', '*', 200],
    ['a star with spaces', ' * ', 200],
    ['a list with the ETag', '"x", W/"y" ,, <tag>', 200],
    ['a list without it', '"x", "a,b"', 412],
    ['the ETag as a weak one: the comparison is strong', 'W/<tag>', 412],
    ['a star in quotes', '"*"', 412],
    ['an empty list', '', 412],
    ['a part of the ETag', '<part>', 412],
    ['the ETag without its quotes', '<bare>', 400],
    ['a star in a list', '*, "x"', 400],
    ['a quote that does not end', '"x', 400],
    ['two ETags without a comma', '"x" <tag>', 400],
  ] as const) {
    it(`${what} is ${status}`, async () => {
      const tag = await tagOf(tokenPath());
      const value = header
        .replace('<tag>', tag)
        .replace('<bare>', tag.slice(1, -1))
        .replace('<part>', `${tag.slice(0, 23)}"`);
      const headers = { 'if-match': value, 'content-type': 'application/json' };
      const body = JSON.stringify({ is_active: false });
      const answer = await rawRequest(daemon, { method: 'PATCH', path: tokenPath(), headers, body });
      expect(answer.status, answer.text).to.equal(status);
      expect(await isActive()).to.equal(status !== 200);
    });
  }

  it('does not depend on counts and times of use, which change under traffic', async () => {
    const [tag, ofProject] = [await tagOf(tokenPath()), await tagOf(projectPath())];
    await daemon.call(token.token);
    daemon.clock.advance(60_000);
    await daemon.createToken(project.id);
    expect(await tagOf(tokenPath())).not.to.equal(tag);
    expect((await send('DELETE', tokenPath(), undefined, tag)).status).to.equal(200);
    expect((await send('PATCH', projectPath(), { name: 'other' }, ofProject)).status).to.equal(200);
  });

  it('differs after each change of a project, also if only a key was replaced by a similar one', async () => {
    const key = canary('upstream');
    const tags = new Set([await tagOf(projectPath())]);
    // The clock stands still, and the last characters of the keys are equal.
    for (const api_key of [`a${key}`, `b${key}`, `c${key}`]) {
      await bodyOf(daemon.manage('PATCH', projectPath(), { api_key }));
      tags.add(await tagOf(projectPath()));
    }
    expect(tags.size).to.equal(4);
  });

  it('of the response to a change protects an undo from a change that somebody else made since', async () => {
    const revoked = await daemon.manage('PATCH', tokenPath(), { is_active: false });
    const tag = revoked.headers.get('etag')!;
    daemon.clock.advance(1_000);
    await bodyOf(daemon.manage('PATCH', tokenPath(), { is_active: true }));
    await bodyOf(daemon.manage('PATCH', tokenPath(), { is_active: false }, { 'x-audit-reason': 'leaked' }));
    problemOf(await send('PATCH', tokenPath(), { is_active: true }, tag), 412, 'precondition_failed');
    expect(await isActive()).to.equal(false);
    const [record] = await bodyOf<WireAuditRecord[]>(daemon.manage('GET', '/manage/audit?limit=1'));
    expect(record).to.include({ action: 'token.reactivate', outcome: 'denied', token_id: token.id });
  });

  it('lets one of many changes through that are made at the same time with one ETag', async () => {
    const tag = await tagOf(projectPath());
    const names = Array.from({ length: 8 }, (_, at) => `name ${at}`);
    const answers = await Promise.all(names.map((name) => send('PATCH', projectPath(), { name }, tag)));
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, ...Array<number>(7).fill(412)]);
  });

  it('comes after other refusals (RFC 9110, 13.2.1)', async () => {
    const missing = '/manage/tokens/00000000-0000-4000-8000-000000000000';
    problemOf(await send('DELETE', missing, undefined, OLD), 404, 'not_found');
    problemOf(await send('DELETE', projectPath(), undefined, OLD), 405, 'method_not_allowed');
    problemOf(await send('PATCH', tokenPath(), { is_active: 1 }, OLD), 400, 'invalid_request');
  });

  it('the client sends it, and knows the ETag of what it received', async () => {
    const client = new ManagementClient({
      server: daemon.managementUrl,
      managementToken: MANAGEMENT_TOKEN,
      frontEnd: 'tui',
      timeoutMs: 5_000,
      fetch,
    });
    const first = etagOf(await client.token(token.id))!;
    const revoked = await client.updateToken(token.id, { is_active: false }, { ifMatch: first });
    for (const change of [
      () => client.updateToken(token.id, { is_active: true }, { ifMatch: first }),
      () => client.revokeToken(token.id, { ifMatch: first }),
    ]) {
      const error = await change().then(
        () => null,
        (thrown: unknown) => thrown as ApiError,
      );
      expect(error).to.be.instanceOf(ApiError).and.to.include({ status: 412, code: 'precondition_failed' });
    }
    await client.updateToken(token.id, { is_active: true }, { ifMatch: etagOf(revoked)! });
    expect(await isActive()).to.equal(true);
  });
});
