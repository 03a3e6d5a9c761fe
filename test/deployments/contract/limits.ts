/** Limits: never more than they allow, over all instances together. */
import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { json } from '../../support/provider.js';
import type { ContractContext } from './context.js';

export function behavesAtLimits(given: ContractContext): void {
  describe('a limit', () => {
    let project: WireProject;
    before(async () => {
      project = await given.system.ask('POST', '/manage/projects', {
        body: { name: 'limited', api_key: UPSTREAM_KEY },
      });
    });
    const issued = (limits: object) =>
      given.system.ask<WireTokenCreated>('POST', '/manage/tokens', { body: { project_id: project.id, limits } });
    /** Redis takes longer than a request waits for it if the machine is busy, which is 503. */
    const asked = (token: WireTokenCreated, times: number) =>
      Promise.all(Array.from({ length: times }, (_, n) => given.system.completion(token.token, 'm', n)));

    it('in a minute admits exactly as many requests to any instances', async () => {
      const token = await issued({ requests_per_minute: 25 });
      given.system.provider.received.length = 0;
      await eventually('all are admitted', async () => {
        await asked(token, 20);
        return given.system.provider.received.length >= 25;
      });
      const statuses = new Set(await asked(token, 40));
      expect(statuses).not.to.include(200);
      expect(statuses).to.include(429);
      expect(given.system.provider.received).to.have.length(25);
    });

    it('of concurrent requests is not exceeded, and all slots are free afterwards', async () => {
      const { provider } = given.system;
      const { answer } = provider;
      const token = await issued({ concurrent: 4 });
      const seen = { open: 0, most: 0 };
      provider.answer = (_req, res) => {
        seen.most = Math.max(seen.most, ++seen.open);
        setTimeout(() => {
          seen.open -= 1;
          json(res, 200, {});
        }, 15);
      };
      try {
        await eventually('all slots are used', async () => {
          await asked(token, 12);
          return seen.most >= 4;
        });
        for (let round = 0; round < 5; round++) await asked(token, 12);
      } finally {
        provider.answer = answer;
      }
      expect(seen.most).to.equal(4);
      await eventually('all slots are free', async () => {
        const self = (await (await given.system.call(token.token, '/token/self')).json()) as {
          limits: { concurrent: { remaining: number } };
        };
        return self.limits.concurrent.remaining === 4;
      });
    });
  });
}
