/** Attempts to get at what is out of scope, or to do more than the role allows. */
import { expect } from 'chai';
import type {
  WireAuditRecord,
  WireBatchUndone,
  WireIncidents,
  WireProject,
  WireStatus,
  WireTop,
  WireUsageLine,
} from '../../../daemon/api/contract.js';
import type { Role } from '../../../daemon/api/vocabulary.js';
import { MANAGEMENT_TOKEN, UPSTREAM_KEY } from '../../support/daemon.js';
import { Follower } from '../../support/follower.js';
import { eventually } from '../../support/eventually.js';
import { bodyOf, problemOf } from '../../support/management.js';
import { describeOnDatabases, type RoleCaller, type RoleScene, traceOf } from '../../support/role-scene.js';

type Request = readonly [method: string, path: string, body?: unknown, headers?: Record<string, string> | undefined];

/** What must come of it. */
type Result = readonly [status: number, code: string];

interface Targets {
  scene: RoleScene;
  by: RoleCaller;
  /** Of another project, and of the own project and somebody else. */
  hidden: RoleCaller['own'];
  others: RoleCaller['own'];
  own: RoleCaller['own'];
}

type Attempt = readonly [what: string, by: Role, request: (targets: Targets) => Request, result: Result];

const FORBIDDEN = [403, 'not_permitted'] as const;
const NOT_FOUND = [404, 'not_found'] as const;

const patch = (of: { token: { id: string } }, body: object, headers?: Record<string, string>): Request =>
  ['PATCH', `/manage/tokens/${of.token.id}`, body, headers] as const;
const issue = (body: object): Request => ['POST', '/manage/tokens', body];
const purge = (body: object): Request => ['POST', '/manage/cache/purge', body];
const list = (path: string): Request => ['GET', `/manage/${path}`];

/** Each list and report, asked for what is hidden in every way that its filters allow. */
const SEARCHES: readonly (readonly [path: string, by: Role])[] = [
  ...[
    'tokens?project_id=HIDDEN_PROJECT',
    'tokens?project_id=!OWN_PROJECT',
    'tokens?q=hidden',
    'tokens?words=hidden',
    'tokens?words=!own',
    'tokens?q=HIDDEN_TOKEN',
    'tokens?model=model-hidden',
    'tokens?model=model-hidden&sort=spent',
    'tokens?errors_over=3',
    'tokens?state=active&project_id=HIDDEN_PROJECT',
    'tokens?budget=yes',
    'tokens?spent_over=1',
    'tokens?sort=live&project_id=HIDDEN_PROJECT',
    'usage?by=token&project_id=HIDDEN_PROJECT',
    'usage?by=token&token_id=HIDDEN_TOKEN',
    'usage?by=hour,token&token_id=OTHER_TOKEN',
  ].map((path) => [path, 'issuer'] as const),
  ...[
    'tokens?project_id=HIDDEN_PROJECT',
    'tokens?project_id=!OWN_PROJECT',
    'tokens?q=hidden',
    'tokens?words="hidden-by-project"',
    'tokens?allows=gpt-5&project_id=HIDDEN_PROJECT',
    'usage?by=token&project_id=HIDDEN_PROJECT',
    'usage?by=model&token_id=HIDDEN_TOKEN',
  ].map((path) => [path, 'viewer'] as const),
  ...[
    'audit?project_id=HIDDEN_PROJECT',
    'audit?token_id=HIDDEN_TOKEN',
    'audit?batch=HIDDEN_BATCH',
    'audit?group=batch&batch=HIDDEN_BATCH',
    'audit?q=hidden',
    'audit?q=HIDDEN_TOKEN',
    'audit?action=operator.create',
    'audit?action=admin.login',
    'audit?action=token.use&token_id=HIDDEN_TOKEN',
    'events?project_id=HIDDEN_PROJECT',
    'events?token_id=HIDDEN_TOKEN',
    'events?model=hidden',
  ].map((path) => [path, 'auditor'] as const),
];

