/**
 * Pages of lists with 100,000 tokens in a thousand projects, all used in the last hours: filters of tokens in all orders, the projects
 * with their counts, and the top rows. On each database that is installed; with LISTS_DATABASE on that one only, with
 * LISTS_PAGE only the pages whose name matches that pattern.
 */
import { type Allow, TOKEN_SORT_FIELDS } from '../../../daemon/api/vocabulary.js';
import { DAY_MS, firstIdOf, HOUR_MS, MINUTE_MS } from '../../../daemon/core/usage.js';
import { modelsKeyOf } from '../../../daemon/store/sql/token-policies.js';
import { projectFigures } from '../../../daemon/store/sql/project-figures.js';
import { USAGE_TIMES } from '../../../daemon/store/sql/tables.js';
import { canaryEncryptionKey } from '../../support/canaries.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../../support/database-servers.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../../support/daemon.js';
import { type Figure, median } from '../figures.js';
import { treeCpuMs } from '../machine.js';
import { Failure } from '../processes.js';
import type { Report } from '../run.js';

const TOKEN_COUNT = 100_000;
const PROJECT_COUNT = 1_000;
const RUNS = 15;
const PER_STATEMENT = 500;
const USUAL = new Set(['name', 'created_at', 'expires_at', 'last_used_at']);
const SERVERS: Record<string, ServerKind | null> = { SQLite: null, PostgreSQL: 'postgres', MariaDB: 'mysql' };

export async function lists(): Promise<Report> {
  const figures: Figure[] = [];
  const only = process.env.LISTS_DATABASE;
  for (const [name, kind] of Object.entries(SERVERS)) {
    if ((only !== undefined && only !== name) || (kind && WITHOUT[kind])) continue;
    figures.push(...(await figuresOn(name, kind)));
  }
  return { figures };
}

async function figuresOn(name: string, kind: ServerKind | null): Promise<Figure[]> {
  const server = kind && (await DatabaseServer.start(kind));
  const env = server
    ? { DB_DRIVER: server.kind, DATABASE_URL: await server.newDatabase(), ENCRYPTION_KEY: canaryEncryptionKey() }
    : {};
  const daemon = await startDaemon({ env });
  try {
    await fill(daemon);
    const secrets = await callersOf(daemon);
    console.error(`${name}: filled`);
    const figures: Figure[] = [await countsFigure(name, daemon), ...(await readingFigures(name, daemon))];
    for (const [what, { path, atMost, by }] of Object.entries({ ...pages(), ...pagesOfCallers() })) {
      if (!new RegExp(process.env.LISTS_PAGE ?? '').test(what)) continue;
      const secret = by === undefined ? MANAGEMENT_TOKEN : secrets[by];
      figures.push(await figureOf(`${name}: ${what}`, atMost, () => timed(daemon, path, secret)));
    }
    return figures;
  } finally {
    await daemon.stop();
    await server?.remove();
  }
}

/** Reports that are not reused, as the first one is. */
async function readingFigures(name: string, { daemon: { stores } }: TestDaemon): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const window of ['1h', '24h'] as const) {
    for (const [by, sort] of READ) {
      if (!new RegExp(process.env.LISTS_PAGE ?? '').test(`read top by ${by}`)) continue;
      const what = `${name}: read top by ${by}, ${sort} of ${window}`;
      const read = async () => {
        const begun = performance.now();
        await stores.usage.top({ by, window, sort, limit: 50 }, Date.now());
        return performance.now() - begun;
      };
      figures.push(await figureOf(what, null, read));
    }
  }
  return figures;
}
const READ = [
  ['token', 'errors'],
  ['token', 'requests'],
  ['token', 'last_used'],
  ['token', 'p95'],
  ['project', 'errors'],
  ['project', 'last_used'],
  ['model', 'requests'],
] as const;

/**
 * The median CPU time of some runs: of the daemon, which is in this process, and of the database server. Without other load a page takes
 * about as long. The mean is printed. After the first run, totals of many rows and reports may be reused.
 */
async function figureOf(what: string, atMost: number | null, run: () => Promise<number>): Promise<Figure> {
  const elapsed: number[] = [];
  const used: number[] = [];
  for (let n = 0; n < RUNS; n++) {
    const begunMs = treeCpuMs(process.pid);
    elapsed.push(await run());
    used.push(treeCpuMs(process.pid) - begunMs);
  }
  const value = median(used);
  const mean = used.reduce((sum, ms) => sum + ms, 0) / RUNS;
  console.error(
    `${what}: ${value.toFixed(1)} ms CPU, mean ${mean.toFixed(1)}; elapsed ${elapsed.map(Math.round).join(' ')} ms`,
  );
  return { what, value, unit: 'ms', ...(atMost !== null && { goal: { atMost } }) };
}

