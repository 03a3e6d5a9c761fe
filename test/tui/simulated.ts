/** A simulated daemon in memory that behaves like the management API, with its order, filters, cursors and totals. */
import type {
  AuditQuery,
  EventQuery,
  EventStreamQuery,
  TokenQuery,
  TopQuery,
  WireAuditRecord,
  WireCache,
  WireEvent,
  WireOperator,
  WireIncident,
  WireProject,
  WireProjectCheck,
  WireSelf,
  WireStatus,
  WireToken,
  WireTop,
  WireTopRow,
  WireTrust,
} from '../../daemon/api/contract.js';
import type {
  Action,
  DataOf,
  ChangeRequest,
  ContextSummary,
  Failure,
  FileEntry,
  Named,
  ChangeResult,
  UndoRequest,
  DataRequest,
} from '../../tui/state/exchange.js';
import { operatorExample, trustExample } from '../../daemon/api/schemas/access.js';
import type { Role } from '../../daemon/api/vocabulary.js';
import { Secret } from '../../tui/state/secret.js';
import { aTop, aTopRow, aWireProject, aWireToken } from '../support/factories.js';

export const START_MS = Date.UTC(2026, 10, 23, 14, 3, 11);
const HOUR_MS = 3_600_000;
export const at = (ms: number) => new Date(START_MS + ms).toISOString();

export const REFUSED: Failure = {
  kind: 'refused',
  status: 503,
  code: 'unavailable',
  message: 'the database does not answer',
  retryAfterMs: null,
};
export const UNREACHABLE: Failure = {
  kind: 'unreachable',
  status: null,
  code: 'ECONNREFUSED',
  message: 'ECONNREFUSED 127.0.0.1:8080',
  retryAfterMs: null,
};
export const DENIED: Failure = {
  ...REFUSED,
  status: 401,
  code: 'management_token_refused',
  message: 'the management token was refused',
};
const notFound = (message: string): Failure => ({ ...REFUSED, status: 404, code: 'not_found', message });

/** Long enough to be recognised in any output. */
export const SECRET = 'sk-wt-THISisTHEsecretTHATnobodyMAYsee0123456789abcdefgh';

export const OPERATOR_SECRET = 'sk-op-THISisTHEsecretTHATnobodyMAYsee0123456789abcdefgh';

/** The holder of the management token. */
export const ROOT: WireSelf = {
  actor: 'management',
  name: null,
  role: null,
  projects: null,
  ceilings: null,
  expires_at: null,
};

/** Somebody with a role. */
export const self = (role: Role, more: Partial<WireSelf> = {}): WireSelf => ({
  ...ROOT,
  actor: 'operator:ana',
  name: 'ana',
  role,
  ...more,
});

export const operator = (name: string, more: Partial<WireOperator> = {}): WireOperator => ({
  ...operatorExample,
  id: `operator-${name}`,
  name,
  projects: null,
  ceilings: null,
  created_at: at(-HOUR_MS),
  updated_at: at(-HOUR_MS),
  ...more,
});

export const trust = (name: string, more: Partial<WireTrust> = {}): WireTrust => ({
  ...trustExample,
  id: `trust-${name}`,
  name,
  ...more,
});

export const project = (name: string, more: Partial<WireProject> = {}): WireProject =>
  aWireProject({ id: `project-${name}`, name, created_at: at(-HOUR_MS), ...more });

export const token = (index: number, more: Partial<WireToken> = {}): WireToken =>
  aWireToken({
    id: `${String(index).padStart(8, '0')}-token`,
    project_id: 'project-web',
    name: `name-${index}`,
    expires_at: at((index + 1) * HOUR_MS),
    created_at: at(-HOUR_MS),
    ...more,
  });

/** A row of Top for the token of `token(index)`. */
export const topRow = (index: number, more: Partial<WireTopRow> = {}): WireTopRow =>
  aTopRow({
    token_id: `${String(index).padStart(8, '0')}-token`,
    token_name: `name-${index}`,
    project_id: 'project-web',
    project_name: 'web',
    model: `model-${index}`,
    last_used_at: at(-index * 1_000),
    ...more,
  });

export const record = (index: number, more: Partial<WireAuditRecord> = {}): WireAuditRecord => ({
  id: `record-${String(index).padStart(6, '0')}`,
  time: at(index),
  action: 'token.revoke',
  actor: 'tui',
  user: null,
  outcome: 'success',
  project_id: 'project-web',
  token_id: '00000000-token',
  project_name: 'web',
  token_name: 'name-0',
  obfuscated: null,
  request_id: `request-${index}`,
  client_ip: null,
  reason: null,
  count: null,
  details: null,
  batch: null,
  undo_of: null,
  ...more,
});

