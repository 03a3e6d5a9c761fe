import { DataTypes } from 'sequelize';
import type { Migration } from './migration.js';
import { type Schema, time } from './schema.js';

const count = { type: DataTypes.BIGINT, allowNull: false, defaultValue: 0 } as const;
/** JSON. Its maximum is within the 64 KB of a TEXT of MySQL. */
const policy = { type: DataTypes.TEXT, allowNull: true } as const;
const flag = { type: DataTypes.BOOLEAN, allowNull: false } as const;

export const up: Migration['up'] = async (schema) => {
  await createProjectsAndTokens(schema);
  await createPurses(schema);
  await createInstances(schema);
  await createChanges(schema);
  await createAudit(schema);
  await createUsage(schema);
  await createAccess(schema);
};

/** Column types of this database. */
function columnsFor(schema: Schema) {
  const text = (length: number) => ({ type: schema.text(length), allowNull: false });
  return { text, id: text(64) };
}

async function createProjectsAndTokens(schema: Schema): Promise<void> {
  const { text, id } = columnsFor(schema);
  await schema.createTable('projects', {
    id: { ...id, primaryKey: true },
    name: { ...text(100), unique: true },
    is_active: flag,
    api_key: { type: DataTypes.TEXT, allowNull: false }, // encrypted, see daemon/store/secrets.ts
    api_key_id: text(16), // ID of the encryption key
    api_key_hint: text(4),
    upstream_base_url: { ...text(500), allowNull: true },
    upstream_auth: text(20),
    missing_usage: text(20),
    allow: policy,
    limits: policy,
    budget: policy,
    models_key: { ...text(16), defaultValue: '' }, // equal for equal lists of models in `allow`
    created_at: time,
    updated_at: time,
    deactivated_at: { ...time, allowNull: true },
  });
  await schema.addIndex('projects', ['created_at', 'id'], 'projects_created');
  await schema.addIndex('projects', ['models_key'], 'projects_models');

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
    allow: policy,
    limits: policy,
    budget: policy,
    models_key: { ...text(16), defaultValue: '' },
    request_count: count,
    cache_hit_count: count,
    reserved: count, // units of the cap in use: request_count + the leases of live instances
    issued_by: { ...text(600), defaultValue: '' }, // '': the holder of the management token
    issued_by_name: { ...text(200), allowNull: true },
    obfuscated: text(16),
    revoked_at: { ...time, allowNull: true },
    revoked_by: { ...text(600), allowNull: true }, // as reported by the front end, or the actor
    revoke_reason: { ...text(200), allowNull: true },
  });
  // One for each sort order of a list. The common ones also contain all columns that a token's state and the filters depend on, so
  // that a page of a state can be found, and all its tokens counted, among a million tokens without reading their rows.
  const ofState = ['is_active', 'expires_at', 'project_id', 'max_requests', 'request_count', 'models_key'];
  const without = (known: string) => ofState.filter((column) => column !== known);
  const indexes: Record<string, string[]> = {
    created_at: ['created_at', 'id', ...ofState, 'last_used_at'],
    expires_at: ['expires_at', 'id', ...without('expires_at'), 'created_at', 'last_used_at'],
    last_used_at: ['last_used_at', 'id', ...ofState, 'created_at'],
    request_count: ['request_count', 'id'],
    name: ['name', 'id'],
    project: ['project_id', 'created_at', 'id', ...without('project_id'), 'last_used_at'],
    state: [...ofState, 'id', 'name_folded', 'created_at', 'last_used_at'], // All columns that a filter uses.
    name_folded: ['name_folded', 'id'], // For searching.
    // To find what lists of models there are, and the tokens with one of them.
    models: ['models_key', 'project_id', 'id'],
    // To find when any token of a project was last used, without reading all tokens of the project.
    project_last_used: ['project_id', 'last_used_at'],
    // To count the active and the recent tokens of an issuer, and to list them.
    issuer: ['issued_by', 'is_active', 'expires_at', 'created_at', 'id'],
    // To count the tokens in a state: a sixth of the size of the index with all columns that a filter uses.
    alive: ['is_active', 'expires_at'],
  };
  for (const [name, columns] of Object.entries(indexes)) {
    await schema.addIndex('tokens', columns, `tokens_${name}`);
  }
  // To count those that have used most or all of their cap. A query must repeat the `where` condition literally: only then does the
  // database use the index.
  await schema.addIndex('tokens', ['max_requests', 'request_count'], 'tokens_capped', { where: 'max_requests > 0' });
  await schema.addIndex('tokens', ['is_active', 'expires_at', 'project_id'], 'tokens_spent', {
    where: 'max_requests > 0 AND request_count >= max_requests',
  });
}