/** The counts of the list of projects, which are otherwise reused if there are many. */
async function countsFigure(name: string, { daemon: { stores } }: TestDaemon): Promise<Figure> {
  const { database } = stores;
  const ids = (await database.select<{ id: string }>('SELECT id FROM projects')).map(({ id }) => id);
  return figureOf(`${name}: counts of 1,000 projects`, 100, async () => {
    const begun = performance.now();
    await projectFigures(database, ids, Date.now());
    return performance.now() - begun;
  });
}

/** Who does not see everything: issuers of a hundred and of 5,000 tokens, and an auditor of some projects. */
const CALLERS = {
  'issuer of few': { role: 'issuer', projects: null },
  'issuer of many': { role: 'issuer', projects: null },
  'auditor of 20 projects': { role: 'auditor', projects: Array.from({ length: 20 }, (_, n) => idOf('b', 50 * n)) },
} as const;
type CallerName = keyof typeof CALLERS;

async function callersOf(daemon: TestDaemon): Promise<Record<string, string>> {
  const secrets: Record<string, string> = {};
  for (const [name, { role, projects }] of Object.entries(CALLERS)) {
    const created = await daemon.manage('POST', '/manage/operators', { name, role, projects });
    secrets[name] = (created.body as { secret: string }).secret;
  }
  return secrets;
}

interface Page {
  path: string;
  atMost: number;
  by?: CallerName;
}

function pagesOfCallers(): Record<string, Page> {
  const paths = [
    ...TOKEN_SORT_FIELDS.map((sort) => `tokens?sort=${sort}`),
    ...['tokens?state=active', 'tokens?q=job', 'tokens?errors_over=0', 'projects?limit=200', 'status', 'incidents'],
    ...['usage?by=token,model', 'top?window=1h', 'top?window=24h&by=project'],
  ];
  return Object.fromEntries(
    (Object.keys(CALLERS) as CallerName[]).flatMap((by) =>
      [...paths, ...(CALLERS[by].role === 'auditor' ? ['audit', 'audit?action=token.use', 'audit?q=job'] : [])].map(
        (path) => [`${by}: ${path}`, { path: `/manage/${path}`, atMost: 100, by }],
      ),
    ),
  );
}

function pages(): Record<string, Page> {
  const filters = {
    'errors:>0, of 25 %': 'errors_over=0',
    'errors:>1000, of none': 'errors_over=1000',
    'model:gpt, of all': 'model=gpt',
    'model:rare, of 1 %': 'model=rare',
    'model:!rare, of 99 %': 'model=!rare',
    'idle:>1d, of 48 %': 'idle_over=1d',
    'idle:>30d, of 8 %': 'idle_over=30d',
    'created:<1h, of 8 %': 'created_after=1h',
    'created:<1d, of 38 %': 'created_after=1d',
    'allows:gpt-5-mini, of 89 %': 'allows=gpt-5-mini',
    'allows:!gpt-5-mini, of 11 %': 'allows=!gpt-5-mini',
    'allows:!gpt-5-mini,claude-4, of 1 %': 'allows=!gpt-5-mini,claude-4',
    'allows:!*, of none': 'allows=!*',
    'limited:yes, of 1 %': 'limited=true',
  };
  const all: Record<string, Page> = {};
  for (const [what, filter] of Object.entries(filters)) {
    for (const field of TOKEN_SORT_FIELDS) {
      for (const sort of [field, `-${field}`]) {
        all[`${what}, ${sort}`] = {
          path: `/manage/tokens?${filter}&sort=${sort}`,
          atMost: USUAL.has(field) ? 100 : 250,
        };
      }
    }
  }
  all['1,000 projects with their counts'] = { path: '/manage/projects?limit=1000', atMost: 100 };
  for (const by of ['token', 'project', 'model']) {
    for (const window of ['1h', '24h']) {
      for (const sort of ['errors', 'requests', 'last_used', 'p95']) {
        const path = `/manage/top?window=${window}&by=${by}&sort=${sort}`;
        all[`top by ${by}, ${sort} of ${window}`] = { path, atMost: 80 };
      }
    }
  }
  return all;
}