/** What shows more than the filters: all of it, in every order and grouping. */
const REPORTS: readonly (readonly [path: string, by: Role])[] = [
  ...['created_at', 'expires_at', 'last_used_at', 'request_count', 'name', 'spent', 'live', '-live'].map(
    (sort) => [`tokens?sort=${sort}`, 'issuer'] as const,
  ),
  ...['token', 'project', 'model', 'model_total'].flatMap((by) =>
    ['1h', '24h'].flatMap((window) =>
      (['issuer', 'viewer'] as const).map((role) => [`top?by=${by}&window=${window}`, role] as const),
    ),
  ),
  ...['token', 'project', 'model', 'hour', 'day,model', 'hour,token,model'].flatMap((by) =>
    (['issuer', 'viewer'] as const).map((role) => [`usage?by=${by}&since=72h`, role] as const),
  ),
  ...['audit', 'audit?group=batch', 'audit?action=token.create', 'events'].map((path) => [path, 'auditor'] as const),
  ...['incidents', 'prices/check', 'projects', 'status'].flatMap((path) =>
    (['issuer', 'viewer'] as const).map((role) => [path, role] as const),
  ),
];

const named = (path: string, { hidden, others, own }: Targets) =>
  path
    .replace('HIDDEN_PROJECT', hidden.project.id)
    .replace('OWN_PROJECT', own.project.id)
    .replace('HIDDEN_TOKEN', hidden.token.id)
    .replace('OTHER_TOKEN', others.token.id)
    .replace('HIDDEN_BATCH', hidden.batchId);