/**
 * What each token and project has spent, in nano-USD and model tokens. It is a table of its own, which a tick changes last, so that ticks and
 * changes of projects do not wait for each other.
 */
async function createPurses(schema: Schema): Promise<void> {
  const { text, id } = columnsFor(schema);
  const limit = { type: DataTypes.BIGINT, allowNull: true };
  await schema.createTable('purses', {
    id: { ...id, primaryKey: true },
    period: text(8),
    limit_nano: limit,
    limit_tokens: limit,
    life_nano: count,
    life_tokens: count,
    life_unpriced: count,
    month_from: { ...time, defaultValue: 0 },
    month_nano: count,
    month_tokens: count,
    month_unpriced: count,
    day_from: { ...time, defaultValue: 0 },
    day_nano: count,
    day_tokens: count,
    day_unpriced: count,
    leased_from: { ...time, defaultValue: 0 },
    leased_nano: count,
    leased_tokens: count,
  });
  await schema.createTable('purse_leases', {
    purse_id: { ...id, primaryKey: true },
    instance_id: { ...id, primaryKey: true },
    from_ms: { ...time, primaryKey: true },
    nano: count,
    tokens: count,
    wanted_at: { ...time, defaultValue: 0 },
  });
  await schema.addIndex('purse_leases', ['instance_id'], 'purse_leases_instance');
}

/** What instances that share a database must know about each other. 0 means never. */
async function createInstances(schema: Schema): Promise<void> {
  const { id } = columnsFor(schema);
  await schema.createTable('instances', {
    id: { ...id, primaryKey: true },
    seq: count,
    started_at: time,
    heartbeat_at: time,
    // The row of a dead instance stays for a while. If the instance returns, the row shows what happened to its last tick.
    expired_at: { ...time, defaultValue: 0 },
    is_worker: { ...count, defaultValue: 0 },
    is_apart: { ...count, defaultValue: 0 },
  });
  await schema.createTable('leases', {
    token_id: { ...id, primaryKey: true },
    instance_id: { ...id, primaryKey: true },
    units: count,
    wanted_at: { ...time, defaultValue: 0 }, // when another instance last requested the units
  });
  await schema.addIndex('leases', ['instance_id'], 'leases_instance');
}

async function createChanges(schema: Schema): Promise<void> {
  const { text, id } = columnsFor(schema);
  await schema.createTable('change_seq', { id: { type: DataTypes.INTEGER, primaryKey: true }, seq: count });
  await schema.run('INSERT INTO change_seq (id, seq) SELECT 1, 0 WHERE NOT EXISTS (SELECT id FROM change_seq)');
  // The price lists of the last change, by SHA-256; '' if there was none.
  await schema.createTable('prices_in_force', {
    id: { type: DataTypes.INTEGER, primaryKey: true },
    shipped: text(64),
    file: text(64),
  });
  await schema.run(
    "INSERT INTO prices_in_force (id, shipped, file) SELECT 1, '', '' WHERE NOT EXISTS (SELECT id FROM prices_in_force)",
  );
  await schema.createTable('changes', {
    seq: { type: DataTypes.BIGINT, primaryKey: true },
    kind: text(32),
    project_id: id,
    token_id: { ...id, allowNull: true },
    changed_at: time,
  });
  await schema.addIndex('changes', ['changed_at'], 'changes_time');
}

