/** `llmp migrate copy` that is killed at random moments, and continues. */
import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../daemon/store/databases.js';
import { COPIED_TABLES } from '../../daemon/store/sql/copying.js';
import { databaseAddress } from '../../config/database-url.js';
import { realClock } from '../../daemon/process/clock.js';
import { ended, start } from '../cli/processes.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { makeTokens } from '../support/many-tokens.js';
import { type Provider, startProvider } from '../support/provider.js';

const KILLS = 20;
const TOKENS = 8_000;

describe(`llmp migrate copy that is killed${WITHOUT.postgres}`, function () {
  this.timeout(600_000);
  let provider: Provider;
  let daemon: TestDaemon;

  before(async function () {
    if (WITHOUT.postgres) this.skip();
    provider = await startProvider();
  });
  after(async () => {
    await daemon.stop();
    await provider.stop();
  });

  it(`at ${KILLS} random moments copies each row once, and a token keeps exactly what is left of its cap`, async () => {
    daemon = await startDaemon({ upstream: provider.url });
    const project = await daemon.createProject();
    const token = await daemon.createToken(project.id, { max_requests: 10 });
    for (let n = 0; n < 5; n++) expect((await daemon.call(token.token)).status).to.equal(200);
    await daemon.stop();
    const { databasePath: path, dir } = daemon;
    await makeTokens(path, TOKENS);
    const key = readFileSync(`${path}.key`, 'utf8').trim();

    const server = await DatabaseServer.shared('postgres');
    let url = await server.newDatabase();
    const copy = (isResume: boolean) =>
      start(['migrate', 'copy', '--to', url, ...(isResume ? ['--resume'] : [])], {
        DATABASE_URL: path,
        ENCRYPTION_KEY: key,
      });
    let isBegun = false;
    for (let kills = 0; kills < KILLS;) {
      const child = copy(isBegun);
      const over = ended(child);
      await Promise.race([over, sleep(200 + Math.random() * 3_000)]);
      const isKilled = child.kill('SIGKILL');
      const { exitCode, err } = await over;
      if (isKilled && exitCode === null) kills += 1;
      else expect(exitCode, err).to.equal(0);
      if (exitCode === 0) url = await server.newDatabase(); // It was too fast: the next one has more to do.
      isBegun = await hasBegun(url);
    }
    const { exitCode, err } = await ended(copy(isBegun));
    expect(exitCode, err).to.equal(0);

    expect(await countsAt(url)).to.deep.equal(await countsAt(path));
    daemon = await startDaemon({
      upstream: provider.url,
      dir,
      env: { DB_DRIVER: 'postgres', DATABASE_URL: url, ENCRYPTION_KEY: key },
    });
    const statuses: number[] = [];
    for (let n = 0; n < 6; n++) statuses.push((await daemon.call(token.token)).status);
    expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 429]);
    expect(provider.received).to.have.lengthOf(10);
  });
});

async function hasBegun(url: string): Promise<boolean> {
  const database = openDatabase({ database: databaseAddress.parse(url)! }, realClock);
  const found = await database.select(database.dialect.tableNamed('$table'), { table: 'copy_progress' });
  await database.close();
  return found.length > 0;
}

/** Rows of each table, and the word index. */
async function countsAt(url: string): Promise<Record<string, number>> {
  const database = openDatabase({ database: databaseAddress.parse(url)! }, realClock);
  const counts: Record<string, number> = {};
  for (const { name } of COPIED_TABLES) {
    const [row] = await database.select<{ rows: number }>(`SELECT COUNT(*) AS "rows" FROM ${name}`);
    counts[name] = row!.rows;
  }
  await database.close();
  return counts;
}
