/** Builds states with the reducer, from responses like those of the daemon. */
import type {
  WireAuditRecord,
  WireCache,
  WireEvent,
  WireIncident,
  WireOperator,
  WireProject,
  WireRequestEvent,
  WireSelf,
  WireStatus,
  WireToken,
  WireTop,
  WireTrust,
  WireUsageLine,
} from '../../../daemon/api/contract.js';
import { initialState, type InitialStateOptions } from '../../../tui/state/initial-state.js';
import type { Action, ContextSummary, DataOf, DataRequest, Failure, Target } from '../../../tui/state/exchange.js';
import { focused } from '../../../tui/state/dialog.js';
import type { Label } from '../../../tui/state/layers.js';
import { layer, type Look, type State, type Tab } from '../../../tui/state/state.js';
import { update } from '../../../tui/state/update.js';
import { INPUT } from '../../../tui/store.js';
import { operator, ROOT, trust } from '../simulated.js';
import { aTop, aWireProject, aWireToken } from '../../support/factories.js';

export const NOW_MS = Date.UTC(2026, 10, 23, 14, 3, 11);
const MINUTE_MS = 60_000;

export const at = (minutes: number) => new Date(NOW_MS + minutes * MINUTE_MS).toISOString();

export const PLACE: Target = {
  server: 'llmp.example:8443',
  context: 'prod',
  color: 'red',
  isProtected: true,
  isReadonly: false,
  project: null,
};

export interface Setting {
  columns?: number;
  rows?: number;
  tab?: Tab;
  look?: Partial<Look>;
  place?: Partial<Target>;
  tokens?: readonly WireToken[];
  projects?: readonly WireProject[];
  /** Null: the daemon is unreachable. */
  status?: WireStatus | null;
  usage?: readonly WireUsageLine[];
  /** By project and model. */
  costs?: readonly WireUsageLine[];
  /** Tokens whose budgets are nearly spent. */
  spenders?: readonly WireToken[];
  audit?: readonly WireAuditRecord[];
  events?: readonly WireEvent[];
  cache?: WireCache;
  /** Who is logged in. */
  self?: WireSelf;
  operators?: readonly WireOperator[];
  trusts?: readonly WireTrust[];
  top?: WireTop;
  incidents?: readonly WireIncident[];
  contexts?: readonly ContextSummary[];
  /** What the operator's settings say. */
  settings?: Pick<InitialStateOptions, 'customKeys' | 'skins' | 'problems' | 'saved'>;
}

export const UNICODE: Look = { ascii: false, hasColor: true, isStill: false };

const UNREACHABLE: Failure = {
  kind: 'unreachable',
  status: null,
  code: 'ECONNREFUSED',
  message: 'cannot reach the daemon at llmp.example:8443: ECONNREFUSED',
  retryAfterMs: null,
};

/** A terminal UI with a daemon that responds immediately with the data of `setting`. */
export class ScreenFixture {
  readonly setting: Setting;
  state: State;

  constructor(setting: Setting = {}) {
    this.setting = setting;
    const { columns = 100, rows = 24, tab = 'tokens', look = {}, place = {}, settings } = setting;
    this.state = initialState({
      size: { columns, rows },
      look: { ...UNICODE, ...look },
      target: { ...PLACE, ...place },
      nowMs: NOW_MS,
      tab,
      refreshMs: 2_000,
      ...settings,
    });
    this.act({ on: 'began' });
    this.act({ on: 'streamed', streamed: (setting.events ?? []).map((item) => ({ of: 'events', item })) });
  }

  act(action: Action, atMs = this.state.nowMs): this {
    const [next, ...effects] = update(this.state, { ...action, atMs }, INPUT);
    this.state = next;
    for (const effect of effects) {
      if (effect.do === 'load') this.#answer(effect.request);
      if (effect.do === 'follow' && effect.streams.some(({ of }) => of === 'tokenEvents'))
        this.act({ on: 'stream', of: 'tokenEvents', is: 'open', failure: null });
    }
    return this;
  }

  press(...keys: string[]): this {
    for (const key of keys) this.act({ on: 'key', key });
    return this;
  }

