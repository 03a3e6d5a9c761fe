/** Database servers that answer, and refuse what llmp needs until an operator corrects something. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { expect } from 'chai';
import { Sequelize } from 'sequelize';
import { SettingsError } from '../../config/settings.js';
import { StoreRefused } from '../../daemon/core/ports.js';
import { llmp } from '../cli/captured.js';
import { canary, canaryEncryptionKey } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';

const ENCRYPTION_KEY = canaryEncryptionKey();

interface Refusing {
  what: string;
  /** @returns the URL of the database that refuses. */
  make: (server: DatabaseServer, run: (sql: string) => Promise<unknown>) => Promise<string>;
  says: RegExp;
  advises: RegExp;
  /** Whether it may be over without a change of the settings: then another exit code lets systemd start the daemon again. */
  mayEnd?: true;
}

const named = (url: string, name: string) => url.replace(/[^/]+$/, name);
const nameIn = (url: string) => url.slice(url.lastIndexOf('/') + 1);
const asUser = (url: string, user: string) => url.replace(/\w+@/, `${user}@`);

const withEncoding = (encoding: string): Refusing => ({
  what: `a database in ${encoding}`,
  async make(server, run) {
    const name = encoding.toLowerCase();
    await run(`CREATE DATABASE ${name} ENCODING '${encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`);
    return named(await server.newDatabase(), name);
  },
  says: new RegExp(`the encoding of the database is ${encoding}, and must be UTF8`),
  advises: /CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0/,
});

const CASES: Record<ServerKind, readonly Refusing[]> = {
  postgres: [
    withEncoding('SQL_ASCII'),
    withEncoding('LATIN1'),
    {
      what: 'a user who may not create tables in the schema public, as in PostgreSQL 15',
      async make(server, run) {
        await run('CREATE ROLE guest LOGIN');
        return asUser(await server.newDatabase(), 'guest');
      },
      says: /permission denied for schema public|may not create tables in the schema public/,
      advises: /ALTER DATABASE … OWNER TO ….* GRANT USAGE, CREATE ON SCHEMA public/,
    },
    {
      what: 'tables of another user',
      async make(server, run) {
        await run('CREATE ROLE stranger LOGIN');
        const url = await server.newDatabase();
        await (await startDaemon({ env: { DB_DRIVER: 'postgres', DATABASE_URL: url, ENCRYPTION_KEY } })).stop();
        const owner = new Sequelize(url, { logging: false });
        await owner.query('GRANT SELECT ON ALL TABLES IN SCHEMA public TO stranger');
        await owner.close();
        return asUser(url, 'stranger');
      },
      says: /permission denied for table|may not read and change the tables .*tokens/,
      advises: /ALTER DATABASE … OWNER TO …/,
    },
    {
      what: 'a user who does not exist',
      make: async (server) => asUser(await server.newDatabase(), 'nobody'),
      says: /role "nobody" does not exist/,
      advises: /Check the user and the password of DATABASE_URL/,
    },
    {
      what: 'a database that does not exist',
      make: async (server) => named(await server.newDatabase(), 'missing'),
      says: /database "missing" does not exist/,
      advises: /Create the database, or correct its name/,
    },
    {
      what: 'a read-only database',
      async make(server, run) {
        const url = await server.newDatabase();
        await run(`ALTER DATABASE ${nameIn(url)} SET default_transaction_read_only = on`);
        return url;
      },
      says: /read-only/,
      advises: /Use the address of the primary server/,
      mayEnd: true,
    },
  ],
  mysql: [
    {
      what: 'a user who may only read',
      async make(server, run) {
        const url = await server.newDatabase();
        await run("CREATE USER reader@'127.0.0.1'");
        await run(`GRANT SELECT ON ${nameIn(url)}.* TO reader@'127.0.0.1'`);
        return asUser(url, 'reader');
      },
      says: /CREATE command denied to user 'reader'|lacks INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX/,
      advises: /GRANT ALL ON `NAME`\.\* TO …/,
    },
    {
      what: 'a user without any privilege',
      async make(server, run) {
        await run("CREATE USER guest@'127.0.0.1'");
        return asUser(await server.newDatabase(), 'guest');
      },
      says: /Access denied for user 'guest'@'127\.0\.0\.1' to database/,
      advises: /GRANT ALL ON `NAME`\.\* TO …/,
    },
    {
      what: 'a user who does not exist',
      make: async (server) => asUser(await server.newDatabase(), 'nobody'),
      says: /Access denied for user 'nobody'/,
      advises: /Check the user and the password of DATABASE_URL/,
    },
    {
      what: 'a database that does not exist',
      make: async (server) => named(await server.newDatabase(), 'missing'),
      says: /Unknown database 'missing'/,
      advises: /Create the database, or correct its name/,
    },
    {
      what: 'a read-only server',
      async make(server, run) {
        const url = await server.newDatabase();
        await run("CREATE USER writer@'127.0.0.1'");
        await run(`GRANT ALL ON ${nameIn(url)}.* TO writer@'127.0.0.1'`);
        await run('SET GLOBAL read_only = 1');
        return asUser(url, 'writer');
      },
      says: /read-only/,
      advises: /Use the address of the primary server/,
      mayEnd: true,
    },
  ],
};

