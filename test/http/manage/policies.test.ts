/** `allow`, `limits` and `budget` of tokens and projects, as the management API takes, stores and shows them. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { WireAuditRecord, WireBatchUndone, WireProject, WireToken } from '../../../daemon/api/contract.js';
import { MAX_ALLOWED, MAX_ALLOWED_LENGTH, MAX_BUDGET_TOKENS, MAX_LIMIT } from '../../../daemon/api/vocabulary.js';
import { canary } from '../../support/canaries.js';
import { daemonForEachTest } from '../../support/daemon.js';
import { bodyOf, problemOf } from '../../support/management.js';

const ALLOW = { routes: ['inference', 'GET /v1/models'], models: ['gpt-5-mini', 'claude-haiku-*'] };
const LIMITS = { requests_per_minute: 60, tokens_per_minute: 200_000, concurrent: 4 };
const BUDGET = { usd: '25.00', tokens: 2_000_000, period: 'month', mode: 'hard' } as const;

/** The largest that is accepted. */
const LARGEST = {
  routes: Array.from({ length: MAX_ALLOWED }, (_, at) => `POST /${at}`.padEnd(MAX_ALLOWED_LENGTH, '"')),
  models: Array.from({ length: MAX_ALLOWED }, (_, at) => String(at).padEnd(MAX_ALLOWED_LENGTH, 'm')),
};

