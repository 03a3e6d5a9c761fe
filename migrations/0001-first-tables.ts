import { DataTypes } from 'sequelize';
import type { Migration } from './migration.js';
import { time } from './schema.js';

const count = { type: DataTypes.BIGINT, allowNull: false, defaultValue: 0 } as const;
const flag = { type: DataTypes.BOOLEAN, allowNull: false } as const;

export const firstTables: Migration = {
  name: '0001-first-tables',
  minBuild: '0.1.0',
  async up({ schema }) {
    const text = (length: number) => ({ type: schema.text(length), allowNull: false });
    const id = text(64);

    await schema.createTable('projects', {
      id: { ...id, primaryKey: true },
      name: { ...text(100), unique: true },
      is_active: flag,
      api_key: { type: DataTypes.TEXT, allowNull: false }, // encrypted, see daemon/store/secrets.ts
      api_key_id: text(16), // ID of the encryption key
      api_key_hint: text(4),
      created_at: time,
      updated_at: time,
      deactivated_at: { ...time, allowNull: true },
    });
    await schema.addIndex('projects', ['created_at', 'id'], 'projects_created');

    await schema.createTable('tokens', {
      id: { ...id, primaryKey: true },
      digest: { ...text(64), unique: true }, // SHA-256 of the secret, hex
      project_id: { ...id, references: { model: 'projects', key: 'id' } },
      // '' and 0 mean "none" here, so that lists can be sorted and paged by these columns.
      name: { ...text(100), defaultValue: '' },
      name_folded: { ...text(200), defaultValue: '' }, // in lower case, for searching
      last_used_at: { ...time, defaultValue: 0 },
      is_active: flag,
      expires_at: time,
      created_at: time,
      max_requests: count, // 0 = unlimited
      request_count: count,
      cache_hit_count: count,
      reserved: count, // units of the cap in use: request_count + the leases of live instances
      obfuscated: text(16),
    });
    // One for each sort order of a list. The common ones also contain all columns that a token's state depends on, so that a page
    // of a state can be found, and all its tokens counted, among a million tokens without reading their rows.
    const ofState = ['is_active', 'expires_at', 'project_id', 'max_requests', 'request_count'];
    const without = (known: string) => ofState.filter((column) => column !== known);
    const indexes: Record<string, string[]> = {
      created_at: ['created_at', 'id', ...ofState],
      expires_at: ['expires_at', 'id', ...without('expires_at')],
      last_used_at: ['last_used_at', 'id'],
      request_count: ['request_count', 'id'],
      name: ['name', 'id'],
      project: ['project_id', 'created_at', 'id', ...without('project_id')],
      state: [...ofState, 'id', 'name_folded'], // All columns that a filter uses.
      name_folded: ['name_folded', 'id'], // For searching.
    };
    for (const [name, columns] of Object.entries(indexes)) {
      await schema.addIndex('tokens', columns, `tokens_${name}`);
    }

    await schema.createTable('instances', {
      id: { ...id, primaryKey: true },
      seq: count,
      started_at: time,
      heartbeat_at: time,
    });
    await schema.createTable('leases', {
      token_id: { ...id, primaryKey: true },
      instance_id: { ...id, primaryKey: true },
      units: count,
    });
    await schema.addIndex('leases', ['instance_id'], 'leases_instance');

    await schema.createTable('change_seq', { id: { type: DataTypes.INTEGER, primaryKey: true }, seq: count });
    await schema.run('INSERT INTO change_seq (id, seq) SELECT 1, 0 WHERE NOT EXISTS (SELECT id FROM change_seq)');
    await schema.createTable('changes', {
      seq: { type: DataTypes.BIGINT, primaryKey: true },
      kind: text(32),
      project_id: id,
      token_id: { ...id, allowNull: true },
      changed_at: time,
    });

    await schema.createTable('audit', {
      id: { ...id, primaryKey: true },
      recorded_at: time,
      action: text(32),
      actor: text(16),
      outcome: text(16),
      project_id: { ...id, allowNull: true },
      token_id: { ...id, allowNull: true },
      obfuscated: { ...text(16), allowNull: true },
      request_id: { ...id, allowNull: true },
      client_ip: { ...id, allowNull: true },
      reason: { ...text(200), allowNull: true },
      count: { type: DataTypes.BIGINT, allowNull: true },
      details: { type: DataTypes.TEXT, allowNull: true }, // JSON
    });
    await schema.addIndex('audit', ['recorded_at', 'id'], 'audit_time');
  },
};
