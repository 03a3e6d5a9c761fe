/** Scenes: every screen and layer, with realistic and with hostile data. */
import type { WireToken, WireTop, WireTopRow, WireUsageLine } from '../../../daemon/api/contract.js';
import { INCIDENT_KINDS } from '../../../daemon/api/vocabulary.js';
import { aTop, aTopRow } from '../../support/factories.js';
import { NOTHING_SAVED } from '../../../tui/state/saved.js';
import { Secret } from '../../../tui/state/secret.js';
import type { Tab } from '../../../tui/state/state.js';
import { operator, self, trust } from '../simulated.js';
import {
  at,
  ofProject,
  ofToken,
  project,
  record,
  request,
  ScreenFixture,
  type Setting,
  STATUS,
  token,
  usageLine,
} from './screen-fixture.js';

/** A fake secret in the format of a real one. */
export const SECRET = 'sk-wt-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCdE';

export const HOSTILE = [
  '\x1b[31mred\x1b[0m\x1b]52;c;QUFB\x07',
  'left\u202eright\u2066',
  '漢字'.repeat(25),
  '👩‍👩‍👧‍👦🏳️‍🌈 family',
  'e\u0301\u0302\u0303\u0304 stacked',
  '\u200b\u200d\ufeff\u{e0041}',
  'שלום עולם مرحبا',
  'x'.repeat(100),
  'ｱﾞ한국어ᄀ가',
  'line\u2028break\u0085next',
];

const spentSince = (minutes: number): WireToken['spent'] => ({
  usd: '0.00',
  tokens: 0,
  reserved_usd: '0.00',
  unpriced_requests: 0,
  since: at(minutes),
});

const BUDGETS: readonly WireToken['budget'][] = [
  { usd: '25.00', period: 'month', mode: 'soft' },
  null,
  { usd: '13.00', tokens: 1_000_000, period: 'none', mode: 'hard' },
  { tokens: 5_000_000, period: 'day', mode: 'shadow' },
];

/** Of a project and a model in the last days. */
const costLine = (project: number, model: string, usd: string | null): WireUsageLine => {
  const { project_id, project_name } = ofProject(PROJECTS[project]!);
  return {
    ...usageLine(0, 100, { hour: undefined }),
    project_id,
    project_name,
    model,
    cost_usd: usd,
    unpriced_requests: usd === null ? 100 : 0,
  };
};

const STATES = ['active', 'rate_limited', 'revoked', 'expired', 'project_inactive'] as const;

export const PROJECTS = [
  project(1, {
    name: 'web',
    budget: { usd: '500.00', tokens: 200_000_000, period: 'month', mode: 'hard' },
    spent: { ...spentSince(-22 * 24 * 60), usd: '300.104512', reserved_usd: '1.25', tokens: 90_412_007 },
  }),
  project(2, { name: 'research' }),
  project(3, { name: 'batch', is_active: false, deactivated_at: at(-90) }),
];
export const TOKENS = Array.from({ length: 80 }, (_, number) =>
  token(number, {
    ...ofProject(PROJECTS[number % 3]!),
    name: number === 0 ? 'ci-deploy' : number % 9 === 8 ? null : `job-${number}`,
    state: STATES[number % 5]!,
    is_active: STATES[number % 5] !== 'revoked',
    max_requests: number % 4 === 3 ? 0 : 5_000,
    budget: BUDGETS[number % 4]!,
    spent: { ...spentSince(-600), usd: `${number + 12}.35`, tokens: 1_204_310, unpriced_requests: number % 2 },
    last_used_at: number % 6 === 5 ? null : at(-number - 0.1),
  }),
);

/** How requests end. */
const ENDINGS = [
  { status: 200 },
  { status: 200 },
  {
    status: 429,
    outcome: 'refused',
    code: 'request_limit_reached',
    error: 'token request limit reached: ask for another token',
  },
  {
    status: 502,
    outcome: 'upstream_error',
    code: 'upstream_unreachable',
    error: 'upstream unreachable (ECONNREFUSED)',
  },
  { status: 401, outcome: 'refused', code: 'unauthorized', error: 'the token is expired' },
] as const;

