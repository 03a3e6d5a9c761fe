/** Screenshots of the terminal UI: real frames, with responses of a daemon on an ordinary afternoon. */
import { incidentExample } from '../../daemon/api/schemas.js';
import type { WireToken, WireUsageLine } from '../../daemon/api/contract.js';
import { frameLines } from '../tui/screens/rendering.js';
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
} from '../tui/screens/screen-fixture.js';
import { aTop, aTopRow } from '../support/factories.js';
import { NO_USAGE } from '../support/event-json.js';
import { svgOf } from './svg.js';

const SIZE = { columns: 104, rows: 26 };

const PROJECTS = ['web', 'research', 'support', 'mobile', 'data'].map((name, number) =>
  project(number, { name, is_active: name !== 'data', deactivated_at: name === 'data' ? at(-3_000) : null }),
);

/** Name, project, state, minutes until expiry, requests, cap, share of hits, minutes since the last use. */
const ROWS: readonly (readonly [string, number, WireToken['state'], number, number, number, number, number])[] = [
  ['ci-deploy', 0, 'active', 12, 4_211, 5_000, 0.62, 0.05],
  ['batch-night', 1, 'active', 48, 12, 0, 0, 61],
  ['eval-runner', 1, 'active', 95, 38_118, 50_000, 0.41, 0.1],
  ['support-bot', 2, 'active', 320, 2_904, 10_000, 0.71, 0.4],
  ['docs-search', 0, 'active', 460, 18_023, 0, 0.86, 0.02],
  ['intern-sandbox', 1, 'active', 1_180, 77, 200, 0.12, 214],
  ['mobile-beta', 3, 'active', 2_710, 911, 25_000, 0.35, 1.2],
  ['staging', 0, 'active', 3_005, 204, 1_000, 0.22, 9],
  ['support-macros', 2, 'active', 4_400, 1_310, 20_000, 0.64, 4],
  ['nightly-eval', 1, 'active', 5_800, 6_411, 0, 0.44, 700],
  ['demo-friday', 3, 'active', 7_000, 0, 100, 0, 0],
  ['translations', 2, 'active', 8_600, 3_077, 15_000, 0.58, 14],
  ['notebook', 1, 'rate_limited', 180, 500, 500, 0.08, 2],
  ['old-laptop', 0, 'revoked', 2_300, 37, 0, 0, 5_900],
  ['quarterly-report', 4, 'project_inactive', 4_100, 88, 500, 0.5, 3_000],
  ['load-test', 0, 'rate_limited', 5_200, 100_000, 100_000, 0.02, 30],
];

const DYING: readonly WireToken[] = ROWS.map(([name, of, state, minutes, used, most, hits, ago], number) =>
  token(number, {
    name,
    ...ofProject(PROJECTS[of]!),
    state,
    is_active: state !== 'revoked',
    expires_at: at(minutes),
    request_count: used,
    max_requests: most,
    cache_hit_count: Math.floor(used * hits),
    last_used_at: used === 0 ? null : at(-ago),
  }),
);
const EXPIRED = Array.from({ length: 3 }, (_, number) =>
  token(100 + number, {
    name: `preview-${142 - number}`,
    ...ofProject(PROJECTS[3]!),
    expires_at: at(9_000 + number * 60),
  }),
);

const isUsable = ({ state }: WireToken) => state === 'active';

/** A wave with deterministic noise. */
const wave = (at: number) => 9 + 5 * Math.sin(at / 11) + 2.5 * Math.sin(at / 3.7) + ((at * 7_919) % 13) / 6;

/** By hours ago. The last two hold those of the last hour. */
const FAILURES: Readonly<Record<number, Pick<WireUsageLine, 'errors' | 'refused' | 'failed'>>> = {
  0: { errors: 52, refused: 9, failed: 43 },
  1: { errors: 143, refused: 22, failed: 121 },
  5: { errors: 43, refused: 31, failed: 12 },
};