describe('policies', () => {
  const daemon = daemonForEachTest();
  let project: WireProject;
  beforeEach(async () => {
    project = await daemon.createProject();
  });

  const both = async () => {
    const token = await daemon.createToken(project.id);
    return { token: `/manage/tokens/${token.id}`, project: `/manage/projects/${project.id}` };
  };
  const read = (path: string) => bodyOf<WireToken | WireProject>(daemon.manage('GET', path));
  const patch = (path: string, body: object, batch?: string) =>
    bodyOf<WireToken | WireProject>(daemon.manage('PATCH', path, body, batch ? { 'x-audit-batch': batch } : {}));
  const details = async (action: string) =>
    (await bodyOf<WireAuditRecord[]>(daemon.manage('GET', `/manage/audit?action=${action}`)))[0]?.details;

  it('of a new token and project are those in the request, and none by default', async () => {
    const made = { allow: ALLOW, limits: LIMITS, budget: BUDGET };
    const token = await daemon.createToken(project.id, made);
    expect(token).to.deep.include(made);
    expect(await daemon.token(token.id)).to.deep.include(made);
    expect(await details('token.create')).to.deep.include(made);
    expect(project).to.deep.include({ allow: null, limits: null, budget: null });
    expect(await details('project.create')).to.not.have.any.keys('allow', 'limits', 'budget');
    const body = { name: 'restricted', api_key: canary('upstream'), ...made };
    const { id } = await bodyOf<WireProject>(daemon.manage('POST', '/manage/projects', body), 201);
    expect(await read(`/manage/projects/${id}`)).to.deep.include(made);
    expect(await details('project.create')).to.deep.include(made);
  });

  it('are replaced as a whole by a change, and removed with null; what is not given stays', async () => {
    const paths = await both();
    for (const [action, path] of [
      ['token.update', paths.token],
      ['project.update', paths.project],
    ] as const) {
      expect(await patch(path, { allow: ALLOW, limits: LIMITS })).to.deep.include({ allow: ALLOW, limits: LIMITS });
      expect(await patch(path, { limits: { concurrent: 1 } })).to.deep.include({
        allow: ALLOW,
        limits: { concurrent: 1 },
      });
      expect(await details(action)).to.deep.equal({ limits: [LIMITS, { concurrent: 1 }] });
      expect(await patch(path, { allow: { models: ['m'] } })).to.deep.include({ allow: { models: ['m'] } });
      expect(await patch(path, { allow: null })).to.deep.include({ allow: null, limits: { concurrent: 1 } });
      expect(await read(path)).to.deep.include({ allow: null, limits: { concurrent: 1 }, budget: null });
      expect(await patch(path, { budget: BUDGET })).to.deep.include({ limits: { concurrent: 1 }, budget: BUDGET });
      const small = { tokens: 5, period: 'none', mode: 'soft' };
      expect(await patch(path, { budget: { tokens: 5 } })).to.deep.include({ budget: small });
      expect(await details(action)).to.deep.equal({ budget: [BUDGET, small] });
      expect(await patch(path, { budget: null })).to.deep.include({ budget: null });
      expect(await details(action)).to.deep.equal({ budget: [small, null] });
    }
  });

  it('have one way to write the same amount of money', async () => {
    for (const path of Object.values(await both())) {
      for (const [given, usd] of [
        ['25', '25.00'],
        ['0025.0', '25.00'],
        ['25.500000', '25.50'],
        ['0.000001', '0.000001'],
        ['1000000', '1000000.00'],
      ]) {
        expect(await patch(path, { budget: { usd: given } })).to.have.nested.property('budget.usd', usd);
        expect(await read(path)).to.have.nested.property('budget.usd', usd);
      }
    }
  });

  it('are changed together with the state of a token', async () => {
    const { token } = await both();
    const revoked = await patch(token, { is_active: false, allow: ALLOW });
    expect(revoked).to.deep.include({ is_active: false, state: 'revoked', allow: ALLOW });
    expect(await details('token.revoke')).to.deep.equal({ is_active: [true, false], allow: [null, ALLOW] });
    expect(await read(token)).to.deep.include({ is_active: false, allow: ALLOW });
  });

  it('may be as large as they are documented, in a change too', async () => {
    const paths = await both();
    for (const path of Object.values(paths)) {
      await patch(path, { allow: LARGEST });
      const last = { ...LARGEST, models: LARGEST.models.toReversed() };
      await patch(path, { allow: last });
      expect(await read(path)).to.deep.include({ allow: last });
    }
    expect(await details('token.update')).to.have.deep.nested.property('allow[0]', LARGEST);
  });

  it('are copied with like, unless they are given', async () => {
    const { id } = await daemon.createToken(project.id, { allow: ALLOW, limits: LIMITS, budget: BUDGET });
    const like = (body: object) =>
      bodyOf<WireToken>(daemon.manage('POST', '/manage/tokens', { like: id, ...body }), 201);
    expect(await like({})).to.deep.include({ allow: ALLOW, limits: LIMITS, budget: BUDGET });
    expect(await like({ allow: null })).to.deep.include({ allow: null, limits: LIMITS });
    expect(await like({ limits: { concurrent: 9 } })).to.deep.include({ allow: ALLOW, limits: { concurrent: 9 } });
    expect(await like({ budget: null })).to.deep.include({ limits: LIMITS, budget: null });
  });

  it('are part of the ETag', async () => {
    for (const path of Object.values(await both())) {
      const tag = async () => (await daemon.manage('GET', path)).headers.get('etag') ?? '';
      const first = await tag();
      await patch(path, { allow: ALLOW });
      expect((await daemon.manage('PATCH', path, { allow: null }, { 'if-match': first })).status).to.equal(412);
      const second = await tag();
      await bodyOf(daemon.manage('PATCH', path, { budget: BUDGET }, { 'if-match': second }));
      expect((await daemon.manage('PATCH', path, { allow: null }, { 'if-match': second })).status).to.equal(412);
    }
  });

  it('are undone with their batch, unless they were changed since', async () => {
    for (const path of Object.values(await both())) {
      const undo = (batch: string) =>
        bodyOf<WireBatchUndone>(daemon.manage('POST', `/manage/batches/${batch}/undo`, {}));
      await patch(path, { allow: ALLOW, limits: { concurrent: 1 } });
      const [first, second] = [randomUUID(), randomUUID()];
      await patch(path, { allow: null, limits: LIMITS, budget: BUDGET }, first);
      expect((await undo(first)).undone).to.have.lengthOf(1);
      expect(await read(path)).to.deep.include({ allow: ALLOW, limits: { concurrent: 1 }, budget: null });
      await patch(path, { allow: { models: ['a'] } }, second);
      await patch(path, { allow: { models: ['b'] } });
      expect((await undo(second)).skipped).to.have.deep.nested.property('[0].reason', 'changed_since');
      expect(await read(path)).to.deep.include({ allow: { models: ['b'] } });
    }
  });

  it('publish an event', async () => {
    const { token } = await both();
    await patch(token, { allow: ALLOW });
    const events = await bodyOf<{ kind: string }[]>(daemon.manage('GET', '/manage/events?kind=token.changed'));
    expect(events).to.have.lengthOf(1);
  });

  for (const [field, wrong] of [
    ['allow', {}],
    ['allow', []],
    ['allow', 'all'],
    ['allow', { routes: [] }],
    ['allow', { models: [] }],
    ['allow', { models: null }],
    ['allow', { models: 'gpt-5' }],
    ['allow', { models: [''] }],
    ['allow', { models: ['a b'] }],
    ['allow', { models: ['a,b'] }],
    ['allow', { models: ['ä'] }],
    ['allow', { models: [1] }],
    ['allow', { models: ['m'.repeat(MAX_ALLOWED_LENGTH + 1)] }],
    ['allow', { models: Array(MAX_ALLOWED + 1).fill('m') }],
    ['allow', { routes: ['everything'] }],
    ['allow', { routes: ['/v1/models'] }],
    ['allow', { routes: ['get /v1/models'] }],
    ['allow', { routes: ['GET v1/models'] }],
    ['allow', { routes: ['GET  /v1/models'] }],
    ['allow', { routes: ['P* /v1/models'] }],
    ['allow', { routes: ['inference '] }],
    ['limits', {}],
    ['limits', { concurrent: 0 }],
    ['limits', { concurrent: -1 }],
    ['limits', { concurrent: 1.5 }],
    ['limits', { concurrent: '4' }],
    ['limits', { concurrent: null }],
    ['limits', { requests_per_minute: 0 }],
    ['limits', { tokens_per_minute: MAX_LIMIT + 1 }],
    ['budget', {}],
    ['budget', '25'],
    ['budget', { period: 'day', mode: 'soft' }],
    ['budget', { usd: 25 }],
    ['budget', { usd: '0' }],
    ['budget', { usd: '-1' }],
    ['budget', { usd: '1e3' }],
    ['budget', { usd: '$25' }],
    ['budget', { usd: '0.0000001' }],
    ['budget', { usd: '1000000.000001' }],
    ['budget', { usd: null }],
    ['budget', { tokens: 0 }],
    ['budget', { tokens: '5' }],
    ['budget', { tokens: MAX_BUDGET_TOKENS + 1 }],
    ['budget', { tokens: 5, period: 'week' }],
    ['budget', { tokens: 5, mode: 'none' }],
  ] as const) {
    it(`refuse ${field}: ${JSON.stringify(wrong).slice(0, 60)}`, async () => {
      const { token, project: path } = await both();
      const create = { project_id: project.id, name: 'x', [field]: wrong };
      const wanted = { name: 'x', api_key: canary('upstream'), [field]: wrong };
      for (const [method, target, body] of [
        ['POST', '/manage/tokens', create],
        ['PATCH', token, { [field]: wrong }],
        ['POST', '/manage/projects', wanted],
        ['PATCH', path, { [field]: wrong }],
      ] as const) {
        expect(problemOf(await daemon.manage(method, target, body), 400, 'invalid_request')).to.match(
          new RegExp(`^${field} must be an object with`),
        );
      }
    });
  }

  it('refuse a member that they do not have, by its name', async () => {
    for (const path of Object.values(await both())) {
      for (const [field, member] of [
        ['allow', 'route'],
        ['limits', 'requests_per_second'],
        ['budget', 'eur'],
      ] as const) {
        const refused = await daemon.manage('PATCH', path, { [field]: { [member]: 1 } });
        expect(problemOf(refused, 400, 'invalid_request')).to.include(`unknown field: ${field}.${member}`);
      }
    }
  });

  it('select tokens: by a budget, what was spent, and what is left', async () => {
    const names = async (query: string) =>
      (await bodyOf<WireToken[]>(daemon.manage('GET', `/manage/tokens?${query}`))).map(({ name }) => name);
    await daemon.createToken(project.id, { name: 'free' });
    const { id } = await daemon.createToken(project.id, { name: 'paid', budget: { usd: '2', mode: 'hard' } });
    const { purses } = daemon.daemon.admission;
    purses.charge(id, daemon.clock.now(), { nano: 1_900_000_000, tokens: 9 }, null);
    for (const query of [
      'budget=yes',
      'budget=hard',
      'spent_over=1.899999999',
      'spent_over=0&spent_under=1.900000001',
      'left_under=6',
      'left_over=4&left_under=6',
    ]) {
      expect(await names(query), query).to.deep.equal(['paid']);
    }
    expect(await names('budget=no')).to.deep.equal(['free']);
    expect(await names('spent_under=1.9')).to.deep.equal(['free']);
    expect(await names('budget=soft')).to.deep.equal([]);
    expect(await names('sort=-spent')).to.deep.equal(['paid', 'free']);
    expect(await names('sort=spent')).to.deep.equal(['free', 'paid']);
    for (const [query, field] of [
      ['budget=firm', 'budget'],
      ['spent_over=-1', 'spent_over'],
      ['spent_over=1e3', 'spent_over'],
      ['spent_under=9000001', 'spent_under'],
      ['left_under=101', 'left_under'],
    ]) {
      expect(problemOf(await daemon.manage('GET', `/manage/tokens?${query}`), 400, 'invalid_request')).to.match(
        new RegExp(`^${field} must be`),
      );
    }
  });

  it('do not take a secret for the name of a model', async () => {
    const { token } = await both();
    const refused = await daemon.manage('PATCH', token, { allow: { models: [`sk-${'a1b2'.repeat(6)}`] } });
    expect(problemOf(refused, 400, 'invalid_request')).to.match(/^allow must be/);
  });
});
