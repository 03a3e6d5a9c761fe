import { expect } from 'chai';
import type { WireProject, WireToken, WireTokensRevoked } from '../../daemon/api/contract.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { bodyOf, problemOf, write } from '../support/management.js';
import { type Provider, startProvider } from '../support/provider.js';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const HOUR_MS = 3_600_000;

describe('a token', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let project: WireProject;

  beforeEach(async () => {
    provider = await startProvider();
    daemon = await startDaemon({ upstream: provider.url });
    project = await daemon.createProject();
  });
  afterEach(async () => {
    await daemon.stop();
    await provider.stop();
  });

  const setActive = (id: string, isActive: boolean) =>
    bodyOf<WireToken>(daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: isActive }));
  const setProjectActive = (isActive: boolean) =>
    bodyOf(daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: isActive }));
  const revokeAll = (projectId: string) =>
    bodyOf<WireTokensRevoked>(daemon.manage('POST', `/manage/projects/${projectId}/tokens/revoke`));
  const statusOf = async (secret: string) => (await daemon.call(secret)).status;

  describe('the state', () => {
    it('is the first that applies of revoked, expired, project_inactive, rate_limited, active', async () => {
      const { id, token } = await daemon.createToken(project.id, { max_requests: 1, duration_hours: 1 });
      const states = [(await daemon.token(id)).state];
      const change = async (action: () => unknown) => {
        await action();
        states.push((await daemon.token(id)).state);
      };
      await change(() => daemon.call(token));
      await change(() => setProjectActive(false));
      await change(() => {
        daemon.clock.advance(HOUR_MS);
      });
      await change(() => setActive(id, false));
      expect(states).to.deep.equal(['active', 'rate_limited', 'project_inactive', 'expired', 'revoked']);
    });
  });

  describe('uses', () => {
    it('are counted at once, with the time of the last use', async () => {
      const { id, token } = await daemon.createToken(project.id);
      const before = daemon.clock.now();
      await daemon.call(token);
      daemon.clock.advance(5_000);
      await daemon.call(token);
      const { request_count, last_used_at } = await daemon.token(id);
      expect(request_count).to.equal(2);
      expect(Date.parse(last_used_at!)).to.be.within(before + 5_000, daemon.clock.now());
    });

    it('survive a revocation, a reactivation and a restart', async () => {
      const { id, token } = await daemon.createToken(project.id, { max_requests: 10 });
      await daemon.call(token);
      const { request_count, last_used_at } = await setActive(id, false);
      expect(request_count).to.equal(1);
      expect(last_used_at).not.to.equal(null);
      expect(await setActive(id, true)).to.include({ request_count: 1, last_used_at });
      await daemon.stop();
      daemon = await startDaemon({ upstream: provider.url, dir: daemon.dir });
      expect(await daemon.token(id)).to.include({ request_count: 1, last_used_at, state: 'active' });
    });
  });

  describe('revocation', () => {
    for (const [how, revoke] of [
      ['DELETE', (id: string) => bodyOf(daemon.manage('DELETE', `/manage/tokens/${id}`))],
      ['PATCH', (id: string) => setActive(id, false)],
    ] as const) {
      it(`by ${how} ends the token from the next request on, and is idempotent`, async () => {
        const { id, token } = await daemon.createToken(project.id);
        expect(await statusOf(token)).to.equal(200);
        const answer = await revoke(id);
        expect(await statusOf(token)).to.equal(401);
        expect(await revoke(id)).to.deep.equal(answer);
        expect(await daemon.token(id)).to.include({ is_active: false, state: 'revoked' });
      });
    }

    it('is on the token with its time, user or actor, and reason, until a reactivation', async () => {
      const { id } = await daemon.createToken(project.id);
      const none = { revoked_at: null, revoked_by: null, revoke_reason: null };
      expect(await daemon.token(id)).to.include(none);
      const headers = { 'x-llmp-user': 'ana@laptop', 'x-llmp-actor': 'cli', 'x-audit-reason': 'leaked' };
      const revoked = { revoked_by: 'ana@laptop', revoke_reason: 'leaked' };
      const path = `/manage/tokens/${id}`;
      const before = daemon.clock.now();
      const answer = await bodyOf<WireToken>(daemon.manage('PATCH', path, { is_active: false }, headers));
      expect(answer).to.include(revoked);
      const { revoked_at } = answer;
      expect(Date.parse(revoked_at!)).to.be.within(before, daemon.clock.now());
      daemon.clock.advance(HOUR_MS / 2);
      await bodyOf(daemon.manage('DELETE', path, undefined, { 'x-llmp-actor': 'tui' }));
      expect(await daemon.token(id), 'the second revocation changes nothing').to.include({ ...revoked, revoked_at });
      expect(await setActive(id, true)).to.include(none);
      expect(await daemon.token(id)).to.include(none);
      await bodyOf(daemon.manage('DELETE', path, undefined, { 'x-llmp-actor': 'tui' }));
      expect(await daemon.token(id)).to.include({ revoked_by: 'tui', revoke_reason: null });
    });

    it('never has a secret as its reason', async () => {
      const { id, token } = await daemon.createToken(project.id);
      const headers = { 'x-audit-reason': encodeURIComponent(`leaked: ${token}`) };
      await bodyOf(daemon.manage('DELETE', `/manage/tokens/${id}`, undefined, headers));
      expect((await daemon.token(id)).revoke_reason)
        .to.match(/^leaked: /)
        .and.not.include(token.slice(-20));
    });

    it('by DELETE returns a message; by PATCH it returns the token', async () => {
      const { id } = await daemon.createToken(project.id);
      expect(await bodyOf(daemon.manage('DELETE', `/manage/tokens/${id}`))).to.deep.equal({ message: 'token revoked' });
      expect(await setActive(id, false)).to.deep.equal(await daemon.token(id));
    });

    for (const id of [UNKNOWN_ID, 'nonsense']) {
      it(`S08 returns 404 for the token ${id}, as does GET`, async () => {
        const path = `/manage/tokens/${id}`;
        const answers = [
          await daemon.manage('GET', path),
          await daemon.manage('DELETE', path),
          await daemon.manage('PATCH', path, { is_active: false }),
        ];
        for (const answer of answers) expect(problemOf(answer, 404, 'not_found')).to.equal('token not found');
      });
    }
  });

  describe('reactivation', () => {
    it('succeeds in every state and changes is_active only', async () => {
      const reached: Record<string, (id: string, secret: string) => unknown> = {
        active: () => undefined,
        rate_limited: (_id, secret) => daemon.call(secret),
        project_inactive: () => setProjectActive(false),
        expired: () => {
          daemon.clock.advance(2 * HOUR_MS);
        },
      };
      for (const [state, reach] of Object.entries(reached)) {
        const { id, token } = await daemon.createToken(project.id, { max_requests: 1, duration_hours: 1 });
        await reach(id, token);
        const before = await daemon.token(id);
        expect(before.state).to.equal(state);
        await setActive(id, false);
        expect(await statusOf(token)).to.equal(401);
        expect(await setActive(id, true)).to.deep.equal(before);
        expect(await setActive(id, true)).to.deep.equal(before);
        if (state === 'active') expect(await statusOf(token)).to.equal(200);
        await setProjectActive(true);
      }
    });
  });

  describe('bulk revocation', () => {
    it('F13 revokes all tokens of the project and no others, and returns how many changed: none the second time', async () => {
      const mine = [await daemon.createToken(project.id), await daemon.createToken(project.id)];
      const revoked = await daemon.createToken(project.id);
      await setActive(revoked.id, false);
      const other = await daemon.createToken((await daemon.createProject()).id);

      expect(await revokeAll(project.id)).to.deep.equal({ message: '2 tokens revoked', revoked_count: 2 });
      for (const { token } of mine) expect(await statusOf(token)).to.equal(401);
      expect(await statusOf(other.token)).to.equal(200);
      expect((await revokeAll(project.id)).revoked_count).to.equal(0);
    });

    it('includes expired tokens, and tokens of an inactive project', async () => {
      await daemon.createToken(project.id, { duration_minutes: 1 });
      daemon.clock.advance(60_000);
      await setProjectActive(false);
      expect((await revokeAll(project.id)).revoked_count).to.equal(1);
    });

    for (const id of [UNKNOWN_ID, 'nonsense']) {
      it(`returns 404 for the project ${id}`, async () => {
        const answer = await daemon.manage('POST', `/manage/projects/${id}/tokens/revoke`);
        expect(problemOf(answer, 404, 'not_found')).to.equal('project not found');
      });
    }

    it('F11 concurrent with creations leaves each token either counted or usable, never both', async () => {
      const creations = Array.from({ length: 50 }, () => daemon.createToken(project.id));
      const { revoked_count } = await revokeAll(project.id);
      const created = await Promise.all(creations);
      const states = await Promise.all(created.map(async ({ id }) => (await daemon.token(id)).state));
      expect(states.filter((state) => state === 'revoked')).to.have.length(revoked_count);
    });
  });

  it('F17 inserted into the database by another program is valid within 5 s of being refused as unknown', async () => {
    const { id, token } = await daemon.createToken(project.id);
    const [row] = await daemon.daemon.stores.database.select<{ digest: string }>('SELECT digest FROM tokens');
    await daemon.stop();
    daemon = await startDaemon({ upstream: provider.url, dir: daemon.dir });
    await write(daemon, "UPDATE tokens SET digest = 'elsewhere' WHERE id = $id", { id });
    expect(await statusOf(token)).to.equal(401);
    await write(daemon, 'UPDATE tokens SET digest = $digest WHERE id = $id', { id, digest: row!.digest });
    daemon.clock.advance(5_000);
    expect(await statusOf(token)).to.equal(200);
  });
});
