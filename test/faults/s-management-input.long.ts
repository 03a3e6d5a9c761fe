import { expect } from 'chai';
import { rmSync } from 'node:fs';
import type { WireToken } from '../../daemon/api/contract.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { head } from '../support/raw.js';
import { addTokens } from './support/add-tokens.js';
import { staged } from './support/fault-fixture.js';

describe('S: input for the management API, long tests', function () {
  this.timeout(600_000);
  const { stage, it } = staged();

  // Hundreds of megabytes without a secret.
  after(() => {
    rmSync(stage.daemon.databasePath);
  });

  it('S10 a list of a million tokens has pages of bounded size and delays no other request', async () => {
    const MANY = 1_000_000;
    const LARGEST_PAGE = 600_000; // Bytes, for 1000 tokens.
    const LONGEST_WAIT_MS = 2_000; // A hundredth of it on an idle machine.
    await addTokens(stage.daemon, stage.project.id, MANY);
    const client = await stage.client();

    for (const query of ['', 'sort=name', 'sort=-expires_at', 'active_only=true', 'q=crowd', 'project_id=<id>']) {
      const seen = new Set<string>();
      let target = `/manage/tokens?${query.replace('<id>', stage.project.id)}&limit=1000`;
      for (let pages = 1; pages <= 5; pages++) {
        const begunAtMs = performance.now();
        client.send(head(`GET ${target}`, MANAGEMENT_TOKEN));
        expect((await stage.ask(stage.get())).status).to.equal(200);
        expect(performance.now() - begunAtMs, 'the delay of another request').to.be.below(LONGEST_WAIT_MS);

        const answer = await client.response();
        expect(answer.status).to.equal(200);
        expect(Number(answer.header('x-total-count'))).to.be.at.least(MANY);
        expect(answer.body.length, 'bytes of a page').to.be.below(LARGEST_PAGE);
        for (const { id } of answer.json as unknown as WireToken[]) seen.add(id);
        expect(seen.size, `tokens on ${pages} pages of ${query}`).to.equal(pages * 1000);
        target = /^<([^>]+)>; rel="next"$/.exec(answer.header('link') ?? '')?.[1] ?? 'the next page';
      }
    }
  });
});