/** Starts a daemon that must not start. @returns the reason. */
async function refusal(kind: ServerKind, url: string): Promise<Error> {
  const env = { DB_DRIVER: kind, DATABASE_URL: url, ENCRYPTION_KEY };
  const outcome = await startDaemon({ env }).catch((error: unknown) => error);
  if (outcome instanceof Error) return outcome;
  await (outcome as { stop: () => Promise<void> }).stop();
  throw new Error('the daemon started');
}

/** What `llmp doctor` finds wrong with the database. */
async function diagnosis(kind: ServerKind, url: string): Promise<string> {
  const { out, exitCode } = await llmp('doctor --json', {
    env: {
      ...{ MANAGEMENT_TOKEN, DB_DRIVER: kind, DATABASE_URL: url, ENCRYPTION_KEY },
      ...{ AUDIT_LOG_FILE: '', UPSTREAM_BASE_URL: 'http://127.0.0.1:9' },
    },
  });
  expect(exitCode).to.equal(9);
  const { checks } = JSON.parse(out) as {
    checks: { check: string; state: string; evidence: string; advice: string }[];
  };
  return checks
    .filter(({ check, state }) => state === 'failed' && (check === 'database' || check === 'privileges'))
    .map(({ evidence, advice }) => `${evidence}. ${advice}`)
    .join('\n');
}

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`what ${name} refuses until an operator corrects it${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;
    let admin: Sequelize;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.start(kind); // Users and the read-only mode are the server's.
      admin = new Sequelize(await server.newDatabase(), { logging: false });
    });
    after(async () => {
      await admin.close();
      await server.remove();
    });

    it('is logged as what it is while the daemon runs, and no client is told to try again at once', async () => {
      const url = await server.newDatabase();
      const run = (sql: string) => admin.query(sql);
      if (kind === 'postgres') {
        await run('CREATE ROLE tenant LOGIN');
        await run(`ALTER DATABASE ${nameIn(url)} OWNER TO tenant`);
      } else {
        await run("CREATE USER tenant@'127.0.0.1'");
        await run(`GRANT ALL ON ${nameIn(url)}.* TO tenant@'127.0.0.1'`);
      }
      const [refuse, allow] =
        kind === 'postgres'
          ? ['REVOKE INSERT ON projects FROM tenant', 'GRANT INSERT ON projects TO tenant']
          : ['SET GLOBAL read_only = 1', 'SET GLOBAL read_only = 0'];
      const inDatabase = new Sequelize(url, { logging: false });
      const daemon = await startDaemon({
        env: { DB_DRIVER: kind, DATABASE_URL: asUser(url, 'tenant'), ENCRYPTION_KEY },
      });
      const create = (projectName: string) =>
        daemon.manage('POST', '/manage/projects', { name: projectName, api_key: canary('upstream') });
      try {
        await inDatabase.query(refuse);
        const answer = await create('first');
        expect(answer.status).to.equal(503);
        expect(answer.body).to.include({
          code: 'unavailable',
          error: 'unavailable: the operator must correct the database',
        });
        expect(answer.headers.get('retry-after')).to.equal('60');
        await create('second');
        const [line = '', ...more] = daemon.logged.filter((each) => each.includes('the database refuses statements'));
        expect(line).to.match(/permission denied for table projects|--read-only option/);
        expect(line).to.match(/"advice":"(?:Give the user of DATABASE_URL|Use the address of the primary)/);
        expect(more.filter((each) => each.includes('projects'))).to.deep.equal([]);
        await inDatabase.query(allow);
        await eventually('it works again', async () => (await create('third')).status === 201);
      } finally {
        await inDatabase.query(allow);
        await inDatabase.close();
        await daemon.stop();
      }
    });

    it('is logged and tried again if the daemon started before its database', async () => {
      const [first] = CASES[kind];
      const url = await first!.make(server, (sql) => admin.query(sql));
      await server.stop();
      const daemon = await startDaemon({ env: { DB_DRIVER: kind, DATABASE_URL: url, ENCRYPTION_KEY } });
      try {
        await server.begin();
        const isLogged = () =>
          daemon.logged.some(
            (line) => line.includes('the database refuses llmp, retrying') && first!.advises.test(line),
          );
        await eventually('it is logged', isLogged);
        expect((await fetch(`${daemon.url}/ready`)).status).to.equal(503);
      } finally {
        await daemon.stop();
        if (kind === 'postgres') await admin.query(`DROP DATABASE ${nameIn(url)}`);
        else await admin.query("DROP USER reader@'127.0.0.1'");
      }
    });

    for (const { what, make, says, advises, mayEnd } of CASES[kind]) {
      it(`${what}: refused at start and found by llmp doctor, with what to do`, async () => {
        const url = await make(server, (sql) => admin.query(sql));
        try {
          const error = await refusal(kind, url);
          expect(error).to.be.instanceOf(mayEnd ? StoreRefused : SettingsError);
          expect(error.message).to.match(says).and.match(advises);
          expect(await diagnosis(kind, url))
            .to.match(says)
            .and.match(advises);
        } finally {
          if (kind === 'mysql' && mayEnd) await admin.query('SET GLOBAL read_only = 0');
        }
      });
    }
  });
}

describe('PgBouncer', () => {
  let pgbouncer: Server;

  beforeEach(async () => {
    // It refuses parameters of the start of a connection that it does not know, with this error.
    const fields = ['SFATAL', 'C08P01', 'Munsupported startup parameter: statement_timeout', ''];
    const body = Buffer.from(fields.map((field) => `${field}\0`).join(''));
    const message = Buffer.alloc(5);
    message.write('E');
    message.writeUInt32BE(body.length + 4, 1);
    pgbouncer = createServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.end(Buffer.concat([message, body])));
    }).listen(0, '127.0.0.1');
    await once(pgbouncer, 'listening');
  });
  afterEach(() => {
    pgbouncer.close();
  });

  it('refuses the timeouts of llmp: the start and llmp doctor name the setting that lets them through', async () => {
    const url = `postgres://llmp@127.0.0.1:${(pgbouncer.address() as AddressInfo).port}/llmp`;
    const says =
      /unsupported startup parameter: statement_timeout\. Add to pgbouncer\.ini: ignore_startup_parameters = /;
    const error = await refusal('postgres', url);
    expect(error).to.be.instanceOf(SettingsError);
    expect(error.message).to.match(says);
    expect(await diagnosis('postgres', url)).to.match(says);
  });
});
