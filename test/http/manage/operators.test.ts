import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type {
  WireAuditRecord,
  WireBatchUndone,
  WireOperator,
  WireSession,
  WireTokenCreated,
} from '../../../daemon/api/contract.js';
import { mintSecretOf } from '../../../daemon/core/token.js';
import { daemonForEachTest, MANAGEMENT_TOKEN } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { Follower } from '../../support/follower.js';
import { auditOf as rowsOf, problemOf } from '../../support/management.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { head } from '../../support/raw.js';

type Created = WireOperator & { secret: string };

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const HOUR_MS = 3_600_000;

describe('operators', () => {
  const daemon = daemonForEachTest();

  const as = (secret: string, headers: Record<string, string> = {}) => ({
    authorization: `Bearer ${secret}`,
    ...headers,
  });
  const create = async (fields: object = {}): Promise<Created> => {
    const answer = await daemon.manage('POST', '/manage/operators', { name: 'ana', role: 'admin', ...fields });
    expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
    return answer.body as Created;
  };
  const auditOf = async () =>
    (await rowsOf(daemon)).map(({ details, ...row }) => ({
      ...row,
      details: JSON.parse(details ?? '{}') as Record<string, unknown>,
    }));
  const pathOf = ({ id }: { id: string }) => `/manage/operators/${id}`;
  const self = (secret: string, headers: Record<string, string> = {}) =>
    daemon.manage('GET', '/manage/self', undefined, as(secret, headers));
  const patch = (of: { id: string }, body: object, query = '') => daemon.manage('PATCH', pathOf(of) + query, body);
  const logIn = (token: string) =>
    daemon.manage(
      'POST',
      '/manage/sessions',
      { token },
      { 'x-llmp-actor': 'admin', 'x-llmp-client-ip': '203.0.113.7' },
    );
  const inSession = (id: string, method = 'GET', path = '/manage/self') =>
    daemon.manage(method, path, undefined, { 'x-llmp-session': id });

  it('are created with a secret that is shown once, and listed without it', async () => {
    const project = await daemon.createProject();
    const ceilings = { hours: 24, active_tokens: 5, budget: { usd: '20', period: 'month', mode: 'hard' } };
    const terms = { role: 'issuer', projects: [project.id], ceilings, expires_at: '2031-01-31T12:00:00.000Z' };
    const { secret, ...operator } = await create(terms);
    expect(secret).to.match(/^sk-op-[0-9A-Za-z]{49}$/);
    expect(operator).to.deep.include({ ...terms, name: 'ana', is_active: true, last_used_at: null });
    expect(operator.obfuscated).to.equal(`${secret.slice(0, 10)}…${secret.slice(-4)}`);
    const other = await create({ name: 'bo', role: 'viewer' });
    expect(other).to.deep.include({ projects: null, ceilings: null, expires_at: null });
    const listed = await daemon.manage('GET', '/manage/operators');
    expect(listed.body).to.have.deep.members([operator, (await daemon.manage('GET', pathOf(other))).body]);
    const recorded = await auditOf();
    expect(recorded.find(({ details }) => details.operator === operator.id)).to.deep.include({
      action: 'operator.create',
      actor: 'management',
      obfuscated: operator.obfuscated,
      details: { operator: operator.id, name: 'ana', ...terms },
    });
    expect(JSON.stringify([recorded, daemon.logged, listed.body])).not.to.include(secret);
  });

  it('are refused with a name that is taken, an unknown project, and no change', async () => {
    const operator = await create();
    problemOf(await daemon.manage('POST', '/manage/operators', { name: 'ana', role: 'viewer' }), 409, 'name_taken');
    const elsewhere = { name: 'bo', role: 'viewer', projects: [UNKNOWN_ID] };
    problemOf(await daemon.manage('POST', '/manage/operators', elsewhere), 404, 'not_found');
    problemOf(await patch(operator, { projects: [UNKNOWN_ID] }), 404, 'not_found');
    problemOf(await patch(operator, {}), 400, 'invalid_request');
    problemOf(await patch({ id: UNKNOWN_ID }, { role: 'viewer' }), 404, 'not_found');
    problemOf(await daemon.manage('DELETE', pathOf({ id: UNKNOWN_ID })), 404, 'not_found');
  });

  it('call with their secrets, and are the actors in the audit log, beside what the user says', async () => {
    const operator = await create();
    expect((await self(operator.secret)).body).to.deep.equal({
      actor: 'operator:ana',
      name: 'ana',
      role: 'admin',
      projects: null,
      ceilings: null,
      expires_at: null,
    });
    expect((await self(MANAGEMENT_TOKEN)).body).to.deep.include({ actor: 'management', name: null, role: null });
    const headers = as(operator.secret, { 'x-llmp-actor': 'cli', 'x-llmp-user': 'root@laptop' });
    const project = { name: 'of ana', api_key: 'sk-of-the-provider' };
    expect((await daemon.manage('POST', '/manage/projects', project, headers)).status).to.equal(201);
    const created = (await auditOf()).find(({ action }) => action === 'project.create');
    expect(created).to.include({ actor: 'operator:ana', reported_user: 'root@laptop' });
  });

  it('have no other credential than that: not another one of its form, not twice, and not on /v1', async () => {
    const { secret } = await create();
    const typo = secret.slice(0, -1) + (secret.endsWith('0') ? '1' : '0');
    for (const wrong of [typo, mintSecretOf('operator'), mintSecretOf('session'), secret.replace('sk-op-', 'sk-ss-')]) {
      problemOf(await self(wrong), 401, 'management_token_refused');
    }
    problemOf(await self(secret, { 'x-llmp-session': UNKNOWN_ID }), 400, 'invalid_request');
    expect((await daemon.call(secret)).status).to.equal(401);
    expect((await daemon.manage('GET', '/manage/login', undefined, as(typo))).status).to.equal(401);
  });

  it('wrong secrets are counted as wrong management tokens, and never block the right one', async () => {
    const { secret } = await create();
    for (let i = 0; i < 10; i++) problemOf(await self(mintSecretOf('operator')), 401, 'management_token_refused');
    problemOf(await self(mintSecretOf('session')), 429, 'too_many_attempts');
    expect((await self(secret)).status).to.equal(200);
    await eventually('they are recorded', async () => {
      const denied = (await auditOf()).filter(({ action }) => action === 'management.denied');
      return denied.length === 10;
    });
  });

  it('guesses without the right checksum ask the database nothing', async () => {
    const { access } = daemon.daemon.stores.records;
    let lookups = 0;
    const [ofOperator, ofSession] = [access.operatorByDigest.bind(access), access.sessionByDigest.bind(access)];
    access.operatorByDigest = (digest) => ((lookups += 1), ofOperator(digest));
    access.sessionByDigest = (digest) => ((lookups += 1), ofSession(digest));
    const guess = `sk-op-${'0'.repeat(49)}`;
    for (const wrong of [guess, guess.replace('op', 'ss'), 'sk-op-short', 'wrong']) await self(wrong);
    await logIn(guess);
    expect(lookups).to.equal(0);
    await self(mintSecretOf('operator'));
    expect(lookups).to.equal(1);
  });

  it('note their last use once a minute', async () => {
    const operator = await create();
    const lastUse = async () => ((await daemon.manage('GET', pathOf(operator))).body as WireOperator).last_used_at;
    const usedAfter = async (ms: number) => {
      daemon.clock.advance(ms);
      const before = await lastUse();
      await self(operator.secret);
      let after = await lastUse();
      if (ms >= 60_000 || before === null) {
        await eventually('the use is noted', async () => (after = await lastUse()) !== before);
      }
      return after;
    };
    const first = await usedAfter(0);
    expect(await usedAfter(50_000)).to.equal(first);
    const second = await usedAfter(60_000);
    expect(Date.parse(second ?? '') - Date.parse(first ?? '')).to.be.at.least(60_000);
  });

  it('may do from the next request on what a change says, until they expire or are deactivated', async () => {
    const operator = await create({ role: 'viewer' });
    const secret = operator.secret;
    const project = { name: 'of ana', api_key: 'sk-of-the-provider' };
    const createProject = () => daemon.manage('POST', '/manage/projects', project, as(secret));
    problemOf(await createProject(), 403, 'not_permitted');
    const changed = await patch(operator, {
      role: 'admin',
      expires_at: new Date(daemon.clock.now() + HOUR_MS).toISOString(),
    });
    expect(changed.body).to.include({ role: 'admin', is_active: true });
    expect((await createProject()).status).to.equal(201);
    const stale = await daemon.manage('PATCH', pathOf(operator), { role: 'viewer' }, { 'if-match': '"old"' });
    problemOf(stale, 412, 'precondition_failed');
    daemon.clock.advance(HOUR_MS);
    problemOf(await self(secret), 401, 'management_token_refused');
    await patch(operator, { expires_at: null });
    expect((await self(secret)).status).to.equal(200);
    const ended = await daemon.manage('DELETE', pathOf(operator));
    expect(ended.body).to.deep.equal({ message: 'operator deactivated, 0 tokens revoked', revoked_count: 0 });
    problemOf(await self(secret), 401, 'management_token_refused');
    await patch(operator, { is_active: true });
    expect((await self(secret)).status).to.equal(200);
    const actions = (await auditOf()).filter(({ details }) => details.operator === operator.id);
    expect(actions.map(({ action, details }) => [action, details.role ?? details.is_active ?? null])).to.deep.equal([
      ['operator.create', 'viewer'],
      ['operator.update', ['viewer', 'admin']],
      ['operator.update', null], // with If-Match
      ['operator.update', null],
      ['operator.deactivate', [true, false]],
      ['operator.update', [false, true]],
    ]);
  });

  it('get no more of a stream within a second after a change', async () => {
    const operator = await create({ role: 'auditor' });
    const { streams } = daemon.daemon;
    const follow = (secret: string) =>
      new Follower<WireAuditRecord>(
        daemon.url,
        (client, options) => client.auditStream({}, options),
        undefined,
        secret,
      );
    const begun = async (secret: string) => {
      const before = streams.size;
      const follower = follow(secret);
      await eventually('it follows', () => streams.size > before);
      return follower;
    };
    const change = () =>
      daemon.manage('POST', '/manage/projects', { name: `p${Math.random()}`, api_key: 'sk-of-the-provider' });
    const [busy, other] = [await begun(operator.secret), await begun(MANAGEMENT_TOKEN)];
    await change();
    await eventually('they get a record', () => busy.items.length === 1 && other.items.length === 1);
    await daemon.manage('DELETE', pathOf(operator));
    daemon.clock.advance(1_000);
    await change();
    await busy.ended();
    await eventually('the other one goes on', () => other.items.length === 3);
    expect(busy.items.filter(({ action }) => action === 'project.create')).to.have.length(1);
    await patch(operator, { is_active: true });
    const idle = await begun(operator.secret);
    await patch(operator, { ceilings: { hours: 1 } });
    daemon.clock.advance(15_000);
    await idle.ended();
    await other.leave();
  });

  describe('in sessions', () => {
    it('have the authority of their own rows, and log out', async () => {
      const operator = await create({ role: 'viewer' });
      const answer = await logIn(operator.secret);
      expect(answer.status).to.equal(201);
      const session = answer.body as WireSession;
      expect(session).to.include({ actor: 'operator:ana', name: 'ana', role: 'viewer', ended_at: null });
      expect(Date.parse(session.expires_at) - Date.parse(session.begun_at)).to.equal(8 * HOUR_MS);
      expect((await inSession(session.id)).body).to.include({ actor: 'operator:ana', role: 'viewer' });
      problemOf(await inSession(session.id, 'GET', '/manage/operators'), 403, 'not_permitted');
      const ended = await daemon.manage('DELETE', `/manage/sessions/${session.id}`);
      expect(ended.body).to.have.property('ended_at').that.is.a('string');
      problemOf(await inSession(session.id), 401, 'session_ended');
      const rows = (await auditOf()).filter(({ action }) => action.startsWith('admin.'));
      expect(rows.map(({ action, actor }) => [action, actor])).to.deep.equal([
        ['admin.login', 'operator:ana'],
        ['admin.logout', 'operator:ana'],
      ]);
    });

    it('of the holder of the management token allow everything', async () => {
      const { id } = (await logIn(MANAGEMENT_TOKEN)).body as WireSession;
      expect((await inSession(id, 'GET', '/manage/operators')).status).to.equal(200);
      await daemon.manage('DELETE', `/manage/sessions/${id}`);
      problemOf(await inSession(id), 401, 'session_ended');
    });

    it('end by a change of the operator, after 8 hours, and with the expiry of the operator', async () => {
      const operator = await create({ role: 'viewer' });
      const begin = async () => ((await logIn(operator.secret)).body as WireSession).id;
      const byChange = await begin();
      await patch(operator, { ceilings: { hours: 1 } });
      problemOf(await inSession(byChange), 401, 'session_ended');
      const byTime = await begin();
      daemon.clock.advance(8 * HOUR_MS - 60_000);
      expect((await inSession(byTime)).status).to.equal(200);
      daemon.clock.advance(60_000);
      problemOf(await inSession(byTime), 401, 'session_ended');
      await patch(operator, { expires_at: new Date(daemon.clock.now() + HOUR_MS).toISOString() });
      const byExpiry = await begin();
      daemon.clock.advance(HOUR_MS);
      problemOf(await inSession(byExpiry), 401, 'session_ended');
      problemOf(await logIn(operator.secret), 403, 'log_in_refused');
    });

    it('are not shown to others, and an unknown one has ended', async () => {
      const { id } = (await logIn(MANAGEMENT_TOKEN)).body as WireSession;
      const { secret } = await create();
      for (const method of ['GET', 'DELETE']) {
        problemOf(await daemon.manage(method, `/manage/sessions/${id}`, undefined, as(secret)), 404, 'not_found');
      }
      for (const unknown of [UNKNOWN_ID, 'x']) problemOf(await inSession(unknown), 401, 'session_ended');
    });
  });
});

