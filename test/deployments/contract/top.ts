/** The top rows: every instance shows the requests of all of them. */
import { expect } from 'chai';
import type {
  WireIncident,
  WireIncidents,
  WireProject,
  WireTokenCreated,
  WireTop,
} from '../../../daemon/api/contract.js';
import { isOfModels } from '../../../daemon/api/top-words.js';
import type { TopDimension } from '../../../daemon/api/vocabulary.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { PROMPT_TOKENS } from '../system.js';
import type { ContractContext } from './context.js';

export function behavesInTop(given: ContractContext): void {
  describe('the top rows', () => {
    const REQUESTS = 8;
    const REFUSED = 3;
    let project: WireProject;
    let token: WireTokenCreated;
    const top = (query: string, at: number) =>
      given.system.ask<WireTop>('GET', `/manage/top?project_id=${project.id}&${query}`, { at });

    before(async () => {
      project = await given.system.ask('POST', '/manage/projects', { body: { name: 'busy', api_key: UPSTREAM_KEY } });
      token = await given.system.ask('POST', '/manage/tokens', {
        body: { project_id: project.id, name: 'busiest', max_requests: REQUESTS },
      });
      for (let n = 0; n < REQUESTS; n++) await given.system.completion(token.token, 'one-model', n);
      // Refused, because the cap is reached.
      for (let n = 0; n < REFUSED; n++)
        expect(await given.system.completion(token.token, 'one-model', 0)).to.equal(429);
    });

    for (const window of ['5m', '1h', '24h']) {
      for (const by of ['token', 'project', 'model', 'model_total'] satisfies TopDimension[]) {
        it(`by ${by} in ${window} are the same on every instance`, async () => {
          for (let at = 0; at < given.system.count; at++) {
            // An instance writes its usage to the database every five seconds.
            await eventually('all requests are included', async () => {
              const { total } = await top(`by=${by}&window=${window}`, at);
              return total.requests === REQUESTS + REFUSED;
            });
            const { rows, total } = await top(`by=${by}&window=${window}`, at);
            expect(total).to.include({ errors: REFUSED, refused: REFUSED, prompt_tokens: REQUESTS * PROMPT_TOKENS });
            const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
            const counted = isOfModels(by) ? rows.filter(({ model }) => model === 'one-model') : rows;
            expect(counted).to.have.length(1);
            const [row] = counted;
            const expected = isOfModels(by) ? REQUESTS : REQUESTS + REFUSED;
            expect([row!.requests, sum(row!.history)]).to.deep.equal([expected, expected]);
            if (by !== 'model_total') expect(row).to.include({ project_name: 'busy' });
            if (by === 'token') expect(row).to.include({ token_id: token.id, token_name: 'busiest' });
            expect(row!.p50_ms === null).to.equal(window === '24h');
          }
        });
      }
    }

    it('and what is wrong are the same on every instance', async () => {
      for (let at = 0; at < given.system.count; at++) {
        let found: WireIncident | undefined;
        await eventually('all failures are included', async () => {
          const { incidents } = await given.system.ask<WireIncidents>('GET', '/manage/incidents', { at });
          found = incidents.find(({ token_id: id }) => id === token.id);
          return found?.failures === REFUSED && found.requests === REQUESTS + REFUSED;
        });
        expect(found).to.include({
          kind: 'failing_token',
          why: 'cap spent',
          token_name: 'busiest',
          project_name: 'busy',
        });
      }
    });

    it('are sorted in every order', async () => {
      for (const window of ['5m', '1h', '24h']) {
        for (const sort of ['errors', 'requests', 'tokens', 'p50', 'p95', 'last_used']) {
          const { rows } = await top(`window=${window}&sort=${sort}`, 0);
          expect(rows.map(({ token_id }) => token_id)).to.deep.equal([token.id]);
        }
      }
      const all = await given.system.ask<WireTop>('GET', '/manage/top?window=24h&sort=requests&limit=200');
      const requests = all.rows.map((row) => row.requests);
      expect(requests).to.deep.equal([...requests].sort((a, b) => b - a));
    });
  });
}
