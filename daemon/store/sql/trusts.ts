/** Trusts, the JWTs that were exchanged, and the tokens that a trust has issued. */
import type { AuditActor } from '../../api/vocabulary.js';
import type { PageOf, PageRequest, ShownTrust, Trust, TrustChanges, TrustStore } from '../../core/ports.js';
import type { Database, Reader, SqlTransaction } from './database.js';
import { Conditions, pageOf } from './lists.js';
import { TRUST, type TrustColumns, TRUSTS, USED_JWTS } from './tables.js';

const COLUMNS = `${TRUST.list}, (SELECT p.name FROM projects p WHERE p.id = t.project_id) AS project_name`;

type ShownColumns = TrustColumns & { project_name: string };

const shownOf = (row: ShownColumns): ShownTrust => ({ ...TRUST.of(row), projectName: row.project_name });

export class SqlTrusts implements TrustStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  one(id: string) {
    return oneTrust(this.#database, id, '');
  }

  list(page: PageRequest): Promise<PageOf<ShownTrust>> {
    return pageOf<ShownColumns, ShownTrust>(this.#database, {
      columns: COLUMNS,
      from: 'trusts t',
      where: new Conditions(),
      sortColumn: 't.created_at',
      idColumn: 't.id',
      descending: true,
      page,
      rowOf: shownOf,
      positionOf: (row) => ({ value: row.created_at, id: row.id }),
    });
  }

  async sourcesOf(issuer: string) {
    const sql = 'SELECT DISTINCT audience, jwks_file FROM trusts WHERE issuer = $issuer AND is_active = TRUE';
    const rows = await this.#database.select<Pick<TrustColumns, 'audience' | 'jwks_file'>>(sql, { issuer }, 'usual');
    return rows.map(({ audience, jwks_file: jwksFile }) => ({ audience, jwksFile }));
  }

  async activeOf(issuer: string, audience: string): Promise<Trust[]> {
    const rows = await this.#database.select<TrustColumns>(
      `SELECT ${TRUST.list} FROM trusts t WHERE t.issuer = $issuer AND t.audience = $audience AND t.is_active = TRUE`,
      { issuer, audience },
      'usual',
    );
    return rows.map(TRUST.of);
  }

  async removeUsedJwts(beforeMs: number, limit: number): Promise<void> {
    const old = await this.#database.select<{ digest: string }>(
      `SELECT digest FROM used_jwts WHERE until_ms < $beforeMs ORDER BY until_ms LIMIT ${limit}`,
      { beforeMs },
      'usual',
    );
    if (old.length === 0) return;
    const digests = JSON.stringify(old.map(({ digest }) => digest));
    await this.#database.transact(async (tx) => {
      await tx.execute(`DELETE FROM used_jwts WHERE digest IN (${tx.dialect.textsIn('$digests')})`, { digests });
    });
  }
}

export class SqlTrustChanges implements TrustChanges {
  readonly #tx: SqlTransaction;

  constructor(tx: SqlTransaction) {
    this.#tx = tx;
  }

  async countOf(issuer: string): Promise<number> {
    const sql = 'SELECT COUNT(*) AS total FROM trusts WHERE issuer = $issuer';
    const [counted] = await this.#tx.select<{ total: number }>(sql, { issuer });
    return counted?.total ?? 0;
  }

  insert(trust: Trust) {
    return TRUSTS.insert(this.#tx, trust);
  }

  lock(id: string) {
    return oneTrust(this.#tx, id, this.#tx.dialect.forUpdate);
  }

  async update(trust: Trust): Promise<void> {
    const { id, ...written } = TRUST.pick(trust);
    await TRUSTS.update(this.#tx, { id }, written);
  }

  async delete(id: string): Promise<void> {
    await this.#tx.execute('DELETE FROM trusts WHERE id = $id', { id });
  }

  async useJwt(digest: string, untilMs: number): Promise<boolean> {
    // Looked up first: a failed INSERT would end the transaction.
    const [used] = await this.#tx.select('SELECT digest FROM used_jwts WHERE digest = $digest', { digest });
    if (used) return false;
    await USED_JWTS.insert(this.#tx, { digest, untilMs });
    return true;
  }

  async fullUntil(issuedBy: AuditActor, most: number, nowMs: number): Promise<number | null> {
    // The end of the token after which as many are left as may be when the next one is made.
    const [row] = await this.#tx.select<{ expires_at: number }>(
      `SELECT expires_at FROM tokens WHERE issued_by = $issuedBy AND is_active = TRUE AND expires_at > $nowMs
       ORDER BY expires_at DESC LIMIT 1 OFFSET ${most - 1}`,
      { issuedBy, nowMs },
    );
    return row?.expires_at ?? null;
  }

  async firstOfLast(issuedBy: AuditActor, most: number, sinceMs: number): Promise<number | null> {
    // A token that was made since then expires later than that. So the index leads to the recent ones, however many there are.
    const [row] = await this.#tx.select<{ created_at: number }>(
      `SELECT created_at FROM tokens
       WHERE issued_by = $issuedBy AND is_active IN (TRUE, FALSE) AND expires_at > $sinceMs AND created_at > $sinceMs
       ORDER BY created_at DESC LIMIT 1 OFFSET ${most - 1}`,
      { issuedBy, sinceMs },
    );
    return row?.created_at ?? null;
  }
}

async function oneTrust(on: Reader, id: string, lock: string): Promise<ShownTrust | null> {
  const sql = `SELECT ${COLUMNS} FROM trusts t WHERE t.id = $id ${lock}`;
  const [row] = await on.select<ShownColumns>(sql, { id }, 'usual');
  return row ? shownOf(row) : null;
}