/** The busiest tokens, with fewer and fewer errors. */
function topOf(count: number, tokenAt: (number: number) => WireToken, fields: Partial<WireTopRow> = {}): WireTop {
  const rows = Array.from({ length: count }, (_, number) => {
    const [refused, errors] = [Math.max(0, 40 - number * 7), Math.max(0, 61 - number * 8)];
    const { project_id, project_name } = tokenAt(number);
    return aTopRow({
      ...ofToken(tokenAt(number)),
      project_id,
      project_name,
      requests: 4_211 - number * 17,
      errors,
      refused,
      upstream_refused: errors - refused,
      prompt_tokens: 1_204_112,
      completion_tokens: 80_211 * number,
      p50_ms: 412,
      p95_ms: 1_890,
      last_used_at: at(-number),
      history: Array.from({ length: 20 }, (__, step) => (step * (number + 3)) % 17),
      error_history: Array.from({ length: 20 }, (__, step) => (step % 7 === 3 && errors > 0 ? 4 : 0)),
      ...fields,
    });
  });
  return aTop({ rows, from: at(-60), to: at(0) });
}

const REALISTIC: Setting = {
  projects: PROJECTS,
  tokens: TOKENS,
  usage: Array.from({ length: 20 }, (_, ago) =>
    usageLine(ago, 40 + ago * 13, { errors: ago % 7 === 3 ? 4 : 0, cost_usd: `${ago}.25` }),
  ),
  costs: [
    costLine(0, 'gpt-5', '180.50'),
    costLine(0, 'gpt-5-mini', '41.10'),
    costLine(1, 'claude-sonnet-5', '61.034'),
    costLine(1, 'local-llama', null),
    costLine(2, 'local-llama', null),
  ],
  audit: Array.from({ length: 50 }, (_, number) =>
    record(number, {
      ...ofToken(TOKENS[number % 4]!),
      ...ofProject(PROJECTS[0]!),
      outcome: number % 10 === 9 ? 'denied' : 'success',
      reason: number % 3 === 0 ? 'leaked in CI log' : null,
      details: number % 2 === 0 ? { changed: ['name'] } : null,
    }),
  ),
  events: Array.from({ length: 50 }, (_, number) =>
    request(number, {
      ...ofToken(TOKENS[number % 4]!),
      ...ofProject(PROJECTS[0]!),
      ...ENDINGS[number % 5]!,
      cache: number % 3 === 0 ? 'hit' : 'miss',
    }),
  ),
  top: topOf(12, (number) => TOKENS[number]!),
  contexts: [
    {
      name: 'prod',
      server: 'https://llmp.example:8443',
      isCurrent: true,
      isProtected: true,
      isReadonly: false,
      color: 'red',
    },
    {
      name: 'laptop',
      server: 'http://127.0.0.1:8080',
      isCurrent: false,
      isProtected: false,
      isReadonly: true,
      color: null,
    },
  ],
};

const hostile = (number: number) => HOSTILE[number % HOSTILE.length]!;
const MOST = 2_147_483_647;
const HOSTILE_PROJECTS = HOSTILE.map((name, number) => project(number, { name, api_key_hint: hostile(number) }));

