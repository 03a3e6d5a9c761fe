import { DataTypes } from 'sequelize';
import type { Migration } from './migration.js';

// All times are ms since the epoch: one type that sorts, compares and never meets a session's time zone.
const time = { type: DataTypes.BIGINT, allowNull: false } as const;
const id = { type: DataTypes.STRING(64), allowNull: false } as const;
const count = { type: DataTypes.BIGINT, allowNull: false, defaultValue: 0 } as const;
const flag = { type: DataTypes.BOOLEAN, allowNull: false } as const;

export const firstTables: Migration = {
  name: '0001-first-tables',
  minBuild: '0.1.0',
  async up({ queryInterface, transaction }) {
    const inTransaction = { transaction };

    await queryInterface.createTable(
      'projects',
      {
        id: { ...id, primaryKey: true },
        name: { type: DataTypes.STRING(100), allowNull: false, unique: true },
        is_active: flag,
        api_key: { type: DataTypes.TEXT, allowNull: false }, // sealed, see daemon/store/secrets.ts
        api_key_id: { type: DataTypes.STRING(16), allowNull: false }, // the key it was sealed with
        api_key_hint: { type: DataTypes.STRING(4), allowNull: false },
        created_at: time,
        updated_at: time,
        deactivated_at: { ...time, allowNull: true },
      },
      inTransaction,
    );
    await queryInterface.addIndex('projects', ['created_at', 'id'], { ...inTransaction, name: 'projects_created' });

    await queryInterface.createTable(
      'tokens',
      {
        id: { ...id, primaryKey: true },
        digest: { type: DataTypes.STRING(64), allowNull: false, unique: true }, // SHA-256 of the secret, hex
        project_id: { ...id, references: { model: 'projects', key: 'id' } },
        // '' and 0 stand for "none" here, so that lists can be sorted and continued by these columns.
        name: { type: DataTypes.STRING(100), allowNull: false, defaultValue: '' },
        name_folded: { type: DataTypes.STRING(200), allowNull: false, defaultValue: '' }, // in lower case, to search in
        last_used_at: { ...time, defaultValue: 0 },
        is_active: flag,
        expires_at: time,
        created_at: time,
        max_requests: count, // 0 = unlimited
        request_count: count,
        cache_hit_count: count,
        reserved: count, // of a cap: request_count + what live instances hold in leases
        obfuscated: { type: DataTypes.STRING(16), allowNull: false },
      },
      inTransaction,
    );
    // One for each way a list can be sorted. The usual ones hold all that a state depends on as well, so that a page
    // of a state is found, and all of it counted, among a million tokens without reading their rows.
    const ofState = ['is_active', 'expires_at', 'project_id', 'max_requests', 'request_count'];
    const without = (known: string) => ofState.filter((column) => column !== known);
    const indexes: Record<string, string[]> = {
      created_at: ['created_at', 'id', ...ofState],
      expires_at: ['expires_at', 'id', ...without('expires_at')],
      last_used_at: ['last_used_at', 'id'],
      request_count: ['request_count', 'id'],
      name: ['name', 'id'],
      project: ['project_id', 'created_at', 'id', ...without('project_id')],
      state: [...ofState, 'id', 'name_folded'], // All that a filter looks at.
      name_folded: ['name_folded', 'id'], // To search in.
    };
    for (const [name, columns] of Object.entries(indexes)) {
      await queryInterface.addIndex('tokens', columns, { ...inTransaction, name: `tokens_${name}` });
    }

    await queryInterface.createTable(
      'instances',
      { id: { ...id, primaryKey: true }, seq: count, started_at: time, heartbeat_at: time },
      inTransaction,
    );
    await queryInterface.createTable(
      'leases',
      { token_id: { ...id, primaryKey: true }, instance_id: { ...id, primaryKey: true }, units: count },
      inTransaction,
    );
    await queryInterface.addIndex('leases', ['instance_id'], { ...inTransaction, name: 'leases_instance' });

    await queryInterface.createTable(
      'change_seq',
      { id: { type: DataTypes.INTEGER, primaryKey: true }, seq: count },
      inTransaction,
    );
    await queryInterface.bulkInsert('change_seq', [{ id: 1, seq: 0 }], inTransaction);
    await queryInterface.createTable(
      'changes',
      {
        seq: { type: DataTypes.BIGINT, primaryKey: true },
        kind: { type: DataTypes.STRING(32), allowNull: false },
        project_id: id,
        token_id: { ...id, allowNull: true },
        changed_at: time,
      },
      inTransaction,
    );

    await queryInterface.createTable(
      'audit',
      {
        id: { ...id, primaryKey: true },
        recorded_at: time,
        action: { type: DataTypes.STRING(32), allowNull: false },
        actor: { type: DataTypes.STRING(16), allowNull: false },
        outcome: { type: DataTypes.STRING(16), allowNull: false },
        project_id: { ...id, allowNull: true },
        token_id: { ...id, allowNull: true },
        obfuscated: { type: DataTypes.STRING(16), allowNull: true },
        request_id: { ...id, allowNull: true },
        client_ip: { ...id, allowNull: true },
        reason: { type: DataTypes.STRING(200), allowNull: true },
        count: { type: DataTypes.BIGINT, allowNull: true },
        details: { type: DataTypes.TEXT, allowNull: true }, // JSON
      },
      inTransaction,
    );
    await queryInterface.addIndex('audit', ['recorded_at', 'id'], { ...inTransaction, name: 'audit_time' });
  },
};
