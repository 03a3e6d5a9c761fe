import type {
  KnownToken,
  PageOf,
  PageRequest,
  TokenFilter,
  TokenLookup,
  TokenRow,
  TokenSort,
  TokenSortField,
} from '../../core/ports.js';
import type { TokenState } from '../../core/token.js';
import type { SecretBox } from '../secrets.js';
import type { Bind, Reader } from './database.js';
import { Conditions, pageOf } from './lists.js';
import { placeOfKey } from './projects.js';
import { TOKEN_COLUMNS, type TokenColumns, tokenOf } from './rows.js';

const TOKENS = 'tokens t JOIN projects p ON p.id = t.project_id';

type TokenRowColumns = TokenColumns & { project_is_active: boolean | number };

const rowOf = (row: TokenRowColumns): TokenRow => ({
  token: tokenOf(row),
  projectIsActive: Boolean(row.project_is_active),
});

export function tokenById(on: Reader, id: string): Promise<TokenRow | null> {
  return oneToken(on, 't.id = $value', id);
}

export function tokenByDigest(on: Reader, digest: string): Promise<TokenRow | null> {
  return oneToken(on, 't.digest = $value', digest);
}

async function oneToken(on: Reader, condition: string, value: string): Promise<TokenRow | null> {
  const [row] = await on.select<TokenRowColumns>(
    `SELECT ${TOKEN_COLUMNS}, p.is_active AS project_is_active FROM ${TOKENS} WHERE ${condition}`,
    { value },
  );
  return row ? rowOf(row) : null;
}

export class SqlTokenLookup implements TokenLookup {
  constructor(
    private readonly database: Reader,
    private readonly box: SecretBox,
  ) {}

  async byDigest(digest: string): Promise<KnownToken | null> {
    const [row] = await this.database.select<
      TokenRowColumns & { reserved: number | string; api_key: string; api_key_id: string }
    >(
      `SELECT ${TOKEN_COLUMNS}, t.reserved, p.is_active AS project_is_active, p.api_key, p.api_key_id
       FROM ${TOKENS} WHERE t.digest = $digest`,
      { digest },
    );
    if (!row) return null;
    const { token, projectIsActive } = rowOf(row);
    const sealed = { text: row.api_key, keyId: row.api_key_id };
    const upstreamKey = this.box.open(sealed, placeOfKey(token.projectId));
    return { token, projectIsActive, reserved: Number(row.reserved), upstreamKey };
  }
}

const SORT_COLUMNS: Record<TokenSortField, string> = {
  createdAt: 'created_at',
  expiresAt: 'expires_at',
  lastUsedAt: 'last_used_at',
  requestCount: 'request_count',
  name: 'name',
};

/** The states as `stateOf` tells them apart; each excludes those before it. */
const IN_STATE: Record<TokenState, string> = {
  revoked: 'NOT t.is_active',
  expired: 't.is_active AND t.expires_at <= $now',
  project_inactive: 't.is_active AND t.expires_at > $now AND NOT p.is_active',
  rate_limited:
    't.is_active AND t.expires_at > $now AND p.is_active AND t.max_requests > 0 AND t.request_count >= t.max_requests',
  active:
    't.is_active AND t.expires_at > $now AND p.is_active AND (t.max_requests = 0 OR t.request_count < t.max_requests)',
};

export function listTokens(
  on: Reader,
  filter: TokenFilter,
  sort: TokenSort,
  page: PageRequest,
  nowMs: number,
): Promise<PageOf<TokenRow>> {
  const column = SORT_COLUMNS[sort.field];
  return pageOf<TokenRowColumns, TokenRow>(on, {
    columns: `${TOKEN_COLUMNS}, p.is_active AS project_is_active`,
    from: TOKENS,
    where: tokenConditions(filter, nowMs),
    sortColumn: `t.${column}`,
    idColumn: 't.id',
    descending: sort.descending,
    page,
    rowOf,
    positionOf: (row) => ({ value: row[column as keyof TokenColumns] as string | number, id: row.id }),
  });
}

function tokenConditions(filter: TokenFilter, nowMs: number): Conditions {
  const where = new Conditions();
  if (filter.projectId !== undefined) where.and('t.project_id = $projectId', { projectId: filter.projectId });
  if (filter.state !== undefined) {
    const condition = IN_STATE[filter.state];
    where.and(condition, condition.includes('$now') ? { now: nowMs } : {});
  }
  if (filter.expiresAfterMs !== undefined) where.and('t.expires_at > $after', { after: filter.expiresAfterMs });
  if (filter.expiresBeforeMs !== undefined) where.and('t.expires_at < $before', { before: filter.expiresBeforeMs });
  if (filter.usedOverPercent !== undefined) {
    where.and('t.max_requests > 0 AND t.request_count * 100 > t.max_requests * $percent', {
      percent: filter.usedOverPercent,
    });
  }
  if (filter.text !== undefined) where.and(...textCondition(filter.text));
  return where;
}

function textCondition(text: string): [string, Bind] {
  const literal = text.replace(/[!%_]/g, '!$&');
  return [
    "(t.name_folded LIKE $part ESCAPE '!' OR t.id LIKE $beginning ESCAPE '!')",
    { part: `%${literal.toLowerCase()}%`, beginning: `${literal}%` },
  ];
}
