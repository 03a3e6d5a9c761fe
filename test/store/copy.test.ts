/** `llmp migrate copy` between all databases: every kind of row, with odd values. */
import { expect } from 'chai';
import { join } from 'node:path';
import { SecretBox } from '../../daemon/store/secrets.js';
import { openDatabase } from '../../daemon/store/databases.js';
import type { Cell } from '../../daemon/store/sql/columns.js';
import { COPIED_TABLES, type CopiedRow, type CopiedTable } from '../../daemon/store/sql/copying.js';
import type { Bind, Database } from '../../daemon/store/sql/database.js';
import { SqlAnchors } from '../../daemon/store/sql/anchors.js';
import { SqlRecords } from '../../daemon/store/sql/records.js';
import { upstreamKeyContext } from '../../daemon/store/sql/projects.js';
import { databaseAddress } from '../../config/database-url.js';
import { realClock } from '../../daemon/process/clock.js';
import { readVersion } from '../../config/version.js';
import { Migrator } from '../../migrations/migrator.js';
import { llmp, type Situation } from '../cli/captured.js';
import { canary, canaryEncryptionKey } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';

const KEY = canaryEncryptionKey();
const OTHER_KEY = canaryEncryptionKey();
const boxOf = (key: string) => new SecretBox(Buffer.from(key, 'base64'));
const UPSTREAM = canary('upstream');
const ROWS = 7;

/** A database as the settings and `--to` name it. */
class Place {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  get isServer(): boolean {
    return this.url.includes('://');
  }

  get env(): Record<string, string> {
    const [driver = ''] = this.url.split(':');
    return { DATABASE_URL: this.url, DB_DRIVER: this.isServer ? driver : 'sqlite', ENCRYPTION_KEY: KEY };
  }

  async use<T>(work: (database: Database) => Promise<T>): Promise<T> {
    const database = openDatabase({ database: databaseAddress.parse(this.url)! }, realClock);
    try {
      return await work(database);
    } finally {
      await database.close();
    }
  }
}

const newFile = () => new Place(join(temporaryFolder(), 'llmp.db'));
const newPlace = async (kind: 'sqlite' | ServerKind) =>
  kind === 'sqlite' ? newFile() : new Place(await (await DatabaseServer.shared(kind)).newDatabase());

const copyTo = (from: Place, to: Place, more = '', situation: Situation = {}) =>
  llmp(['migrate', 'copy', '--to', to.url, '-o', 'json', ...more.split(' ').filter(Boolean)], {
    ...situation,
    env: { ...from.env, ...situation.env },
  });

/** Texts that a database, a driver or JSON could change. */
const ODD = ['', `'"\\`, '$1 $name ? %s :x', '😀🏳️‍🌈', 'ä', '\t\r\n', ' \u2028 null', '{"a":[1]}'];

interface SchemaColumn {
  type: string;
  allowNull: boolean;
}

function cellFor(table: CopiedTable, name: string, { type, allowNull }: SchemaColumn, row: number): Cell {
  const column = Object.values(table.columns).find((it) => it.name === name)!;
  if (name === 'project_id' && ['tokens', 'trusts'].includes(table.name)) return `id ${row} 😀`;
  if (allowNull && row % 3 === 0) return null;
  switch (column.type) {
    case 'flag':
      return row % 2 === 0;
    case 'number':
      if (name === 'id') return 1;
      if (name === 'recorded_at') return 2 ** 42 - row; // The word index of SQLite has room for times until 2109.
      if (table.key.includes(name) || name === 'seq') return row + 1;
      if (type === 'INTEGER') return [0, 1, 2 ** 31 - 1][row % 3]!;
      return [0, 1, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 2 ** 31, 2 ** 45 + 1][row % 6]!;
    case 'json':
      return JSON.stringify({ odd: ODD, row, long: '😀'.repeat(row === 1 ? 12_000 : 1) });
    case 'text': {
      const length = Number(/\((\d+)\)/.exec(type)?.[1] ?? 1_000);
      const isKey = table.key.includes(name) || ['digest', 'name'].includes(name);
      if (name === 'id') return `id ${row} 😀`;
      const text = isKey ? `${row}${ODD[row % ODD.length]}` : row === 1 ? '😀'.repeat(length) : ODD[row % ODD.length]!;
      return [...text].slice(0, length).join('');
    }
  }
}