const HOSTILE_SETTING: Setting = {
  place: { server: hostile(0), context: hostile(2), color: 'no such colour', isReadonly: true },
  projects: HOSTILE_PROJECTS,
  tokens: Array.from({ length: 200 }, (_, number) =>
    token(number, {
      name: hostile(number),
      ...(number % 2 === 0
        ? ofProject(HOSTILE_PROJECTS[number % HOSTILE.length]!)
        : { project_id: hostile(number), project_name: hostile(number) }),
      obfuscated: hostile(number + 1),
      state: (number % 3 === 0 ? hostile(number) : 'active') as 'active',
      max_requests: MOST,
      request_count: MOST,
      cache_hit_count: MOST,
      expires_at: number % 5 === 0 ? 'no time' : at(number * 1e6),
      last_used_at: number % 7 === 0 ? 'no time' : at(-number * 1e5),
    }),
  ),
  status: {
    ...STATUS,
    status: 'not ready',
    missing: HOSTILE,
    degraded: HOSTILE,
    version: hostile(1),
    instance: hostile(4),
    database: {
      driver: hostile(3),
      status: 'failing',
      schema: hostile(7),
      pending_migrations: [hostile(0), hostile(1)],
    },
    event_bus: { kind: 'redis-streams', status: 'failing', buffered: MOST, published: MOST, dropped: MOST, lag: MOST },
    audit: { status: 'failing', records: MOST, failures: MOST },
    tokens: { active: MOST, expired: MOST, revoked: MOST, rate_limited: MOST, project_inactive: 0 },
    requests: { in_flight: MOST, per_second: 1e9, errors_per_second: 1e9 },
    cache: { backend: 'redis', hit_ratio: 1 },
    upstream: { p50_ms: 1e9, p95_ms: null },
    workers: [],
  },
  usage: Array.from({ length: 30 }, (_, ago) => usageLine(ago, MOST, { errors: MOST, refused: MOST })),
  incidents: HOSTILE.map((words, number) => ({
    kind: INCIDENT_KINDS[number % INCIDENT_KINDS.length]!,
    project_id: words,
    project_name: words,
    token_id: words,
    token_name: words,
    why: words,
    remedy: number % 2 === 0 ? words : null,
    failures: MOST,
    requests: MOST,
    tokens: MOST,
    p50_ms: 1e12,
    earlier_p50_ms: null,
  })),
  top: {
    ...topOf(60, (number) => token(number, { name: hostile(number), project_name: hostile(number + 1) }), {
      requests: MOST,
      errors: MOST,
      refused: MOST,
      upstream_refused: MOST,
      failed: MOST,
      cut: MOST,
      prompt_tokens: MOST,
      completion_tokens: MOST,
      p50_ms: 1e9,
      p95_ms: 1e9,
      model: hostile(2),
      last_used_at: 'no time',
      history: [MOST],
      error_history: [],
    }),
    from: 'no time',
    row_count: MOST,
  },
  cache: { backend: 'redis', entries: MOST, bytes: 1e15, hits: MOST, misses: MOST },
  audit: HOSTILE.map((words, number) =>
    record(number, {
      action: words as 'token.use',
      actor: words,
      outcome: 'error',
      token_id: words,
      project_id: words,
      token_name: words,
      project_name: words,
      client_ip: words,
      reason: words,
      request_id: words,
      obfuscated: words,
      count: MOST,
      details: { [words]: words, list: [words] },
      time: number === 3 ? 'no time' : at(number),
    }),
  ),
  events: HOSTILE.map((words, number) =>
    request(number, {
      path: words,
      method: words,
      model: words,
      token_id: words,
      project_id: null,
      status: 999,
      code: words,
      request_id: words,
      upstream_request_id: words,
      instance: words,
      duration_ms: 1e12,
      usage: {
        ...{ prompt_tokens: MOST, completion_tokens: MOST, total_tokens: MOST, source: 'provider' },
        ...{ cache_read_tokens: MOST, cache_write_tokens: MOST },
      },
    }),
  ),
  contexts: HOSTILE.map((words) => ({
    name: words,
    server: words,
    isCurrent: true,
    isProtected: true,
    isReadonly: true,
    color: words,
  })),
};

const TABS: readonly Tab[] = ['overview', 'tokens', 'projects', 'audit', 'cache', 'events', 'top'];

/** Opens the dialog with the secret of a new token. */
export function withSecret(scene: ScreenFixture): ScreenFixture {
  const made = scene.setting.tokens?.[0] ?? token(1);
  return scene.act({
    on: 'changed',
    change: { what: 'create-token', body: { project_id: made.project_id } },
    outcome: {
      done: 1,
      doneIds: [],
      failures: [],
      created: { of: { is: 'token', token: made }, secret: new Secret(SECRET) },
    },
  });
}

/** Names that anybody may have written. */
const hostileAccess = () => ({
  operators: [
    operator(hostile(0), { role: 'issuer', ceilings: { hours: 8, models: [hostile(1)] } }),
    operator(hostile(2), { is_active: false }),
  ],
  trusts: [trust(hostile(3), { match: { [hostile(4)]: hostile(5) }, issuer: hostile(6), project_name: hostile(7) })],
});

type Make = (setting: Setting) => ScreenFixture;

