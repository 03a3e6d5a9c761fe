import { DataTypes, QueryTypes } from 'sequelize';
import type { Migration } from './migration.js';

/** Records of changes get the number of their place among all: what a copy of them goes by, and who follows them. */
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
    const before = await sequelize.query<{ id: string }>('SELECT id FROM audit ORDER BY recorded_at, id', {
      type: QueryTypes.SELECT,
      transaction,
    });
    for (const { id } of before) {
      await sequelize.query('UPDATE change_seq SET seq = seq + 1 WHERE id = 1', inTransaction);
      await sequelize.query('UPDATE audit SET seq = (SELECT seq FROM change_seq WHERE id = 1) WHERE id = $id', {
        ...inTransaction,
        bind: { id },
      });
    }
    await queryInterface.addIndex('audit', ['seq'], { ...inTransaction, name: 'audit_seq', unique: true });
  },
};