describe('an operator that is deactivated', () => {
  const scene = ProxyFixture.forEachTest();

  /** An event stream that is under way. */
  async function streaming(secret: string) {
    const upstream = new Promise<ServerResponse>((resolve) => {
      scene.provider.answer = (_req, res) => {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
        resolve(res);
      };
    });
    const client = await scene.client(head('POST /v1/chat/completions', secret, { 'Content-Length': '0' }));
    await client.seen('data: 1\n\n');
    return { client, upstream: await upstream };
  }
  const operatorWithTokens = async () => {
    const { daemon, project } = scene;
    const operator = (await daemon.manage('POST', '/manage/operators', { name: 'ana', role: 'issuer' }))
      .body as Created;
    const headers = { authorization: `Bearer ${operator.secret}` };
    const issue = async (name: string) =>
      (await daemon.manage('POST', '/manage/tokens', { project_id: project.id, name }, headers))
        .body as WireTokenCreated;
    return { path: `/manage/operators/${operator.id}`, id: operator.id, tokens: [await issue('a'), await issue('b')] };
  };
  const batch = '0b5e4a1e-0000-4000-8000-000000000001';

  it('loses its tokens, and their requests in flight end; those of other tokens of the project go on', async () => {
    const { path, id, tokens } = await operatorWithTokens();
    const [own, other] = [await streaming(tokens[0]?.token ?? ''), await streaming(scene.secret)];
    const headers = { 'x-audit-reason': 'left', 'x-llmp-user': 'root@laptop' };
    const answer = await scene.daemon.manage('DELETE', path, undefined, headers);
    expect(answer.body).to.deep.equal({ message: 'operator deactivated, 2 tokens revoked', revoked_count: 2 });
    await own.client.closed;
    expect(own.client.pending.toString()).to.include('token_revoked');
    other.upstream.write('data: 2\n\n');
    await other.client.seen('data: 2\n\n');
    expect(await scene.daemon.token(tokens[1]?.id ?? '')).to.include({
      state: 'revoked',
      revoked_by: 'root@laptop',
      revoke_reason: 'left',
    });
    const records = (await rowsOf(scene.daemon)).slice(-3);
    expect(
      records.map(({ action, token_id, count, reason }) => [action, token_id, count, reason]),
    ).to.have.deep.members([
      ['operator.deactivate', null, 2, 'left'],
      ...tokens.map((token) => ['token.revoke', token.id, null, 'left']),
    ]);
    expect(records.map(({ details }) => (JSON.parse(details ?? '{}') as { operator: string }).operator)).to.deep.equal(
      Array(3).fill(id),
    );
    const again = await scene.daemon.manage('DELETE', path);
    expect(again.body).to.include({ message: 'operator deactivated, 0 tokens revoked' });
  });

  it('leaves its tokens as they are with keep_tokens, also by PATCH', async () => {
    const { path, tokens } = await operatorWithTokens();
    const { client, upstream } = await streaming(tokens[0]?.token ?? '');
    const deactivated = await scene.daemon.manage('PATCH', `${path}?keep_tokens=true`, { is_active: false });
    expect(deactivated.body).to.include({ is_active: false });
    upstream.write('data: 2\n\n');
    await client.seen('data: 2\n\n');
    const kept = await scene.daemon.manage('DELETE', `${path}?keep_tokens=true`);
    expect(kept.body).to.deep.equal({ message: 'operator deactivated, its tokens stay', revoked_count: 0 });
    problemOf(
      await scene.daemon.manage('PATCH', `${path}?keep_tokens=true`, { role: 'viewer' }),
      400,
      'invalid_request',
    );
    expect((await scene.daemon.token(tokens[1]?.id ?? '')).state).to.equal('active');
  });

  it('gets its tokens back by an undo of the batch, but is not reactivated by it', async () => {
    const { path, tokens } = await operatorWithTokens();
    await scene.daemon.manage('PATCH', path, { is_active: false }, { 'x-audit-batch': batch });
    const undone = await scene.daemon.manage('POST', `/manage/batches/${batch}/undo`, {});
    expect((undone.body as WireBatchUndone).undone.map(({ token_id }) => token_id)).to.have.members(
      tokens.map((token) => token.id),
    );
    for (const { id } of tokens) expect((await scene.daemon.token(id)).state).to.equal('active');
    expect((await scene.daemon.manage('GET', path)).body).to.include({ is_active: false });
  });
});
