/** Connections to a database server: with and without encryption, by TCP or Unix socket. */
import { expect } from 'chai';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { QueryTypes, Sequelize } from 'sequelize';
import { realClock } from '../../daemon/process/clock.js';
import { StoreRefused, StoreUnavailable } from '../../daemon/core/ports.js';
import { openDatabase } from '../../daemon/store/databases.js';
import type { Database } from '../../daemon/store/sql/database.js';
import { canary } from '../support/canaries.js';
import { Authority } from '../support/certificates.js';
import { temporaryFolder } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';

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

    it('is encrypted if configured', async () => {
      expect(await isEncrypted(url)).to.equal(false);
      expect(await isEncrypted(`${url}?sslmode=disable`)).to.equal(false);
      expect(await isEncrypted(`${url}?sslmode=require`)).to.equal(true);
    });

    it('verifies the server by a certificate that the operator trusts', async () => {
      const believing = `?sslmode=verify-full&sslrootcert=${certificates}`;
      expect(await isEncrypted(byName() + believing)).to.equal(true);
      expect(await failure(`${byName()}?sslmode=verify-full`), 'an unknown authority').to.be.instanceOf(
        StoreUnavailable,
      );
      // Not a valid DATABASE_URL for MySQL.
      if (kind === 'postgres')
        expect(await failure(url + believing), 'by its address').to.be.instanceOf(StoreUnavailable);
      await server.stop();
      server.certificate = authority.issue({ name: 'another.example' });
      await server.begin();
      expect(await failure(byName() + believing), 'the certificate of another server').to.be.instanceOf(
        StoreUnavailable,
      );
      expect(await isEncrypted(`${byName()}?sslmode=require`)).to.equal(true);
    });

    if (kind === 'postgres') {
      it('binds the log-in to the TLS connection, and is refused where the server does not', async () => {
        const password = canary('password');
        const admin = new Sequelize(url, { logging: false });
        for (const user of ['scram', 'clear']) await admin.query(`CREATE ROLE ${user} LOGIN PASSWORD '${password}'`);
        const [row] = await admin.query<{ file: string }>("SELECT current_setting('hba_file') AS file", {
          type: QueryTypes.SELECT,
        });
        const rules = ['hostssl all scram 127.0.0.1/32 scram-sha-256', 'hostssl all clear 127.0.0.1/32 password'];
        writeFileSync(row!.file, `${rules.join('\n')}\n${readFileSync(row!.file, 'utf8')}`);
        await admin.query('SELECT pg_reload_conf()');
        await admin.close();
        const as = (user: string, more = '') =>
          `${url.replace('llmp@', `${user}:${password}@`)}?sslmode=require${more}`;
        const wrong = (user: string, more = '') => as(user, more).replace(password, 'wrong');
        await eventually('the rules are in force', async () => (await failure(wrong('scram'))) !== null);
        for (const binding of ['', '&channel_binding=disable', '&channel_binding=prefer', '&channel_binding=require'])
          expect(await isEncrypted(as('scram', binding)), binding).to.equal(true);
        expect(await failure(wrong('scram', '&channel_binding=require'))).to.be.instanceOf(StoreRefused);
        for (const user of ['clear', 'llmp']) {
          expect(await failure(as(user, '&channel_binding=prefer')), user).to.equal(null);
          const refused = (await failure(as(user, '&channel_binding=require'))) as StoreRefused;
          expect(refused, user).to.be.instanceOf(StoreRefused);
          expect(refused.message).to.match(
            /does not bind the log-in to the TLS connection\. Remove channel_binding=require/,
          );
        }
      });
    }

    it('is closed when the server hangs during the handshake', async () => {
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

    it('works through a Unix socket', async () => {
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

/** What a server that is shutting down sends to a client that it has just accepted, in one chunk. */
const LET_IN_AND_STOPPED: Record<ServerKind, { greeting?: Buffer; farewell: Buffer }> = {
  postgres: {
    farewell: Buffer.concat([
      postgresMessage('R', Buffer.alloc(4)), // authenticated
      postgresMessage('S', Buffer.from('standard_conforming_strings\0on\0')),
      postgresMessage('Z', Buffer.from('I')), // ready
      postgresMessage('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')),
    ]),
  },
  mysql: {
    greeting: mysqlPacket(
      0,
      Buffer.from('\x0a10.11.0-MariaDB\0', 'latin1'),
      Buffer.from([1, 0, 0, 0]), // connection ID
      Buffer.from('saltsalt\0'),
      Buffer.from([0xff, 0xf7, 0x2d, 2, 0, 0xff, 0x81, 21, ...new Array<number>(10).fill(0)]), // capabilities
      Buffer.from('saltsaltsalt\0mysql_native_password\0'),
    ),
    farewell: Buffer.concat([
      mysqlPacket(2, Buffer.from([0, 0, 0, 2, 0, 0, 0])), // accepted
      mysqlPacket(0, Buffer.from([0xff, 0x1d, 0x04]), Buffer.from('#08S01Server shutdown in progress')),
    ]),
  },
};

function postgresMessage(type: string, content: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length + 4);
  return Buffer.concat([Buffer.from(type), length, content]);
}

function mysqlPacket(number: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([content.length, 0, 0, number]), content]);
}

for (const kind of ['postgres', 'mysql'] as const) {
  describe(`a ${kind} server that shuts down while it accepts a client`, () => {
    let server: Server;
    const sockets = new Set<Socket>();

    before(async () => {
      const { greeting, farewell } = LET_IN_AND_STOPPED[kind];
      server = createServer((socket) => {
        sockets.add(socket);
        socket.on('error', () => undefined);
        if (greeting) socket.write(greeting);
        socket.once('data', () => socket.end(farewell));
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
    });
    after(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });

    it('is unavailable, and its last packet ends nothing but the connection', async () => {
      const url = `${kind}://llmp@127.0.0.1:${(server.address() as AddressInfo).port}/llmp`;
      const database = openDatabase({ database: { driver: kind, url } }, realClock);
      const failed = await database.select('SELECT 1').catch((error: unknown) => error);
      await database.close();
      expect(failed).to.be.instanceOf(StoreUnavailable);
    });
  });
}
