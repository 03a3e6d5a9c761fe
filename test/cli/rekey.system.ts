import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SecretBox } from '../../daemon/store/secrets.js';
import { upstreamKeyContext } from '../../daemon/store/sql/projects.js';
import { reseal } from '../../daemon/store/sql/resealing.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { startDaemon, temporaryFolder, type TestDaemon, UPSTREAM_KEY } from '../support/daemon.js';
import { startProvider, type Provider } from '../support/provider.js';
import { llmp } from './captured.js';

const COMMAND = join(import.meta.dirname, '../../cli/main.js');
const [FIRST, SECOND, THIRD] = [canaryEncryptionKey(), canaryEncryptionKey(), canaryEncryptionKey()];
const boxOf = (key: string, previous?: string) =>
  new SecretBox(Buffer.from(key, 'base64'), previous === undefined ? undefined : Buffer.from(previous, 'base64'));

describe('llmp migrate rekey', () => {
  const both = { ENCRYPTION_KEY: SECOND, ENCRYPTION_KEY_PREVIOUS: FIRST };
  let dir: string;
  let provider: Provider;
  let daemon: TestDaemon | undefined;
  let token: string;

  before(async () => {
    provider = await startProvider();
  });
  after(() => provider.stop());
  beforeEach(async () => {
    dir = temporaryFolder();
    await start({ ENCRYPTION_KEY: FIRST });
    const { id } = await daemon!.createProject();
    ({ token } = await daemon!.createToken(id));
  });
  afterEach(() => stop());

  async function start(env: Record<string, string>): Promise<void> {
    daemon = await startDaemon({ dir, upstream: provider.url, env });
  }
  async function stop(): Promise<void> {
    await daemon?.stop();
    daemon = undefined;
  }
  const path = () => join(dir, 'llmp.db');
  const rekey = (args = '', env: Record<string, string> = both) =>
    llmp(['migrate', 'rekey', ...args.split(' ').filter(Boolean)], { env: { DATABASE_URL: path(), ...env } });
  const keyGoesOut = async () => {
    expect((await daemon!.call(token)).status).to.equal(200);
    expect(provider.received.at(-1)?.headers.authorization).to.equal(`Bearer ${UPSTREAM_KEY}`);
  };
  async function inDatabase<T>(work: (database: SqliteDatabase) => Promise<T>): Promise<T> {
    const database = new SqliteDatabase(path());
    try {
      return await work(database);
    } finally {
      await database.close();
    }
  }
  const keyIds = () =>
    inDatabase(async (database) => {
      const rows = await database.select<{ id: string }>('SELECT DISTINCT api_key_id AS id FROM projects');
      return rows.map(({ id }) => id);
    });

  it('moves a running daemon with both keys from the old key to the new one', async () => {
    await stop();
    await start(both);
    await keyGoesOut();
    const { exitCode, err } = await rekey();
    expect({ exitCode, err }).to.deep.equal({
      exitCode: 0,
      err: 'Re-encrypted 1 upstream key.\nYou can now remove ENCRYPTION_KEY_PREVIOUS.\n',
    });
    await keyGoesOut();
    await stop();
    await start({ ENCRYPTION_KEY: SECOND });
    await keyGoesOut();
    expect(JSON.parse((await rekey('-o json')).out)).to.deep.equal({ resealed: 0, unreadable: 0 });
  });

  it('is requested by a daemon that has only the new key', async () => {
    await stop();
    const failure = await start({ ENCRYPTION_KEY: SECOND }).catch((error: unknown) => error);
    expect((failure as Error).message).to.include('ENCRYPTION_KEY_PREVIOUS');
  });

  it('only counts with --dry-run', async () => {
    const before = await keyIds();
    const { exitCode, err } = await rekey('-n');
    expect({ exitCode, err }).to.deep.equal({
      exitCode: 0,
      err: 'Would re-encrypt 1 upstream key. Nothing was changed.\n',
    });
    expect(await keyIds()).to.deep.equal(before);
  });

  it('exits with 9 and names the project whose upstream key cannot be decrypted, and re-encrypts the others', async () => {
    const foreign = boxOf(THIRD).seal('x', upstreamKeyContext('foreign'));
    await inDatabase((database) =>
      database.transact((tx) =>
        tx.execute(
          `INSERT INTO projects (id, name, is_active, api_key, api_key_id, api_key_hint, upstream_auth, missing_usage, created_at, updated_at)
           VALUES ('foreign', 'foreign', $yes, $text, $keyId, '', 'bearer', 'off', 1, 1)`,
          { yes: true, ...foreign },
        ),
      ),
    );
    const { exitCode, err } = await rekey();
    expect(exitCode).to.equal(9);
    expect(err).to.include('cannot decrypt the upstream key of foreign').and.not.to.include('can go');
    expect(await keyIds()).to.have.members([boxOf(THIRD).keyId, boxOf(SECOND).keyId]);
  });

  it('does not overwrite a key that is changed while it runs', async () => {
    const box = boxOf(SECOND, FIRST);
    await inDatabase(async (database) => {
      const select = database.select.bind(database);
      let isChanged = false;
      database.select = async (sql, bind) => {
        const rows = await select<never>(sql, bind);
        if (!isChanged && rows.length > 0) {
          isChanged = true;
          const [{ id }] = rows as unknown as [{ id: string }];
          const { text, keyId } = boxOf(FIRST).seal('another', upstreamKeyContext(id));
          await database.transact((tx) =>
            tx.execute('UPDATE projects SET api_key = $text, api_key_id = $keyId WHERE id = $id', { text, keyId, id }),
          );
        }
        return rows;
      };
      expect((await reseal(database, box, false)).resealed).to.equal(1);
      const [row] = await select<{ id: string; api_key: string; api_key_id: string }>('SELECT * FROM projects');
      expect(row!.api_key_id).to.equal(box.keyId);
      expect(box.open({ text: row!.api_key, keyId: row!.api_key_id }, upstreamKeyContext(row!.id))).to.equal('another');
    });
  });

  it('continues where it was after it was killed', async function () {
    this.timeout(60_000);
    const rows = 1_000;
    const first = boxOf(FIRST);
    await inDatabase((database) =>
      database.transact(async (tx) => {
        for (let n = 0; n < rows; n++) {
          const { text, keyId } = first.seal(`key ${n}`, upstreamKeyContext(`p${n}`));
          await tx.execute(
            `INSERT INTO projects (id, name, is_active, api_key, api_key_id, api_key_hint, upstream_auth, missing_usage, created_at, updated_at)
             VALUES ($id, $id, $yes, $text, $keyId, '', 'bearer', 'off', 1, 1)`,
            { id: `p${n}`, yes: true, text, keyId },
          );
        }
      }),
    );
    for (let round = 0; round < 5; round++) {
      const child = spawn(process.execPath, ['--', COMMAND, 'migrate', 'rekey'], {
        env: { PATH: process.env.PATH, DATABASE_URL: path(), ...both },
        stdio: 'ignore',
      });
      const ended = once(child, 'exit');
      await Promise.race([ended, waitForOneMore()]);
      child.kill('SIGKILL');
      await ended;
    }
    expect((await rekey()).exitCode).to.equal(0);
    const second = boxOf(SECOND);
    await inDatabase(async (database) => {
      const all = await database.select<{ id: string; api_key: string; api_key_id: string }>(
        "SELECT id, api_key, api_key_id FROM projects WHERE id LIKE 'p%'",
      );
      expect(all).to.have.lengthOf(rows);
      for (const { id, api_key: text, api_key_id: keyId } of all) {
        expect(second.open({ text, keyId }, upstreamKeyContext(id))).to.equal(`key ${id.slice(1)}`);
      }
    });

    /** Waits until some but not all keys are re-encrypted. */
    async function waitForOneMore(): Promise<void> {
      const begun = await countLeft();
      while ((await countLeft()) === begun && begun > 0) await sleep(1);
    }
    async function countLeft(): Promise<number> {
      return inDatabase(async (database) => {
        const [row] = await database.select<{ left: number }>(
          'SELECT COUNT(*) AS left FROM projects WHERE api_key_id = $keyId',
          { keyId: first.keyId },
        );
        return Number(row?.left);
      });
    }
  });

  it('needs both keys and a database', async () => {
    expect((await rekey('', { ENCRYPTION_KEY: SECOND })).exitCode).to.equal(78);
    expect((await rekey('', { ...both, ENCRYPTION_KEY_PREVIOUS: SECOND })).exitCode).to.equal(78);
    expect((await rekey('', { ...both, DATABASE_URL: join(dir, 'none.db') })).exitCode).to.equal(4);
  });
});