const STATUS: WireStatus = {
  status: 'ready',
  missing: [],
  degraded: [],
  version: '1.0.0',
  instance: 'one',
  started_at: at(-HOUR_MS),
  uptime_s: 3600,
  database: { driver: 'sqlite', status: 'ok', schema: '1', pending_migrations: [] },
  redis: 'off',
  event_bus: { kind: 'in-memory', status: 'ok', buffered: 0, published: 0, dropped: 0, lag: 0 },
  audit: { status: 'ok', records: 0, failures: 0 },
  projects: null,
  tokens: null,
  counted_at: null,
  requests: { in_flight: 0, per_second: 14, errors_per_second: 0 },
  prices: {
    shipped: { source: '@pydantic/genai-prices 0.1.8', date: '2026-09-23', sha256: 'a'.repeat(64) },
    file: null,
  },
  cache: { backend: 'memory', hit_ratio: null },
  upstream: { p50_ms: null, p95_ms: null },
  workers: [],
};

type Failing = (request: DataRequest) => Failure | null;

export class SimulatedDaemon {
  tokens: WireToken[];
  projects: WireProject[];
  /** Oldest first. */
  records: WireAuditRecord[] = [];
  /** Oldest first. */
  events: WireEvent[] = [];
  searchedPerPage = 20_000;
  /** Pages of events that were loaded. */
  eventPages = 0;
  contexts: ContextSummary[] = [];
  statusFields: Partial<WireStatus> = {};
  /** Who is logged in. */
  self: WireSelf = ROOT;
  operators: WireOperator[] = [];
  trusts: WireTrust[] = [];
  incidents: WireIncident[] = [];
  /** Models that projects have used, by the project's ID. */
  models: Record<string, readonly string[]> = {};
  /** Of every folder. */
  files: FileEntry[] = [];
  /** Rows of Top, by token. */
  topRows: WireTopRow[] = [];
  /** Fields of the next responses. */
  topFields: Partial<WireTop> = {};
  cache: WireCache = { backend: 'memory', entries: 3, bytes: 300, hits: 1, misses: 2 };
  /** Requests that fail, and their failures. */
  failing: Failing = () => null;
  /** The failure of changes. */
  refusing: Failure | null = null;
  projectCheck: WireProjectCheck = { result: 'accepted', reason: null, status: 200, latency_ms: 84 };
  /** Result of the check of a new key. */
  keyCheck: ChangeResult['keyCheck'];
  /** Tokens whose changes fail. */
  readonly stubborn = new Set<string>();
  /** Tokens that somebody else has changed, so that an undo leaves them. */
  readonly touched = new Set<string>();
  /** What is shown of the secrets of tokens. */
  readonly secrets = new Map<string, string>();
  readonly made: { change: ChangeRequest; reason: string | null }[] = [];

  constructor({ tokens = [], projects = [project('web')] }: { tokens?: WireToken[]; projects?: WireProject[] } = {}) {
    this.tokens = tokens;
    this.projects = projects;
  }

  data(request: DataRequest): Action {
    const failure = this.failing(request) ?? this.#missing(request);
    if (failure) return { on: 'failed', request, failure };
    return { on: 'loaded', request, data: this.#answerTo(request) } as Action;
  }

  make(change: ChangeRequest, reason: string | null): Action {
    if (this.refusing) return { on: 'refused', change, failure: this.refusing };
    this.made.push({ change, reason });
    const batch = `batch-${this.made.length}`;
    return { on: 'changed', change, outcome: { ...this.#outcomeOf(change), batch } };
  }

  /** The stored token. */
  token(id: string): WireToken | undefined {
    return this.tokens.find((it) => it.id === id);
  }

  #missing(request: DataRequest): Failure | null {
    return request.of === 'token' && !this.token(request.id) ? notFound('token not found') : null;
  }

  #answerTo(request: DataRequest): DataOf<DataRequest['of']> {
    switch (request.of) {
      case 'self':
        return this.self;
      case 'operators':
        return this.operators;
      case 'trusts':
        return this.trusts;
      case 'status':
        return { ...STATUS, ...this.statusFields };
      case 'incidents':
        return { from: at(-900_000), to: at(0), incidents: this.incidents };
      case 'lastHour':
        return this.#top(request.query);
      case 'tokens':
      case 'expiring':
        return this.#page(request.query);
      case 'costs':
        return [];
      case 'spenders':
        return this.#page({ state: 'active' });
      case 'token':
        return this.token(request.id) as WireToken;
      case 'tokensOfSecret': {
        const { by } = request;
        const shown = 'shown' in by ? by.shown : (this.secrets.get(by.secret.reveal()) ?? '');
        return this.tokens.filter(({ obfuscated }) => obfuscated === shown);
      }
      case 'allTokens':
        return this.#found(request.query);
      case 'projects':
        return [...this.projects];
      case 'models':
        return this.models[request.project] ?? [];
      case 'usage':
        return [];
      case 'audit':
        return this.#audit(request.query);
      case 'members':
        return this.#audit({ batch: request.batch });
      case 'events':
        return this.#events(request.query);
      case 'tokenAudit':
        return this.#historyOf(request.id);
      case 'projectAudit':
        return this.records.filter((it) => it.project_id === request.id && it.action !== 'token.use').reverse();
      case 'top':
        return this.#top(request.query);
      case 'projectCheck':
        return this.projectCheck;
      case 'cache':
        return this.cache;
      case 'purgeable':
        return 3;
      case 'viewCount':
        return this.#found(request.query).length;
      case 'contexts':
        return this.contexts;
      case 'files':
        return this.files;
    }
  }

  /** By project or model, each row has its own: the simulation sums up nothing. */
  #top({ by = 'token', window = '1h', project_id: id }: TopQuery): DataOf<'top'> {
    const ofProject = this.topRows.filter((row) => id === undefined || row.project_id === id);
    const rows = ofProject.map(({ token_id, token_name, model, ...row }) =>
      by === 'token' ? { ...row, token_id, token_name } : by === 'model' ? { ...row, model: model ?? null } : row,
    );
    const shape = { by: by as WireTop['by'], window: window as WireTop['window'] };
    return aTop({ ...shape, rows: rows, ...this.topFields });
  }

