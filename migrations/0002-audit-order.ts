import { DataTypes, QueryTypes } from 'sequelize';
import type { Migration } from './migration.js';

/**
 * Records of changes get the number of their place among all: what a copy of them goes by, and who follows them. They can be
 * searched, and what the copies hold is anchored here.
 */
export const auditOrder: Migration = {
  name: '0002-audit-order',
  minBuild: '0.1.0',
  async up({ queryInterface, transaction }) {
    const { sequelize } = queryInterface;
    const inTransaction = { transaction };
    await queryInterface.addColumn(
      'audit',
      'seq',
      { type: DataTypes.BIGINT, allowNull: false, defaultValue: 0 },
      inTransaction,
    );
    // What a search finds, see daemon/store/sql/audit-words.ts. It holds no text, only which records hold a word.
    await sequelize.query(
      `CREATE VIRTUAL TABLE audit_words USING
         fts5(words, content='', detail=none, columnsize=0, tokenize='ascii', prefix='1 2 3 4 5 6 7 8')`,
      inTransaction,
    );
    const before = await sequelize.query<RecordBefore>('SELECT * FROM audit ORDER BY recorded_at, id', {
      type: QueryTypes.SELECT,
      transaction,
    });
    for (const record of before) {
      await sequelize.query('UPDATE change_seq SET seq = seq + 1 WHERE id = 1', inTransaction);
      await sequelize.query('UPDATE audit SET seq = (SELECT seq FROM change_seq WHERE id = 1) WHERE id = $id', {
        ...inTransaction,
        bind: { id: record.id },
      });
      await sequelize.query(
        `INSERT INTO audit_words (rowid, words)
         SELECT recorded_at * 1048576 + seq % 1048576, $words FROM audit WHERE id = $id`,
        { ...inTransaction, bind: { id: record.id, words: wordsOf(record) } },
      );
    }
    await queryInterface.addIndex('audit', ['seq'], { ...inTransaction, name: 'audit_seq', unique: true });
    const orders = { place: [], token: ['token_id'], project: ['project_id'] };
    for (const [name, columns] of Object.entries(orders)) {
      const fields = [...columns, 'recorded_at', 'seq'];
      await queryInterface.addIndex('audit', fields, { ...inTransaction, name: `audit_${name}` });
    }
    await queryInterface.removeIndex('audit', 'audit_time', inTransaction);

    await queryInterface.createTable(
      'audit_anchors',
      {
        chain: { type: DataTypes.STRING(512), allowNull: false, primaryKey: true }, // the path of the file
        line: { type: DataTypes.BIGINT, allowNull: false, primaryKey: true },
        head: { type: DataTypes.STRING(64), allowNull: false }, // SHA-256 of that line, hex
        seq: { type: DataTypes.BIGINT, allowNull: true }, // of the record in it
        anchored_at: { type: DataTypes.BIGINT, allowNull: false },
      },
      inTransaction,
    );
  },
};

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
