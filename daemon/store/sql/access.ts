/** Operators and sessions. */
import type { AuditActor } from '../../api/vocabulary.js';
import type {
  AccessChanges,
  AccessStore,
  NewOperator,
  NewSession,
  Operator,
  PageRequest,
  RevokedToken,
  Session,
  SessionRow,
} from '../../core/ports.js';
import type { Revocation } from '../../core/token.js';
import type { Bind, Database, Reader, SqlTransaction } from './database.js';
import { Conditions, pageOf } from './lists.js';
import { OPERATOR, type OperatorColumns, OPERATORS, SESSION, type SessionColumns, SESSIONS } from './tables.js';

/** How exactly the last use of an operator is known: it is written at most this often. */
const USE_RESOLUTION_MS = 60_000;

export class SqlAccess implements AccessStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  operator(id: string): Promise<Operator | null> {
    return oneOperator(this.#database, 'id', id);
  }

  operatorByDigest(digest: string): Promise<Operator | null> {
    return oneOperator(this.#database, 'digest', digest);
  }

  operators(page: PageRequest) {
    return pageOf<OperatorColumns, Operator>(this.#database, {
      columns: OPERATOR.list,
      from: 'operators',
      where: new Conditions(),
      sortColumn: 'created_at',
      idColumn: 'id',
      descending: true,
      page,
      rowOf: OPERATOR.of,
      positionOf: (row) => ({ value: row.created_at, id: row.id }),
    });
  }

  session(id: string): Promise<SessionRow | null> {
    return this.#withOperator(oneSession(this.#database, 'id', id));
  }

  sessionByDigest(digest: string): Promise<SessionRow | null> {
    return this.#withOperator(oneSession(this.#database, 'digest', digest));
  }

  async #withOperator(reading: Promise<Session | null>): Promise<SessionRow | null> {
    const session = await reading;
    if (!session) return null;
    return { session, operator: session.operatorId === null ? null : await this.operator(session.operatorId) };
  }

  async noteUse(operatorId: string, nowMs: number): Promise<void> {
    const sql = `UPDATE operators SET last_used_at = $nowMs
      WHERE id = $operatorId AND (last_used_at IS NULL OR last_used_at <= $before)`;
    await this.#database.transact((tx) => tx.execute(sql, { operatorId, nowMs, before: nowMs - USE_RESOLUTION_MS }));
  }
}

export class SqlAccessChanges implements AccessChanges {
  readonly #tx: SqlTransaction;

  constructor(tx: SqlTransaction) {
    this.#tx = tx;
  }

  lockOperator(id: string) {
    return oneOperator(this.#tx, 'id', id, this.#tx.dialect.forUpdate);
  }

  insertOperator(operator: NewOperator) {
    return OPERATORS.insert(this.#tx, operator);
  }

  async updateOperator(operator: Operator): Promise<void> {
    // The time of the last use is written apart, and must not go back.
    const { id, role, projects, ceilings, isActive, expiresAtMs, updatedAtMs } = operator;
    await OPERATORS.update(this.#tx, { id }, { role, projects, ceilings, isActive, expiresAtMs, updatedAtMs });
  }

  async endSessionsOf(operatorId: string, nowMs: number): Promise<void> {
    const sql = 'UPDATE sessions SET ended_at = $nowMs WHERE operator_id = $operatorId AND ended_at IS NULL';
    await this.#tx.execute(sql, { operatorId, nowMs });
  }

  async endSessionsOfOtherMappings(mapping: string | null, nowMs: number): Promise<void> {
    // Those of others have none, and NULL is not another one.
    const sql = 'UPDATE sessions SET ended_at = $nowMs WHERE mapping <> $mapping AND ended_at IS NULL';
    await this.#tx.execute(sql, { mapping: mapping ?? '', nowMs });
  }

  lockSession(id: string) {
    return oneSession(this.#tx, 'id', id, this.#tx.dialect.forUpdate);
  }

  async lockSessionsOf(actor: AuditActor): Promise<Session[]> {
    // In the same order in each transaction. No statement may read before it: MySQL would go on reading what was there then.
    const rows = await this.#tx.select<SessionColumns>(
      `SELECT ${SESSION.list} FROM sessions WHERE actor = $actor ORDER BY id ${this.#tx.dialect.forUpdate}`,
      { actor },
      'usual',
    );
    return rows.map(SESSION.of);
  }

  insertSession(session: NewSession) {
    return SESSIONS.insert(this.#tx, session);
  }

  async endSession(id: string, endedAtMs: number): Promise<void> {
    await this.#tx.execute('UPDATE sessions SET ended_at = $endedAtMs WHERE id = $id', { id, endedAtMs });
  }

  async deleteSessionsExpiredBefore(timeMs: number): Promise<void> {
    await this.#tx.execute('DELETE FROM sessions WHERE expires_at < $timeMs', { timeMs });
  }

  async countActiveTokensOf(issuedBy: AuditActor, nowMs: number): Promise<number> {
    const [counted] = await this.#tx.select<{ total: number }>(
      `SELECT COUNT(*) AS total FROM tokens t WHERE ${ACTIVE_OF_ISSUER}`,
      { issuedBy, isActive: true, nowMs },
      'usual',
    );
    return counted?.total ?? 0;
  }

  async revokeTokensOf(issuedBy: AuditActor, nowMs: number, revocation: Revocation): Promise<RevokedToken[]> {
    const bind = { issuedBy, isActive: true, nowMs };
    const active = await this.#tokens(`${ACTIVE_OF_ISSUER} ORDER BY t.id ${this.#tx.dialect.forUpdate}`, bind);
    const revoked = await this.#tx.execute(
      `UPDATE tokens AS t SET is_active = $isRevoked, revoked_at = $revokedAtMs, revoked_by = $revokedBy, revoke_reason = $revokeReason
       WHERE ${ACTIVE_OF_ISSUER}`,
      { ...bind, isRevoked: false, ...revocation },
      'long',
    );
    if (revoked === active.length) return active;
    // The lock of the issuer keeps it from issuing others, but not somebody else from reactivating one in between.
    const { revokedAtMs } = revocation;
    return this.#tokens(`${ACTIVE_OF_ISSUER} AND t.revoked_at = $revokedAtMs`, {
      ...bind,
      isActive: false,
      revokedAtMs,
    });
  }

  async #tokens(where: string, bind: Bind): Promise<RevokedToken[]> {
    const rows = await this.#tx.select<{ id: string; project_id: string; obfuscated: string }>(
      `SELECT t.id, t.project_id, t.obfuscated FROM tokens t WHERE ${where}`,
      bind,
      'long',
    );
    return rows.map(({ id, project_id: projectId, obfuscated }) => ({ id, projectId, obfuscated }));
  }
}

const ACTIVE_OF_ISSUER = 't.issued_by = $issuedBy AND t.is_active = $isActive AND t.expires_at > $nowMs';

async function oneOperator(on: Reader, column: 'id' | 'digest', value: string, lock = ''): Promise<Operator | null> {
  const [row] = await on.select<OperatorColumns>(
    `SELECT ${OPERATOR.list} FROM operators WHERE ${column} = $value ${lock}`,
    { value },
    'usual',
  );
  return row ? OPERATOR.of(row) : null;
}

async function oneSession(on: Reader, column: 'id' | 'digest', value: string, lock = ''): Promise<Session | null> {
  const [row] = await on.select<SessionColumns>(
    `SELECT ${SESSION.list} FROM sessions WHERE ${column} = $value ${lock}`,
    { value },
    'usual',
  );
  return row ? SESSION.of(row) : null;
}
