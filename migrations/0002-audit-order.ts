import { DataTypes, QueryTypes } from 'sequelize';
import type { Migration } from './migration.js';
import { type Schema, time } from './schema.js';

/**
 * Audit records of changes get a sequence number, which copies of them and other instances follow. Records become searchable, and
 * the audit files are anchored here.
 */
export const auditOrder: Migration = {
  name: '0002-audit-order',
  minBuild: '0.1.0',
  async up({ schema, queryInterface, transaction }) {
    await schema.addColumn('audit', 'seq', { ...time, defaultValue: 0 });
    await createWords(schema);
    const before = await queryInterface.sequelize.query<RecordBefore>(
      'SELECT * FROM audit WHERE seq = 0 ORDER BY recorded_at, id',
      { type: QueryTypes.SELECT, transaction },
    );
    for (const record of before) await number(schema, record);
    await schema.addIndex('audit', ['seq'], 'audit_seq', { isUnique: true });
    const orders = { place: [], token: ['token_id'], project: ['project_id'] };
    for (const [name, columns] of Object.entries(orders)) {
      await schema.addIndex('audit', [...columns, 'recorded_at', 'seq'], `audit_${name}`);
    }
    await schema.removeIndex('audit', 'audit_time');

    await schema.createTable('audit_anchors', {
      chain: { type: schema.text(512), allowNull: false, primaryKey: true }, // the path of the file
      line: { ...time, primaryKey: true },
      head: { type: schema.text(64), allowNull: false }, // SHA-256 of that line, in hex
      seq: { type: DataTypes.BIGINT, allowNull: true }, // of the record in that line
      anchored_at: time,
    });
  },
};

/** Word index for searching, see daemon/store/sql/audit-words.ts. It contains no texts, only which records contain a word. */
async function createWords(schema: Schema): Promise<void> {
  if (schema.dialect === 'sqlite') {
    await schema.run(
      `CREATE VIRTUAL TABLE audit_words USING
         fts5(words, content='', detail=none, columnsize=0, tokenize='ascii', prefix='1 2 3 4 5 6 7 8')`,
    );
  } else {
    await schema.createTableAs(
      'audit_words',
      `word ${schema.text(64)} NOT NULL, seq BIGINT NOT NULL, PRIMARY KEY (word, seq)`,
    );
  }
}

async function number(schema: Schema, record: RecordBefore): Promise<void> {
  const { id } = record;
  await schema.run('UPDATE change_seq SET seq = seq + 1 WHERE id = 1');
  await schema.run('UPDATE audit SET seq = (SELECT seq FROM change_seq WHERE id = 1) WHERE id = $id', { id });
  // Only SQLite ever had a release without these words.
  if (schema.dialect !== 'sqlite') return;
  await schema.run(
    'INSERT INTO audit_words (rowid, words) SELECT recorded_at * 1048576 + seq % 1048576, $words FROM audit WHERE id = $id',
    { id, words: wordsOf(record) },
  );
}

type RecordBefore = Record<string, string | number | null> & { id: string };

const MARKED = ['action', 'actor', 'outcome', 'project_id', 'token_id'];
const SEARCHED = ['project_id', 'token_id', 'obfuscated', 'request_id', 'client_ip', 'reason', 'details'];

function wordsOf(record: RecordBefore): string {
  const marks = MARKED.map((name) => name.replace('_id', '') + String(record[name] ?? ''));
  const text = SEARCHED.map((name) => record[name] ?? '').join(' ');
  const words =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
  return [...marks.map((mark) => `→${mark.replace(/[^a-z0-9]/g, '')}`), ...new Set(words)].join(' ');
}
