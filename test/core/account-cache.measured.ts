import { join } from 'node:path';
import { Limiter } from '../../daemon/core/limiter.js';
import { MemoryLimits } from '../../daemon/store/memory/limits.js';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { Admission } from '../../daemon/core/admission.js';
import { SYSTEM_CALLER } from '../../daemon/core/audit.js';
import { EVERYTHING } from '../../daemon/core/authority.js';
import { Registry } from '../../daemon/core/registry.js';
import { NO_POLICIES } from '../../daemon/api/vocabulary.js';
import { DEFAULT_TERMS, mintSecret } from '../../daemon/core/token.js';
import { openStores, type Stores } from '../../daemon/store/open.js';
import { Migrator } from '../../migrations/migrator.js';
import { canary } from '../support/canaries.js';
import { TestClock } from '../support/clock.js';
import { recordingLog, temporaryFolder } from '../support/daemon.js';
import { aKnownToken, REGISTRY_OPTIONS } from '../support/factories.js';

const MOST = 20;
const CAP = 64; // The first lease is 4 units, which must not be lost.

const unlimitedBy = (clock: TestClock) => new Limiter(new MemoryLimits({ clock, shares: null }));

describe('the account cache of admission', () => {
  let stores: Stores;
  let admission: Admission;
  let registry: Registry;
  let clock: TestClock;
  let secrets: string[];

  beforeEach(async () => {
    stores = await openStores(
      { database: { driver: 'sqlite', path: join(temporaryFolder(), 'llmp.db') }, encryptionKey: undefined },
      { clock: new TestClock() },
    );
    await new Migrator(stores.database, '0.1.0').up();
    clock = new TestClock({ standsStill: true });
    const { lookup, ledger } = stores;
    const { log } = recordingLog();
    await ledger.enrol('one', clock.now());
    admission = new Admission({
      limiter: unlimitedBy(clock),
      lookup,
      ledger,
      clock,
      log,
      instanceId: 'one',
      staleLimitMs: 1,
      maxAccounts: MOST,
    });
    registry = new Registry(stores.records, admission, clock, REGISTRY_OPTIONS);
    const project = await registry.createProject({ name: 'many', upstreamKey: canary('upstream') }, SYSTEM_CALLER);
    secrets = [];
    for (let n = 0; n < 4 * MOST; n++) {
      const draft = {
        ...DEFAULT_TERMS,
        ...NO_POLICIES,
        projectId: project.id,
        lifetimeMs: 3_600_000,
        maxRequests: CAP,
      };
      secrets.push((await registry.issueToken(draft, SYSTEM_CALLER)).secret);
    }
  });
  afterEach(() => stores.close());

  async function use(secret: string): Promise<void> {
    const pass = await admission.admit(secret);
    await admission.draw(pass);
    admission.finish(pass);
  }

  async function totals(): Promise<{ counted: number; reserved: number }> {
    const [row] = await stores.database.select<{ counted: number; reserved: number }>(
      'SELECT SUM(request_count) AS counted, SUM(reserved) AS reserved FROM tokens',
    );
    return row!;
  }

  it('is bounded whatever number of tokens is in use, and gives back the leases of evicted tokens', async () => {
    for (let round = 0; round < 3; round++) {
      for (const secret of secrets) {
        await use(secret);
        // Settles all uses and gives back units.
        await admission.readBetweenTicks(() => Promise.resolve());
      }
    }
    expect(admission.size.accounts).to.be.within(1, 2 * MOST);
    const { counted, reserved } = await totals();
    expect(counted).to.equal(3 * secrets.length);
    expect(reserved - counted, 'units held by cached tokens').to.be.at.most(4 * admission.size.accounts);
    await admission.retire();
    expect(await totals()).to.deep.equal({ counted, reserved: counted });
  });

  it('takes no more memory for 300,000 live tokens than for the 100,000 it holds', async function () {
    this.timeout(120_000);
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const unbounded = new Admission({
      limiter: unlimitedBy(clock),
      lookup: {
        byDigest: (digest) => Promise.resolve(aKnownToken(digest)),
        purses: () => Promise.resolve(new Map()),
      },
      ledger: stores.ledger,
      clock,
      log: recordingLog().log,
      instanceId: 'one',
      staleLimitMs: 1,
    });
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let n = 0; n < 300_000; n++) unbounded.finish(await unbounded.admit(mintSecret()));
    collect();
    const bytes = (process.memoryUsage().heapUsed - before) / unbounded.size.accounts;
    expect(unbounded.size.accounts).to.be.within(90_000, 110_000);
    // About 1,100; much more would mean that every request leaks memory.
    expect(bytes, 'bytes per cached token').to.be.within(200, 2_500);
  });

  it('never evicts a token with a request in flight', async () => {
    const pass = await admission.admit(secrets[0]!);
    for (const secret of secrets.slice(1)) {
      await use(secret);
      await admission.readBetweenTicks(() => Promise.resolve());
    }
    await registry.revokeToken(pass.tokenId, SYSTEM_CALLER, EVERYTHING);
    expect(pass.ended, 'the revocation found the request').to.include({ kind: 'unauthorized' });
    admission.finish(pass);
    await admission.retire();
  });
});