const SETTING: Setting = {
  ...SIZE,
  projects: PROJECTS,
  // As the daemon sorts them: usable tokens first.
  tokens: [...DYING.filter(isUsable), ...EXPIRED, ...DYING.filter((it) => !isUsable(it))],
  status: {
    ...STATUS,
    projects: { active: 4, all: 5 },
    tokens: { active: 15, expired: 0, revoked: 1, rate_limited: 2, project_inactive: 1 },
  },
  usage: Array.from({ length: 24 }, (_, ago) =>
    usageLine(ago, Math.round(900 + 850 * Math.cos(((ago + 1) * Math.PI) / 12)), FAILURES[ago] ?? {}),
  ),
  events: Array.from({ length: 40 }, (_, number) => {
    const { status, code, outcome } =
      number % 11 === 4
        ? ({ status: 429, code: 'request_limit_reached', outcome: 'refused' } as const)
        : number % 17 === 9
          ? ({ status: 502, code: 'upstream_unavailable', outcome: 'upstream_error' } as const)
          : ({ status: 200, code: null, outcome: 'ok' } as const);
    const isHit = status === 200 && number % 3 === 0;
    return request(number, {
      time: at(-0.9 + number / 48),
      ...ofToken(DYING[[0, 4, 2, 3, 4, 8, 6][number % 7]!]!),
      ...ofProject(PROJECTS[0]!),
      status,
      code,
      outcome,
      cache: isHit ? 'hit' : 'miss',
      duration_ms: isHit || status === 429 ? 1 + (number % 3) : 240 + ((number * 379) % 2_100),
      path: number % 7 === 3 ? '/v1/embeddings' : '/v1/chat/completions',
      model: number % 7 === 3 ? 'text-embedding-3-small' : number % 2 === 0 ? 'gpt-4o-mini' : 'gpt-4o',
      usage:
        status === 200
          ? {
              prompt_tokens: 180 + ((number * 97) % 900),
              completion_tokens: number % 7 === 3 ? 0 : 40 + ((number * 31) % 400),
              total_tokens: 900,
              source: 'provider',
              cache_read_tokens: null,
              cache_write_tokens: null,
            }
          : NO_USAGE,
    });
  }),
  audit: [
    record(1, { time: at(-600), action: 'token.create', ...ofToken(DYING[0]!), actor: 'cli' }),
    record(2, { time: at(-590), action: 'token.use', ...ofToken(DYING[0]!), actor: 'token', client_ip: '10.4.0.17' }),
  ],
};

const steps = (of: (step: number) => number) => Array.from({ length: 20 }, (_, step) => Math.round(of(step)));

/** The last hour, with a project whose key the provider refuses, and a token that has expired. */
const BUSY: Pick<Setting, 'top' | 'incidents'> = {
  top: aTop({
    rows: [
      aTopRow({
        ...ofToken(DYING[6]!),
        ...ofProject(PROJECTS[3]!),
        ...{ requests: 1_420, errors: 164, failed: 164 },
        ...{ history: steps((step) => 8 * wave(step * 5)), error_history: steps((step) => (step > 16 ? 40 : 0)) },
      }),
      aTopRow({ ...ofToken(DYING[15]!), ...ofProject(PROJECTS[0]!), requests: 31, errors: 31, refused: 31 }),
    ],
  }),
  incidents: [
    {
      ...{ ...incidentExample, project_id: PROJECTS[3]!.id, project_name: 'mobile' },
      ...{ failures: 164, requests: 166 },
    },
    {
      ...{ ...incidentExample, kind: 'failing_token', project_id: PROJECTS[0]!.id, project_name: 'web' },
      ...{ token_id: DYING[15]!.id, token_name: 'load-test', failures: 31, requests: 31 },
      ...{ why: 'cap spent', remedy: 'issue another token, because a cap cannot be changed' },
    },
  ],
};

const PICTURES: Record<string, () => ScreenFixture> = {
  tokens: () => new ScreenFixture(SETTING).press('space', 'j', 'j', 'space', 'k'),
  revoke: () =>
    new ScreenFixture(SETTING).press(
      'space',
      'j',
      'j',
      'j',
      'j',
      'space',
      'x',
      'shift+tab',
      'shift+tab',
      ...'leaked in CI log'.split('').map(keyOf),
    ),
  overview: () => new ScreenFixture({ ...SETTING, ...BUSY, tab: 'overview', rows: 36 }),
  token: () => new ScreenFixture({ ...SETTING, rows: 32 }).press('enter'),
  events: () => new ScreenFixture(SETTING).press('6'),
};

const keyOf = (letter: string) => (letter === ' ' ? 'space' : letter);

/** Screenshots by file name. Times are in UTC on every machine. */
export function pictures(): Map<string, string> {
  const zone = process.env.TZ;
  process.env.TZ = 'UTC';
  try {
    return new Map(
      Object.entries(PICTURES).map(([name, make]) => {
        const { state } = make();
        return [`terminal-${name}.svg`, svgOf(frameLines(state), state.size.columns, 'llmp tui')];
      }),
    );
  } finally {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  }
}