async function timed(daemon: TestDaemon, path: string, secret = MANAGEMENT_TOKEN): Promise<number> {
  const begun = performance.now();
  const response = await fetch(daemon.managementUrl + path, {
    headers: { authorization: `Bearer ${secret}` },
  });
  const text = await response.text();
  if (!response.ok) throw new Failure(`${path}: ${response.status} ${text} ${daemon.logged.slice(-3).join('')}`);
  return performance.now() - begun;
}

/** The tokens were created in two months, live and expired, of every state, a third with a cap; each was used in two hours of the day, and in two minutes of the last hour. */
async function fill({ daemon: { stores } }: TestDaemon): Promise<void> {
  const { database } = stores;
  const isMysql = database.dialect.name === 'mysql';
  // A test server has memory for a fraction of these rows, and ends statements after 30 s.
  if (isMysql) await (await database.loadSequelize()).query('SET GLOBAL innodb_buffer_pool_size = 536870912');
  const unlimited = isMysql ? 'SET STATEMENT max_statement_time = 0 FOR' : '';
  const nowMs = Date.now();
  // As literals, and not through the writer of SQLite, which keeps statements: thousands of bind values take much longer.
  const sequelize = await database.loadSequelize();
  const insert = (into: string, rows: readonly (string | number | boolean | null)[][]) => {
    const values = rows.map((row) => `(${row.map((v) => (typeof v === 'string' ? `'${v}'` : String(v))).join(', ')})`);
    return sequelize.query(`INSERT INTO ${into} VALUES ${values.join(', ')}`);
  };
  const all = <T>(count: number, of: (n: number) => T) => Array.from({ length: count }, (_, n) => of(n));
  const projects = all(PROJECT_COUNT, (n) => {
    const key = ['', '', '', 'bearer', 'off'];
    const allow = n % 20 === 0 ? { models: ['gpt-*', 'claude-*', 'rare-*'] } : null;
    const policies = [allow && JSON.stringify(allow), modelsKeyOf(allow)];
    return [idOf('b', n), `project ${n}`, n % 10 > 0, ...key, nowMs - n, nowMs, ...policies];
  });
  await inParts(projects, (rows) =>
    insert(
      'projects (id, name, is_active, api_key, api_key_id, api_key_hint, upstream_auth, missing_usage, created_at, updated_at, allow, models_key)',
      rows,
    ),
  );
  const tokens = all(TOKEN_COUNT, (n) => {
    // 7 % in the last hour, a third in the last day, the others in the last two months.
    const age = spread(n) * (n % 100 < 7 ? HOUR_MS : n % 3 === 0 ? DAY_MS : 60 * DAY_MS);
    const createdMs = Math.floor(nowMs - age);
    const usedMs = nowMs - Math.floor(spread(n + 1) * (n % 4 === 0 ? Math.min(age, HOUR_MS) : age));
    const cap = n % 3 === 0 ? 100 : 0;
    const expiresMs = nowMs + Math.floor((spread(n + 2) - 0.5) * 20 * DAY_MS);
    const name = `CI job ${n}`;
    const values = [idOf('a', n), `digest ${n}`, idOf('b', n % PROJECT_COUNT), name, name.toLowerCase()];
    const allow = allowOf(n);
    const policies = [
      allow && JSON.stringify(allow),
      modelsKeyOf(allow),
      n % 100 === 50 ? '{"requests_per_minute":60}' : null,
    ];
    const issuedBy = n % 1_000 === 7 ? 'operator:issuer of few' : n % 20 === 3 ? 'operator:issuer of many' : '';
    return [
      ...[...values, n % 50 === 1 ? 0 : usedMs, n % 7 > 0, expiresMs, createdMs, cap, n % 101, 0, 'sk-wt-0000…0000'],
      ...policies,
      issuedBy,
    ];
  });
  await inParts(tokens, (rows) =>
    insert(
      'tokens (id, digest, project_id, name, name_folded, last_used_at, is_active, expires_at, created_at, max_requests, request_count, reserved, obfuscated, allow, models_key, limits, issued_by)',
      rows,
    ),
  );
  const hourMs = nowMs - (nowMs % HOUR_MS);
  const usage = all(2 * TOKEN_COUNT, (n) => {
    const token = n % TOKEN_COUNT;
    const isFirst = n < TOKEN_COUNT;
    const usedMs = isFirst ? hourMs : hourMs - (1 + (token % 22)) * HOUR_MS;
    const id = `${firstIdOf(usedMs)}8${idOf('c', token).slice(15)}`;
    const outcome = !isFirst && token % 4 === 0 ? 'truncated' : 'ok';
    const model = token % 100 === 5 ? 'rare-model' : `gpt-${token % 5}`;
    return [
      id,
      usedMs,
      idOf('a', token),
      idOf('b', token % PROJECT_COUNT),
      outcome,
      '',
      model,
      1 + (token % 50),
      0,
      10,
      5,
      1,
    ];
  });
  const counts = ['requests', 'hits', 'prompt_tokens', 'completion_tokens'];
  const key = 'hour_ms, token_id, project_id, outcome, code, model';
  await inParts(usage, (rows) => insert(`usage_hourly (id, ${key}, ${counts.join(', ')}, with_tokens)`, rows));
  const sums = counts.map((count) => `SUM(${count})`).join(', ');
  const kinds = {
    token_day: ['token_id', DAY_MS],
    project_day: ["''", DAY_MS],
    project_hour: ["''", HOUR_MS],
  } as const;
  for (const [kind, [token, ms]] of Object.entries(kinds)) {
    const sumKey = `hour_ms - hour_ms % ${ms}, project_id, ${token === "''" ? '' : `${token}, `}model`;
    await (
      await database.loadSequelize()
    ).query(
      `${unlimited} INSERT INTO usage_sums (kind, from_ms, project_id, token_id, model, ${counts.join(', ')}, refused, failed)
       SELECT '${kind}', hour_ms - hour_ms % ${ms}, project_id, ${token}, model, ${sums}, 0,
         SUM(CASE WHEN outcome = 'truncated' THEN requests ELSE 0 END) FROM usage_hourly GROUP BY ${sumKey}`,
    );
  }
  const minuteCounts = ['requests', 'prompt_tokens', 'completion_tokens', 'failed', 't3'];
  const none = ['hits', 'upstream_refused', 'cut', 'refused', ...USAGE_TIMES.filter((it) => it !== 't3')];
  const minuteColumns = `usage_minutes (from_ms, token_id, project_id, model, ${[...minuteCounts, ...none].join(', ')})`;
  const minutes = all(2 * TOKEN_COUNT, (n) => {
    const token = n % TOKEN_COUNT;
    const minuteMs = nowMs - (nowMs % MINUTE_MS) - ((n + (n < TOKEN_COUNT ? 0 : 29)) % 58) * MINUTE_MS;
    const requests = 1 + (token % 50);
    const failed = n % 8 === 0 ? requests : 0;
    const subject = [minuteMs, idOf('a', token), idOf('b', token % PROJECT_COUNT), `gpt-${token % 5}`];
    return [...subject, requests, 10, 5, failed, requests, ...none.map(() => 0)];
  });
  await inParts(minutes, (rows) => insert(minuteColumns, rows));
  await (
    await database.loadSequelize()
  ).query(
    `${unlimited} INSERT INTO ${minuteColumns} SELECT from_ms, '', project_id, model,
       ${[...minuteCounts, ...none].map((count) => `SUM(${count})`).join(', ')} FROM usage_minutes GROUP BY from_ms, project_id, model`,
  );
  const purses = `INSERT INTO purses (id, period) SELECT id, 'none' FROM tokens`;
  await (await database.loadSequelize()).query(`${unlimited} ${purses}`);
  if (database.dialect.name === 'postgres') await (await database.loadSequelize()).query('ANALYZE');
  if (isMysql)
    await (
      await database.loadSequelize()
    ).query('ANALYZE TABLE tokens, purses, usage_hourly, usage_sums, usage_minutes');
}

/** A third of the tokens may use all models, a tenth has a list of its own each, and the others have one of a few. */
function allowOf(n: number): Allow | null {
  if (n % 100 === 9) return { models: ['rare-*'] };
  if (n % 10 === 9) return { models: ['claude-*'] };
  if (n % 10 === 8) return { models: [`own-${n}`, 'gpt-5-mini'] };
  return n % 3 === 0 ? null : { models: ['gpt-*', ...['o3', 'o4-mini'].slice(n % 3)] };
}

/** An ID of its own for each number, in no order. */
function idOf(kind: string, n: number): string {
  return `${(Math.imul(n + 1, 0x9e3779b1) >>> 0).toString(16).padStart(8, '0')}-0000-4000-8000-${kind}${n.toString(16).padStart(11, '0')}`;
}

/** From 0 to 1, different for each number. */
const spread = (n: number) => (Math.imul(n + 1, 0x85ebca6b) >>> 0) / 2 ** 32;

async function inParts<T>(rows: readonly T[], add: (rows: T[]) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < rows.length; from += PER_STATEMENT) await add(rows.slice(from, from + PER_STATEMENT));
}
