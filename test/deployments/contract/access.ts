/** Operators and sessions: what is changed at one instance holds at once at all, and ceilings hold over all of them together. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type {
  WireOperator,
  WireProject,
  WireSession,
  WireToken,
  WireTokenCreated,
} from '../../../daemon/api/contract.js';
import { digestOf, mintSecretOf } from '../../../daemon/core/token.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import type { ContractContext } from './context.js';

type Created = WireOperator & { secret: string };

const MOST = 5;
const TOGETHER = 16;
/** How long another instance may take to learn of a revocation. */
const SOON_MS = 2_000;
let operators = 0;

export function behavesInAccess(given: ContractContext): void {
  describe('operators', () => {
    let projects: WireProject[];
    before(async () => {
      projects = await Promise.all(
        ['one', 'other'].map((name) => {
          const body = { name: `${name} of operators`, api_key: UPSTREAM_KEY };
          return given.system.ask<WireProject>('POST', '/manage/projects', { body });
        }),
      );
    });

    const create = (fields: object = {}) => {
      const body = { name: `operator ${++operators}`, role: 'issuer', ...fields };
      return given.system.ask<Created>('POST', '/manage/operators', { body });
    };
    const as = (secret: string) => ({ authorization: `Bearer ${secret}` });
    /** The next instance in turn, and one project after the other. */
    const issue = (secret: string, n = 0) =>
      given.system.manage('POST', '/manage/tokens', { body: { project_id: projects[n % 2]?.id }, headers: as(secret) });
    const issueTogether = (secrets: readonly string[]) =>
      Promise.all(Array.from({ length: TOGETHER }, (_, n) => issue(secrets[n % secrets.length] ?? '', n >> 1)));
    const activeOf = async (actor: string) => {
      const { items } = await given.system.walk<WireToken>('/manage/tokens?limit=500&state=active');
      return items.filter((token) => token.issued_by === actor);
    };
    const statusAt = async (at: number, token: string) => {
      const response = await given.system.call(token, '/v1/models', { at });
      await response.text();
      return response.status;
    };
    const everywhere = async (token: string, status: number) => {
      for (let at = 0; at < 4; at++) {
        await eventually(`${status} of instance ${at}`, async () => (await statusAt(at, token)) === status, SOON_MS);
      }
    };

    /** Two sessions of one person, as the command line has them. */
    const sessionsOfPerson = (actor: string) =>
      Promise.all(
        [1, 2].map(async () => {
          const secret = mintSecretOf('session');
          const now = Date.now();
          await given.system.write(
            `INSERT INTO sessions (id, digest, front_end, actor, name, role, ceilings, begun_at, expires_at)
             VALUES ($id, $digest, 'cli', $actor, 'Ana', 'issuer', $ceilings, $now, $end)`,
            {
              id: randomUUID(),
              digest: digestOf(secret),
              actor,
              ceilings: JSON.stringify({ active_tokens: MOST }),
              now,
              end: now + 3_600_000,
            },
          );
          return secret;
        }),
      );

    for (const who of ['an operator', 'a person in two sessions']) {
      it(`of many creations by ${who} at once, at any instances, exactly as many succeed as active_tokens says`, async () => {
        const operator = who === 'an operator' ? await create({ ceilings: { active_tokens: MOST } }) : null;
        const actor = operator ? `operator:${operator.name}` : `person:${randomUUID()}`;
        const secrets = operator ? [operator.secret] : await sessionsOfPerson(actor);
        for (let round = 1; round <= 3; round++) {
          const answers = await issueTogether(secrets);
          const refused = answers.filter(({ status }) => status !== 201);
          expect(refused.map(({ status, body }) => `${status} ${(body as { code: string }).code}`)).to.deep.equal(
            Array(TOGETHER - MOST).fill('403 beyond_ceiling'),
          );
          const active = await activeOf(actor);
          expect(active).to.have.lengthOf(MOST);
          for (const { id } of active) {
            await given.system.ask('DELETE', `/manage/tokens/${id}`, { headers: as(secrets[0] ?? '') });
          }
        }
      });
    }

    it('that are deactivated leave no token behind, however many they issue at that moment', async () => {
      for (let round = 1; round <= 3; round++) {
        const { id, name, secret } = await create();
        const creations = issueTogether([secret]);
        const deactivated = await given.system.manage('DELETE', `/manage/operators/${id}`);
        expect(deactivated.status, JSON.stringify(deactivated.body)).to.equal(200);
        for (const { status } of await creations) expect(status).to.be.oneOf([201, 401, 403, 429]);
        expect(await activeOf(`operator:${name}`)).to.deep.equal([]);
      }
    });

    it('that are deactivated lose their tokens at every instance, with a record of each, but no token of others', async () => {
      const [leaving, staying] = [await create(), await create()];
      const issued = async ({ secret }: Created) => (await issue(secret)).body as WireTokenCreated;
      const [first, second, other] = [await issued(leaving), await issued(leaving), await issued(staying)];
      for (const { token } of [first, second, other]) await everywhere(token, 200);
      const path = `/manage/operators/${leaving.id}`;
      expect(await given.system.ask('DELETE', path)).to.include({ revoked_count: 2 });
      for (const { token } of [first, second]) await everywhere(token, 401);
      await everywhere(other.token, 200);
      for (const { id } of [first, second]) {
        const { items } = await given.system.walk<{ details: object }>(
          `/manage/audit?token_id=${id}&action=token.revoke`,
        );
        expect(items.map(({ details }) => details)).to.deep.equal([{ is_active: [true, false], operator: leaving.id }]);
      }
      const kept = `/manage/operators/${staying.id}?keep_tokens=true`;
      expect(await given.system.ask('DELETE', kept)).to.include({ revoked_count: 0 });
      await everywhere(other.token, 200);
    });

    it('have their new role, and their sessions have ended, from the next request on at every instance', async () => {
      const operator = await create({ role: 'viewer' });
      const begun = await given.system.ask<WireSession>('POST', '/manage/sessions', {
        body: { token: operator.secret },
      });
      const inSession = (at: number) =>
        given.system.manage('GET', '/manage/self', { headers: { 'x-llmp-session': begun.id }, at });
      const status = async (at: number) =>
        (await given.system.manage('GET', '/manage/audit?limit=1', { headers: as(operator.secret), at })).status;
      for (let at = 0; at < given.system.count; at++) {
        expect([(await inSession(at)).status, await status(at)]).to.deep.equal([200, 403]);
      }
      for (const [role, expected] of [
        ['auditor', 200],
        ['issuer', 403],
        ['admin', 200],
      ] as const) {
        await given.system.ask('PATCH', `/manage/operators/${operator.id}`, { body: { role } });
        for (let at = 0; at < given.system.count; at++) {
          expect([(await inSession(at)).status, await status(at)]).to.deep.equal([401, expected]);
        }
      }
    });
  });
}
