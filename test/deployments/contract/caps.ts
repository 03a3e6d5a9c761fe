/** Caps: exactly as many requests as are allowed, over all instances together. */
import { once } from 'node:events';
import { expect } from 'chai';
import type { WireProject, WireToken, WireTokenCreated } from '../../../daemon/api/contract.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { Realtime } from '../../support/realtime.js';
import type { ContractContext } from './context.js';

export function behavesAtCaps(given: ContractContext): void {
  describe('a cap', () => {
    let project: WireProject;
    before(async () => {
      project = await given.system.ask('POST', '/manage/projects', { body: { name: 'capped', api_key: UPSTREAM_KEY } });
    });
    const issued = (maxRequests: number) =>
      given.system.ask<WireTokenCreated>('POST', '/manage/tokens', {
        body: { project_id: project.id, max_requests: maxRequests },
      });

    it('admits exactly the allowed number of concurrent requests to any instances, and counts them', async () => {
      for (const cap of [1, 25, 40]) {
        const token = await issued(cap);
        given.system.provider.received.length = 0;
        const statuses = await Promise.all(
          Array.from({ length: cap + 60 }, (_, n) => given.system.completion(token.token, 'm', n)),
        );
        expect(statuses.filter((status) => status === 200)).to.have.lengthOf(cap);
        expect(statuses.filter((status) => status === 429)).to.have.lengthOf(60);
        expect(given.system.provider.received).to.have.lengthOf(cap);
        await given.system.settled(token.id, cap);
        const shown = await given.system.ask<WireToken>('GET', `/manage/tokens/${token.id}`);
        expect(shown).to.deep.include({ request_count: cap, max_requests: cap, state: 'rate_limited' });
      }
    });

    it('admits the last of sequential requests to one instance after the other', async () => {
      const token = await issued(9);
      for (let n = 0; n < 9; n++) expect(await given.system.completion(token.token, 'm', n)).to.equal(200);
      for (let n = 0; n < 4; n++) expect(await given.system.completion(token.token, 'm', n)).to.equal(429);
    });

    it('admits exactly the allowed number of responses on WebSockets to any instances', async () => {
      const cap = 20;
      const token = await issued(cap);
      const realtime = new Realtime(given.system.provider);
      let asked = 0;
      try {
        const clients = Array.from({ length: 6 }, (_, n) =>
          realtime.client(`${given.system.clientUrl(n)}/v1/responses`, token.token),
        );
        await Promise.all(clients.map((client) => once(client, 'open')));
        for (const { socket } of realtime.conversations) {
          socket.on('message', () => {
            asked += 1;
            for (const type of ['created', 'completed'])
              socket.send(JSON.stringify({ type: `response.${type}`, response: { id: `${asked}`, model: 'm' } }));
          });
        }
        // The last of them is more than there can be left for, on each connection.
        const closed = clients.map((client) => once(client, 'close') as Promise<[code: number, reason: Buffer]>);
        for (let i = 0; i <= cap; i++) for (const client of clients) client.send('{"type":"response.create"}');
        for (const [code, reason] of await Promise.all(closed))
          expect([code, reason.toString()]).to.deep.equal([1008, 'token request limit reached']);
        expect(asked).to.equal(cap);
        await given.system.settled(token.id, cap);
      } finally {
        realtime.close();
      }
    });

    // COUNT_READS is false here.
    it('is not spent by reads at any instance, which do not keep its last unit from a request at another', async () => {
      const token = await issued(2);
      const read = async (n: number) => {
        const init = { method: 'POST', body: '{}', at: n };
        const response = await given.system.call(token.token, '/v1/messages/count_tokens', init);
        await response.text();
        return response.status;
      };
      expect(await Promise.all(Array.from({ length: 30 }, (_, n) => read(n)))).to.deep.equal(Array(30).fill(200));
      for (let use = 1; use <= 2; use++) {
        const end = new AbortController();
        const reading = (async () => {
          const seen = [];
          while (!end.signal.aborted) seen.push(await read(0));
          return seen;
        })();
        expect(await given.system.completion(token.token, 'm', 1)).to.equal(200);
        end.abort();
        // The second use is the last one.
        if (use === 1) expect(new Set(await reading)).to.deep.equal(new Set([200]));
        else await reading;
      }
      for (let n = 0; n < 4; n++) expect(await read(n)).to.equal(429);
      await given.system.settled(token.id, 2);
    });
  });
}
