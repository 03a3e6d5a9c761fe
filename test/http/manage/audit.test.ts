import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import { canary } from '../../support/canaries.js';
import { daemonForEachTest, type TestResponse, UPSTREAM_KEY } from '../../support/daemon.js';
import {
  type AuditRow,
  auditOf,
  changesOf,
  lastAuditOf,
  problemOf,
  storedIn,
  write,
} from '../../support/management.js';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

describe('the audit log in the database', () => {
  let project: WireProject;
  let token: WireTokenCreated;

  const daemon = daemonForEachTest();
  beforeEach(async () => {
    project = await daemon.createProject({ name: 'Alpha' });
    token = await daemon.createToken(project.id, { name: 'nightly', max_requests: 5 });
  });

  const pathOf = { project: () => `/manage/projects/${project.id}`, token: () => `/manage/tokens/${token.id}` };

  /** A request's response, its audit records and its numbers among the changes. */
  const added = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) => {
    const [audited, changed] = [(await auditOf(daemon)).length, (await changesOf(daemon)).length];
    const answer = await daemon.manage(method, path, body, headers);
    return {
      answer,
      records: (await auditOf(daemon)).slice(audited),
      changes: (await changesOf(daemon)).slice(changed),
    };
  };

  describe('a change', () => {
    const cases: Record<string, () => [method: string, path: string, body: unknown, action: string, kind: string]> = {
      'creating a project': () => [
        'POST',
        '/manage/projects',
        { name: 'Beta', api_key: canary('upstream') },
        'project.create',
        'project.created',
      ],
      'renaming a project': () => ['PATCH', pathOf.project(), { name: 'Beta' }, 'project.update', 'project.updated'],
      'changing an upstream key': () => [
        'PATCH',
        pathOf.project(),
        { api_key: canary('upstream') },
        'project.update',
        'project.updated',
      ],
      'deactivating a project': () => [
        'PATCH',
        pathOf.project(),
        { is_active: false },
        'project.update',
        'project.deactivated',
      ],
      'creating a token': () => ['POST', '/manage/tokens', { project_id: project.id }, 'token.create', 'token.created'],
      'revoking a token': () => ['DELETE', pathOf.token(), undefined, 'token.revoke', 'token.revoked'],
      'revoking a token by PATCH': () => [
        'PATCH',
        pathOf.token(),
        { is_active: false },
        'token.revoke',
        'token.revoked',
      ],
      'reactivating a token': () => [
        'PATCH',
        pathOf.token(),
        { is_active: true },
        'token.reactivate',
        'token.reactivated',
      ],
      'revoking all tokens': () => [
        'POST',
        `${pathOf.project()}/tokens/revoke`,
        undefined,
        'token.revoke_all',
        'tokens.revoked',
      ],
    };
    for (const [what, request] of Object.entries(cases)) {
      it(`such as ${what} is recorded once, with exactly one change number`, async () => {
        const [method, path, body, action, kind] = request();
        const { answer, records, changes } = await added(method, path, body, { 'x-request-id': 'this-one' });
        expect(answer.status).to.be.within(200, 201);
        expect(records.map((record) => [record.action, record.outcome, record.request_id])).to.deep.equal([
          [action, 'success', 'this-one'],
        ]);
        expect(changes.map((change) => change.kind)).to.deep.equal([kind]);
        expect(changes[0]?.project_id).to.equal(records[0]?.project_id);
      });
    }

    it('that changes nothing is recorded again', async () => {
      await daemon.manage('DELETE', pathOf.token());
      const { records } = await added('DELETE', pathOf.token());
      expect(records).to.have.length(1);
    });

    it('of a token has its ID and obfuscated secret, never the secret', async () => {
      await daemon.manage('DELETE', pathOf.token());
      for (const { token_id, project_id, obfuscated } of (await auditOf(daemon)).slice(-2)) {
        expect({ token_id, project_id, obfuscated }).to.deep.equal({
          token_id: token.id,
          project_id: project.id,
          obfuscated: token.obfuscated,
        });
      }
      expect(JSON.stringify(await auditOf(daemon))).not.to.include(token.token.slice(10, -4));
    });

    it('has details: durations and limits, before and after, counts', async () => {
      const details = async () => JSON.parse((await lastAuditOf(daemon)).details ?? 'null') as unknown;
      expect(await details()).to.deep.include({ name: 'nightly', duration_minutes: 1440, max_requests: 5 });

      const anotherKey = canary('upstream');
      await daemon.manage('PATCH', pathOf.project(), {
        name: 'Beta',
        is_active: false,
        api_key: anotherKey,
      });
      expect(await details()).to.deep.equal({
        name: ['Alpha', 'Beta'],
        is_active: [true, false],
        api_key_hint: [UPSTREAM_KEY.slice(-4), anotherKey.slice(-4)],
      });

      await daemon.manage('POST', `${pathOf.project()}/tokens/revoke`);
      expect((await lastAuditOf(daemon)).count).to.equal(1);
    });
  });

  describe('a read', () => {
    for (const path of [
      '/manage/projects',
      '/manage/tokens',
      '/manage/usage',
      '/manage/cache',
      '/manage/audit',
      '/manage/status',
      '/manage/migrations',
      '/manage/openapi.json',
    ]) {
      it(`of ${path} leaves no record`, async () => {
        const { records, changes } = await added('GET', path);
        expect([records, changes]).to.deep.equal([[], []]);
      });
    }

    it('by secret leaves no record', async () => {
      const { records } = await added('POST', '/manage/tokens/lookup', { token: token.token });
      expect(records).to.deep.equal([]);
    });
  });

  describe('a refused change', () => {
    const denied = (records: AuditRow[]) =>
      records.map(({ action, outcome, details }) => ({
        action,
        outcome,
        refused: (JSON.parse(details ?? '{}') as { refused?: string }).refused,
      }));

    const cases: Record<string, () => [method: string, path: string, body: unknown, action: string]> = {
      'an existing project name': () => [
        'POST',
        '/manage/projects',
        { name: 'Alpha', api_key: canary('upstream') },
        'project.create',
      ],
      'a change of an unknown project': () => [
        'PATCH',
        `/manage/projects/${UNKNOWN_ID}`,
        { name: 'x' },
        'project.update',
      ],
      'the deletion of a project': () => ['DELETE', pathOf.project(), undefined, 'project.delete_refused'],
      'a token for an unknown project': () => ['POST', '/manage/tokens', { project_id: UNKNOWN_ID }, 'token.create'],
      'the revocation of an unknown token': () => ['DELETE', `/manage/tokens/${UNKNOWN_ID}`, undefined, 'token.revoke'],
      'the reactivation of an unknown token': () => [
        'PATCH',
        `/manage/tokens/${UNKNOWN_ID}`,
        { is_active: true },
        'token.reactivate',
      ],
      'the revocation of the tokens of an unknown project': () => [
        'POST',
        `/manage/projects/${UNKNOWN_ID}/tokens/revoke`,
        undefined,
        'token.revoke_all',
      ],
    };
    for (const [what, request] of Object.entries(cases)) {
      it(`such as ${what} is recorded as denied with the reason, and is not a change`, async () => {
        const [method, path, body, action] = request();
        const { answer, records, changes } = await added(method, path, body);
        expect(answer.status).to.be.within(400, 409);
        const { error } = answer.body as { error: string };
        expect(denied(records)).to.deep.equal([{ action, outcome: 'denied', refused: error }]);
        expect(changes).to.deep.equal([]);
      });
    }

    it('such as the deletion of a project is recorded with the project', async () => {
      const { records } = await added('DELETE', pathOf.project());
      expect(records.map(({ project_id }) => project_id)).to.deep.equal([project.id]);
    });

    it('such as a token for an inactive project is recorded with the project', async () => {
      await daemon.manage('PATCH', pathOf.project(), { is_active: false });
      const { records } = await added('POST', '/manage/tokens', { project_id: project.id });
      expect(denied(records)).to.deep.equal([
        { action: 'token.create', outcome: 'denied', refused: 'cannot generate tokens for inactive project' },
      ]);
      expect(records[0]?.project_id).to.equal(project.id);
    });

    it('with a secret in place of an ID is recorded without the secret', async () => {
      for (const [method, path, body] of [
        ['DELETE', `/manage/projects/${token.token}`, undefined],
        ['DELETE', `/manage/tokens/${token.token}`, undefined],
        ['POST', '/manage/tokens', { project_id: token.token }],
      ] as const) {
        await daemon.manage(method, path, body);
      }
      expect(JSON.stringify(await storedIn(daemon))).not.to.include(token.token);
    });
  });

  describe('the changes', () => {
    it('are numbered without gaps in commit order, however many are concurrent', async () => {
      await Promise.all([
        ...Array.from({ length: 10 }, () => daemon.createToken(project.id)),
        ...Array.from({ length: 10 }, (_, i) => daemon.manage('PATCH', pathOf.token(), { is_active: i % 2 === 0 })),
        ...Array.from({ length: 5 }, () =>
          daemon.manage('POST', '/manage/projects', { name: 'Alpha', api_key: canary('upstream') }),
        ),
        ...Array.from({ length: 5 }, () => daemon.manage('POST', '/manage/tokens', { project_id: UNKNOWN_ID })),
      ]);
      const changes = await changesOf(daemon);
      expect(changes.map(({ seq }) => seq)).to.deep.equal(Array.from({ length: 22 }, (_, i) => i + 1));
      const succeeded = (await auditOf(daemon)).filter(({ outcome }) => outcome === 'success');
      // Both are written in one transaction, so their orders agree.
      expect(succeeded.map(({ token_id }) => token_id)).to.deep.equal(changes.map(({ token_id }) => token_id));
    });

    it('F08 that contradict each other are both recorded, and the last one applies', async () => {
      await Promise.all(
        [true, false, true, false].map((isActive) => daemon.manage('PATCH', pathOf.token(), { is_active: isActive })),
      );
      const kinds = (await changesOf(daemon)).slice(-4).map(({ kind }) => kind);
      expect([...kinds].sort()).to.deep.equal([
        'token.reactivated',
        'token.reactivated',
        'token.revoked',
        'token.revoked',
      ]);
      expect((await daemon.token(token.id)).is_active).to.equal(kinds.at(-1) === 'token.reactivated');
    });
  });

  describe('when it cannot be written', () => {
    const breakIt = () =>
      write(daemon, "CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no audit'); END");

    const changes: Record<string, () => Promise<TestResponse>> = {
      'creating a project': () =>
        daemon.manage('POST', '/manage/projects', { name: 'Beta', api_key: canary('upstream') }),
      'changing a project': () =>
        daemon.manage('PATCH', pathOf.project(), { name: 'Beta', api_key: canary('upstream'), is_active: false }),
      'creating a token': () => daemon.manage('POST', '/manage/tokens', { project_id: project.id }),
      'revoking a token': () => daemon.manage('DELETE', pathOf.token()),
      'revoking all tokens': () => daemon.manage('POST', `${pathOf.project()}/tokens/revoke`),
      'trying to delete a project': () => daemon.manage('DELETE', pathOf.project()),
      'creating a project with an existing name': () =>
        daemon.manage('POST', '/manage/projects', { name: 'Alpha', api_key: canary('upstream') }),
    };
    for (const [what, change] of Object.entries(changes)) {
      it(`${what} is 503 with Retry-After and changes nothing`, async () => {
        const before = await storedIn(daemon);
        await breakIt();
        const answer = await change();
        problemOf(answer, 503, 'unavailable');
        expect(answer.headers.get('retry-after')).to.match(/^[1-9]\d*$/);
        expect(await storedIn(daemon)).to.deep.equal(before);
      });
    }

    it('a token that could not be revoked is still admitted: the operator got an error', async () => {
      await breakIt();
      await daemon.manage('DELETE', pathOf.token());
      expect((await daemon.call(token.token)).status).to.equal(502); // Admitted; the upstream does not exist.
    });

    it('reads still work, and changes work again once it can be written', async () => {
      await breakIt();
      await daemon.manage('DELETE', pathOf.token());
      expect((await daemon.token(token.id)).state).to.equal('active');
      await write(daemon, 'DROP TRIGGER broken');
      expect((await daemon.manage('DELETE', pathOf.token())).status).to.equal(200);
      expect((await changesOf(daemon)).map(({ seq }) => seq)).to.deep.equal([1, 2, 3]);
      expect((await daemon.call(token.token)).status).to.equal(401);
    });
  });

  it('has no record of a change whose number could not be written', async () => {
    const before = await storedIn(daemon);
    await write(daemon, "CREATE TRIGGER broken BEFORE INSERT ON changes BEGIN SELECT RAISE(ABORT, 'no change'); END");
    problemOf(await daemon.manage('DELETE', pathOf.token()), 503, 'unavailable');
    expect(await storedIn(daemon)).to.deep.equal(before);
  });
});
