/** What docs/security-model.md says about guessing is what happens. */
import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { mintSecret } from '../../../daemon/core/token.js';
import { canary } from '../../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../../support/daemon.js';

const PAGE = readFileSync('docs/security-model.md', 'utf8').replace(/\s+/g, ' ');

describe('guessing', () => {
  let daemon: TestDaemon;
  let lookups: number;

  const start = async (env = {}) => {
    daemon = await startDaemon({ env });
    const { lookup } = daemon.daemon.stores;
    const byDigest = lookup.byDigest.bind(lookup);
    lookups = 0;
    lookup.byDigest = (digest) => {
      lookups += 1;
      return byDigest(digest);
    };
  };
  afterEach(() => daemon.stop());

  it('an invented secret costs one lookup in five seconds, a typo none, as the security model says', async () => {
    expect(PAGE).to.contain('Each invented secret costs the database one lookup');
    expect(PAGE).to.contain('the same one again within five seconds costs none');
    await start();
    const invented = mintSecret();
    const typo = `${mintSecret().slice(0, -1)}!`;
    for (const secret of [invented, invented, typo, canary('client')]) {
      expect((await daemon.call(secret)).status).to.equal(401);
    }
    expect(lookups).to.equal(1);
    daemon.clock.advance(5_000);
    await daemon.call(invented);
    await daemon.call(mintSecret());
    expect(lookups).to.equal(3);
  });

  it('IP_RATE_LIMIT, which is off by default, bounds the lookups', async () => {
    expect(PAGE).to.contain('`IP_RATE_LIMIT`, which is off by default, bounds the lookups per address');
    await start({ IP_RATE_LIMIT: '3' });
    for (let n = 0; n < 10; n++) await daemon.call(mintSecret());
    expect(lookups).to.equal(3);
    await daemon.stop();
    await start();
    for (let n = 0; n < 10; n++) await daemon.call(mintSecret());
    expect(lookups).to.equal(10);
  });

  it('the right management token is accepted after any number of wrong ones, so no limit slows guessing', async () => {
    expect(PAGE).to.contain('No limit slows down guessing');
    await start();
    const statusOf = async (token: string) =>
      (await daemon.manage('GET', '/manage/status', undefined, { authorization: `Bearer ${token}` })).status;
    const wrong: number[] = [];
    for (let n = 0; n < 12; n++) wrong.push(await statusOf(canary('client')));
    expect(wrong).to.deep.equal([...Array<number>(10).fill(401), 429, 429]);
    expect(await statusOf(MANAGEMENT_TOKEN)).to.equal(200);
    expect(await statusOf(canary('client'))).to.equal(429);
  });
});
