/** WORKERS above 1 on SQLite: a worker that is frozen while it holds the lock of the database. */
import { join } from 'node:path';
import { expect } from 'chai';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { isAlive, ROUNDS, SeveralWorkers } from '../support/several-workers.js';
import { freezeWriter, reportsLocks } from '../support/write-lock.js';

/** Two seconds until it is ended, and the time in which a busy machine does the rest. */
const MOST_MS = 6_000;
const LEAST_MS = 1_500;
const CAUGHT_WITHIN_MS = 20_000;
/** So small that each worker reserves units all the time. */
const CAP = 1_000_000;

describe('a worker that is frozen in the middle of a transaction', function () {
  this.timeout(60_000 + ROUNDS * 60_000);
  before(function () {
    if (!reportsLocks) this.skip();
  });
  after(() => SeveralWorkers.stopRunning());

  it('a revocation is acknowledged as soon as it has been ended', async () => {
    const took: number[] = [];
    let database = '';
    let key = '';
    for (let round = 0; round < ROUNDS; round++) {
      // A daemon gives up after five deaths within a minute.
      if (round % 3 === 0) {
        database = join(temporaryFolder(), 'llmp.db');
        key = String(round);
      }
      const workers = await SeveralWorkers.with({ DATABASE_URL: database, ROUND: key });
      const [busy, revoked] = [await workers.token(CAP), await workers.token()];
      const end = workers.load(busy, 5);
      const pids = await workers.pids();
      const frozen = await freezeWriter(database, pids, CAUGHT_WITHIN_MS);
      if (frozen === null) throw new Error('no worker was caught while it wrote');
      const begunMs = performance.now();
      // The frozen worker may get one of the connections.
      const answers = Array.from({ length: 3 }, () => workers.manage('DELETE', `/manage/tokens/${revoked.id}`));
      const { status } = await Promise.any(answers);
      took.push(performance.now() - begunMs);
      expect(status).to.equal(200);
      expect(isAlive(frozen)).to.equal(false);
      await Promise.allSettled(answers);
      await workers.replaced(frozen);
      await end();
    }
    took.sort((a, b) => a - b);
    console.log(`      acknowledged after ${took.map((ms) => ms.toFixed(0)).join(', ')} ms`);
    for (const ms of took) expect(ms).to.be.within(LEAST_MS, MOST_MS);
  });

  it('the next daemon ends it and starts, if the daemon was killed as well', async () => {
    const database = join(temporaryFolder(), 'llmp.db');
    const workers = await SeveralWorkers.with({ DATABASE_URL: database, ROUND: 'killed' });
    const { daemon } = workers;
    const token = await workers.token(CAP);
    const end = workers.load(token, 5);
    const pids = await workers.pids();
    daemon.freeze(); // It would end the frozen worker after two seconds, which may pass on a busy machine.
    const frozen = await freezeWriter(database, pids, CAUGHT_WITHIN_MS);
    if (frozen === null) throw new Error('no worker was caught while it wrote');
    process.kill(daemon.pid, 'SIGKILL');
    await eventually('only the frozen worker is left', () => pids.filter(isAlive).length === 1);
    const ended = end(); // When the connections to the frozen worker break.
    await daemon.begin();
    await ended;
    expect(isAlive(frozen)).to.equal(false);
    expect(await workers.call(token, 0)).to.equal(200);
  });

  it('the others write again soon, also if nobody changes anything', async () => {
    const database = join(temporaryFolder(), 'llmp.db');
    const workers = await SeveralWorkers.with({ DATABASE_URL: database, ROUND: 'no change' });
    const busy = await workers.token(CAP);
    const end = workers.load(busy, 5);
    const frozen = await freezeWriter(database, await workers.pids(), CAUGHT_WITHIN_MS);
    if (frozen === null) throw new Error('no worker was caught while it wrote');
    // The primary writes its heartbeat every ten seconds, and what was used every five.
    await eventually('it has been ended', () => !isAlive(frozen), 20_000);
    await workers.replaced(frozen);
    await end();
  });
});