async function createAudit(schema: Schema): Promise<void> {
  const { text, id } = columnsFor(schema);
  await schema.createTable('audit', {
    id: { ...id, primaryKey: true },
    seq: time, // which the audit files and other instances follow
    recorded_at: time,
    action: text(32),
    actor: text(600),
    reported_user: { ...text(100), allowNull: true }, // as reported by the front end
    outcome: text(16),
    project_id: { ...id, allowNull: true },
    token_id: { ...id, allowNull: true },
    obfuscated: { ...text(16), allowNull: true },
    request_id: { ...id, allowNull: true },
    client_ip: { ...id, allowNull: true },
    reason: { ...text(200), allowNull: true },
    count: { type: DataTypes.BIGINT, allowNull: true },
    details: { type: schema.isMysql ? DataTypes.TEXT('medium') : DataTypes.TEXT, allowNull: true }, // JSON; two values of a policy exceed the 64 KB of a TEXT of MySQL
    batch: { ...id, allowNull: true }, // of the command or dialog that made this change among others
    undo_of: { ...id, allowNull: true }, // the batch that this change undoes
  });
  await schema.addIndex('audit', ['seq'], 'audit_seq', { isUnique: true });
  const orders = { place: [], token: ['token_id'], project: ['project_id'], batch: ['batch'] };
  for (const [name, columns] of Object.entries(orders)) {
    await schema.addIndex('audit', [...columns, 'recorded_at', 'seq'], `audit_${name}`);
  }
  // What was changed of a project, or of all its tokens, since.
  const ofProjects = { where: 'token_id IS NULL' };
  await schema.addIndex('audit', ['project_id', 'token_id', 'seq'], 'audit_of_projects', ofProjects);

  // Word index for searching, see daemon/store/sql/audit-words.ts. It contains no texts, only which records contain a word.
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

  await schema.createTable('audit_anchors', {
    chain: { ...text(512), primaryKey: true }, // the path of the file
    line: { ...time, primaryKey: true },
    head: text(64), // SHA-256 of that line, in hex
    seq: { type: DataTypes.BIGINT, allowNull: true }, // of the record in that line
    anchored_at: time,
  });
}

/** Number of counts of response times, see `TIME_BOUNDS_MS` in daemon/core/usage.ts. */
const TIMES = 16;

/**
 * Usage of tokens per minute and hour, and the sums for reports. On SQLite these tables have no row ID: they are stored in the order of their
 * keys, so that a time span is one contiguous part of the file, and no key is stored twice.
 */
async function createUsage(schema: Schema): Promise<void> {
  const inKeyOrder = schema.dialect === 'sqlite' ? 'WITHOUT ROWID' : '';
  const text = (length: number) => `${schema.text(length)} NOT NULL`;
  const counted = (names: readonly string[]) => names.map((name) => `${name} BIGINT NOT NULL DEFAULT 0`).join(', ');
  const counts = [
    ...['requests', 'hits', 'prompt_tokens', 'completion_tokens', 'cache_read_tokens', 'cache_write_tokens'],
    ...['upstream_refused', 'cut', 'cost_nano', 'unpriced'],
  ];
  // In text columns '' means "none", because a key cannot contain NULL. An ID begins with its hour and is built from what the row
  // counts, see daemon/core/usage.ts.
  await schema.createTableAs(
    'usage_hourly',
    `id ${text(64)} PRIMARY KEY, hour_ms BIGINT NOT NULL, token_id ${text(64)},
     project_id ${text(64)}, outcome ${text(16)}, code ${text(64)},
     model ${text(200)}, ${counted([...counts, 'with_tokens'])}`,
    inKeyOrder,
  );
  await schema.addIndex('usage_hourly', ['token_id', 'hour_ms'], 'usage_hourly_token');
  await schema.addIndex('usage_hourly', ['project_id', 'hour_ms'], 'usage_hourly_project');
  // For each kind of sum (token_day, project_hour, project_day): the start of its time, and its project and token.
  await schema.createTableAs(
    'usage_sums',
    `kind ${text(16)}, from_ms BIGINT NOT NULL, project_id ${text(64)},
     token_id ${text(64)}, model ${text(200)}, ${counted([...counts, 'refused', 'failed'])},
     PRIMARY KEY (kind, from_ms, project_id, token_id, model)`,
    inKeyOrder,
  );
  await schema.addIndex('usage_sums', ['project_id', 'kind', 'from_ms'], 'usage_sums_project');
  // Of the last hour. The key begins with the minute, so that new rows are next to each other, and old ones are removed as one part of the table.
  const times = Array.from({ length: TIMES }, (_, bucket) => `t${bucket} INTEGER NOT NULL DEFAULT 0`);
  await schema.createTableAs(
    'usage_minutes',
    `from_ms BIGINT NOT NULL, token_id ${text(64)}, project_id ${text(64)}, model ${text(200)},
     ${counted(['requests', 'hits', 'prompt_tokens', 'completion_tokens', 'cost_nano', 'unpriced', 'refused', 'upstream_refused', 'failed', 'cut'])},
     ${times.join(', ')}, PRIMARY KEY (from_ms, token_id, project_id, model)`,
    inKeyOrder,
  );
  // Why requests failed lately, in the order in which they are added up.
  await schema.createTableAs(
    'usage_causes',
    `from_ms BIGINT NOT NULL, project_id ${text(64)}, token_id ${text(64)}, cause ${text(64)},
     ${counted(['requests'])}, PRIMARY KEY (project_id, cause, token_id, from_ms)`,
    inKeyOrder,
  );
  await schema.addIndex('usage_causes', ['from_ms', 'token_id'], 'usage_causes_time');
  // The last committed flush of each instance.
  await schema.createTableAs(
    'usage_flushes',
    `instance_id ${text(64)} PRIMARY KEY, seq BIGINT NOT NULL, flushed_at BIGINT NOT NULL`,
  );
}

