/** Exchanges of JWTs: each is good once, and the maxima of a trust hold, over all instances together. */
import { expect } from 'chai';
import type { WireProject, WireToken, WireTrust } from '../../../daemon/api/contract.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { exchange, trustTerms } from '../../support/exchanges.js';
import { StandInIssuer } from '../../support/jwt-issuer.js';
import type { ContractContext } from './context.js';

const MOST = 5;
const TOGETHER = 16;
const SOON_MS = 2_000;

export function behavesInExchanges(given: ContractContext): void {
  describe('exchanges', () => {
    let issuer: StandInIssuer;
    let project: WireProject;
    let repositories = 0;
    before(async () => {
      issuer = await StandInIssuer.start();
      const body = { name: 'exchanged', api_key: UPSTREAM_KEY };
      project = await given.system.ask<WireProject>('POST', '/manage/projects', { body });
    });
    after(() => issuer.stop());

    /** A trust for a repository of its own. */
    const trust = async (fields: object = {}) => {
      const repository = `acme/${++repositories}`;
      const body = { ...trustTerms(issuer.url, project.id), match: { repository }, ...fields };
      return { repository, ...(await given.system.ask<WireTrust>('POST', '/manage/trusts', { body })) };
    };
    const jwt = (repository: string) => issuer.jwt({ repository, run_id: '1' }, Date.now());
    const exchangeAt = async (at: number, text: string) => {
      const { status, body } = await exchange({ url: given.system.clientUrl(at) }, text);
      return status === 200 ? String(body.access_token) : `${status} ${String(body.code)}`;
    };
    const issuedBy = async ({ id }: WireTrust) => {
      const { items } = await given.system.walk<WireToken>('/manage/tokens?limit=500');
      return items.filter((token) => token.issued_by === `trust:${id}`);
    };
    const tally = (answers: readonly string[]) => {
      const refused = answers.filter((answer) => !answer.startsWith('sk-wt-'));
      return [answers.length - refused.length, [...new Set(refused)]];
    };

    it('of one JWT at all instances at once make one token', async () => {
      for (let round = 1; round <= 3; round++) {
        const trusted = await trust();
        const text = await jwt(trusted.repository);
        const answers = await Promise.all(Array.from({ length: TOGETHER }, (_, at) => exchangeAt(at, text)));
        expect(tally(answers)).to.deep.equal([1, ['400 token_used']]);
        expect(await issuedBy(trusted)).to.have.lengthOf(1);
      }
    });

    for (const maximum of ['max_active', 'per_hour']) {
      it(`of many JWTs at once make exactly as many tokens as ${maximum} says, and use up no other JWT`, async () => {
        const trusted = await trust({ [maximum]: MOST });
        const texts = await Promise.all(Array.from({ length: TOGETHER }, () => jwt(trusted.repository)));
        const answers = await Promise.all(texts.map((text, at) => exchangeAt(at, text)));
        expect(tally(answers)).to.deep.equal([MOST, ['429 trust_limit_reached']]);
        expect(await issuedBy(trusted)).to.have.lengthOf(MOST);
        await given.system.ask('PATCH', `/manage/trusts/${trusted.id}`, { body: { [maximum]: null } });
        const again = await Promise.all(texts.map((text, at) => exchangeAt(at + 1, text)));
        expect(tally(again)).to.deep.equal([TOGETHER - MOST, ['400 token_used']]);
      });
    }

    it('compare issuers and audiences exactly, so that nobody makes llmp ask for keys again and again', async () => {
      const { repository } = await trust();
      issuer.asked.length = 0;
      for (const [changed, expected] of [
        [{ iss: `${issuer.url} ` }, '400 invalid_grant'],
        [{ iss: issuer.url.replace('http', 'HTTP') }, '403 no_trust'],
        [{ aud: 'llmp ' }, '400 invalid_grant'],
        [{ aud: 'LLMP' }, '400 invalid_grant'],
      ] as const) {
        const text = await issuer.jwt({ repository, run_id: '1', ...changed }, Date.now());
        expect(await exchangeAt(0, text), JSON.stringify(changed)).to.equal(expected);
      }
      expect(issuer.asked).to.deep.equal([]);
    });

    it('follow changes of a trust from the next one on, at every instance', async () => {
      const { id, repository } = await trust();
      for (let at = 0; at < 4; at++) expect(await exchangeAt(at, await jwt(repository))).to.match(/^sk-wt-/);
      for (const [isActive, expected] of [
        [false, /^403 no_trust$/],
        [true, /^sk-wt-/],
      ] as const) {
        await given.system.ask('PATCH', `/manage/trusts/${id}`, { body: { is_active: isActive } });
        for (let at = 0; at < 4; at++) expect(await exchangeAt(at, await jwt(repository))).to.match(expected);
      }
      await given.system.ask('DELETE', `/manage/trusts/${id}`);
      for (let at = 0; at < 4; at++) expect(await exchangeAt(at, await jwt(repository))).to.equal('403 no_trust');
    });

    it('make tokens that work at every instance, until their holder ends them at one', async () => {
      const { repository } = await trust();
      const token = await exchangeAt(0, await jwt(repository));
      const status = async (at: number) => {
        const response = await given.system.call(token, '/v1/models', { at });
        await response.text();
        return response.status;
      };
      for (let at = 0; at < 4; at++) expect(await status(at)).to.equal(200);
      expect((await given.system.call(token, '/token/self', { method: 'DELETE', at: 1 })).status).to.equal(204);
      for (let at = 0; at < 4; at++) {
        await eventually(`the token has ended at instance ${at}`, async () => (await status(at)) === 401, SOON_MS);
      }
    });

    it('leave no entries of old JWTs behind', async () => {
      const { repository } = await trust();
      const old = Date.now() - 2 * 3_600_000;
      for (let n = 0; n < 3; n++) {
        const bind = { digest: `${n}`.repeat(64), old };
        await given.system.write('INSERT INTO used_jwts (digest, until_ms) VALUES ($digest, $old)', bind);
      }
      const left = () => given.system.select('SELECT digest FROM used_jwts WHERE until_ms = $old', { old });
      for (let n = 0; n < 20; n++) await exchangeAt(n, await jwt(repository));
      await eventually('they are removed', async () => (await left()).length === 0);
    });
  });
}