  #historyOf(id: string): DataOf<'tokenAudit'> {
    const of = this.records.filter(({ token_id: tokenId }) => tokenId === id).reverse();
    const isUse = ({ action }: WireAuditRecord) => action === 'token.use';
    return { changes: of.filter((it) => !isUse(it)), lastUse: of.find(isUse) ?? null, isTruncated: false };
  }

  #found({ project_id: ids, state, q, words, sort = '-created_at' }: TokenQuery): WireToken[] {
    const isIn = (given: string | undefined, value: string) =>
      given === undefined ||
      given.split(',').includes(value) ||
      (given.startsWith('!') && !given.slice(1).split(',').includes(value));
    const holds = (it: WireToken, word: string) =>
      (it.name ?? '').toLowerCase().includes(word.toLowerCase()) || it.id.startsWith(word);
    // No test has a quoted word with a space.
    const wanted = [...(q === undefined ? [] : [q]), ...(words?.split(' ') ?? [])];
    const fits = (it: WireToken) =>
      isIn(ids, it.project_id) &&
      isIn(state, it.state) &&
      wanted.every((word) => (word.startsWith('!') ? !holds(it, word.slice(1)) : holds(it, word)));
    const isReverse = sort.startsWith('-');
    const field = sort.replace('-', '') as
      'expires_at' | 'created_at' | 'last_used_at' | 'request_count' | 'name' | 'live';
    const byKey = (one: WireToken, other: WireToken) => {
      const isDead = field === 'live' && one.state !== 'active' && other.state !== 'active';
      if (field === 'live' && (one.state === 'active') !== (other.state === 'active'))
        return one.state === 'active' ? -1 : 1;
      const by = field === 'live' ? 'expires_at' : field;
      const [a, b] = [one[by] ?? '', other[by] ?? ''];
      return (a < b ? -1 : a > b ? 1 : one.id < other.id ? -1 : 1) * (isDead ? -1 : 1);
    };
    const found = this.tokens.filter(fits).sort(byKey);
    return isReverse ? found.reverse() : found;
  }

  #page(query: TokenQuery): DataOf<'tokens'> {
    return { ...pageOf(this.#found(query), query), total: this.#found(query).length };
  }

  #audit({ token_id: id, action, until, batch, group, ...paging }: AuditQuery): DataOf<'audit'> {
    const fits = (it: WireAuditRecord) =>
      (id === undefined || it.token_id === id) &&
      (action === undefined || it.action === action) &&
      (batch === undefined || it.batch === batch) &&
      (until === undefined || it.time < until);
    const found = this.records.filter(fits).reverse();
    const members = (of: WireAuditRecord) => found.filter((it) => it.batch !== null && it.batch === of.batch);
    const rows = found.flatMap((it) => {
      const [last, ...others] = members(it);
      if (last === undefined || group === undefined || others.length === 0) return it;
      return last === it ? { ...it, token_id: null, token_name: null, details: null, count: others.length + 1 } : [];
    });
    return { ...pageOf(rows, paging), total: null };
  }

  /** Like the daemon, it searches a limited number of events for a page. */
  #events({ until, cursor, limit = '100', ...query }: EventQuery): DataOf<'events'> {
    this.eventPages += 1;
    const from = cursor === undefined ? 0 : Number(cursor);
    const all = this.events.filter(({ time }) => until === undefined || time < until).reverse();
    const items = [];
    let at = from;
    for (; at < Math.min(all.length, from + this.searchedPerPage) && items.length < Number(limit); at++) {
      const event = all[at];
      if (event && matchesQuery(event, query)) items.push(event);
    }
    return { items, next: at < all.length ? String(at) : null, total: null };
  }

  #outcomeOf(change: ChangeRequest): ChangeResult {
    const nothing: ChangeResult = { done: 1, doneIds: [], failures: [] };
    switch (change.what) {
      case 'revoke':
      case 'reactivate':
        return this.#setActive(change.tokens, change.what === 'reactivate');
      case 'create-token': {
        const { like } = change.body;
        const template = like === undefined ? undefined : this.token(like);
        const { project_id = template?.project_id ?? 'project-web', name = template?.name ?? null } = change.body;
        const made = token(this.tokens.length, { project_id, name });
        this.tokens.push(made);
        return { ...nothing, created: { of: { is: 'token', token: made }, secret: new Secret(SECRET) } };
      }
      case 'update-token':
        this.tokens = this.tokens.map((it) => (it.id === change.token.id ? { ...it, ...change.body } : it));
        return nothing;
      case 'issue-again':
        return {
          done: change.tokens.length,
          doneIds: change.tokens.map(({ id }) => id),
          failures: [],
          path: `/home/ana/${change.path}`,
        };
      case 'create-project':
        this.projects.push(project(change.name, { ...change.upstream, ...change.policies }));
        return { ...nothing, ...(change.key.isToCheck && { keyCheck: this.keyCheck }) };
      case 'update-project': {
        const changed = Object.fromEntries(Object.entries(change.body).filter(([, value]) => value !== undefined));
        this.projects = this.projects.map((it) => (it.id === change.project.id ? { ...it, ...changed } : it));
        return { ...nothing, ...(change.key?.isToCheck && { keyCheck: this.keyCheck }) };
      }
      case 'create-operator': {
        const made = operator(change.body.name, { role: change.body.role });
        this.operators.push(made);
        return { ...nothing, created: { of: { is: 'operator', operator: made }, secret: new Secret(OPERATOR_SECRET) } };
      }
      case 'activate-operator':
      case 'deactivate-operator': {
        const isActive = change.what === 'activate-operator';
        this.operators = this.operators.map((it) =>
          it.id === change.operator.id ? { ...it, is_active: isActive } : it,
        );
        return { ...nothing, ...(!isActive && { revoked: 2 }) };
      }
      case 'undo':
        return this.#undo(change);
      default:
        return { ...nothing, done: 3 };
    }
  }

  #undo({ as }: UndoRequest): ChangeResult {
    if (as === null || !('tokens' in as)) return as ? this.#outcomeOf(as) : { done: 3, doneIds: [], failures: [] };
    const done = this.#outcomeOf({ ...as, tokens: as.tokens.filter(({ id }) => !this.touched.has(id)) });
    const skipped = as.tokens.filter(({ id }) => this.touched.has(id));
    return {
      ...done,
      skipped: skipped.map(({ id }) => ({ project_id: '', token_id: id, reason: 'changed_since', message: null })),
    };
  }

  #setActive(named: readonly Named[], isActive: boolean): ChangeResult {
    const doneIds: string[] = [];
    const failures: ChangeResult['failures'][number][] = [];
    for (const of of named) {
      if (!this.token(of.id)) failures.push({ of, failure: notFound('token not found') });
      else if (this.stubborn.has(of.id)) failures.push({ of, failure: REFUSED });
      else doneIds.push(of.id);
    }
    this.tokens = this.tokens.map((it) =>
      doneIds.includes(it.id) ? { ...it, is_active: isActive, state: isActive ? 'active' : 'revoked' } : it,
    );
    return { done: doneIds.length, doneIds, failures };
  }
}

/** Whether the daemon would list or stream the event for these parameters, as far as tests use them. */
export function matchesQuery(
  event: WireEvent,
  { outcome, status, token_id: tokenId, project_id: projectId }: EventStreamQuery,
): boolean {
  if (tokenId !== undefined && event.token_id !== tokenId) return false;
  if (projectId !== undefined && event.project_id !== projectId) return false;
  if (outcome === undefined && status === undefined) return true;
  if (event.kind !== 'request.completed') return false;
  const written = String(event.status);
  return (
    (outcome === undefined || outcome.split(',').includes(event.outcome)) &&
    (status === undefined || status.split(',').some((one) => written.startsWith(one.replace('xx', ''))))
  );
}

/** The rows after the row that the cursor names. */
function pageOf<T extends { id: string }>(
  all: readonly T[],
  { cursor, limit = '100' }: { cursor?: string; limit?: string },
) {
  const from = cursor === undefined ? 0 : all.findIndex(({ id }) => id === cursor) + 1;
  const items = all.slice(from, from + Number(limit));
  return { items, next: from + items.length < all.length ? (items.at(-1)?.id ?? null) : null };
}