/** Scenes by name, each built from a setting. */
const MADE: readonly (readonly [string, Make])[] = [
  ...TABS.map((tab): [string, Make] => [tab, (setting) => new ScreenFixture({ ...setting, tab })]),
  ...TABS.map((tab): [string, Make] => [
    `${tab} of which nothing is known`,
    (setting) => new ScreenFixture({ ...setting, tab, events: [], status: null }),
  ]),
  ...TABS.map((tab): [string, Make] => [
    `help on ${tab}`,
    (setting) => new ScreenFixture({ ...setting, tab }).press('?', 'j'),
  ]),
  ['the busiest models', (setting) => new ScreenFixture({ ...setting, tab: 'top' }).press('m', 'j')],
  [
    'the busiest without a match',
    (setting) =>
      new ScreenFixture({ ...setting, tab: 'top' }).press('/').act({ on: 'paste', text: 'model:x' }).press('enter'),
  ],
  ['a token', (setting) => new ScreenFixture(setting).press('enter', 'j', 'j')],
  ['a token to its end', (setting) => new ScreenFixture(setting).press('enter', 'G')],
  ['a project', (setting) => new ScreenFixture({ ...setting, tab: 'projects' }).press('j', 'enter')],
  ['a project to its end', (setting) => new ScreenFixture({ ...setting, tab: 'projects' }).press('j', 'enter', 'G')],
  [
    'a token that is gone',
    (setting) => {
      const scene = new ScreenFixture(setting).press('enter');
      const id = setting.tokens?.[0]?.id ?? '';
      const failure = { kind: 'refused', status: 404, code: 'not_found', message: 'gone', retryAfterMs: null } as const;
      return scene.act({ on: 'failed', request: { of: 'token', id }, failure });
    },
  ],
  ['an open audit record', (setting) => new ScreenFixture({ ...setting, tab: 'audit' }).press('k', 'k', 'enter')],
  ['an open event', (setting) => new ScreenFixture({ ...setting, tab: 'events' }).press('k', 'enter')],
  ['marks and a message', (setting) => new ScreenFixture(setting).press('space', 'space', 'v', 'j', 'j')],
  ['a dialog', (setting) => new ScreenFixture(setting).press('space', 'space', 'j', 'space', 'x')],
  ['a dialog with input', (setting) => new ScreenFixture(setting).press('x', 'shift+tab', 'w', 'e', 'enter')],
  [
    'what a new token may use',
    (setting) => new ScreenFixture(setting).press('n', 'tab', 'tab', 'tab', 'tab', 'space', 'tab'),
  ],
  ['what a token may use', (setting) => new ScreenFixture(setting).press('L')],
  ['what a project may use', (setting) => new ScreenFixture({ ...setting, tab: 'projects' }).press('L', 'right')],
  ['a new token', (setting) => new ScreenFixture(setting).press('n', 'tab', 'c', 'i')],
  [
    'a new token that lives long',
    (setting) => new ScreenFixture(setting).press('n', 'tab', 'tab', 'ctrl+u', '9', '9', '9', 'h'),
  ],
  [
    'a new project',
    (setting) => new ScreenFixture({ ...setting, tab: 'projects' }).press('n', 'tab', 's', 'k', '-', '1'),
  ],
  [
    'a key that the provider checks',
    (setting) =>
      new ScreenFixture({ ...setting, tab: 'projects' })
        .press('n', 'n', 'tab', 's', 'k', '-', '1', 'enter', 'enter')
        .wait(12_000),
  ],
  ['operators', (setting) => new ScreenFixture({ ...setting, ...hostileAccess() }).press('O', 'j')],
  ['an operator', (setting) => new ScreenFixture({ ...setting, ...hostileAccess() }).press('O', 'enter', 'j')],
  [
    'a new operator',
    (setting) => new ScreenFixture(setting).press('O', 'n', 'b', 'tab', 'tab', 'tab', 'tab', 'space', 'tab'),
  ],
  ['an operator to deactivate', (setting) => new ScreenFixture({ ...setting, ...hostileAccess() }).press('O', 'd')],
  ['trusts', (setting) => new ScreenFixture({ ...setting, ...hostileAccess() }).press('T')],
  ['a trust', (setting) => new ScreenFixture({ ...setting, ...hostileAccess() }).press('T', 'enter')],
  ['no operators', (setting) => new ScreenFixture({ ...setting, operators: [] }).press('O')],
  ['no trusts', (setting) => new ScreenFixture({ ...setting, trusts: [] }).press('T')],
  [
    'somebody with a role',
    (setting) => new ScreenFixture({ ...setting, self: self('viewer', { name: hostile(0) }) }).press('enter'),
  ],
  [
    'who is logged in',
    (setting) =>
      new ScreenFixture({ ...setting, self: self('issuer', { ceilings: { hours: 8 } }) })
        .press(':')
        .act({ on: 'paste', text: 'whoami' })
        .press('enter'),
  ],
  [
    'a token of an issuer',
    (setting) =>
      new ScreenFixture({ ...setting, self: self('issuer', { ceilings: { hours: 8, models: ['gpt-5-mini'] } }) }).press(
        'n',
      ),
  ],
  ['a purge', (setting) => new ScreenFixture({ ...setting, tab: 'cache' }).press('x', 'right')],
  ['the command line', (setting) => new ScreenFixture(setting).press(':', 'r', 'e')],
  ['the command line without a match', (setting) => new ScreenFixture(setting).press(':', 'ä', '漢')],
  ['a command with names', (setting) => new ScreenFixture(setting).press(':').act({ on: 'paste', text: 'token ' })],
  [
    'a command with a problem',
    (setting) =>
      new ScreenFixture(setting)
        .press(':')
        .act({ on: 'paste', text: `tokens ${hostile(0)}:x` })
        .press('enter'),
  ],
  ['the choice of columns', (setting) => new ScreenFixture(setting).press('C', 'j', 'space', 'K', 'K')],
  ['the columns of events', (setting) => new ScreenFixture({ ...setting, tab: 'events' }).press('C', 'G')],
  [
    'saved views',
    (setting) =>
      new ScreenFixture({
        ...setting,
        settings: {
          saved: {
            ...NOTHING_SAVED,
            views: Array.from({ length: 7 }, (_, at) => ({
              name: `${'漢'.repeat(at)}view`,
              screen: 'tokens',
              filter: '',
              sort: null,
              columns: null,
            })),
          },
        },
      }).press('9'),
  ],
  [
    'a notice',
    (setting) =>
      new ScreenFixture({
        ...setting,
        settings: { problems: Array.from({ length: 12 }, (_, at) => hostile(at)) },
      }).press('j'),
  ],
  ['contexts', (setting) => new ScreenFixture(setting).press('c', 'j')],
  [
    'a filter that is typed',
    (setting) => new ScreenFixture(setting).press('/', 's', 't', 'a', 't', 'e', ':', 'x', 'y'),
  ],
  [
    'a filter that lets nothing through',
    (setting) => new ScreenFixture({ ...setting, tokens: [] }).press('/', 'q', 'enter'),
  ],
  ['a secret', (setting) => withSecret(new ScreenFixture(setting))],
  ['a secret that is shown', (setting) => withSecret(new ScreenFixture(setting)).press('v')],
  ['a secret that is written', (setting) => withSecret(new ScreenFixture(setting)).press('w')],
  ['an unreachable daemon', (setting) => new ScreenFixture(setting).lose({ message: hostile(0) }).wait(12_000)],
  [
    'a management token that was refused',
    (setting) => new ScreenFixture(setting).lose({ kind: 'refused', status: 401, message: hostile(2) }),
  ],
  ['a pause', (setting) => new ScreenFixture(setting).press('p').wait(10_000)],
  ['another clock', (setting) => new ScreenFixture(setting).act({ on: 'heard', skewMs: -42_000 })],
  [
    'progress',
    (setting) =>
      new ScreenFixture(setting)
        .press('space', 'space', 'x', 'shift+tab', '2', 'enter', 'enter')
        .act({ on: 'progress', words: 'revoking', done: 31, of: 80 }),
  ],
];

export interface Shown {
  name: string;
  make: (setting: Pick<Setting, 'columns' | 'rows' | 'look'>) => ScreenFixture;
}

export const SCENES: readonly Shown[] = MADE.flatMap(([name, make]) => [
  { name, make: (setting) => make({ ...REALISTIC, ...setting }) },
  { name: `${name}, with hostile data`, make: (setting) => make({ ...HOSTILE_SETTING, ...setting }) },
]);

/** A scene with realistic data. */
export const scene = (setting: Setting = {}): ScreenFixture => new ScreenFixture({ ...REALISTIC, ...setting });