const ATTEMPTS: readonly Attempt[] = [
  // More than the token was issued with
  ['lift the limits of an own token', 'issuer', ({ own }) => patch(own, { limits: null }), FORBIDDEN],
  ['lift its list of models', 'issuer', ({ own }) => patch(own, { allow: null }), FORBIDDEN],
  ['raise its budget', 'issuer', ({ own }) => patch(own, { budget: { usd: '999' } }), FORBIDDEN],
  ['reactivate it', 'issuer', ({ own }) => patch(own, { is_active: true }), FORBIDDEN],
  [
    'raise its budget with a revocation',
    'issuer',
    ({ own }) => patch(own, { is_active: false, budget: { usd: '9' } }),
    FORBIDDEN,
  ],
  ['move it', 'issuer', ({ own, hidden }) => patch(own, { project_id: hidden.project.id }), [400, 'invalid_request']],
  ['revoke all tokens of the project', 'issuer', ({ own }) => revokeAll(own.project.id), FORBIDDEN],
  // Tokens of others
  ['revoke the token of somebody else', 'issuer', ({ others }) => patch(others, { is_active: false }), NOT_FOUND],
  ['… by DELETE', 'issuer', ({ others }) => ['DELETE', `/manage/tokens/${others.token.id}`], NOT_FOUND],
  ['… of another project', 'operator', ({ hidden }) => patch(hidden, { is_active: false }), NOT_FOUND],
  [
    'learn from If-Match',
    'operator',
    ({ hidden }) => patch(hidden, { limits: null }, { 'if-match': '"x"' }),
    NOT_FOUND,
  ],
  ['… with any ETag', 'operator', ({ hidden }) => patch(hidden, { limits: null }, { 'if-match': '*' }), NOT_FOUND],
  [
    'learn from If-None-Match',
    'viewer',
    ({ hidden }) => ['GET', `/manage/tokens/${hidden.token.id}`, undefined, { 'if-none-match': '*' }],
    NOT_FOUND,
  ],
  ['read it in capitals', 'viewer', ({ hidden }) => list(`tokens/${hidden.token.id.toUpperCase()}`), NOT_FOUND],
  ['find it by its secret', 'viewer', ({ hidden }) => lookUp(hidden.token.token), NOT_FOUND],
  ['… that of somebody else', 'issuer', ({ others }) => lookUp(others.token.token), NOT_FOUND],
  // `like`
  ['issue one like that of somebody else', 'issuer', ({ others }) => issue({ like: others.token.id }), NOT_FOUND],
  [
    'issue one like a hidden one, in the own project',
    'operator',
    ({ hidden, own }) => issue({ like: hidden.token.id, project_id: own.project.id }),
    NOT_FOUND,
  ],
  [
    'issue one like an own one, in a hidden project',
    'issuer',
    ({ hidden, own }) => issue({ like: own.token.id, project_id: hidden.project.id }),
    NOT_FOUND,
  ],
  ['issue one in a hidden project', 'operator', ({ hidden }) => issue({ project_id: hidden.project.id }), NOT_FOUND],
  // Projects
  [
    'send a new key to a hidden project',
    'admin',
    ({ hidden }) => ['PATCH', `/manage/projects/${hidden.project.id}`, { api_key: UPSTREAM_KEY, check_key: true }],
    NOT_FOUND,
  ],
  ['check its key', 'admin', ({ hidden }) => ['POST', `/manage/projects/${hidden.project.id}/check`], NOT_FOUND],
  ['revoke its tokens', 'operator', ({ hidden }) => revokeAll(hidden.project.id), NOT_FOUND],
  [
    'change an own project',
    'operator',
    ({ own }) => ['PATCH', `/manage/projects/${own.project.id}`, { is_active: false }],
    FORBIDDEN,
  ],
  [
    'create one beside the own ones',
    'admin',
    () => ['POST', '/manage/projects', { name: 'more', api_key: UPSTREAM_KEY }],
    FORBIDDEN,
  ],
  [
    'learn its provider from a price',
    'viewer',
    ({ hidden }) => list(`prices/explain?model=gpt-5&project_id=${hidden.project.id}`),
    NOT_FOUND,
  ],
  // The cache
  ['purge everything', 'operator', () => purge({ all: true }), FORBIDDEN],
  ['count everything', 'admin', () => purge({ all: true, dry_run: true }), FORBIDDEN],
  ['purge a resource of all projects', 'operator', () => purge({ method: 'GET', url: '/v1/models' }), FORBIDDEN],
  ['purge a hidden project', 'operator', ({ hidden }) => purge({ project_id: hidden.project.id }), NOT_FOUND],
  ['count its responses', 'admin', ({ hidden }) => purge({ project_id: hidden.project.id, dry_run: true }), NOT_FOUND],
  ['read the size of all of it', 'operator', () => list('cache'), FORBIDDEN],
  // Batches and records
  ['undo a hidden batch', 'operator', ({ hidden }) => undo(hidden.batchId), NOT_FOUND],
  ['… from its middle', 'operator', ({ hidden }) => undo(hidden.batchId, { cursor: '1' }), NOT_FOUND],
  ['undo an own batch', 'issuer', ({ own }) => undo(own.batchId), FORBIDDEN],
  ['read a hidden record', 'auditor', ({ hidden }) => list(`audit/${hidden.recordId}`), NOT_FOUND],
  ['read the audit log', 'operator', ({ own }) => list(`audit?token_id=${own.token.id}`), FORBIDDEN],
  // Access
  ['become more', 'admin', ({ by }) => ['PATCH', `/manage/operators/${by.operator.id}`, { projects: null }], FORBIDDEN],
  ['make another operator', 'admin', () => ['POST', '/manage/operators', { name: 'x', role: 'admin' }], FORBIDDEN],
  ['see the operators', 'admin', () => list('operators'), FORBIDDEN],
  ['read the session of somebody else', 'admin', ({ hidden }) => list(`sessions/${hidden.sessionId}`), NOT_FOUND],
  [
    'take the session of somebody else',
    'viewer',
    ({ hidden }) => ['GET', '/manage/self', undefined, { 'x-llmp-session': hidden.sessionId }],
    [400, 'invalid_request'],
  ],
  ['apply migrations', 'admin', () => ['POST', '/manage/migrations/up'], FORBIDDEN],
];

const revokeAll = (id: string): Request => ['POST', `/manage/projects/${id}/tokens/revoke`];
const lookUp = (token: string): Request => ['POST', '/manage/tokens/lookup', { token }];
const undo = (id: string, body = {}): Request => ['POST', `/manage/batches/${id}/undo`, body];

