import { expect } from 'chai';
import { crc32 } from 'node:zlib';
import type { WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import { daemonForSuite } from '../../support/daemon.js';
import { auditOf, bodyOf, problemOf } from '../../support/management.js';
import { aWireToken } from '../../support/factories.js';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const HOUR_MS = 3_600_000;

describe('tokens', () => {
  let project: WireProject;

  const daemon = daemonForSuite();
  beforeEach(async () => {
    project = await daemon.createProject();
  });

  const issue = (fields: object) => daemon.manage('POST', '/manage/tokens', fields);
  const setProjectActive = (isActive: boolean) =>
    bodyOf(daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: isActive }));

  describe('creation', () => {
    it('H12 returns 201 with an unlimited, unused token for 24 hours, and its secret', async () => {
      const created = await bodyOf<WireTokenCreated>(issue({ project_id: project.id }), 201);
      const { id, token, created_at, expires_at, obfuscated } = created;
      expect(id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(Date.parse(expires_at) - Date.parse(created_at)).to.equal(24 * HOUR_MS);
      expect(obfuscated).to.equal(`${token.slice(0, 10)}…${token.slice(-4)}`);
      expect(created).to.deep.equal({
        ...aWireToken({ id, project_id: project.id, project_name: project.name, created_at, expires_at, obfuscated }),
        token,
      });
    });

    it('I15 I16 returns the secret nowhere else, not even in the audit log, and forbids caching', async () => {
      const answer = await issue({ project_id: project.id });
      const { token, ...shown } = await bodyOf<WireTokenCreated>(answer, 201);
      expect(answer.headers.get('cache-control')).to.equal('no-store');
      const others = [
        await daemon.manage('GET', `/manage/tokens/${shown.id}`),
        await daemon.manage('GET', '/manage/tokens'),
        await daemon.manage('PATCH', `/manage/tokens/${shown.id}`, { is_active: true }),
        await daemon.manage('POST', '/manage/tokens/lookup', { token }),
        await daemon.manage('DELETE', `/manage/tokens/${shown.id}`),
      ];
      expect(others[0]?.body).to.deep.equal(shown);
      const shownAfterwards = [...others.map(({ body }) => body as unknown), ...(await auditOf(daemon))];
      expect(JSON.stringify(shownAfterwards)).to.include(shown.obfuscated).and.not.to.include(token.slice(10, -4));
      for (const { headers } of others) expect(headers.get('cache-control')).not.to.match(/public|max-age/);
    });

    it('H14 creates secrets of a prefix, 43 random characters and a CRC-32 of both', async () => {
      const secrets = new Set<string>();
      for (let i = 0; i < 20; i++) {
        const { token } = await daemon.createToken(project.id);
        const [, checked = '', checksum = ''] = /^(sk-wt-[0-9A-Za-z]{43})([0-9A-Za-z]{6})$/.exec(token) ?? [];
        expect(numberOf(checksum), token).to.equal(crc32(checked));
        secrets.add(checked.slice(0, 30));
      }
      expect(secrets.size).to.equal(20);
    });

    for (const [fields, lifetimeMs] of [
      [{ duration_hours: 1 }, HOUR_MS],
      [{ duration_hours: 720 }, 720 * HOUR_MS],
      [{ duration_hours: 8760 }, 8760 * HOUR_MS],
      [{ duration_minutes: 1 }, 60_000],
      [{ duration_minutes: 525_600 }, 525_600 * 60_000],
    ] as const) {
      it(`with ${JSON.stringify(fields)} has that lifetime`, async () => {
        const { created_at, expires_at } = await daemon.createToken(project.id, fields);
        expect(Date.parse(expires_at) - Date.parse(created_at)).to.equal(lifetimeMs);
      });
    }

    it('accepts the largest cap and a name', async () => {
      const fields = { max_requests: 2_147_483_647, name: 'Nächtlicher Lauf ✓' };
      expect(await daemon.createToken(project.id, fields)).to.include(fields);
    });

    it('F14 is refused with 400 for an inactive project, and works again once it is active', async () => {
      await setProjectActive(false);
      const error = problemOf(await issue({ project_id: project.id }), 400, 'project_inactive');
      expect(error).to.equal('cannot generate tokens for inactive project');
      await setProjectActive(true);
      await daemon.createToken(project.id);
    });

    for (const id of [UNKNOWN_ID, 'nonsense', "' OR 1=1"]) {
      it(`is 404 for the project ${id}`, async () => {
        expect(problemOf(await issue({ project_id: id }), 404, 'not_found')).to.equal('project not found');
      });
    }

    it('F14 during a deactivation creates no token that is usable while the project is inactive', async () => {
      const [, ...answers] = await Promise.all([
        setProjectActive(false),
        ...Array.from({ length: 10 }, () => issue({ project_id: project.id })),
      ]);
      for (const answer of answers) {
        if (answer.status === 201)
          expect((await daemon.call((answer.body as WireTokenCreated).token)).status).to.equal(403);
        else problemOf(answer, 400, 'project_inactive');
      }
    });
  });

  describe('creation like another token', () => {
    const terms = { name: 'nightly', max_requests: 7, duration_minutes: 90 };
    const lifetimeMs = ({ created_at, expires_at }: WireTokenCreated) =>
      Date.parse(expires_at) - Date.parse(created_at);

    it('has its project, name, cap and lifetime, but another secret and no uses', async () => {
      const model = await daemon.createToken(project.id, terms);
      await daemon.call(model.token);
      daemon.clock.advance(2 * HOUR_MS);
      await bodyOf(daemon.manage('DELETE', `/manage/tokens/${model.id}`));
      const made = await bodyOf<WireTokenCreated>(issue({ like: model.id.toUpperCase() }), 201);
      expect(made).to.include({ project_id: project.id, name: 'nightly', max_requests: 7, request_count: 0 });
      expect(made).to.include({ state: 'active', revoked_at: null, last_used_at: null });
      expect(lifetimeMs(made)).to.equal(1.5 * HOUR_MS);
      expect(made.id).not.to.equal(model.id);
      expect(made.token).not.to.equal(model.token);
      const { details } = (await auditOf(daemon)).at(-1)!;
      expect(JSON.parse(details!)).to.deep.equal({ ...terms, like: model.id });
    });

    it('has the fields of the request instead, where there are any', async () => {
      const other = await daemon.createProject();
      const { id } = await daemon.createToken(project.id, terms);
      const given = { project_id: other.id, name: 'weekly', max_requests: 0 };
      expect(await bodyOf(issue({ like: id, ...given }), 201)).to.include(given);
      const long = await bodyOf<WireTokenCreated>(issue({ like: id, duration_hours: 3 }), 201);
      expect(lifetimeMs(long)).to.equal(3 * HOUR_MS);
      expect(long).to.include({ name: 'nightly', max_requests: 7 });
    });

    for (const like of [UNKNOWN_ID, 'nonsense']) {
      it(`is 404 for ${like}`, async () => {
        expect(problemOf(await issue({ like }), 404, 'not_found')).to.equal('token not found');
      });
    }

    it('is refused with 400 for an inactive project, and without a project or a token', async () => {
      const { id } = await daemon.createToken(project.id);
      await setProjectActive(false);
      problemOf(await issue({ like: id }), 400, 'project_inactive');
      await setProjectActive(true);
      expect(problemOf(await issue({ name: 'x' }), 400, 'invalid_request')).to.match(/^project_id is required/);
    });
  });

  describe('a lookup by secret', () => {
    const lookUp = (secret: unknown) => daemon.manage('POST', '/manage/tokens/lookup', { token: secret });

    it('finds the token', async () => {
      const { token, ...shown } = await daemon.createToken(project.id);
      expect(await bodyOf(lookUp(token))).to.deep.equal(shown);
    });

    it('is 404 for an unknown, mistyped or truncated secret', async () => {
      const { token } = await daemon.createToken(project.id);
      const other = `sk-wt-${'0'.repeat(43)}`;
      for (const secret of [
        other + digitsOf(crc32(other)),
        `${token.slice(0, -1)}_`,
        token.slice(0, -1),
        token.toUpperCase(),
        'x',
      ]) {
        expect(problemOf(await lookUp(secret), 404, 'not_found')).to.equal('token not found');
      }
    });

    for (const secret of ['', 7, null, 'x'.repeat(201)]) {
      it(`refuses ${JSON.stringify(secret).slice(0, 20)} with 400`, async () => {
        problemOf(await lookUp(secret), 400, 'invalid_request');
      });
    }
  });

  describe('invalid input at creation', () => {
    it('refuses both durations together', async () => {
      const answer = await issue({ project_id: project.id, duration_hours: 1, duration_minutes: 60 });
      expect(problemOf(answer, 400, 'invalid_request')).to.equal(
        'give either duration_hours or duration_minutes, not both',
      );
    });
  });
});

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

function numberOf(digits: string): number {
  return Array.from(digits).reduce((value, digit) => value * 62 + BASE62.indexOf(digit), 0);
}

function digitsOf(value: number): string {
  return Array.from({ length: 6 }, (_, i) => BASE62[Math.floor(value / 62 ** (5 - i)) % 62]).join('');
}