  /** Moves to the field of the open dialog with that label. */
  goesTo(label: Label): this {
    for (let tabs = 0; tabs < 20; tabs += 1) {
      const dialog = layer(this.state);
      if (dialog?.kind === 'dialog' && focused(dialog)?.label === label) return this;
      this.press('tab');
    }
    throw new Error(`no field ${label}`);
  }

  /** The daemon becomes unreachable, and a request fails. */
  lose(failure: Partial<Failure> = {}): this {
    return this.act({ on: 'failed', request: { of: 'status' }, failure: { ...UNREACHABLE, ...failure } });
  }

  /** Time passes without a refresh. */
  wait(ms: number): this {
    return this.act({ on: 'woke', name: 'second' }, this.state.nowMs + ms);
  }

  #answer(request: DataRequest): void {
    if (this.setting.status === null) this.lose();
    else {
      const data = this.#dataOf(request);
      if (data !== undefined) this.act({ on: 'loaded', request, data } as Action);
    }
  }

  /** @returns undefined for data that never arrives. */
  #dataOf(request: DataRequest): DataOf<DataRequest['of']> | undefined {
    const { tokens = [], projects = [], usage = [], audit = [], events = [], top = aTop() } = this.setting;
    const page = <T>(items: readonly T[]) => ({ items: [...items], next: null, total: items.length });
    const records = [...audit].reverse();
    switch (request.of) {
      case 'self':
        return this.setting.self ?? ROOT;
      case 'operators':
        return this.setting.operators ?? [operator('ana'), operator('ci', { is_active: false })];
      case 'trusts':
        return this.setting.trusts ?? [trust('gha {repository}#{run_id}')];
      case 'status':
        return this.setting.status ?? STATUS;
      case 'incidents':
        return { from: at(-15), to: at(0), incidents: [...(this.setting.incidents ?? [])] };
      case 'lastHour':
        return top;
      case 'tokens':
      case 'expiring':
        return page(tokens);
      case 'costs':
        return this.setting.costs ?? [];
      case 'spenders':
        return page(this.setting.spenders ?? []);
      case 'token':
        return tokens.find(({ id }) => id === request.id);
      case 'tokensOfSecret':
      case 'allTokens':
        return tokens;
      case 'projects':
        return projects;
      case 'models':
        return ['gpt-5-mini', 'claude-haiku-4-5'];
      case 'usage':
        return usage;
      case 'audit':
        return page(records);
      case 'events':
        return page([...events].reverse());
      case 'tokenAudit': {
        const own = records.filter(({ token_id }) => token_id === request.id);
        const changes = own.filter(({ action }) => action !== 'token.use');
        return { changes, lastUse: own.find((record) => !changes.includes(record)) ?? null, isTruncated: false };
      }
      case 'projectAudit':
        return records.filter(({ project_id, action }) => project_id === request.id && action !== 'token.use');
      case 'top':
        return { ...top, rows: rowsBy(request.query.by, top.rows) };
      case 'projectCheck':
        return undefined;
      case 'cache':
        return this.setting.cache ?? CACHE;
      case 'purgeable':
        return 12;
      case 'viewCount':
        return tokens.length;
      case 'contexts':
        return this.setting.contexts ?? [];
    }
  }
}

/** Each row has its own project or model: the fixture sums up nothing. */
const rowsBy = (by: string | undefined, rows: WireTop['rows']): WireTop['rows'] =>
  rows.map(({ token_id, token_name, model, ...row }) =>
    by === 'model' ? { ...row, model: model ?? null } : by === 'project' ? row : { ...row, token_id, token_name },
  );

export const STATUS: WireStatus = {
  status: 'ready',
  missing: [],
  degraded: [],
  version: '0.1.0',
  instance: 'web-1',
  started_at: at(-60 * 52),
  uptime_s: 52 * 3600,
  database: { driver: 'sqlite', status: 'ok', schema: '0001-first-schema', pending_migrations: [] },
  redis: 'off',
  event_bus: { kind: 'in-memory', status: 'ok', buffered: 0, published: 48_112, dropped: 0, lag: null },
  audit: { status: 'ok', records: 1_204, failures: 0 },
  projects: { active: 11, all: 12 },
  tokens: { active: 3_811, expired: 214, revoked: 96, rate_limited: 61, project_inactive: 31 },
  counted_at: at(0),
  requests: { in_flight: 3, per_second: 14.2, errors_per_second: 0 },
  prices: {
    shipped: { source: '@pydantic/genai-prices 0.1.8', date: '2026-09-23', sha256: 'a'.repeat(64) },
    file: null,
  },
  cache: { backend: 'memory', hit_ratio: 0.62 },
  upstream: { p50_ms: 412, p95_ms: 1_890 },
  workers: [],
};

