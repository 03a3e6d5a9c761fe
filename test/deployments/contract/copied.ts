/** What a database had before `llmp migrate copy` goes on in the new one: each secret works, and each maximum counts what was used before. */
import { expect } from 'chai';
import type {
  WireOperator,
  WireProject,
  WireToken,
  WireTokenCreated,
  WireTrust,
} from '../../../daemon/api/contract.js';
import { eventually } from '../../support/eventually.js';
import { exchange, trustTerms } from '../../support/exchanges.js';
import { StandInIssuer } from '../../support/jwt-issuer.js';
import type { System } from '../system.js';
import { type TestData, usedNow } from '../test-data.js';
import { chat, CHAT_MODEL, MOST_TOKENS, TOKENS_PER_CHAT } from './budgets.js';
import type { ContractContext } from './context.js';

const CAP = 9;
const BUDGET = 1_500;
/** Requests with each token before the copy. */
const USED = 4;
const MOST_ACTIVE = 3;

/** What is in use when the database is copied. */
export interface Carried {
  project: WireProject;
  capped: WireTokenCreated;
  budgeted: WireTokenCreated;
  operator: WireOperator & { secret: string };
  trust: WireTrust;
  issuer: StandInIssuer;
  /** It was exchanged. */
  usedJwt: string;
}

/** Makes it, and adds to the test data what reports have of it. */
export async function carry(system: System, data: TestData): Promise<Carried> {
  const project = data.projects[3];
  if (!project) throw new RangeError('no projects');
  const issuer = await StandInIssuer.start();
  const issue = (fields: object) =>
    system.ask<WireTokenCreated>('POST', '/manage/tokens', { body: { project_id: project.id, ...fields } });
  const capped = await issue({ max_requests: CAP });
  const budgeted = await issue({ budget: { tokens: BUDGET, mode: 'hard' } });
  data.tokens.push(capped, budgeted);
  for (const token of [capped, budgeted]) {
    for (let n = 0; n < USED; n++) {
      expect(await chat(system, token)).to.equal(200);
      data.usage.push(usedNow(token, CHAT_MODEL));
    }
    await system.settled(token.id, USED);
  }
  const operator = await system.ask<Carried['operator']>('POST', '/manage/operators', {
    body: { name: 'carried', role: 'issuer', ceilings: { active_tokens: MOST_ACTIVE } },
  });
  const carried = { project, capped, budgeted, operator, issuer };
  expect((await issueAs(system, carried)).status).to.equal(201);
  const trust = await system.ask<WireTrust>('POST', '/manage/trusts', { body: trustTerms(issuer.url, project.id) });
  const usedJwt = await newJwt(issuer);
  expect((await exchange({ url: system.clientUrl() }, usedJwt)).status).to.equal(200);
  return { ...carried, trust, usedJwt };
}

export function behavesAfterACopy(given: ContractContext & { readonly carried: Carried }): void {
  describe('what was in the database before the copy', () => {
    after(() => given.carried.issuer.stop());

    it('caps: a token has exactly what is left', async () => {
      const { capped } = given.carried;
      const statuses = await Promise.all(Array.from({ length: CAP + 10 }, (_, n) => chat(given.system, capped, n)));
      expect(statuses.filter((status) => status === 200)).to.have.lengthOf(CAP - USED);
      await given.system.settled(capped.id, CAP);
    });

    it('budgets: what was spent before counts', async () => {
      const { budgeted } = given.carried;
      let served = USED;
      for (let n = 0, status = 0; status !== 402; n++) {
        status = await chat(given.system, budgeted, n);
        expect(status).to.be.oneOf([200, 402, 429, 503]);
        if (status === 200) served += 1;
      }
      expect(served * TOKENS_PER_CHAT).to.be.within(BUDGET - MOST_TOKENS, BUDGET);
      await eventually('all is settled', async () => {
        const { spent } = await given.system.ask<WireToken>('GET', `/manage/tokens/${budgeted.id}`);
        return spent.tokens === served * TOKENS_PER_CHAT;
      });
    });

    it('operators: their secrets work, and their tokens count against their ceilings', async () => {
      for (let n = 1; n < MOST_ACTIVE; n++) expect((await issueAs(given.system, given.carried)).status).to.equal(201);
      const refused = await issueAs(given.system, given.carried);
      expect([refused.status, (refused.body as { code: string }).code]).to.deep.equal([403, 'beyond_ceiling']);
    });

    it('trusts: they exchange a new JWT, and none that was exchanged before', async () => {
      const { issuer, usedJwt } = given.carried;
      for (const [jwt, expected] of [
        [usedJwt, 'token_used'],
        [await newJwt(issuer), undefined],
      ] as const) {
        const answer = await exchange({ url: given.system.clientUrl() }, jwt);
        expect(answer.body.code).to.equal(expected);
      }
    });
  });
}

/** It lasts longer than this contract takes, so that only its use can be why it is refused. */
const newJwt = (issuer: StandInIssuer) => {
  const exp = Math.floor(Date.now() / 1000) + 3_600;
  return issuer.jwt({ repository: 'acme/web', run_id: '1', exp }, Date.now());
};

const issueAs = (system: System, { operator, project }: Pick<Carried, 'operator' | 'project'>) =>
  system.manage('POST', '/manage/tokens', {
    body: { project_id: project.id },
    headers: { authorization: `Bearer ${operator.secret}` },
  });