/** Operators, sessions, and the trusts that exchange JWTs for tokens. */
async function createAccess(schema: Schema): Promise<void> {
  const { text, id } = columnsFor(schema);
  const optional = (length: number) => ({ ...text(length), allowNull: true });
  const maybeTime = { ...time, allowNull: true };
  await schema.createTable('operators', {
    id: { ...id, primaryKey: true },
    name: { ...text(100), unique: true },
    digest: { ...text(64), unique: true }, // SHA-256 of the secret, hex
    obfuscated: text(16),
    role: text(16),
    projects: policy, // JSON; NULL: all
    ceilings: policy, // JSON
    is_active: flag,
    expires_at: maybeTime,
    created_at: time,
    updated_at: time,
    last_used_at: maybeTime,
  });
  await schema.addIndex('operators', ['created_at', 'id'], 'operators_created');
  await schema.createTable('sessions', {
    id: { ...id, primaryKey: true },
    digest: { ...text(64), allowNull: true, unique: true }, // of the secret of a command line; NULL for the Admin UI
    front_end: text(16),
    actor: text(600),
    name: text(200),
    operator_id: optional(64),
    // Of a person: what the mapping of roles gave. Those of an operator are read with each request.
    role: optional(16),
    projects: policy,
    ceilings: policy,
    mapping: optional(64), // SHA-256 of that mapping
    begun_at: time,
    expires_at: time,
    ended_at: maybeTime,
  });
  await schema.addIndex('sessions', ['operator_id'], 'sessions_operator');
  await schema.addIndex('sessions', ['actor', 'id'], 'sessions_actor'); // to lock all sessions of a person
  await schema.addIndex('sessions', ['expires_at'], 'sessions_expiry');
  await schema.createTable('trusts', {
    id: { ...id, primaryKey: true },
    issuer: text(500),
    audience: text(500),
    match_claims: { type: DataTypes.TEXT, allowNull: false }, // JSON
    jwks_file: optional(200),
    project_id: { ...id, references: { model: 'projects', key: 'id' } },
    name: text(100), // of the tokens, with claims in braces
    duration_minutes: count,
    max_requests: count,
    allow: policy,
    limits: policy,
    budget: policy,
    max_active: { type: DataTypes.BIGINT, allowNull: true },
    per_hour: { type: DataTypes.BIGINT, allowNull: true },
    is_active: flag,
    created_at: time,
    updated_at: time,
  });
  await schema.addIndex('trusts', ['created_at', 'id'], 'trusts_created');
  await schema.addIndex('trusts', ['issuer'], 'trusts_of_issuer');
  // JWTs that were exchanged. Their digests are those of the issuer and the `jti`, or of the JWT.
  await schema.createTable('used_jwts', { digest: { ...text(64), primaryKey: true }, until_ms: time });
  await schema.addIndex('used_jwts', ['until_ms'], 'used_jwts_until');
}