describeOnDatabases('attempts to get out of scope', (scene) => {
  const targetsOf = (role: Role, isLimited = true): Targets => {
    const { foreign } = scene.caller('issuer');
    const by = scene.caller(role, isLimited);
    return {
      scene,
      by,
      own: by.own,
      hidden: foreign['of another project']!,
      others: foreign['of another issuer']!,
    };
  };

  for (const [what, role, request, result] of ATTEMPTS) {
    it(`${role}: ${what}: ${result.join(' ')}`, async () => {
      const targets = targetsOf(role);
      const { by } = targets;
      const asked = scene.provider.received.length;
      const answer = await scene.ask(by.operator.secret, ...request(targets));
      problemOf(answer, ...result);
      expect(JSON.stringify(answer.body)).not.to.match(traceOf(by));
      expect(scene.provider.received.length, 'requests at the provider').to.equal(asked);
    });
  }

  it('find nothing that is hidden by any filter', async () => {
    for (const [path, role] of SEARCHES) {
      const targets = targetsOf(role);
      const answer = await scene.ask(targets.by.operator.secret, ...list(named(path, targets)));
      expect(await bodyOf<object[]>(answer), `${role}: ${path}`).to.deep.equal([]);
      expect(answer.headers.get('x-total-count') ?? '0', path).to.equal('0');
    }
  });

  it('show only what is the own in every order and grouping', async () => {
    for (const [path, role] of REPORTS) {
      const { by } = targetsOf(role);
      const shown = JSON.stringify(await bodyOf(scene.ask(by.operator.secret, ...list(path))));
      expect(shown, `${role}: ${path}`).not.to.match(traceOf(by));
    }
  });

  it('leave what they were about as it was', async () => {
    const { hidden, others, own } = targetsOf('issuer');
    for (const { token } of [hidden, others, own]) {
      expect(await scene.daemon.token(token.id)).to.deep.include({
        is_active: true,
        allow: { routes: ['all'] },
        limits: null,
      });
    }
  });

  const read = async <Body>({ operator }: RoleCaller, path: string): Promise<Body> =>
    bodyOf<Body>(scene.ask(operator.secret, ...list(path)));
  const totalOf = async ({ operator }: Pick<RoleCaller, 'operator'>, path: string) =>
    Number((await scene.ask(operator.secret, ...list(path))).headers.get('x-total-count'));

  it('count for an issuer only its own tokens, of which one was served once and failed three times', async () => {
    for (const isLimited of [true, false]) {
      const by = scene.caller('issuer', isLimited);
      const { project, token } = by.own;
      for (const path of ['tokens', 'tokens?state=active', 'tokens?sort=spent', `tokens?project_id=${project.id}`])
        expect(await totalOf(by, path), path).to.equal(1);
      const used = { requests: 4, errors: 3, prompt_tokens: 10 };
      const [usage, ...more] = await read<WireUsageLine[]>(by, 'usage');
      expect(more).to.deep.equal([]);
      expect(usage).to.include(used);
      expect(await read<WireTop>(by, 'top')).to.include({ row_count: 1 });
      expect((await read<WireTop>(by, 'top?by=project')).total).to.include(used);
      const shown = await read<WireProject>(by, `projects/${project.id}`);
      expect(shown).to.include({ token_count: 1, active_token_count: 1, requests_24h: 4, errors_24h: 3 });
      expect(shown.spent).to.include({ tokens: 15, unpriced_requests: 1 });
      expect(shown.last_used_at).to.equal((await scene.daemon.token(token.id)).last_used_at);
      const { incidents } = await read<WireIncidents>(by, 'incidents');
      expect(incidents).to.have.length(1);
      expect(incidents[0]).to.include({ failures: 3, requests: 4, tokens: 1, project_id: project.id });
      const status = await read<WireStatus>(by, 'status');
      expect(status.tokens).to.include({ active: 1, revoked: 0 });
      expect(status.projects).to.include({ all: isLimited ? 1 : 2 });
      expect([status.requests, status.cache.hit_ratio, status.event_bus.published]).to.deep.equal([null, null, null]);
    }
  });

  it('count for others only what is in their projects', async () => {
    const by = scene.caller('viewer');
    const all = (await scene.daemon.manage('GET', '/manage/tokens')).headers.get('x-total-count');
    const tokens = Number(all) - 1;
    expect(await totalOf(by, 'tokens')).to.equal(tokens);
    expect(await totalOf(by, 'projects')).to.equal(1);
    expect((await read<WireUsageLine[]>(by, 'usage'))[0]?.requests).to.equal(4 * tokens);
    expect((await read<WireTop>(by, 'top?by=model')).total.requests).to.equal(4 * tokens);
    expect((await read<WireStatus>(by, 'status')).tokens?.active).to.equal(tokens);
    expect((await read<WireStatus>(scene.caller('viewer', false), 'status')).requests).to.include({ in_flight: 0 });
  });

  it('go no further with a cursor that somebody else got', async () => {
    const everything = await scene.daemon.manage('GET', '/manage/tokens?limit=1');
    const [, next = ''] = /^<([^>]+)>/.exec(everything.headers.get('link') ?? '') ?? [];
    for (const role of ['issuer', 'viewer'] as const) {
      const { operator } = scene.caller(role);
      const answer = await scene.ask(operator.secret, 'GET', next);
      expect(answer.status).to.equal(200);
      expect(JSON.stringify(answer.body)).not.to.match(traceOf(scene.caller(role)));
    }
  });

  it('undo of a batch that also changed what is hidden, or a project: only what the role may change', async () => {
    const { by, own, hidden } = targetsOf('operator');
    const batch = '00000000-0000-4000-9000-00000000ba7c';
    const inBatch = (path: string, body: object) =>
      scene.daemon.manage('PATCH', `/manage/${path}`, body, { 'x-audit-batch': batch });
    const limits = { concurrent: 3 };
    await inBatch(`tokens/${hidden.token.id}`, { limits });
    await inBatch(`tokens/${own.token.id}`, { limits });
    await inBatch(`projects/${own.project.id}`, { limits: { concurrent: 77 } });
    const auditor = scene.caller('auditor');
    const [grouped] = await read<WireAuditRecord[]>(auditor, 'audit?group=batch&limit=1');
    expect(grouped).to.include({ batch, count: 2 });
    const { undone, skipped } = await bodyOf<WireBatchUndone>(scene.ask(by.operator.secret, ...undo(batch)));
    expect(undone).to.deep.equal([{ project_id: own.project.id, token_id: own.token.id }]);
    expect(skipped).to.deep.equal([
      { project_id: null, token_id: null, reason: 'gone', message: null },
      {
        project_id: own.project.id,
        token_id: null,
        reason: 'refused',
        message: 'not permitted: you may not change projects',
      },
    ]);
    expect((await scene.daemon.token(hidden.token.id)).limits).to.deep.equal(limits);
    const project = await read<WireProject>(scene.caller('admin'), `projects/${own.project.id}`);
    expect(project.limits).to.deep.equal({ concurrent: 77 });
    await scene.daemon.manage('PATCH', `/manage/projects/${own.project.id}`, { limits: null });
    await scene.daemon.manage('PATCH', `/manage/tokens/${hidden.token.id}`, { limits: null });
  });

  it('are recorded under the name of the operator, whatever it says of itself', async () => {
    const { by, hidden } = targetsOf('operator');
    const pretence = { 'x-llmp-actor': 'admin', 'x-llmp-user': 'somebody%20else' };
    await scene.ask(by.operator.secret, ...patch(hidden, { is_active: false }, pretence));
    const denied = await bodyOf<WireAuditRecord[]>(scene.daemon.manage('GET', '/manage/audit?outcome=denied&limit=1'));
    expect(denied[0]).to.include({
      actor: `operator:${by.operator.name}`,
      user: 'somebody else',
      token_id: hidden.token.id,
    });
  });

  it('are recorded if the role does not allow the change, with the address of the connection', async () => {
    const { by, own } = targetsOf('issuer');
    const pretence = { 'x-llmp-client-ip': '203.0.113.9' };
    const lastDenied = async () =>
      (await bodyOf<WireAuditRecord[]>(scene.daemon.manage('GET', '/manage/audit?outcome=denied&limit=1')))[0];
    const attempts: [Request, string, object][] = [
      [
        ['POST', '/manage/operators', { name: 'x', role: 'admin' }, pretence],
        'POST /manage/operators',
        { refused: 'not permitted: the role issuer may not manage access' },
      ],
      [
        patch(own, { limits: null }, pretence),
        'PATCH /manage/tokens/{id}',
        { id: own.token.id, refused: 'not permitted: the role issuer may not change tokens' },
      ],
    ];
    for (const [request, operation, details] of attempts) {
      problemOf(await scene.ask(by.operator.secret, ...request), ...FORBIDDEN);
      expect(await lastDenied()).to.deep.include({
        action: 'management.denied',
        actor: `operator:${by.operator.name}`,
        client_ip: '127.0.0.1',
        details: { operation, ...details },
      });
    }
    const last = (await lastDenied())?.id;
    problemOf(await scene.ask(by.operator.secret, 'GET', '/manage/operators'), ...FORBIDDEN);
    expect((await lastDenied())?.id, 'reading is no change').to.equal(last);
  });

  it('are recorded under names of any length, and not under those of others', async () => {
    const issuer = await scene.operator('n'.repeat(100), 'issuer', null);
    const { own } = targetsOf('issuer');
    const issued = await bodyOf<{ id: string }>(
      scene.ask(issuer.secret, ...issue({ project_id: own.project.id })),
      201,
    );
    const revoked = await bodyOf(
      scene.ask(issuer.secret, 'PATCH', `/manage/tokens/${issued.id}`, { is_active: false }, { 'x-llmp-user': 'root' }),
    );
    expect(revoked).to.include({ state: 'revoked', revoked_by: `operator:${issuer.name}` });
  });

  it('end with the role: of the next request, of a session, and of open streams', async () => {
    const operator = await scene.operator('fired', 'admin', null);
    const sessionId = await scene.session(operator.secret);
    const inSession = () => scene.daemon.manage('GET', '/manage/audit', undefined, { 'x-llmp-session': sessionId });
    expect((await inSession()).status).to.equal(200);
    const { own, hidden } = targetsOf('admin');
    const change = (limit: number) =>
      scene.daemon.manage('PATCH', `/manage/tokens/${hidden.token.id}`, { limits: { concurrent: limit } });
    const followers = [
      new Follower(
        scene.daemon.managementUrl,
        (client, options) => client.auditStream({}, options),
        undefined,
        operator.secret,
      ),
      new Follower(
        scene.daemon.managementUrl,
        (client, options) => client.events({}, options),
        undefined,
        operator.secret,
      ),
    ];
    await Promise.all(followers.map(({ opened }) => opened));
    await change(4);
    await eventually('both have seen it', () =>
      followers.every(({ items }) => JSON.stringify(items).includes(hidden.token.id)),
    );
    const seen = followers.map(({ items }) => items.length);
    const narrowed = await scene.daemon.manage('PATCH', `/manage/operators/${operator.id}`, {
      projects: [own.project.id],
    });
    expect(narrowed.status).to.equal(200);
    expect((await inSession()).status).to.equal(401);
    await change(5);
    await Promise.all(followers.map((follower) => follower.ended()));
    // What was changed is not shown, and neither is the change of the operator.
    expect(followers.map(({ items }) => items.length)).to.deep.equal(seen);
    const list = await scene.ask(operator.secret, 'GET', '/manage/audit?limit=200');
    expect(JSON.stringify(list.body)).not.to.include(hidden.token.id);
    await scene.daemon.manage('PATCH', `/manage/operators/${operator.id}`, { role: 'viewer' });
    expect((await scene.ask(operator.secret, 'GET', '/manage/audit')).status).to.equal(403);
    expect((await scene.ask(MANAGEMENT_TOKEN, 'GET', '/manage/audit')).status).to.equal(200);
  });
});