export const CACHE: WireCache = { backend: 'memory', entries: 1_204, bytes: 18_874_368, hits: 2_610, misses: 1_601 };

/** The usage of an earlier hour. */
export const usageLine = (hoursAgo: number, requests: number, fields: Partial<WireUsageLine> = {}): WireUsageLine => ({
  hour: new Date(Math.floor(NOW_MS / 3_600_000) * 3_600_000 - hoursAgo * 3_600_000).toISOString(),
  requests,
  hits: Math.floor(requests / 2),
  errors: 0,
  refused: 0,
  upstream_refused: 0,
  failed: 0,
  cut: 0,
  prompt_tokens: requests * 410,
  completion_tokens: requests * 120,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost_usd: '0.00',
  unpriced_requests: 0,
  ...fields,
});

export const record = (number: number, fields: Partial<WireAuditRecord> = {}): WireAuditRecord => ({
  id: `0197${String(number).padStart(8, '0')}-7000-8000-000000000000`.slice(0, 36),
  time: at(-400 + number),
  action: 'token.revoke',
  actor: 'cli',
  user: null,
  outcome: 'success',
  project_id: null,
  token_id: null,
  project_name: null,
  token_name: null,
  obfuscated: null,
  request_id: `req-${number}`,
  client_ip: '10.1.2.3',
  reason: null,
  count: null,
  details: null,
  batch: null,
  undo_of: null,
  ...fields,
});

export const request = (number: number, fields: Partial<WireRequestEvent> = {}): WireRequestEvent => ({
  schema: 1,
  id: `01970000-0000-7000-8000-${String(number).padStart(12, '0')}`,
  time: at(-1 + number / 60),
  instance: 'web-1',
  project_id: null,
  token_id: null,
  project_name: null,
  token_name: null,
  kind: 'request.completed',
  request_id: `req-${number}`,
  method: 'POST',
  path: '/v1/chat/completions',
  status: 200,
  code: null,
  error: null,
  upstream_request_id: null,
  outcome: 'ok',
  cache: 'miss',
  duration_ms: 812,
  upstream_ms: 805,
  first_byte_ms: 240,
  bytes_in: 1_204,
  bytes_out: 9_310,
  streamed: true,
  model: 'gpt-4o-mini',
  usage: {
    ...{ prompt_tokens: 412, completion_tokens: 96, total_tokens: 508, source: 'provider' },
    ...{ cache_read_tokens: null, cache_write_tokens: null },
  },
  cost_usd: '0.00',
  request_body: null,
  response_body: null,
  ...fields,
});

export const project = (number: number, fields: Partial<WireProject> = {}): WireProject =>
  aWireProject({
    id: `b0a1c2d3-0000-4000-8000-${String(number).padStart(12, '0')}`,
    name: `project-${number}`,
    api_key_hint: '9f2c',
    created_at: at(-60 * 24 * 30 - number),
    updated_at: at(-60 * 5 - number),
    ...fields,
  });

/** The fields of a token, record or event about a project. */
export const ofProject = ({ id, name }: WireProject) => ({ project_id: id, project_name: name });

/** The fields of a record or event about a token. */
export const ofToken = ({ id, name }: WireToken) => ({ token_id: id, token_name: name });

export const token = (number: number, fields: Partial<WireToken> = {}): WireToken =>
  aWireToken({
    id: `${(0x3fa91c2e + number * 7_919_317).toString(16).padStart(8, '0')}-0000-4000-8000-${String(number).padStart(12, '0')}`,
    ...ofProject(project(1)),
    name: `token-${number}`,
    state: 'active',
    expires_at: at(12 + number * 36),
    max_requests: 5_000,
    request_count: 4_211,
    cache_hit_count: 2_610,
    created_at: at(-600),
    last_used_at: at(-0.05 - number),
    obfuscated: 'sk-wt-…a9Fz',
    ...fields,
  });
