/** The ways to a database server: encrypted or not, by TCP or by a unix socket. */
import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { realClock } from '../../daemon/process/clock.js';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import { openDatabase } from '../../daemon/store/open.js';
import type { Database } from '../../daemon/store/sql/database.js';
import { Authority } from '../support/certificates.js';
import { temporaryFolder } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`a connection to ${name}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    const authority = new Authority();
    let server: DatabaseServer;
    let url: string;
    let certificates: string;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.start(kind, authority.issue({ name: 'localhost' }));
      url = await server.newDatabase();
      certificates = join(temporaryFolder(), 'ca.pem');
      writeFileSync(certificates, authority.certificate);
    });
    after(() => (WITHOUT[kind] ? undefined : server.remove()));

    async function over<T>(to: string, work: (database: Database) => Promise<T>): Promise<T> {
      const database = openDatabase({ database: { driver: kind, url: to } }, realClock);
      try {
        return await work(database);
      } finally {
        await database.close();
      }
    }
    const isEncrypted = (to: string) =>
      over(to, async (database) => {
        const [row] = await database.select<{ used: unknown }>(
          kind === 'postgres'
            ? 'SELECT ssl AS used FROM pg_stat_ssl WHERE pid = pg_backend_pid()'
            : "SELECT VARIABLE_VALUE <> '' AS used FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'Ssl_cipher'",
        );
        return Boolean(row?.used);
      });
    const failure = (to: string) =>
      isEncrypted(to).then(
        () => null,
        (error: unknown) => error,
      );
    const byName = () => url.replace('127.0.0.1', 'localhost');

    it('is encrypted when it is to be', async () => {
      expect(await isEncrypted(url)).to.equal(false);
      expect(await isEncrypted(`${url}?sslmode=disable`)).to.equal(false);
      expect(await isEncrypted(`${url}?sslmode=require`)).to.equal(true);
    });

    it('is made to that very server, by a certificate of whom the operator believes', async () => {
      const believing = `?sslmode=verify-full&sslrootcert=${certificates}`;
      expect(await isEncrypted(byName() + believing)).to.equal(true);
      expect(await failure(`${byName()}?sslmode=verify-full`), 'an authority nobody knows').to.be.instanceOf(
        StoreUnavailable,
      );
      // Of MySQL it is no DATABASE_URL.
      if (kind === 'postgres')
        expect(await failure(url + believing), 'by its address').to.be.instanceOf(StoreUnavailable);
      await server.stop();
      server.certificate = authority.issue({ name: 'another.example' });
      await server.begin();
      expect(await failure(byName() + believing), 'the certificate of another').to.be.instanceOf(StoreUnavailable);
      expect(await isEncrypted(`${byName()}?sslmode=require`)).to.equal(true);
    });

    it('is given up when the server stands still in the middle of it', async () => {
      await over(`${byName()}?sslmode=require`, async (database) => {
        await database.select('SELECT 1');
        server.freeze();
        const startMs = performance.now();
        const failed = await database.select('SELECT 1').catch((error: unknown) => error);
        server.resume();
        expect(failed).to.be.instanceOf(StoreUnavailable);
        expect(performance.now() - startMs).to.be.below(4_500);
      });
    });

    it('goes through a unix socket', async () => {
      const to = server.socketUrl(new URL(url).pathname.slice(1));
      const [row] = await over(to, (database) =>
        database.select<{ address: string | null }>(
          kind === 'postgres'
            ? 'SELECT inet_client_addr() AS address'
            : "SELECT NULLIF(SUBSTRING_INDEX(host, ':', 1), 'localhost') AS address FROM information_schema.PROCESSLIST WHERE id = CONNECTION_ID()",
        ),
      );
      expect(row).to.deep.equal({ address: null });
    });
  });
}
