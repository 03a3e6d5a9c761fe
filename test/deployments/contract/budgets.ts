/** Hard budgets: what the provider bills never exceeds them, over all instances together. Its log is the judge. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { usdOf } from '../../../daemon/api/money.js';
import type { WireProject, WireToken, WireTokenCreated } from '../../../daemon/api/contract.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { COMPLETION_TOKENS, PROMPT_TOKENS, type System } from '../system.js';
import type { ContractContext } from './context.js';

// 0.15 and 0.60 USD per million tokens.
export const CHAT_MODEL = 'gpt-4o-mini';
const NANO_PER_CHAT = PROMPT_TOKENS * 150 + COMPLETION_TOKENS * 600;
export const TOKENS_PER_CHAT = PROMPT_TOKENS + COMPLETION_TOKENS;
const CHAT = JSON.stringify({
  model: CHAT_MODEL,
  messages: [{ role: 'user', content: 'hello' }],
  max_tokens: COMPLETION_TOKENS,
});
/** What the daemon reserves for it at most: instructions that the provider may add are included. */
export const MOST_TOKENS = CHAT.length + 512 + COMPLETION_TOKENS;
const MOST_NANO = MOST_TOKENS * 150 + COMPLETION_TOKENS * 450;
const CLIENTS = 12;

/** A request for which a budget can be reserved. @returns its status, once the response is complete. */
export async function chat(system: System, { token }: WireTokenCreated, at?: number): Promise<number> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: CHAT };
  const response = await system.call(token, '/v1/chat/completions', { ...init, ...(at !== undefined && { at }) });
  await response.text();
  return response.status;
}

export function behavesAtBudgets(given: ContractContext): void {
  describe('a hard budget', () => {
    let project: WireProject;
    /** Asks with these tokens until nothing more fits. @returns how many requests the provider got. */
    const exhaust = async (...tokens: WireTokenCreated[]) => {
      const { received } = given.system.provider;
      received.length = 0;
      const askOn = async (client: number) => {
        for (let n = client; ; n++) {
          const status = await chat(given.system, tokens[n % tokens.length]!, n);
          if (status === 402) return;
          // 429: it fits once others have settled. 503: another instance has leased what this one needs.
          expect(status).to.be.oneOf([200, 429, 503]);
          if (status !== 200) await sleep(20);
        }
      };
      await Promise.all(Array.from({ length: CLIENTS }, (_, client) => askOn(client)));
      return received.length;
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
    });

    it('of a project, in model tokens, holds for all its tokens together', async () => {
      const shared = await given.system.ask<WireProject>('POST', '/manage/projects', {
        body: {
          name: 'budgeted together',
          api_key: UPSTREAM_KEY,
          budget: { tokens: 2_000, period: 'month', mode: 'hard' },
        },
      });
      const tokens = await Promise.all([1, 2, 3].map(() => issued({ project_id: shared.id })));
      const billed = (await exhaust(...tokens)) * TOKENS_PER_CHAT;
      expect(billed).to.be.within(2_000 - MOST_TOKENS, 2_000);
      await eventually('all is settled', async () => {
        const { spent } = await given.system.ask<WireProject>('GET', `/manage/projects/${shared.id}`);
        return spent.tokens === billed;
      });
    });
  });
}
