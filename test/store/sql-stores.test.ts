import { join } from 'node:path';
import type { Database } from '../../daemon/store/sql/database.js';
import { ServerDatabase } from '../../daemon/store/sql/server-database.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { realClock } from '../../daemon/process/clock.js';
import { temporaryFolder } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { behavesAsSqlStores } from './sql-stores.js';

describe('the stores on SQLite', () => {
  behavesAsSqlStores(() => {
    const path = join(temporaryFolder(), 'llmp.db');
    const open = (): Database => new SqliteDatabase(path);
    return Promise.resolve({ database: open(), again: open });
  });
});

for (const [kind, name] of Object.entries({ postgres: 'PostgreSQL', mysql: 'MariaDB' }) as [ServerKind, string][]) {
  describe(`the stores on ${name}${WITHOUT[kind]}`, function () {
    this.timeout(60_000); // The server is created again.
    let server: DatabaseServer;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
    });

    behavesAsSqlStores(async () => {
      const url = await server.newDatabase();
      const open = (): Database => new ServerDatabase({ dialect: kind, url, poolSize: 5, clock: realClock });
      return { database: open(), again: open };
    });
  });
}