/** Fills every table of a database that has none. */
async function fill(place: Place, rows = ROWS): Promise<void> {
  await place.use(async (database) => {
    await new Migrator(database, readVersion()).up();
    const queries = (await database.loadSequelize()).getQueryInterface();
    for (const table of COPIED_TABLES) {
      const schema = (await queries.describeTable(table.name)) as unknown as Record<string, SchemaColumn>;
      const isSingle = ['change_seq', 'prices_in_force'].includes(table.name);
      await database.transact(async (tx) => {
        if (isSingle) await tx.execute(`DELETE FROM ${table.name}`);
        for (let row = 0; row < (isSingle ? 1 : rows); row++) {
          const bind: Bind = {};
          for (const [name, column] of Object.entries(schema)) bind[name] = cellFor(table, name, column, row);
          if (table.name === 'projects') {
            const { text, keyId } = boxOf(KEY).seal(UPSTREAM, upstreamKeyContext(String(bind.id)));
            Object.assign(bind, { api_key: text, api_key_id: keyId });
          }
          if (table.name === 'instances') Object.assign(bind, { heartbeat_at: 1 });
          const names = Object.keys(bind);
          await tx.execute(
            `INSERT INTO ${table.name} (${names.join(', ')}) VALUES (${names.map((name) => `$${name}`).join(', ')})`,
            bind,
          );
        }
      });
    }
  });
}

/** All rows of all tables, alike on all databases; without what a copy changes on purpose. */
const contentOf = (place: Place): Promise<Record<string, CopiedRow[]>> =>
  place.use(async (database) => {
    const content: Record<string, CopiedRow[]> = {};
    for (const { name, key, columns } of COPIED_TABLES) {
      const rows = await database.select<CopiedRow>(`SELECT * FROM ${name} ORDER BY ${key.join(', ')}`);
      content[name] = rows.map((row) => {
        for (const column of Object.values(columns))
          if (column.type === 'flag' && row[column.name] !== null) row[column.name] = Boolean(row[column.name]);
        if (name === 'audit_anchors') row.chain = String(row.chain).replace(/^[\w.-]+:(?=\d)/, '');
        return { ...row };
      });
    }
    return content;
  });

const ROUTE = ['sqlite', 'postgres', 'mysql', 'sqlite', 'mysql', 'postgres', 'sqlite'] as const;
const WITHOUT_SERVERS = WITHOUT.postgres || WITHOUT.mysql;

describe('llmp migrate copy', function () {
  this.timeout(120_000);

  it(`copies every table as it is, in all six directions between three databases${WITHOUT_SERVERS}`, async function () {
    if (WITHOUT_SERVERS) this.skip();
    let from = await newPlace('sqlite');
    await fill(from);
    const content = await contentOf(from);
    for (const kind of ROUTE.slice(1)) {
      const to = await newPlace(kind);
      const { exitCode, out, err } = await copyTo(from, to);
      expect({ exitCode, err }, `to ${kind}`).to.deep.equal({ exitCode: 0, err: '' });
      const { complete, tables } = JSON.parse(out) as { complete: boolean; tables: { table: string; rows: number }[] };
      expect(complete).to.equal(true);
      expect(Object.fromEntries(tables.map(({ table, rows }) => [table, rows]))).to.deep.equal(
        Object.fromEntries(Object.entries(content).map(([name, rows]) => [name, rows.length])),
      );
      expect(await contentOf(to), `on ${kind}`).to.deep.equal(content);
      await to.use(async (database) => {
        const found = await new SqlRecords(database, boxOf(KEY)).auditRecords(
          { text: 'odd' },
          { limit: 100, after: null },
        );
        expect(found.rows.length, 'records found by a word').to.be.greaterThan(2);
        expect((await new Migrator(database, readVersion()).up()).applied.map(({ name }) => name)).to.deep.equal([
          '0001-first-schema',
        ]);
        expect((await new SqlAnchors(database).last('1' + ODD[1]!))?.line, 'the anchor of a chain').to.equal(2);
      });
      from = to;
    }
  });
});
