import type { KnownToken, TokenLookup, TokenRow } from '../../core/ports.js';
import type { SecretBox } from '../secrets.js';
import type { Reader, SqlTransaction } from './database.js';
import { upstreamKeyContext } from './projects.js';
import { pursesOf } from './purses.js';
import { POLICIES, TOKEN, type TokenColumns } from './tables.js';

// The token, and the name and state of its project. Not a join, so that lists are counted in an index of tokens alone.
export const ROW_COLUMNS = `${TOKEN.list},
  (SELECT p.name FROM projects p WHERE p.id = t.project_id) AS project_name,
  (SELECT p.is_active FROM projects p WHERE p.id = t.project_id) AS project_is_active`;

export type TokenRowColumns = TokenColumns & { project_name: string; project_is_active: boolean | number };

export const rowOf = (row: TokenRowColumns): TokenRow => ({
  token: TOKEN.of(row),
  projectName: row.project_name,
  projectIsActive: Boolean(row.project_is_active),
});

export function tokenById(on: Reader, id: string): Promise<TokenRow | null> {
  return oneToken(on, 't.id = $value', id);
}

export function tokenByDigest(on: Reader, digest: string): Promise<TokenRow | null> {
  return oneToken(on, 't.digest = $value', digest);
}

/** Locks the token until the transaction ends. */
export function lockedToken(tx: SqlTransaction, id: string): Promise<TokenRow | null> {
  return oneToken(tx, 't.id = $value', id, tx.dialect.forUpdate);
}

async function oneToken(on: Reader, condition: string, value: string, lock = ''): Promise<TokenRow | null> {
  const [row] = await on.select<TokenRowColumns>(
    `SELECT ${ROW_COLUMNS} FROM tokens t WHERE ${condition} ${lock}`,
    { value },
    'usual',
  );
  return row ? rowOf(row) : null;
}

export class SqlTokenLookup implements TokenLookup {
  readonly #database: Reader;
  readonly #box: SecretBox;

  constructor(database: Reader, box: SecretBox) {
    this.#database = database;
    this.#box = box;
  }

  purses(ids: readonly string[]) {
    return pursesOf(this.#database, ids);
  }

  async byDigest(digest: string): Promise<KnownToken | null> {
    const [row] = await this.#database.select<
      TokenRowColumns & {
        reserved: number;
        api_key: string;
        api_key_id: string;
        upstream_base_url: string | null;
        upstream_auth: KnownToken['upstreamAuth'];
        missing_usage: KnownToken['missingUsage'];
        project_allow: string | null;
        project_limits: string | null;
        project_budget: string | null;
        project_created_at: number;
        change_seq: number;
      }
    >(
      // One statement, so that all values are from the same moment.
      `SELECT ${ROW_COLUMNS}, t.reserved, p.api_key, p.api_key_id, p.upstream_base_url, p.upstream_auth, p.missing_usage,
         p.allow AS project_allow, p.limits AS project_limits, p.budget AS project_budget, p.created_at AS project_created_at,
         (SELECT seq FROM change_seq WHERE id = 1) AS change_seq
       FROM tokens t JOIN projects p ON p.id = t.project_id WHERE t.digest = $digest`,
      { digest },
      'usual',
    );
    if (!row) return null;
    const known = rowOf(row);
    const sealed = { text: row.api_key, keyId: row.api_key_id };
    const upstreamKey = this.#box.open(sealed, upstreamKeyContext(known.token.projectId));
    return {
      ...known,
      reserved: row.reserved,
      upstreamKey,
      upstreamBaseUrl: row.upstream_base_url,
      upstreamAuth: row.upstream_auth,
      missingUsage: row.missing_usage,
      projectPolicies: POLICIES.of({
        allow: row.project_allow,
        limits: row.project_limits,
        budget: row.project_budget,
      }),
      projectCreatedAtMs: row.project_created_at,
      changeSeq: row.change_seq,
    };
  }
}
