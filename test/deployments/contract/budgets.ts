/** Hard budgets: what the provider bills never exceeds them, over all instances together. Its log is the judge. */
import { expect } from 'chai';
import { usdOf } from '../../../daemon/api/money.js';
import type { WireProject, WireToken, WireTokenCreated } from '../../../daemon/api/contract.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { COMPLETION_TOKENS, PROMPT_TOKENS } from '../system.js';
import type { ContractContext } from './context.js';

// 0.15 and 0.60 USD per million tokens.
const MODEL = 'gpt-4o-mini';
const NANO_PER_CHAT = PROMPT_TOKENS * 150 + COMPLETION_TOKENS * 600;
const TOKENS_PER_CHAT = PROMPT_TOKENS + COMPLETION_TOKENS;
const CHAT = JSON.stringify({
  model: MODEL,
  messages: [{ role: 'user', content: 'hello' }],
  max_completion_tokens: COMPLETION_TOKENS,
});
/** More than the daemon reserves for it. */
const MOST_NANO = CHAT.length * 1.25 * 150 + COMPLETION_TOKENS * 600;
const AT_ONCE = 60;
const MOST_ROUNDS = 40;

export function behavesAtBudgets(given: ContractContext): void {
  describe('a hard budget', () => {
    let project: WireProject;
    const asked = async (token: WireTokenCreated, at: number) => {
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: CHAT, at };
      const response = await given.system.call(token.token, '/v1/chat/completions', init);
      await response.text();
      return response.status;
    };
    /** Asks with these tokens in turn until nothing more fits. @returns how many requests the provider got. */
    const exhaust = async (...tokens: WireTokenCreated[]) => {
      const { received } = given.system.provider;
      received.length = 0;
      for (let round = 1; ; round++) {
        const statuses = await Promise.all(
          Array.from({ length: AT_ONCE }, (_, n) => asked(tokens[n % tokens.length]!, n)),
        );
        // 429: it fits once others have settled. 503: an instance waits for what another has leased.
        expect([200, 402, 429, 503]).to.include.members([...new Set(statuses)]);
        if (statuses.every((status) => status === 402)) return received.length;
        expect(round, 'it is never exhausted').to.be.below(MOST_ROUNDS);
      }
    };
    const issued = (fields: object) =>
      given.system.ask<WireTokenCreated>('POST', '/manage/tokens', { body: { project_id: project.id, ...fields } });
    const shown = (token: WireToken) => given.system.ask<WireToken>('GET', `/manage/tokens/${token.id}`);

    before(async () => {
      project = await given.system.ask('POST', '/manage/projects', {
        body: { name: 'budgeted', api_key: UPSTREAM_KEY },
      });
    });

    it('in USD is not exceeded by requests to any instances, and used up', async () => {
      const token = await issued({ budget: { usd: '0.001', mode: 'hard' } });
      const billed = (await exhaust(token)) * NANO_PER_CHAT;
      expect(billed).to.be.within(1_000_000 - MOST_NANO, 1_000_000);
      await eventually('all is settled', async () => (await shown(token)).spent.usd === usdOf(billed));
      await eventually('nothing is reserved', async () => (await shown(token)).spent.reserved_usd === '0.00');
    });

    it('in model tokens is not exceeded either', async () => {
      const token = await issued({ budget: { tokens: 5_000, mode: 'hard' } });
      const billed = (await exhaust(token)) * TOKENS_PER_CHAT;
      expect(billed).to.be.within(5_000 - 1.25 * CHAT.length - COMPLETION_TOKENS, 5_000);
      await eventually('all is settled', async () => (await shown(token)).spent.tokens === billed);
    });

    it('of a project holds for all its tokens together', async () => {
      const shared = await given.system.ask<WireProject>('POST', '/manage/projects', {
        body: {
          name: 'budgeted together',
          api_key: UPSTREAM_KEY,
          budget: { usd: '0.001', period: 'month', mode: 'hard' },
        },
      });
      const tokens = await Promise.all([1, 2, 3].map(() => issued({ project_id: shared.id })));
      const billed = (await exhaust(...tokens)) * NANO_PER_CHAT;
      expect(billed).to.be.within(1_000_000 - MOST_NANO, 1_000_000);
      await eventually('all is settled', async () => {
        const { spent } = await given.system.ask<WireProject>('GET', `/manage/projects/${shared.id}`);
        return spent.usd === usdOf(billed);
      });
    });
  });
}
