/** Contract of the stores on every SQL database. */
import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { TOKEN_SORT_FIELDS } from '../../daemon/api/vocabulary.js';
import { auditRecord, type Caller, type NamedRecord, SYSTEM_CALLER } from '../../daemon/core/audit.js';
import {
  type AuditFilter,
  type ChangeTransaction,
  InstanceExpired,
  type PageOf,
  type PurseTickRow,
  type NewProject,
  type NewToken,
  type Position,
  StoreConflict,
  StoreUnavailable,
  type TickRow,
  type TokenFilter,
  type TokenSort,
  type UsageRow,
  type TopGroup,
  type TopQuery,
} from '../../daemon/core/ports.js';
import { dayOf, monthOf } from '../../daemon/core/budget/period.js';
import { Pattern } from '../../daemon/core/policy/pattern.js';
import { MAX_NANO } from '../../daemon/api/money.js';
import type { PurseTerms } from '../../daemon/core/budget/counts.js';
import { type Budget, NOT_REVOKED, type TokenState, UNUSED } from '../../daemon/core/token.js';
import { SecretBox } from '../../daemon/store/secrets.js';
import { SqlAccessChanges } from '../../daemon/store/sql/access.js';
import { SqlAnchors } from '../../daemon/store/sql/anchors.js';
import type { Bind, Database, SqlTransaction } from '../../daemon/store/sql/database.js';
import { SqlClusterStore } from '../../daemon/store/sql/instances.js';
import { SqlLedger } from '../../daemon/store/sql/ledger.js';
import { SqlRecords } from '../../daemon/store/sql/records.js';
import { Table } from '../../daemon/store/sql/table.js';
import * as declared from '../../daemon/store/sql/tables.js';
import { SqlTokenLookup } from '../../daemon/store/sql/tokens.js';
import { NO_POLICIES, TOP_DIMENSIONS, TOP_SORTS, TOP_WINDOWS } from '../../daemon/api/vocabulary.js';
import { failuresIn } from '../../daemon/core/failure-kind.js';
import { quantileOf, TOP_STEPS } from '../../daemon/core/top.js';
import { SqlUsage } from '../../daemon/store/sql/usage.js';
import { firstIdOf, HOUR_MS, MINUTE_MS } from '../../daemon/core/usage.js';
import { Migrator } from '../../migrations/migrator.js';
import { eventually } from '../support/eventually.js';
import { aNewProject, aNewToken, aUsageRow } from '../support/factories.js';

const NOW = Date.UTC(2026, 5, 1, 12);

const HOUR = 3_600_000;
const REVOCATION = { revokedAtMs: NOW, revokedBy: 'ana@laptop', revokeReason: 'Schlüssel geleakt' };
const CALLER: Caller = { ...SYSTEM_CALLER, actor: 'cli', requestId: 'request-1', clientIp: '127.0.0.1' };

/** @param openDatabase opens an empty database. `again` opens the same one again, as another process would. */
export function behavesAsSqlStores(openDatabase: () => Promise<{ database: Database; again: () => Database }>): void {
  const box = new SecretBox(randomBytes(32));
  let database: Database;
  let other: Database;
  let records: SqlRecords;
  let ledger: SqlLedger;
  let clusterStore: SqlClusterStore;
  let usage: SqlUsage;

  before(async () => {
    const { database: opened, again } = await openDatabase();
    database = opened;
    other = again();
    await new Migrator(database, '0.1.0', () => NOW).up();
    records = new SqlRecords(database, box);
    ledger = new SqlLedger(database, { isShared: true });
    clusterStore = new SqlClusterStore(database);
    usage = new SqlUsage(database);
  });
  after(async () => {
    await other.close();
    await database.close();
  });

  // ---- test data

  const newProject = (name: string = randomUUID()): NewProject =>
    aNewProject({ id: randomUUID(), name, createdAtMs: NOW });
  const newToken = (projectId: string, more: Partial<NewToken> = {}): NewToken =>
    aNewToken({
      id: randomUUID(),
      projectId,
      expiresAtMs: NOW + HOUR,
      createdAtMs: NOW,
      digest: randomBytes(32).toString('hex'),
      ...more,
    });
  const change = <T>(work: (tx: ChangeTransaction) => Promise<T>) => records.change(work);

  async function aProject(more: Partial<NewProject> = {}): Promise<NewProject> {
    const project = { ...newProject(), ...more };
    await change((tx) => tx.insertProject(project));
    return project;
  }
  async function aToken(more: Partial<NewToken> = {}, projectId?: string): Promise<NewToken> {
    const token = newToken(projectId ?? (await aProject()).id, more);
    await change((tx) => tx.insertToken(token));
    return token;
  }
  const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => null,
      (error: unknown) => error,
    );

  describe('the tables', () => {
    const tables = Object.values(declared).filter((it) => it instanceof Table);
    // Tables with words only, or not written by our code.
    const OTHERS = /^(?:audit_words.*|schema_migrations)$/;

    it('are all declared', async () => {
      const names = await (await database.loadSequelize()).getQueryInterface().showAllTables();
      expect(tables.map(({ name }) => name)).to.have.members(names.filter((name) => !OTHERS.test(name)));
    });

    for (const table of tables) {
      const columns: readonly { name: string }[] = Object.values(table.columns);
      it(`${table.name} has its declared columns, and a default for those that no INSERT names`, async () => {
        const schema = await (await database.loadSequelize()).getQueryInterface().describeTable(table.name);
        expect(columns.map(({ name }) => name)).to.have.members(Object.keys(schema));
        const primary = Object.keys(schema).filter((name) => schema[name]!.primaryKey);
        // Records are read in the order of their commits. Another key has no index.
        expect(table.key).to.have.members(table === declared.AUDIT ? ['seq'] : primary);
        for (const column of columns.filter((it) => 'isFilledIn' in it)) {
          const { defaultValue, allowNull } = schema[column.name]!;
          if (!allowNull) expect(Number(defaultValue), column.name).to.equal(0);
        }
      });
    }
  });

  describe('projects and tokens', () => {
    it('are read as they were written, with the upstream key encrypted in between', async () => {
      const project = await aProject();
      const token = await aToken({ name: 'Ünïcode 😀', maxRequests: 2 ** 45 }, project.id);
      const { upstreamKey, ...shown } = project;
      expect(await records.project(project.id)).to.deep.equal(shown);
      const { digest, ...shownToken } = token;
      expect((await records.token(token.id))?.token).to.deep.equal({ ...shownToken, ...UNUSED, ...NOT_REVOKED });
      expect((await records.tokenByDigest(digest))?.token.id).to.equal(token.id);
      const known = await new SqlTokenLookup(database, box).byDigest(digest);
      expect(known).to.deep.include({ reserved: 0, projectIsActive: true, upstreamKey });
      const [row] = await database.select<{ api_key: string }>('SELECT api_key FROM projects WHERE id = $id', {
        id: project.id,
      });
      expect(row?.api_key).not.to.include(upstreamKey);
      const { upstreamBaseUrl, upstreamAuth } = project;
      expect(await records.upstream(project.id)).to.deep.equal({ upstreamKey, upstreamBaseUrl, upstreamAuth });
      expect(await records.upstream(randomUUID())).to.equal(null);
    });

    it('whose IDs or digests differ only in case are different', async () => {
      const token = await aToken({ id: `case-${randomUUID()}` });
      expect(await records.token(token.id.toUpperCase())).to.equal(null);
      expect(await records.tokenByDigest(token.digest.toUpperCase())).to.equal(null);
      await aToken({ id: token.id.toUpperCase(), digest: token.digest.toUpperCase() });
    });

    it('with a unique value that is taken cause a conflict, and nothing of that change is stored', async () => {
      const project = await aProject();
      const another = newProject();
      const failure = await failureOf(
        change(async (tx) => {
          await tx.insertProject(another);
          await tx.insertProject(newProject(project.name));
        }),
      );
      expect(failure).to.be.instanceOf(StoreConflict);
      expect(await records.project(another.id)).to.equal(null);
    });

    it('without a parent row are refused, and a text that is too long is not truncated', async () => {
      expect(await failureOf(aToken({}, randomUUID()))).to.be.instanceOf(StoreUnavailable);
      if (database.dialect.name === 'sqlite') return; // SQLite stores texts of any length.
      expect(await failureOf(aToken({ obfuscated: 'x'.repeat(17) }))).to.be.instanceOf(StoreUnavailable);
    });

    it("whose change fails yield the driver's message, without any values", async () => {
      const failure = await failureOf(
        change((tx) => tx.insertProject({ ...newProject(), apiKeyHint: 'x', id: null as unknown as string })),
      );
      expect((failure as Error).message).not.to.include('sk-upstream');
      expect(JSON.stringify(failure)).not.to.include('sk-upstream');
    });

    it('have their revocation until they are reactivated', async () => {
      const [one, other] = [await aToken(), await aToken()];
      const revocations = async () => {
        const found = await Promise.all([one, other].map(({ id }) => records.token(id)));
        return found.map((row) => {
          const { isActive, revokedAtMs, revokedBy, revokeReason } = row!.token;
          return { isActive, revokedAtMs, revokedBy, revokeReason };
        });
      };
      const active = { isActive: true, ...NOT_REVOKED };
      await change((tx) => tx.revokeToken(one.id, REVOCATION));
      expect(await revocations()).to.deep.equal([{ isActive: false, ...REVOCATION }, active]);
      await change((tx) => tx.reactivateToken(one.id));
      await change((tx) => tx.revokeTokensOf(other.projectId, { ...REVOCATION, revokeReason: null }));
      expect(await revocations()).to.deep.equal([active, { isActive: false, ...REVOCATION, revokeReason: null }]);
    });

    for (const [what, lock] of [
      ['lockProject', (tx: ChangeTransaction, { projectId }: NewToken) => tx.lockProject(projectId)],
      ['lockToken', (tx: ChangeTransaction, { id }: NewToken) => tx.lockToken(id)],
    ] as const) {
      it(`that one transaction locks are not changed by another until it ends: ${what}`, async () => {
        const token = await aToken();
        const order: string[] = [];
        let release: () => void = () => undefined;
        const held = new Promise<void>((resolve) => (release = resolve));
        let locked: () => void = () => undefined;
        const isLocked = new Promise<void>((resolve) => (locked = resolve));
        const first = change(async (tx) => {
          await lock(tx, token);
          locked();
          await held;
          order.push('first');
        });
        await isLocked;
        const second = change(async (tx) => {
          await lock(tx, token);
          order.push('second');
        });
        release();
        await Promise.all([first, second]);
        expect(order).to.deep.equal(['first', 'second']);
      });
    }
  });

  describe('numbers', () => {
    it('of every type are read as numbers, up to the largest exact JavaScript number', async () => {
      await aToken({ maxRequests: Number.MAX_SAFE_INTEGER });
      const largest = `CAST(${Number.MAX_SAFE_INTEGER} AS ${database.dialect.name === 'mysql' ? 'SIGNED' : 'BIGINT'})`;
      const [read] = await database.select<Record<string, unknown>>(
        `SELECT MAX(max_requests) AS most, MAX(created_at) AS stored, COUNT(*) > 0 AS there, COUNT(*) * 0 AS counted,
                SUM(created_at) * 0 + 7 AS summed, ${largest} AS largest, -${largest} AS smallest FROM tokens`,
      );
      const { there, ...numbers } = read ?? {};
      expect(numbers).to.deep.equal({
        most: Number.MAX_SAFE_INTEGER,
        stored: NOW,
        counted: 0,
        summed: 7,
        largest: Number.MAX_SAFE_INTEGER,
        smallest: -Number.MAX_SAFE_INTEGER,
      });
      expect(Boolean(there)).to.equal(true);
    });

    it('that JavaScript would round are refused, and the database continues to work', async function () {
      if (database.dialect.name === 'sqlite') this.skip(); // The SQLite driver rounds.
      const integer = database.dialect.name === 'mysql' ? 'SIGNED' : 'BIGINT';
      for (const tooLarge of [
        `CAST(9007199254740993 AS ${integer})`,
        'CAST(9007199254740993 AS DECIMAL(30))',
        'SUM(n)',
      ]) {
        const rows = `(SELECT CAST(9007199254740991 AS ${integer}) AS n UNION ALL SELECT 2 UNION ALL SELECT 3) numbers`;
        // With a bind value the driver of MariaDB uses another protocol.
        const bound = await failureOf(
          database.select(`SELECT ${tooLarge} AS n FROM ${rows} WHERE 1 = $one`, { one: 1 }),
        );
        const failure = await failureOf(database.select(`SELECT ${tooLarge} AS n FROM ${rows}`));
        for (const each of [bound, failure]) {
          expect(each, tooLarge).to.be.instanceOf(StoreUnavailable);
          expect((each as Error).message).to.match(
            /^the database contains the number (about )?90071992547409\d\d, which is too/,
          );
        }
        const answers = Array.from({ length: 6 }, () => database.select<{ n: number }>('SELECT 1 AS n'));
        expect((await Promise.all(answers)).flat()).to.deep.equal(Array(6).fill({ n: 1 }));
      }
    });
  });

  describe('a list of tokens', () => {
    let projectId: string;
    const names = ['alpha', 'Beta', 'alphabet', 'gamma', 'ALPHA 2', '100%_x'];

    before(async () => {
      ({ id: projectId } = await aProject());
      for (const [i, name] of names.entries()) {
        await aToken(
          { name, createdAtMs: NOW + i, maxRequests: i % 2 === 0 ? 0 : 10, expiresAtMs: NOW + i * HOUR },
          projectId,
        );
      }
    });

    const only = <T>(...among: T[]) => ({ among, isExcluded: false });
    const allBut = <T>(...among: T[]) => ({ among, isExcluded: true });
    const word = (text: string, isExcluded = false) => ({ text, isExcluded });

    async function all(filter: TokenFilter, sort: TokenSort = { field: 'created_at', descending: true }, limit = 2) {
      const found: string[] = [];
      let after: Position | null = null;
      let total: number | null = null;
      do {
        const page = await records.tokens({ projects: only(projectId), ...filter }, sort, { limit, after }, NOW + 1);
        found.push(...page.rows.map(({ token }) => token.name ?? ''));
        total ??= page.total;
        after = page.next;
      } while (after !== null);
      expect(total).to.equal(found.length);
      return found;
    }

    it('by use is complete in every order, with more matches than a page and with fewer', async () => {
      const { id } = await aProject();
      const tokens: NewToken[] = [];
      for (let n = 0; n < 40; n++) {
        const more = {
          name: `used ${n}`,
          createdAtMs: NOW + n,
          expiresAtMs: NOW + (n - 20) * HOUR,
          isActive: n % 7 > 0,
        };
        tokens.push(await aToken({ maxRequests: 0, ...more }, id));
      }
      const startOf = (daysAgo: number) => NOW - (NOW % (24 * HOUR)) - daysAgo * 24 * HOUR;
      const row = (token: NewToken, daysAgo: number, outcome: UsageRow['outcome'], model: string): UsageRow =>
        aUsageRow(startOf(daysAgo), { tokenId: token.id, projectId: id, outcome, model, requests: 2 });
      const rows = tokens.flatMap((token, n) => [
        row(token, n % 2, 'ok', 'GPT-5'),
        // Of the day before yesterday: it does not count.
        row(token, 2, 'truncated', 'rare'),
        ...(n % 4 === 0 ? [row(token, 0, 'truncated', 'GPT-5'), row(token, 1, 'refused', 'GPT-5')] : []),
        ...(n % 10 === 3 ? [row(token, 1, 'ok', 'rare')] : []),
      ]);
      await usage.add({ instanceId: randomUUID(), seq: 1, nowMs: NOW, rows });
      const cases: [TokenFilter, (n: number) => boolean][] = [
        [{ errorsOver: 3 }, (n) => n % 4 === 0],
        [{ errorsOver: 4 }, () => false],
        [{ models: only('gpt') }, () => true],
        [{ models: only('rare') }, (n) => n % 10 === 3],
        [{ models: allBut('rare', 'none') }, (n) => n % 10 !== 3],
        [{ models: only('gpt'), errorsOver: 0 }, (n) => n % 4 === 0],
        [{ models: only('gpt'), states: only('revoked') }, (n) => n % 7 === 0],
      ];
      for (const [filter, isMatch] of cases) {
        const expected = tokens.filter((_, n) => isMatch(n)).map(({ name }) => name);
        const what = JSON.stringify(filter);
        for (const limit of [3, 50]) {
          const listed = (sort: TokenSort) => all({ ...filter, projects: only(id) }, sort, limit);
          expect(await listed({ field: 'created_at', descending: false }), what).to.deep.equal(expected);
          expect(await listed({ field: 'expires_at', descending: true }), what).to.deep.equal([...expected].reverse());
          expect(await listed({ field: 'live', descending: false }), what).to.have.members(expected);
          expect(await listed({ field: 'last_used_at', descending: true }), what).to.have.members(expected);
        }
      }
      // Without another condition the total is counted in the usage.
      const whole = await records.tokens(
        { models: only('rare') },
        { field: 'name', descending: false },
        { limit: 50, after: null },
        NOW,
      );
      expect([whole.total, whole.rows.length]).to.deep.equal([4, 4]);
      const first = await records.tokens(
        { models: only('rare') },
        { field: 'name', descending: false },
        { limit: 2, after: null },
        NOW,
      );
      expect([first.total, first.rows.length]).to.deep.equal([4, 2]);
    });

    it('is filtered by what tokens may use and by limits, with those of their project', async () => {
      const lists: [string, string[] | null][] = [
        ['open', null],
        ['gpt', ['gpt-5', 'o3']],
        ['mini', ['gpt-*-mini']],
        ['claude', ['claude-*']],
        ['any', ['*']],
      ];
      const made: { name: string; models: string[]; isLimited: boolean }[] = [];
      const projects: string[] = [];
      const openModels = ['gpt-5', 'gpt-5-mini', 'o3', 'claude-4'];
      const fits = (list: string[] | null) => (model: string) =>
        list === null || list.some((entry) => new Pattern(entry).matches(model));
      for (const [of, own] of lists.slice(0, 3)) {
        const isOfLimited = of === 'mini';
        const { id } = await aProject({
          allow: own && { models: own },
          limits: isOfLimited ? { concurrent: 1 } : null,
        });
        projects.push(id);
        for (const [n, [name, models]] of lists.entries()) {
          // A list of routes alone restricts no model.
          const allow = models ? { models } : n % 2 === 0 ? { routes: ['all'] } : null;
          const limits = name === 'any' ? { requests_per_minute: 5 } : null;
          await aToken({ name: `${of} ${name}`, allow, limits }, id);
          made.push({
            name: `${of} ${name}`,
            models: openModels.filter(fits(own)).filter(fits(models)),
            isLimited: isOfLimited || limits !== null,
          });
        }
      }
      const cases: [TokenFilter, (token: (typeof made)[number]) => boolean][] = [
        ...['gpt-5', 'o3', 'gpt-5-mini', 'claude-4'].map((model): (typeof cases)[number] => [
          { allows: only(model) },
          ({ models }) => models.includes(model),
        ]),
        [{ allows: only('gpt-5*') }, ({ models }) => models.some((model) => model.startsWith('gpt-5'))],
        [
          { allows: only('models/o3', 'claude-*') },
          ({ models }) => models.includes('o3') || models.includes('claude-4'),
        ],
        [{ allows: allBut('gpt-5*') }, ({ models }) => !models.some((model) => model.startsWith('gpt-5'))],
        [
          { allows: only('gpt-5*'), text: 'open' },
          ({ name, models }) => /open/.test(name) && /gpt/.test(models.join()),
        ],
        [{ isLimited: true }, ({ isLimited }) => isLimited],
        [{ isLimited: false }, ({ isLimited }) => !isLimited],
        [{ isLimited: true, allows: only('o3') }, ({ isLimited, models }) => isLimited && models.includes('o3')],
      ];
      for (const [filter, isMatch] of cases) {
        const names = made.filter(isMatch).map(({ name }) => name);
        const what = JSON.stringify(filter);
        for (const field of TOKEN_SORT_FIELDS) {
          for (const limit of [100, 3]) {
            const found = await all({ projects: only(...projects), ...filter }, { field, descending: true }, limit);
            expect(found, `${what} by ${field}`).to.have.members(names);
          }
        }
      }
    });

    it('is filtered by budgets and what was spent, and sorted by it, in pages of any size', async () => {
      const USD = 1_000_000_000;
      const [day, month] = [dayOf(NOW), monthOf(NOW)];
      const usd = (amount: string, period: Budget['period'], mode: Budget['mode'] = 'soft') => ({
        usd: amount,
        period,
        mode,
      });
      const budgets: Record<string, Budget | null> = {
        none: null,
        life: usd('10.00', 'none', 'hard'),
        month: usd('10.00', 'month'),
        'old month': usd('10.00', 'month', 'shadow'),
        day: { tokens: 100, period: 'day', mode: 'soft' },
        'old day': usd('1.00', 'day'),
        both: { usd: '100.00', tokens: 100, period: 'none', mode: 'hard' },
      };
      const counts: Record<string, Record<string, number>> = {
        none: { life_nano: 7 * USD },
        life: { life_nano: 9 * USD, month_from: month, month_nano: USD },
        month: { life_nano: 90 * USD, month_from: month, month_nano: 5 * USD },
        'old month': { life_nano: 90 * USD, month_from: month - 1, month_nano: 9 * USD },
        day: { life_nano: 90 * USD, life_tokens: 900, day_from: day, day_nano: 3 * USD, day_tokens: 81 },
        'old day': { life_nano: 90 * USD, day_from: day - 1, day_nano: 9 * USD },
        both: { life_nano: 2 * USD, life_tokens: 100 },
      };
      const { id } = await aProject();
      const limited = await aProject({ budget: usd('1.00', 'day', 'hard') });
      const projects = only(id, limited.id);
      for (const [name, budget] of Object.entries(budgets)) {
        const token = await aToken({ name, budget }, name === 'none' ? limited.id : id);
        const set = Object.entries(counts[name]!).map(([column, value]) => `${column} = ${value}`);
        await database.transact((tx) =>
          tx.execute(`UPDATE purses SET ${set.join(', ')} WHERE id = $id`, { id: token.id }),
        );
      }
      const bySpent = { field: 'spent', descending: true } as const;
      const order = ['life', 'none', 'month', 'day', 'both'];
      for (const limit of [100, 2]) {
        const found = await all({ projects }, bySpent, limit);
        expect(found.slice(0, 5)).to.deep.equal(order);
        expect(found.slice(5)).to.have.members(['old month', 'old day']);
        expect(await all({ projects }, { field: 'spent', descending: false }, limit)).to.deep.equal(found.toReversed());
      }
      for (const [filter, names] of [
        [{ spentOverNano: 0 }, order],
        [{ spentOverNano: 3 * USD }, ['life', 'none', 'month']],
        [{ spentUnderNano: 3 * USD }, ['both', 'old month', 'old day']],
        [{ spentOverNano: 2 * USD, spentUnderNano: 9 * USD }, ['none', 'month', 'day']],
        [{ leftUnderPercent: 20 }, ['life', 'day', 'both']],
        [{ leftUnderPercent: 1 }, ['both']],
        [{ leftOverPercent: 50 }, ['old month', 'old day']],
        [{ leftOverPercent: 9, leftUnderPercent: 51 }, ['life', 'month', 'day']],
        [{ budget: 'yes' }, Object.keys(budgets)],
        [{ budget: 'hard' }, ['none', 'life', 'both']],
        [{ budget: 'soft' }, ['month', 'day', 'old day']],
        [{ budget: 'shadow', spentUnderNano: USD }, ['old month']],
        [{ budget: 'no' }, []],
      ] as [TokenFilter, string[]][]) {
        for (const sort of [bySpent, { field: 'created_at', descending: false }] as const) {
          for (const limit of [100, 2]) {
            expect(await all({ projects, ...filter }, sort, limit), JSON.stringify(filter)).to.have.members(names);
          }
        }
      }
      // Of all projects, without a project itself.
      const { total } = await records.tokens({ spentOverNano: 8 * USD }, bySpent, { limit: 1, after: null }, NOW);
      const everywhere = { projects: undefined, spentOverNano: 8 * USD };
      expect(total)
        .to.equal((await all(everywhere, bySpent, 100)).length)
        .and.to.be.at.least(1);
    });

    it('is filtered by models among many lists and many tokens, with few statements of few bytes', async () => {
      // More lists than are read at once, and more matches than are passed back by their IDs.
      const [own, shared] = [401, 4_100];
      const { id } = await aProject();
      const allowOf = (n: number) => ({ models: n < own ? [`own-${n}`, 'o3'] : ['gpt-5*'] });
      const names = Array.from({ length: own + shared }, (_, n) => `t${n}`);
      await change(async (tx) => {
        for (const [n, name] of names.entries()) {
          await tx.insertToken(newToken(id, { name, createdAtMs: NOW + n, allow: allowOf(n) }));
        }
      });
      const sent: number[] = [];
      const seen = new Proxy(database, {
        get(target, property) {
          if (property === 'select') {
            return (sql: string, bind: Bind = {}) => {
              sent.push(sql.length + JSON.stringify(bind).length);
              return target.select(sql, bind);
            };
          }
          return Reflect.get(target, property) as unknown;
        },
      });
      const listed = new SqlRecords(seen, box);
      const [few, many] = [names.slice(0, own), names.slice(own)];
      const cases: [TokenFilter, string[], { statements: number; bytes: number }][] = [
        [{ allows: only('own-7'), projects: only(id) }, ['t7'], { statements: 9, bytes: 20_000 }],
        [{ allows: only('own-*'), projects: only(id) }, few, { statements: 9, bytes: 40_000 }],
        [{ allows: only('gpt-5-mini'), projects: only(id) }, many, { statements: 9, bytes: 20_000 }],
        [{ allows: allBut('gpt-5-mini'), projects: only(id) }, few, { statements: 9, bytes: 40_000 }],
        [{ allows: allBut('o3'), projects: only(id), text: 't' }, many, { statements: 9, bytes: 20_000 }],
      ];
      for (const [filter, found, most] of cases) {
        const what = JSON.stringify(filter);
        const page = async (field: TokenSort['field'], descending: boolean) => {
          sent.length = 0;
          const { rows, total } = await listed.tokens(filter, { field, descending }, { limit: 50, after: null }, NOW);
          expect(total, what).to.equal(found.length);
          expect(sent.length, `${what} statements`).to.be.at.most(most.statements);
          expect(Math.max(...sent), `${what} bytes`).to.be.at.most(most.bytes);
          return rows.map(({ token }) => token.name);
        };
        expect(await page('created_at', false), what).to.deep.equal(found.slice(0, 50));
        expect(await page('created_at', true), what).to.deep.equal(found.slice(-50).reverse());
        expect(await page('live', true), what).to.have.length(Math.min(50, found.length));
      }
      const walked = await all(
        { allows: only('gpt-5'), projects: only(id) },
        { field: 'name', descending: false },
        1_000,
      );
      expect(walked).to.deep.equal([...many].sort());
    });

    it('is filtered by creation and by time without use, in every order, by pages of any size', async () => {
      const { id } = await aProject();
      const made = [];
      for (let n = 0; n < 12; n++) {
        const token = {
          name: `t${n}`,
          createdAtMs: NOW - n * HOUR,
          expiresAtMs: NOW + ((n * 5) % 12) * HOUR - 2 * HOUR,
        };
        const { id: tokenId } = await aToken(token, id);
        const lastUsedAtMs = n % 3 === 0 ? 0 : NOW - ((n * 7) % (n + 1)) * HOUR;
        const use = 'UPDATE tokens SET last_used_at = $lastUsedAtMs, request_count = $n WHERE id = $tokenId';
        await database.transact((tx) => tx.execute(use, { lastUsedAtMs, n: n % 4, tokenId }));
        made.push({ ...token, idleSinceMs: lastUsedAtMs || token.createdAtMs });
      }
      type Made = (typeof made)[number];
      const states = only<TokenState>('active');
      const filters: [TokenFilter, (token: Made) => boolean][] = [
        [{ idleSince: { inMs: -3 * HOUR } }, ({ idleSinceMs }) => idleSinceMs < NOW + 1 - 3 * HOUR],
        [{ idleSince: { atMs: NOW - 3 * HOUR } }, ({ idleSinceMs }) => idleSinceMs < NOW - 3 * HOUR],
        [
          { idleSince: { inMs: -2 * HOUR }, states, text: 't' },
          ({ idleSinceMs, expiresAtMs }) => idleSinceMs < NOW + 1 - 2 * HOUR && expiresAtMs > NOW + 1,
        ],
        [{ createdAfter: { inMs: -5 * HOUR } }, ({ createdAtMs }) => createdAtMs > NOW + 1 - 5 * HOUR],
        [
          { createdAfter: { atMs: NOW - 9 * HOUR }, createdBefore: { inMs: -4 * HOUR }, words: [word('t7', true)] },
          ({ createdAtMs, name }) => createdAtMs > NOW - 9 * HOUR && createdAtMs < NOW + 1 - 4 * HOUR && name !== 't7',
        ],
      ];
      for (const [filter, fits] of filters) {
        const names = made.filter(fits).map(({ name }) => name);
        expect(names.length).to.be.within(2, made.length - 1);
        for (const field of TOKEN_SORT_FIELDS) {
          for (const descending of [false, true]) {
            const [whole, ...others] = await Promise.all(
              [100, 3].map((limit) => all({ projects: only(id), ...filter }, { field, descending }, limit)),
            );
            expect(whole, `${JSON.stringify(filter)} by ${field}`).to.have.members(names);
            for (const paged of others) expect(paged).to.deep.equal(whole);
          }
        }
      }
    });

    it('is filtered by errors and models of the last days, in every order, by pages of any size', async () => {
      const { id } = await aProject();
      const made: { name: string; errors: number; model: string }[] = [];
      const rows: UsageRow[] = [];
      for (let n = 0; n < 12; n++) {
        const name = `t${n}`;
        const token = { name, createdAtMs: NOW - n * HOUR, expiresAtMs: NOW + ((n * 5) % 12) * HOUR - 2 * HOUR };
        const { id: tokenId } = await aToken(token, id);
        made.push({ name, errors: n < 8 ? 2 * n : 0, model: n < 8 ? ['gpt-4o', 'GPT-4o-mini', 'o3'][n % 3]! : '' });
        // One half of the errors an hour earlier; and older ones, which do not count.
        for (const [age, outcome] of [
          [0, 'upstream_refused'],
          [HOUR, 'refused'],
          [8 * 24 * HOUR, 'timeout'],
        ] as const) {
          const upstreamRefused = outcome === 'upstream_refused' ? n : 0;
          const hourMs = NOW - (NOW % HOUR) - age;
          const of = { tokenId, projectId: id, outcome, model: made.at(-1)!.model };
          if (n < 8 || age > HOUR) rows.push(aUsageRow(hourMs, { ...of, requests: n, upstreamRefused }));
        }
      }
      await new SqlUsage(database).add({ instanceId: randomUUID(), seq: 1, nowMs: NOW, rows });
      const gpt = only('gpt');
      const filters: [TokenFilter, (token: (typeof made)[number]) => boolean][] = [
        [{ errorsOver: 5 }, ({ errors }) => errors > 5],
        [{ errorsOver: 4, text: 't' }, ({ errors }) => errors > 4],
        [{ models: gpt }, ({ model }) => /gpt/i.test(model)],
        [{ models: only('4O-MINI', 'o3') }, ({ model }) => /mini|o3/.test(model)],
        [{ models: allBut('gpt') }, ({ model }) => !/gpt/i.test(model)],
        [{ models: gpt, errorsOver: 2 }, ({ model, errors }) => /gpt/i.test(model) && errors > 2],
        [{ models: allBut('gpt'), errorsOver: 2 }, ({ model, errors }) => !/gpt/i.test(model) && errors > 2],
      ];
      for (const [filter, fits] of filters) {
        const names = made.filter(fits).map(({ name }) => name);
        expect(names.length).to.be.within(1, made.length - 1);
        for (const field of TOKEN_SORT_FIELDS) {
          const [whole, ...others] = await Promise.all(
            [100, 3].map((limit) => all({ projects: only(id), ...filter }, { field, descending: true }, limit)),
          );
          expect(whole, `${JSON.stringify(filter)} by ${field}`).to.have.members(names);
          for (const paged of others) expect(paged).to.deep.equal(whole);
        }
      }
    });
  });

  describe('counts and leases', () => {
    const instance = async () => {
      const id = randomUUID();
      await database.transact((tx) =>
        tx.execute('INSERT INTO instances (id, seq, started_at, heartbeat_at) VALUES ($id, 0, $now, $now)', {
          id,
          now: NOW,
        }),
      );
      return id;
    };
    const row = (tokenId: string, more: Partial<TickRow>): TickRow => ({
      tokenId,
      uses: 0,
      hits: 0,
      lastUsedAtMs: NOW,
      leased: false,
      take: 0,
      giveBack: 0,
      ...more,
    });
    const countsOf = async (id: string) => {
      const [counts] = await database.select<Record<string, number | string>>(
        'SELECT request_count, reserved, cache_hit_count, last_used_at FROM tokens WHERE id = $id',
        { id },
      );
      return Object.values(counts ?? {}).map(Number);
    };

    it('are taken up to the cap and not beyond', async () => {
      const { id } = await aToken({ maxRequests: 10 });
      const instanceId = await instance();
      const take = async (seq: number, units: number) =>
        (await ledger.commit({ instanceId, seq, nowMs: NOW, rows: [row(id, { take: units })], purses: [] })).units.get(
          id,
        );
      expect(await take(1, 4)).to.deep.equal({ granted: 4, left: 6, isHeldElsewhere: false });
      expect(await take(2, 8)).to.deep.equal({ granted: 6, left: 0, isHeldElsewhere: false });
      expect(await take(3, 1)).to.deep.equal({ granted: 0, left: 0, isHeldElsewhere: false });
    });

    it('are never taken beyond the cap by concurrent transactions', async () => {
      const { id } = await aToken({ maxRequests: 30 });
      const ledgers = [
        ledger,
        new SqlLedger(database.dialect.name === 'sqlite' ? database : other, { isShared: true }),
      ];
      const granted = await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          const instanceId = await instance();
          const reports = await ledgers[i % 2]?.commit({
            instanceId,
            seq: 1,
            nowMs: NOW,
            rows: [row(id, { take: 3 })],
            purses: [],
          });
          return reports?.units.get(id)?.granted ?? 0;
        }),
      );
      expect(granted.reduce((sum, units) => sum + units, 0)).to.equal(30);
      expect((await countsOf(id))[1]).to.equal(30);
    });

    it('are written with the used units, the latest use and the returned units', async () => {
      const { id } = await aToken({ maxRequests: 10 });
      const instanceId = await instance();
      await ledger.commit({ instanceId, seq: 1, nowMs: NOW, rows: [row(id, { take: 5 })], purses: [] });
      const rows = [row(id, { uses: 2, hits: 3, leased: true, giveBack: 3, lastUsedAtMs: NOW + 9 })];
      await ledger.commit({ instanceId, seq: 2, nowMs: NOW, rows, purses: [] });
      expect(await countsOf(id)).to.deep.equal([2, 2, 3, NOW + 9]);
      await ledger.commit({
        instanceId,
        seq: 3,
        nowMs: NOW,
        rows: [row(id, { hits: 1, lastUsedAtMs: NOW })],
        purses: [],
      });
      expect(await countsOf(id)).to.deep.equal([2, 2, 4, NOW + 9]);
    });

    it('are committed once: repeating a tick, or skipping one, changes nothing', async () => {
      const { id } = await aToken();
      const instanceId = await instance();
      const tick = { instanceId, seq: 1, nowMs: NOW, rows: [row(id, { uses: 1 })], purses: [] };
      await ledger.commit(tick);
      expect(await failureOf(ledger.commit(tick))).to.be.instanceOf(StoreUnavailable);
      expect(await failureOf(ledger.commit({ ...tick, seq: 3 }))).to.be.instanceOf(InstanceExpired);
      expect(await ledger.lastSeq(instanceId)).to.equal(1);
      expect((await countsOf(id))[0]).to.equal(1);
    });

    it('of an instance that retires count as used', async () => {
      const { id } = await aToken({ maxRequests: 10 });
      const instanceId = await instance();
      await ledger.commit({ instanceId, seq: 1, nowMs: NOW, rows: [row(id, { take: 4 })], purses: [] });
      await ledger.retire(instanceId);
      expect((await countsOf(id)).slice(0, 2)).to.deep.equal([4, 4]);
      expect(await failureOf(ledger.lastSeq(instanceId))).to.be.instanceOf(InstanceExpired);
    });

    it('held by others are requested, and can be taken after they are returned', async () => {
      const { id } = await aToken({ maxRequests: 2 });
      const [one, two] = [await instance(), await instance()];
      const tick = (instanceId: string, seq: number, more: Partial<TickRow>) =>
        ledger.commit({ instanceId, seq, nowMs: NOW, rows: [row(id, more)], purses: [] });
      await tick(one, 1, { take: 2 });
      const refused = await tick(two, 1, { take: 1 });
      expect(refused.units.get(id)).to.deep.equal({ granted: 0, left: 0, isHeldElsewhere: true });
      expect((await clusterStore.poll(one, NOW)).wanted).to.deep.equal([id]);
      expect((await clusterStore.poll(two, NOW)).wanted).to.deep.equal([]);
      await tick(one, 2, { uses: 1, leased: true, giveBack: 1 });
      expect((await clusterStore.poll(one, NOW)).wanted).to.deep.equal([]);
      expect((await tick(two, 2, { take: 1 })).units.get(id)?.granted).to.equal(1);
      await tick(two, 3, { uses: 1, leased: true });
      const exhausted = await tick(one, 3, { take: 1 });
      expect(exhausted.units.get(id)).to.deep.equal({ granted: 0, left: 0, isHeldElsewhere: false });
    });

    it('that are returned while another instance requests them can be taken by it', async () => {
      if (database.dialect.name === 'sqlite') return; // SQLite has a single writer.
      const { id } = await aToken({ maxRequests: 1 });
      const [one, two] = [await instance(), await instance()];
      await ledger.commit({ instanceId: one, seq: 1, nowMs: NOW, rows: [row(id, { take: 1 })], purses: [] });
      let release: () => void = () => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      let changed: () => void = () => undefined;
      const isChanged = new Promise<void>((resolve) => (changed = resolve));
      const givingBack = other.transact(async (tx) => {
        await tx.execute('UPDATE tokens SET reserved = reserved - 1 WHERE id = $id', { id });
        await tx.execute('DELETE FROM leases WHERE token_id = $id AND instance_id = $one', { id, one });
        changed();
        await held;
      });
      await isChanged;
      const asked = ledger.commit({ instanceId: two, seq: 1, nowMs: NOW, rows: [row(id, { take: 1 })], purses: [] });
      await eventually('the transaction waits for the row', async () => {
        const [waiting] = await database.select<{ n: number | string }>(
          database.dialect.name === 'postgres'
            ? "SELECT COUNT(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%tokens%'"
            : "SELECT COUNT(*) AS n FROM information_schema.processlist WHERE info LIKE 'UPDATE tokens SET request_count%'",
        );
        return Number(waiting?.n) > 0;
      });
      release();
      await givingBack;
      expect((await asked).units.get(id)?.granted).to.equal(1);
    });

    it('are reported by token, including drawn units that are not settled', async () => {
      const { id } = await aToken({ maxRequests: 100 });
      const instanceId = await instance();
      await ledger.commit({ instanceId, seq: 1, nowMs: NOW, rows: [row(id, { take: 4 })], purses: [] });
      expect([...(await ledger.held(instanceId, [id, randomUUID()]))]).to.deep.equal([[id, 4]]);
      expect((await ledger.held(await instance(), [id])).size).to.equal(0);
    });
  });

  describe('purses', () => {
    const DAY = Date.UTC(2026, 5, 1);
    const LIMITED = { limitNano: 1_000, limitTokens: null, period: 'none' } as const;
    const NONE = { nano: 0, tokens: 0 };
    const charge = (dayMs: number, nano: number, tokens = 0, unpriced = 0) => ({ dayMs, nano, tokens, unpriced });
    const take = (nano: number, terms: PurseTerms = LIMITED) => ({
      ...{ terms, want: { nano, tokens: 0 }, least: { nano, tokens: 0 }, ahead: NONE },
    });
    const instance = async () => {
      const id = randomUUID();
      await ledger.enrol(id, NOW);
      return { id, seq: 0 };
    };
    /** Commits a tick with one row. */
    const settle = async (
      by: { id: string; seq: number },
      purseId: string,
      row: Partial<PurseTickRow>,
      { nowMs = NOW, on = ledger } = {},
    ) => {
      by.seq += 1;
      const purses = [{ purseId, charges: [], returns: [], take: null, isReported: true, ...row }];
      const tick = { instanceId: by.id, seq: by.seq, nowMs, rows: [], purses };
      return (await on.commit(tick)).purses.get(purseId);
    };
    const limited = (budget: Budget | null) => aToken({ budget });
    const rowOf = async (id: string) => (await records.purses([id])).get(id)!;
    const countsOf = async (id: string) => {
      const { lifeNano, monthNano, dayNano, leasedNano } = await rowOf(id);
      return [lifeNano, monthNano, dayNano, leasedNano];
    };
    const restrict = (id: string, budget: Budget | null, nowMs = NOW) =>
      change((tx) => tx.restrictToken(id, { ...NO_POLICIES, budget }, nowMs));
    const USD = { usd: '0.000001', period: 'none', mode: 'hard' } as const; // 1,000 nano-USD

    it('count by life, month and day of the admission, also with charges that are late', async () => {
      const { id } = await aToken();
      const by = await instance();
      const days = 86_400_000;
      await settle(by, id, { charges: [charge(DAY - days, 1, 10), charge(DAY, 2, 20, 1)] });
      await settle(by, id, { charges: [charge(DAY + days, 4, 40)], isReported: false });
      await settle(by, id, { charges: [charge(DAY, 8, 80, 1)] }); // Late: not of the current day.
      expect(await rowOf(id)).to.deep.include({
        ...{ lifeNano: 15, lifeTokens: 150, lifeUnpriced: 2, monthFromMs: DAY, monthNano: 14, monthTokens: 140 },
        ...{ monthUnpriced: 2, dayFromMs: DAY + days, dayNano: 4, dayTokens: 40, dayUnpriced: 0 },
      });
    });

    it('stop at the largest exact number', async () => {
      const { id } = await aToken();
      const by = await instance();
      for (let n = 0; n < 2; n++) {
        await settle(by, id, { charges: [charge(DAY, MAX_NANO, Number.MAX_SAFE_INTEGER)] });
      }
      const { lifeNano, dayNano, lifeTokens, monthTokens } = await rowOf(id);
      expect([lifeNano, dayNano]).to.deep.equal([MAX_NANO, MAX_NANO]);
      expect([lifeTokens, monthTokens]).to.deep.equal([Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]);
    });

    it('that do not exist do not keep a tick from being committed', async () => {
      const { id } = await aToken();
      const by = await instance();
      const missing = { purseId: '0', charges: [charge(DAY, 1)], returns: [], take: take(1), isReported: true };
      const found = { ...missing, purseId: id, take: null };
      const tick = { instanceId: by.id, seq: 1, nowMs: NOW, rows: [], purses: [missing, found] };
      expect([...(await ledger.commit(tick)).purses.keys()]).to.deep.equal([id]);
      expect(await countsOf(id)).to.deep.equal([1, 1, 1, 0]);
    });

    it('are leased up to the limit and not beyond, also by concurrent transactions', async () => {
      const { id } = await limited(USD);
      const ledgers = [
        ledger,
        new SqlLedger(database.dialect.name === 'sqlite' ? database : other, { isShared: true }),
      ];
      const granted = await Promise.all(
        Array.from({ length: 20 }, async (_, n) => {
          const report = await settle(await instance(), id, { take: take(90) }, { on: ledgers[n % 2] });
          return report?.grant?.nano ?? 0;
        }),
      );
      // The 10 that are left are not enough for anybody.
      expect(granted.reduce((sum, nano) => sum + nano, 0)).to.equal(990);
      expect((await countsOf(id))[3]).to.equal(990);
    });

    it('are leased ahead where there is plenty, with less than what is asked for if that is of use, and not for another budget', async () => {
      const { id } = await limited(USD);
      const by = await instance();
      const ahead = { ...take(10), ahead: { nano: 500, tokens: 0 } };
      expect((await settle(by, id, { take: ahead }))?.grant?.nano).to.equal(62); // 1/16
      const less = { ...take(2_000), least: { nano: 900, tokens: 0 } };
      expect((await settle(by, id, { take: less }))?.grant?.nano).to.equal(938);
      const other = take(1, { ...LIMITED, limitNano: 5_000 });
      expect((await settle(by, id, { take: other }))?.grant).to.equal(null);
      await restrict(id, null);
      expect((await settle(by, id, { take: take(1) }))?.grant).to.equal(null);
    });

    it('settle what was leased, give back the rest, and are asked for what they hold', async () => {
      const { id } = await limited(USD);
      const [one, two] = [await instance(), await instance()];
      await settle(one, id, { take: take(1_000) });
      const refused = await settle(two, id, { take: take(300) });
      expect(refused).to.deep.include({ grant: { fromMs: 0, nano: 0, tokens: 0 }, isHeldElsewhere: true });
      expect((await clusterStore.poll(one.id, NOW)).wanted).to.deep.equal([id]);
      expect((await clusterStore.poll(two.id, NOW)).wanted).to.deep.equal([]);
      const returns = [{ fromMs: 0, nano: 1_000, tokens: 0 }];
      await settle(one, id, { charges: [charge(DAY, 700)], returns });
      expect(await countsOf(id)).to.deep.equal([700, 700, 700, 0]);
      expect((await clusterStore.poll(one.id, NOW)).wanted).to.deep.equal([]);
      expect((await settle(two, id, { take: take(301) }))?.grant?.nano).to.equal(0);
      expect((await settle(two, id, { take: take(300) }))?.grant?.nano).to.equal(300);
      expect([...(await ledger.heldOfPurses(two.id, [id, randomUUID()]))]).to.deep.equal([
        [id, { nano: 300, tokens: 0 }],
      ]);
    });

    it('begin again with a new period, whichever clock is slow, and settle what is late in the old one', async () => {
      const daily = { ...LIMITED, period: 'day' } as const;
      const { id } = await limited({ ...USD, period: 'day' });
      const [slow, fast] = [await instance(), await instance()];
      const tomorrow = DAY + 86_400_000;
      await settle(slow, id, { take: take(900, daily) }, { nowMs: tomorrow - 2_000 });
      const next = await settle(fast, id, { take: take(800, daily) }, { nowMs: tomorrow });
      expect(next?.grant).to.deep.equal({ fromMs: tomorrow, nano: 800, tokens: 0 });
      const full = await settle(fast, id, { take: take(201, daily) }, { nowMs: tomorrow });
      expect(full?.isHeldElsewhere, 'what is leased of yesterday is of no use').to.equal(false);
      await settle(slow, id, { charges: [charge(DAY, 900)], returns: [{ fromMs: DAY, nano: 900, tokens: 0 }] });
      expect(await countsOf(id)).to.deep.equal([900, 900, 900, 800]);
      // It is still yesterday there, but it leases of the new day.
      const late = await settle(slow, id, { take: take(300, daily) }, { nowMs: tomorrow - 1_000 });
      expect(late?.grant).to.deep.equal({ fromMs: tomorrow, nano: 0, tokens: 0 });
      const fits = await settle(slow, id, { take: take(200, daily) }, { nowMs: tomorrow - 1_000 });
      expect(fits?.grant).to.deep.equal({ fromMs: tomorrow, nano: 200, tokens: 0 });
    });

    it('keep what is leased when the period or the limit changes', async () => {
      const daily = { ...LIMITED, period: 'day' } as const;
      const { id } = await limited(USD);
      const [one, two] = [await instance(), await instance()];
      await settle(one, id, { take: take(600) });
      await settle(two, id, { take: take(300) });
      await restrict(id, { ...USD, period: 'day' });
      expect(await rowOf(id)).to.deep.include({ leasedFromMs: DAY, leasedNano: 900 });
      expect((await settle(two, id, { take: take(101, daily) }))?.grant?.nano).to.equal(0);
      // What the instance knows as a lease of the whole life is one of the day now.
      await settle(one, id, { charges: [charge(DAY, 100)], returns: [{ fromMs: 0, nano: 600, tokens: 0 }] });
      expect(await countsOf(id)).to.deep.equal([100, 100, 100, 300]);
      await restrict(id, { ...USD, usd: '0.0000002', period: 'day' });
      expect((await settle(one, id, { take: take(1, { ...daily, limitNano: 200 }) }))?.grant?.nano).to.equal(0);
      await restrict(id, USD);
      await settle(two, id, { returns: [{ fromMs: 0, nano: 300, tokens: 0 }] });
      expect(await countsOf(id)).to.deep.equal([100, 100, 100, 0]);
      expect((await ledger.heldOfPurses(two.id, [id])).size).to.equal(0);
    });

    it('forfeit exactly what a dead instance had leased, in the period that it was of', async () => {
      const daily = { ...LIMITED, period: 'day' } as const;
      const [life, day] = [await limited(USD), await limited({ ...USD, period: 'day' })];
      const dead = await instance();
      await settle(dead, life.id, { take: take(400) });
      await settle(dead, day.id, { take: take(500, daily) }, { nowMs: NOW - 86_400_000 });
      await settle(dead, day.id, { take: take(50, daily), charges: [charge(DAY, 3)] });
      await ledger.retire(dead.id);
      const { lifeNano, lifeUnpriced, leasedNano } = await rowOf(life.id);
      expect([lifeNano, lifeUnpriced, leasedNano]).to.deep.equal([400, 0, 0]);
      expect(await countsOf(day.id)).to.deep.equal([553, 53, 53, 0]);
      expect((await ledger.heldOfPurses(dead.id, [life.id, day.id])).size).to.equal(0);
    });

    it('have no lease of a worker that is removed while its last tick is committed', async () => {
      if (database.dialect.name === 'sqlite') return; // SQLite has a single writer.
      const { id } = await limited(USD);
      const worker = await instance();
      let release: () => void = () => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      let locking: Promise<void> = Promise.resolve();
      await new Promise<void>((locked) => {
        locking = other.transact(async (tx) => {
          await tx.execute('UPDATE purses SET leased_nano = leased_nano WHERE id = $id', { id });
          locked();
          await held;
        });
      });
      const ticking = settle(worker, id, { take: take(400) });
      await eventually('the tick waits for the purse', async () => (await waiting('purses')) > 0);
      const retiring = ledger.retire(worker.id);
      await eventually('the removal waits for the tick', async () => (await waiting('instances')) > 0);
      release();
      await Promise.all([locking, ticking, retiring]);
      expect(await countsOf(id)).to.deep.include.members([400, 0]);
      expect((await ledger.heldOfPurses(worker.id, [id])).size).to.equal(0);
    });

    /** Number of statements about a table that wait for a lock. */
    async function waiting(table: string): Promise<number> {
      const [found] = await database.select<{ n: number | string }>(
        database.dialect.name === 'postgres'
          ? `SELECT COUNT(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${table}%'`
          : `SELECT COUNT(*) AS n FROM information_schema.processlist WHERE info LIKE '%${table}%' AND info NOT LIKE '%processlist%'`,
      );
      return Number(found?.n);
    }
  });

  describe('instances', () => {
    const row = (tokenId: string, more: Partial<TickRow>): TickRow => ({
      ...{ tokenId, uses: 0, hits: 0, lastUsedAtMs: NOW, leased: false, take: 0, giveBack: 0 },
      ...more,
    });
    const countsOf = async (id: string) => {
      const [counts] = await database.select<Record<string, number | string>>(
        'SELECT request_count, reserved FROM tokens WHERE id = $id',
        { id },
      );
      return Object.values(counts ?? {}).map(Number);
    };
    /** Makes an instance appear silent for this long. */
    const silence = (id: string, ms: number) =>
      database.transact((tx) =>
        tx.execute('UPDATE instances SET heartbeat_at = heartbeat_at - $ms WHERE id = $id', { id, ms }),
      );
    const enrolled = async () => {
      const id = randomUUID();
      await ledger.enrol(id, NOW);
      return id;
    };

    it('that are silent for half a minute expire once, and their leases count as used', async () => {
      const { id } = await aToken({ maxRequests: 10 });
      const [dead, living] = [await enrolled(), await enrolled()];
      await ledger.commit({ instanceId: dead, seq: 1, nowMs: NOW, rows: [row(id, { take: 4 })], purses: [] });
      await clusterStore.expireDead(living, NOW); // Instances left over from other tests.
      await silence(dead, 29_000);
      expect(await clusterStore.expireDead(living, NOW)).to.equal(0);
      await silence(dead, 2_000);
      expect(await clusterStore.expireDead(living, NOW)).to.equal(1);
      expect(await clusterStore.expireDead(living, NOW)).to.equal(0);
      expect(await countsOf(id)).to.deep.equal([4, 4]);
    });

    it('that send heartbeats do not expire', async () => {
      const [one, other] = [await enrolled(), await enrolled()];
      await silence(one, 31_000);
      await ledger.commit({ instanceId: one, seq: 1, nowMs: NOW, rows: [], purses: [] });
      expect(await clusterStore.expireDead(other, NOW)).to.equal(0);
    });

    it('that expired while alive notice it, settle nothing that was leased, and continue from their last tick', async () => {
      const { id } = await aToken({ maxRequests: 10 });
      const [expired, living] = [await enrolled(), await enrolled()];
      await ledger.commit({ instanceId: expired, seq: 1, nowMs: NOW, rows: [row(id, { take: 4 })], purses: [] });
      await silence(expired, 31_000);
      await clusterStore.expireDead(living, NOW);
      const late = { instanceId: expired, seq: 2, nowMs: NOW, rows: [row(id, { uses: 2, leased: true })], purses: [] };
      for (const failure of [await failureOf(ledger.commit(late)), await failureOf(ledger.lastSeq(expired))]) {
        expect(failure).to.be.instanceOf(InstanceExpired);
      }
      expect(await countsOf(id)).to.deep.equal([4, 4]);
      expect(await ledger.rejoin(expired, NOW)).to.equal(1);
      expect(await ledger.rejoin(expired, NOW)).to.equal(1);
      await ledger.commit({ instanceId: expired, seq: 2, nowMs: NOW, rows: [row(id, { take: 1 })], purses: [] });
      expect(await countsOf(id)).to.deep.equal([4, 5]);
    });

    it('know which others count limits apart from Redis, also for a minute after these have ended', async () => {
      await database.transact((tx) => tx.execute('DELETE FROM instances'));
      const ofRedis = new SqlLedger(database, { isShared: true, isApart: false });
      const [first, last] = [`0${randomUUID()}`.slice(0, 36), `z${randomUUID()}`.slice(0, 36)];
      for (const id of [first, last]) await ofRedis.enrol(id, NOW);
      const peers = async () => (await clusterStore.poll(last, NOW)).peers;
      const none = { live: 2, isFirst: false, isLive: true, apart: 0, isFirstApart: false };
      expect(await peers()).to.deep.equal(none);
      await clusterStore.markApart(last, true);
      expect(await peers()).to.deep.equal(none);
      await clusterStore.markApart(first, true);
      expect(await peers()).to.deep.equal({ ...none, apart: 1, isFirstApart: true });
      await ofRedis.retire(first);
      expect(await peers()).to.deep.equal({ ...none, live: 1, isFirst: true, apart: 1, isFirstApart: true });
      await database.transact((tx) =>
        tx.execute('UPDATE instances SET expired_at = expired_at - 67000 WHERE id = $first', { first }),
      );
      expect(await peers()).to.deep.equal({ ...none, live: 1, isFirst: true });
      await clusterStore.markApart(last, false);
      await ofRedis.retire(last);
      expect(await database.select('SELECT id FROM instances WHERE id = $last', { last })).to.deep.equal([]);
    });

    it('that use a database alone find former ones, unless these have retired', async () => {
      const alone = new SqlLedger(database, { isShared: false });
      await alone.enrol(randomUUID(), NOW);
      const id = randomUUID();
      expect(await alone.enrol(id, NOW)).to.equal(true);
      expect(await alone.enrol(id, NOW)).to.equal(false);
      await alone.retire(id);
      expect(await alone.enrol(randomUUID(), NOW)).to.equal(false);
    });

    it('receive changes by their numbers, in order', async () => {
      const { seq } = await clusterStore.poll('unknown', NOW);
      const change = { kind: 'token.revoked', projectId: 'p', tokenId: 't' } as const;
      const purge = { kind: 'cache.purged', projectId: null, tokenId: null } as const;
      const caller = { ...CALLER };
      await records.change(async (tx) => {
        await tx.record(auditRecord({ action: 'token.revoke' }, caller, 'success', NOW), change);
        await tx.record(auditRecord({ action: 'token.revoke' }, caller, 'denied', NOW));
        await tx.record(auditRecord({ action: 'cache.purge' }, caller, 'success', NOW + 1), purge);
      });
      expect((await clusterStore.poll('unknown', NOW)).seq).to.equal(seq + 3);
      expect(await clusterStore.changesAfter(seq, 10)).to.deep.equal([
        { ...change, seq: seq + 1, timeMs: NOW },
        { ...purge, seq: seq + 3, timeMs: NOW + 1 },
      ]);
      expect(await clusterStore.changesAfter(seq, 1)).to.have.lengthOf(1);
      await clusterStore.deleteChangesBefore(NOW + 1);
      expect((await clusterStore.changesAfter(seq, 10)).map((each) => each.seq)).to.deep.equal([seq + 3]);
    });
  });

  describe('records of changes', () => {
    const record = (more: Parameters<typeof auditRecord>[0], caller: Partial<Caller> = {}, timeMs = NOW) =>
      auditRecord(more, { ...CALLER, ...caller }, 'success', timeMs);

    // All filters over all pages: test/deployments/contract/audit.ts.
    it('are found by action, actor, outcome and text', async () => {
      const projectId = randomUUID();
      await change((tx) => tx.record(record({ action: 'token.revoke', projectId }, { reason: 'Schlüssel verloren' })));
      await change((tx) => tx.record(record({ action: 'project.update', projectId }, { actor: 'tui' }, NOW + 1)));
      const revoked = { action: 'token.revoke', projectId } as const;
      const lost = { actor: 'operator:ci-1', reason: '𠮷野のключ' } as const;
      // Of the same minute, so that they begin alike.
      const [requestId, otherId] = ['0199d1c2-7a10-7000-8000-00000000000a', '0199d1c2-7a11-7000-8000-00000000000a'];
      await change((tx) =>
        tx.recordAll([
          { record: record(revoked, lost, NOW + 2) },
          { record: record(revoked, { actor: 'operator:ci1', requestId }, NOW + 3) },
          { record: record(revoked, { actor: 'operator:CI1', requestId: otherId }, NOW + 4) },
        ]),
      );
      const found = async (filter: AuditFilter) =>
        (await records.auditRecords({ projectId, ...filter }, { limit: 10, after: null })).rows.map(
          ({ timeMs }) => timeMs - NOW,
        );
      for (const [filter, times] of [
        [{}, [4, 3, 2, 1, 0]],
        [{ text: projectId }, [4, 3, 2, 1, 0]],
        [{ text: `revoke ${projectId.slice(0, 20).toUpperCase()}` }, [4, 3, 2, 0]],
        [{ text: requestId }, [3]],
        [{ text: otherId.toUpperCase() }, [4]],
        [{ text: requestId.slice(0, 18) }, [4, 3]],
        [{ text: '𠮷野のкл' }, [2]],
        [{ actor: 'operator:ci-1' }, [2]],
        [{ actor: 'operator:CI1' }, [4]],
        [{ action: 'project.update' }, [1]],
        [{ actor: 'cli', outcome: 'success' }, [0]],
        [{ outcome: 'denied' }, []],
        [{ text: 'schlü verl' }, [0]],
      ] as const) {
        expect(await found(filter), JSON.stringify(filter)).to.deep.equal(times);
      }
    });

    it('of a batch are found by what they changed, with what was changed since, also of all tokens of the project', async () => {
      const [projectId, batch] = [randomUUID(), randomUUID()];
      const [one, two] = [randomUUID(), randomUUID()];
      const add = async (more: Parameters<typeof auditRecord>[0], caller: Partial<Caller> = { batch }) => {
        const seqs = await change((tx) => tx.record(record({ projectId, ...more }, caller)));
        return seqs;
      };
      const first = await add({ action: 'token.revoke', tokenId: one, details: { is_active: [true, false] } });
      await change((tx) => tx.record(auditRecord({ action: 'token.revoke', tokenId: two }, CALLER, 'denied', NOW)));
      const second = await add({ action: 'token.revoke', tokenId: two });
      const again = await add({ action: 'token.revoke', tokenId: one });
      const third = await add({ action: 'project.update' });
      const other = await add({ action: 'token.reactivate', tokenId: one }, { undoOf: batch });
      const all = await add({ action: 'token.revoke_all' }, {});
      expect(await records.batchMembers(batch, 0, 10)).to.deep.equal([
        { tokenId: one, projectId, seq: first },
        { tokenId: two, projectId, seq: second },
        { tokenId: null, projectId, seq: third },
      ]);
      expect((await records.batchMembers(batch, first, 1)).map(({ seq }) => seq)).to.deep.equal([second]);
      const since = await records.recordsSince({ tokenId: one, projectId }, first, 10);
      expect(since.map(({ seq, batch: of, undoOf }) => [seq, of, undoOf])).to.deep.equal([
        [first, batch, null],
        [again, batch, null],
        [other, null, batch],
        [all, null, null],
      ]);
      expect(since[0]?.details).to.deep.equal({ is_active: [true, false] });
      const ofProject = await change((tx) => tx.recordsSince({ tokenId: null, projectId }, third, 10));
      expect(ofProject.map(({ seq }) => seq)).to.deep.equal([third, all]);
      expect(await records.recordsSince({ tokenId: one, projectId }, first, 2)).to.have.length(2);
    });

    it('of batches are listed as one on one page, with their number, whichever filter', async () => {
      const projectId = randomUUID();
      const batches = Array.from({ length: 4 }, () => randomUUID());
      let at = NOW;
      for (let round = 0; round < 3; round++) {
        for (const batch of batches) {
          const subject = {
            action: 'token.revoke',
            projectId,
            tokenId: randomUUID(),
            obfuscated: `round${round}`,
          } as const;
          await change((tx) => tx.record(record(subject, { batch, actor: 'tui', reason: 'leaked' }, (at += 1))));
        }
      }
      await change((tx) => tx.record(record({ action: 'token.revoke', projectId }, { actor: 'tui' }, (at += 1))));
      for (const [filter, most] of [
        [{}, 5],
        [{ actor: 'tui' }, 5],
        [{ text: 'token revoke success' }, 5],
        [{ text: 'leaked round0' }, 4],
        [{ batch: batches[1] }, 1],
      ] as [AuditFilter, number][]) {
        const found: (number | null)[] = [];
        let after: Position | null = null;
        do {
          const page: PageOf<NamedRecord> = await records.auditRecords(
            { projectId, isGrouped: true, ...filter },
            { limit: 2, after },
          );
          found.push(...page.rows.map(({ count }) => count));
          after = page.next;
        } while (after !== null);
        expect(found, JSON.stringify(filter)).to.deep.equal(
          most === 5 ? [null, 3, 3, 3, 3] : Array<number>(most).fill(3),
        );
      }
    });

    it('of a very large batch are passed, so that the records before and among them are on the same page', async () => {
      const [projectId, batch] = [randomUUID(), randomUUID()];
      const members = 21_000;
      const [firstMs, firstSeq] = [NOW + 1_000 * HOUR, 10_000_000];
      const others = [-1, members / 2, members];
      const rows = Array.from({ length: members + 2 }, (_, n) => {
        const isOther = others.includes(n - 1);
        const [tokenId, of] = isOther ? ['NULL', 'NULL'] : [`'t-${n}'`, `'${batch}'`];
        return `('${randomUUID()}', ${firstMs + n}, ${firstSeq + n}, 'token.revoke', 'success', 'cli', '${projectId}', ${tokenId}, ${of})`;
      });
      await database.transact(async (tx) => {
        for (let at = 0; at < rows.length; at += 1_000)
          await tx.execute(
            `INSERT INTO audit (id, recorded_at, seq, action, outcome, actor, project_id, token_id, batch)
             VALUES ${rows.slice(at, at + 1_000).join(', ')}`,
          );
      });
      const before = database.statements;
      const filter = { projectId, isGrouped: true };
      const { rows: listed, next } = await records.auditRecords(filter, { limit: 10, after: null });
      expect(listed.map(({ count }) => count)).to.deep.equal([null, members - 1, null, null]);
      expect(listed[1]).to.include({ projectId, tokenId: null, batch });
      expect(next).to.equal(null);
      const last = { value: firstMs + members / 2, id: `c${String(firstSeq + members / 2).padStart(16, '0')}` };
      expect((await records.auditRecords(filter, { limit: 10, after: last })).rows).to.have.length(1);
      expect(database.statements - before).to.be.lessThan(50);
      await database.transact((tx) => tx.execute('DELETE FROM audit WHERE seq >= $firstSeq', { firstSeq }));
    }).timeout(60_000);

    it('of a reactivation and of a revocation of all tokens are in the order in which they take effect', async () => {
      const project = await aProject();
      const { id } = await aToken({}, project.id);
      await change((tx) => tx.revokeToken(id, REVOCATION));
      const theirs = database.dialect.name === 'sqlite' ? records : new SqlRecords(other, box);
      const seqs: number[] = [];
      let revocation: Promise<unknown> = Promise.resolve();
      await change(async (tx) => {
        await tx.lockProjectOf(id);
        await tx.lockToken(id);
        await tx.reactivateToken(id);
        seqs.push(await tx.record(record({ action: 'token.reactivate', projectId: project.id, tokenId: id })));
        revocation = theirs.change(async (later) => {
          await later.lockProject(project.id);
          await later.revokeTokensOf(project.id, REVOCATION);
          seqs.push(await later.record(record({ action: 'token.revoke_all', projectId: project.id })));
        });
        // It must not look at the tokens before this transaction ends.
        await new Promise((resolve) => setTimeout(resolve, 200));
      });
      await revocation;
      expect(seqs[0]).to.be.lessThan(seqs[1]!);
      expect((await records.token(id))?.token.isActive).to.equal(false);
    });

    it('of the tokens of an issuer include one that somebody else reactivates meanwhile', async () => {
      const issuedBy = 'operator:ana';
      const { id: active, projectId } = await aToken({ issuedBy });
      const { id: reactivated } = await aToken({ issuedBy }, projectId);
      await change((tx) => tx.revokeToken(reactivated, REVOCATION));
      const revoked = await database.transact((tx) => {
        let isReactivated = false;
        const disturbed: SqlTransaction = {
          dialect: tx.dialect,
          execute: (...statement) => tx.execute(...statement),
          async select<Row extends object>(...query: Parameters<SqlTransaction['select']>) {
            const rows = await tx.select<Row>(...query);
            // As if another transaction had committed it after this read.
            if (!isReactivated)
              await declared.TOKENS.update(tx, { id: reactivated }, { isActive: true, ...NOT_REVOKED });
            isReactivated = true;
            return rows;
          },
        };
        return new SqlAccessChanges(disturbed).revokeTokensOf(issuedBy, NOW, { ...REVOCATION, revokedAtMs: NOW + 1 });
      });
      expect(revoked.map(({ id }) => id)).to.have.members([active, reactivated]);
      expect((await records.token(reactivated))?.token).to.include({ isActive: false, revokedAtMs: NOW + 1 });
    });

    it('of many changes at once are those of one after the other, and are found by their texts', async () => {
      const project = await aProject();
      const tokens = await Promise.all(['first job', null, 'last job'].map((name) => aToken({ name }, project.id)));
      const entries = Array.from({ length: 205 }, (_, i) => {
        const { id: tokenId } = tokens[i % 3]!;
        const change = { kind: 'token.revoked', projectId: project.id, tokenId } as const;
        const its = record({ action: 'token.revoke', projectId: project.id, tokenId, details: { lot: `lot${i}x` } });
        return { record: its, ...(i % 2 && { change }) };
      });
      const first = await records.lastRecord();
      const { seq } = await clusterStore.poll('unknown', NOW);
      const seqs = await change((tx) => tx.recordAll(entries));
      expect(seqs).to.deep.equal(entries.map((_, i) => first + 1 + i));
      const committed = await records.recordsAfter(first, 300);
      expect(committed).to.deep.equal(
        entries.map((entry, i) => ({
          ...entry.record,
          seq: first + 1 + i,
          tokenName: tokens[i % 3]?.name ?? null,
          projectName: project.name,
        })),
      );
      const changed = await clusterStore.changesAfter(seq, 300);
      expect(changed.map(({ seq: at, tokenId }) => [at, tokenId])).to.deep.equal(
        entries.flatMap(({ record: { tokenId }, ...more }, i) => ('change' in more ? [[first + 1 + i, tokenId]] : [])),
      );
      for (const lot of ['lot0x', 'lot204x']) {
        const { rows } = await records.auditRecords({ text: lot }, { limit: 5, after: null });
        expect(rows.map(({ details }) => details)).to.deep.equal([{ lot }]);
      }
      expect((await change((tx) => tx.recordAll([]))).length).to.equal(0);
    });

    it('are numbered in the order of commits, without gaps, however many are concurrent', async () => {
      const first = await records.lastRecord();
      const theirs = database.dialect.name === 'sqlite' ? records : new SqlRecords(other, box);
      await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          (i % 2 ? records : theirs).change((tx) =>
            tx.record(record({ action: 'token.revoke', tokenId: `t${i}`, projectId: 'p' }), {
              kind: 'token.revoked',
              projectId: 'p',
              tokenId: `t${i}`,
            }),
          ),
        ),
      );
      const numbers = (await records.recordsAfter(first, 100)).map(({ seq }) => seq - first);
      expect(numbers).to.deep.equal(Array.from({ length: 20 }, (_, i) => i + 1));
    });
  });

  describe('names', () => {
    it('of many tokens and projects are read at once', async () => {
      const projects = await Promise.all(Array.from({ length: 5 }, () => aProject()));
      const tokens = await Promise.all(
        projects.flatMap(({ id }, i) => [aToken({ name: `job "${i}"` }, id), aToken({}, id)]),
      );
      const ids = tokens.map(({ id }) => id);
      const before = database.statements;
      const names = await records.names([...ids, ...ids, '', randomUUID()], [...projects.map(({ id }) => id), "'"]);
      expect(database.statements - before).to.equal(2);
      expect(names.tokens).to.deep.equal(new Map(tokens.map(({ id, name }) => [id, name])));
      expect(names.projects).to.deep.equal(new Map(projects.map(({ id, name }) => [id, name])));
      expect(await records.names([], [])).to.deep.equal({ tokens: new Map(), projects: new Map() });
    });
  });

  describe('usage', () => {
    const hour = (i: number) => Math.floor(NOW / HOUR) * HOUR + i * HOUR;
    const useRow = (hourMs: number, more: Partial<UsageRow> = {}): UsageRow =>
      aUsageRow(hourMs, {
        id: `${firstIdOf(hourMs)}${more.tokenId ?? 't'}-${more.outcome ?? 'ok'}`,
        tokenId: 't',
        projectId: 'p-of-usage',
        promptTokens: 10,
        completionTokens: 5,
        cacheReadTokens: 6,
        cacheWriteTokens: 1,
        withTokens: 1,
        ...more,
      });

    it('is accepted from an instance whose last flush was deleted because it had none for so long', async () => {
      const flush = (instanceId: string, seq: number, nowMs: number) =>
        usage.add({ instanceId, seq, nowMs, rows: [useRow(hour(-50), { tokenId: 'rare' })] });
      const rare = randomUUID();
      await flush(rare, 1, NOW);
      await flush(randomUUID(), 1, NOW + 25 * HOUR);
      expect(await usage.lastFlush(rare)).to.equal(0);
      await flush(rare, 2, NOW + 26 * HOUR);
      expect(await failureOf(flush(rare, 2, NOW + 26 * HOUR))).to.be.instanceOf(StoreUnavailable);
      expect(await usage.lastFlush(rare)).to.equal(2);
    });

    it('is added to existing rows, once for each flush, and to the sums', async () => {
      const instanceId = randomUUID();
      const rows = [useRow(hour(0)), useRow(hour(1)), useRow(hour(1), { outcome: 'refused', requests: 4 })];
      await usage.add({ instanceId, seq: 1, nowMs: NOW, rows });
      expect(await failureOf(usage.add({ instanceId, seq: 1, nowMs: NOW, rows }))).not.to.equal(null);
      await usage.add({
        instanceId,
        seq: 2,
        nowMs: NOW,
        rows: Array.from({ length: 90 }, (_, i) => useRow(hour(2), { tokenId: `u${i}` })),
      });
      await usage.add({ instanceId, seq: 3, nowMs: NOW, rows });
      expect(await usage.lastFlush(instanceId)).to.equal(3);
      const span = { sinceMs: hour(0), untilMs: hour(3), projectId: 'p-of-usage' };
      const [whole] = await usage.report({ by: new Set(), ...span }, 10);
      expect(whole).to.deep.include({ requests: 102, refused: 8, promptTokens: 960, completionTokens: 480 });
      expect(whole).to.deep.include({ cacheReadTokens: 576, cacheWriteTokens: 96 });
      const hours = await usage.report({ by: new Set(['hour'] as const), ...span }, 10);
      expect(hours.map(({ hourMs, requests }) => [((hourMs ?? 0) - hour(0)) / HOUR, requests]).sort()).to.deep.equal([
        [0, 2],
        [1, 10],
        [2, 90],
      ]);
      const tokens = await usage.report({ by: new Set(['token', 'model'] as const), ...span }, 10);
      expect(tokens).to.have.lengthOf(11); // One more than requested shows that there are more.
    });

    it('reports what the upstream refused and failed, and what was cut, by hour as by day', async () => {
      const day = Math.floor(NOW / (24 * HOUR)) * 24 * HOUR - 48 * HOUR;
      const more = { projectId: 'p-of-outcomes', tokenId: 'outcomes' };
      const rows = [
        useRow(day, { ...more, requests: 9, upstreamRefused: 2 }),
        useRow(day, { ...more, outcome: 'revoked', requests: 7, cut: 5 }),
        useRow(day, { ...more, outcome: 'upstream_error', requests: 4 }),
      ];
      const instanceId = randomUUID();
      for (const seq of [1, 2]) await usage.add({ instanceId, seq, nowMs: NOW, rows });
      const counted = { requests: 40, refused: 4, failed: 8, upstreamRefused: 4, cut: 10 };
      const span = { projectId: 'p-of-outcomes', sinceMs: day, untilMs: day + 24 * HOUR };
      for (const by of [[], ['token'], ['token', 'hour'], ['hour'], ['day', 'model']] as const) {
        const [line] = await usage.report({ by: new Set(by), ...span }, 10);
        expect(line, by.join()).to.deep.include(counted);
      }
    });

    describe('in the top rows', () => {
      const nowMs = hour(5_000) + 30 * MINUTE_MS + 7_000;
      /** In minutes of two hours, and in hours of two days. */
      const rows: UsageRow[] = [];
      const tokens: NewToken[] = [];

      before(async () => {
        for (let n = 0; n < 4; n++) tokens.push(await aToken());
        const outcomes = [
          'ok',
          'refused',
          'revoked',
          'upstream_refused',
          'upstream_error',
          'timeout',
          'drained',
          'ok',
        ] as const;
        for (let n = 0; n < 1_500; n++) {
          const isUnknown = n % 50 === 0;
          const { id: tokenId, projectId } = isUnknown ? { id: '', projectId: '' } : tokens[(n * 5) % 4]!;
          const outcome = outcomes[(n * 11) % 8]!;
          const minuteMs = n % 3 === 0 ? null : nowMs - (nowMs % MINUTE_MS) - ((n * 7) % 110) * MINUTE_MS;
          const hourMs = minuteMs === null ? hour(5_000 - ((n * 7) % 26)) : minuteMs - (minuteMs % HOUR);
          const requests = 1 + (n % 9);
          const counts = {
            requests,
            hits: n % 2,
            promptTokens: n % 7,
            completionTokens: n % 5,
            upstreamRefused: outcome === 'upstream_refused' ? requests : 0,
            cut: outcome === 'revoked' ? 1 : 0,
            costNano: ((n * 7_919) % 13) * 1_234_567_891,
            unpriced: n % 3,
          };
          const times = Array.from({ length: 16 }, (_, bucket) => ((bucket + n) % 11 === 0 ? n % 4 : 0));
          rows.push(aUsageRow(hourMs, { minuteMs, tokenId, projectId, outcome, model: `m${n % 4}`, times, ...counts }));
        }
        const instances = [randomUUID(), randomUUID()];
        for (const [n, instanceId] of instances.entries())
          await usage.add({ instanceId, seq: 1, nowMs, rows: rows.filter((_, i) => i % 2 === n) });
        await database.transact((tx) =>
          tx.execute('UPDATE tokens SET last_used_at = $at WHERE id = $id', { at: nowMs - 1_000, id: tokens[1]!.id }),
        );
      });
      after(() =>
        database.transact((tx) =>
          tx.execute('UPDATE tokens SET last_used_at = 0 WHERE id = $id', { id: tokens[1]!.id }),
        ),
      );

      /** The same, added up from the rows. */
      function expected(query: TopQuery): Map<string, Omit<TopGroup, 'tokenId' | 'projectId' | 'model'>> {
        const { stepMs, steps } = TOP_STEPS[query.window];
        const firstMs = nowMs - (nowMs % stepMs) - (steps - 1) * stepMs;
        const groups = new Map<string, Omit<TopGroup, 'tokenId' | 'projectId' | 'model'>>();
        for (const row of rows) {
          const timeMs = query.window === '24h' ? row.hourMs : row.minuteMs;
          if (timeMs === null || timeMs < firstMs) continue;
          if ((query.tokenId ?? row.tokenId) !== row.tokenId || (query.projectId ?? row.projectId) !== row.projectId)
            continue;
          const { projectId, model } = row;
          const key = { token: row.tokenId, project: projectId, model: `${projectId} ${model}`, model_total: model }[
            query.by
          ];
          for (const each of row.tokenId === '' ? ['total'] : ['total', key]) {
            const group = groups.get(each) ?? {
              counts: {
                requests: 0,
                cacheHits: 0,
                refused: 0,
                upstreamRefused: 0,
                failed: 0,
                cut: 0,
                promptTokens: 0,
                completionTokens: 0,
                costNano: 0,
                unpriced: 0,
              },
              times: query.window === '24h' ? [] : row.times.map(() => 0),
              lastMs: 0,
              history: Array.from({ length: steps }, () => 0),
              failureHistory: Array.from({ length: steps }, () => 0),
            };
            groups.set(each, group);
            const { counts } = group;
            const refused = row.outcome === 'refused' || row.outcome === 'revoked' ? row.requests - row.cut : 0;
            const hasFailed = ['upstream_error', 'timeout', 'drained'].includes(row.outcome);
            const added = {
              requests: row.requests,
              cacheHits: row.hits,
              refused,
              upstreamRefused: row.upstreamRefused,
              failed: hasFailed ? row.requests : 0,
              cut: row.cut,
              promptTokens: row.promptTokens,
              completionTokens: row.completionTokens,
              costNano: row.costNano,
              unpriced: row.unpriced,
            };
            for (const [count, more] of Object.entries(added)) counts[count as keyof typeof added] += more;
            group.times = group.times.map((count, bucket) => count + row.times[bucket]!);
            const at = Math.floor((timeMs - firstMs) / stepMs);
            group.history[at]! += row.requests;
            group.failureHistory[at]! += failuresIn(added);
            const isUsed = row.tokenId === tokens[1]!.id && (query.by === 'token' || query.by === 'project');
            group.lastMs = Math.max(group.lastMs, isUsed ? nowMs - 1_000 : timeMs);
          }
        }
        return groups;
      }

      for (const window of TOP_WINDOWS) {
        for (const by of TOP_DIMENSIONS) {
          it(`is added up by ${by} in ${window}, for all rows and for those of a project or token`, async () => {
            for (const only of [{}, { projectId: tokens[0]!.projectId }, { tokenId: tokens[1]!.id }]) {
              const query: TopQuery = { by, window, sort: 'requests', limit: 200, ...only };
              const part = await usage.top(query, nowMs);
              const { total, ...groups } = Object.fromEntries(expected(query));
              const found = part.groups.map(({ tokenId, projectId, model, ...group }) => {
                const key = { token: tokenId, project: projectId, model: `${projectId} ${model}`, model_total: model }[
                  by
                ];
                return [key, group] as const;
              });
              expect(Object.fromEntries(found)).to.deep.equal(groups);
              expect(part.groupCount).to.equal(found.length);
              expect({ ...part.total, lastMs: total!.lastMs }).to.deep.equal(total);
            }
          });

          it(`is sorted by ${by} in ${window}, in every order`, async () => {
            for (const sort of TOP_SORTS) {
              const valueOf = (group: TopGroup): number =>
                ({
                  errors: failuresIn(group.counts),
                  requests: group.counts.requests,
                  tokens: group.counts.promptTokens + group.counts.completionTokens,
                  cost: group.counts.costNano,
                  p50: quantileOf(group, 'p50') ?? group.counts.requests,
                  p95: quantileOf(group, 'p95') ?? group.counts.requests,
                  last_used: group.lastMs,
                })[sort];
              const all = (await usage.top({ by, window, sort, limit: 200 }, nowMs)).groups;
              const values = all.map(valueOf);
              expect(values, sort).to.deep.equal([...values].sort((a, b) => b - a));
              const { groups: first, groupCount } = await usage.top({ by, window, sort, limit: 2 }, nowMs);
              expect([first, groupCount], sort).to.deep.equal([all.slice(0, 2), all.length]);
            }
          });
        }
      }

      it('is there for an hour: minutes are removed in batches, hours stay', async () => {
        const count = async () =>
          (await database.select<{ n: number }>('SELECT COUNT(*) AS n FROM usage_minutes'))[0]!.n;
        const query: TopQuery = { by: 'token', window: '24h', sort: 'requests', limit: 10 };
        const [before, day] = [await count(), await usage.top(query, nowMs)];
        while (await usage.removeMinutesBefore(nowMs - HOUR_MS, nowMs - HOUR_MS));
        expect(await count()).to.be.within(1, before - 1);
        const { total } = await usage.top({ ...query, window: '1h' }, nowMs);
        expect(total).to.deep.include({ counts: expected({ ...query, window: '1h' }).get('total')!.counts });
        while (await usage.removeMinutesBefore(nowMs + HOUR_MS, nowMs + HOUR_MS));
        expect(await count()).to.equal(0);
        expect(await usage.top(query, nowMs)).to.deep.equal(day);
      });
    });

    it('tells why requests failed lately, and how long responses took, now and before', async () => {
      const nowMs = hour(4_000) + 30 * MINUTE_MS + 7_000;
      const of = { projectId: 'p-of-incidents', tokenId: 'often' };
      const row = (agoMinutes: number, fields: Partial<UsageRow>) =>
        aUsageRow(hour(4_000), { ...of, minuteMs: hour(4_000) + (30 - agoMinutes) * MINUTE_MS, ...fields });
      const times = (bucket: number, count: number) => Array.from({ length: 16 }, (_, n) => (n === bucket ? count : 0));
      const rows = [
        row(14, { outcome: 'refused', cause: 'expired', requests: 5 }),
        row(0, { outcome: 'refused', cause: 'expired', requests: 3, model: 'another' }),
        row(1, { outcome: 'refused', cause: 'expired', requests: 2, tokenId: 'seldom' }),
        row(15, { outcome: 'refused', cause: 'expired', requests: 70, times: times(3, 7) }),
        row(2, { outcome: 'upstream_error', cause: 'key refused', requests: 4 }),
        row(3, { requests: 20, times: times(8, 20), tokenId: 'seldom' }),
        aUsageRow(hour(4_000), { ...of, outcome: 'refused', cause: 'revoked', requests: 9 }), // Its minute is unknown.
        row(4, { outcome: 'refused', cause: 'unknown token', requests: 6, projectId: '', tokenId: '' }),
      ];
      const instances = [randomUUID(), randomUUID()];
      for (const [n, instanceId] of instances.entries())
        await usage.add({ instanceId, seq: 1, nowMs, rows: rows.filter((_, i) => i % 2 === n) });
      const { fromMs, causes, requests } = await usage.incidents(nowMs, 'key refused');
      expect(fromMs).to.equal(hour(4_000) + 16 * MINUTE_MS);
      const often = { ...of, tokens: 1 };
      expect(causes).to.deep.equal([
        { ...often, cause: 'key refused', failures: 4, failuresOfToken: 4 },
        { ...often, cause: 'expired', failures: 10, tokens: 2, failuresOfToken: 8 },
        { ...often, projectId: '', tokenId: '', cause: 'unknown token', failures: 6, failuresOfToken: 6 },
      ]);
      const ofProject = requests.find(({ projectId, tokenId }) => projectId === of.projectId && tokenId === '');
      expect(ofProject).to.deep.include({ requests: 34, times: times(8, 20), earlierTimes: times(3, 7) });
      const ofToken = requests.find(({ tokenId }) => tokenId === 'often');
      expect(ofToken).to.include({ projectId: of.projectId, requests: 12 });
      while (await usage.removeMinutesBefore(nowMs + HOUR_MS, nowMs + HOUR_MS));
      expect((await usage.incidents(nowMs, 'key refused')).causes).to.deep.equal([]);
    });

    it('tells a refused key among many more failures, and removes the causes of very many tokens step by step', async () => {
      const nowMs = hour(4_100) + 30 * MINUTE_MS;
      const failing = (fields: Partial<UsageRow>) =>
        aUsageRow(hour(4_100), { minuteMs: nowMs, outcome: 'refused', cause: 'expired', requests: 9, ...fields });
      const rows = Array.from({ length: 1_500 }, (_, n) => failing({ projectId: `p-${n % 60}`, tokenId: `t-${n}` }));
      const refused = { projectId: 'p-last', tokenId: 't-last', cause: 'key refused', requests: 1 };
      await usage.add({ instanceId: randomUUID(), seq: 1, nowMs, rows: [...rows, failing(refused)] });
      const [first, second] = (await usage.incidents(nowMs, 'key refused')).causes;
      expect(first).to.include({ projectId: 'p-last', failures: 1, tokens: 1, failuresOfToken: 1 });
      expect(second).to.include({ failures: 225, tokens: 25, failuresOfToken: 9 });
      const left = async () => (await database.select<{ n: number }>('SELECT COUNT(*) AS n FROM usage_causes'))[0]!.n;
      while (await usage.removeMinutesBefore(nowMs, nowMs));
      expect(await usage.removeMinutesBefore(0, nowMs + 1)).to.equal(true);
      expect(await left()).to.equal(501);
      while (await usage.removeMinutesBefore(nowMs + 1, nowMs + 1));
      expect(await left()).to.equal(0);
    });

    it('is counted for each project of a page, with its tokens by state and their last use', async () => {
      const [busy, off, empty] = [await aProject(), await aProject(), await aProject()];
      const past = { expiresAtMs: NOW };
      const [used] = [
        await aToken({ maxRequests: 2 }, busy.id),
        await aToken({}, busy.id),
        await aToken(past, busy.id),
      ];
      const revoked = await aToken({}, busy.id);
      await change((tx) => tx.revokeToken(revoked.id, REVOCATION));
      const ofOff = await aToken({}, off.id);
      const stored = (await records.project(off.id))!;
      await change((tx) => tx.updateProject({ ...stored, isActive: false }, undefined));
      const write = (sql: string) => database.transact((tx) => tx.execute(sql, {}));
      await write(`UPDATE tokens SET request_count = 2, last_used_at = ${NOW - 7} WHERE id = '${used.id}'`);
      await write(`UPDATE tokens SET last_used_at = ${NOW - 9} WHERE id = '${ofOff.id}'`);
      const of = (projectId: string) => ({ projectId, tokenId: projectId.slice(0, 8) });
      const rows = [
        useRow(hour(-24), of(busy.id)), // Earlier than the 24 hours.
        useRow(hour(-23), { ...of(busy.id), requests: 5, upstreamRefused: 2 }),
        useRow(hour(0), { ...of(busy.id), outcome: 'refused', requests: 3 }),
        useRow(hour(0), { ...of(busy.id), outcome: 'upstream_error', requests: 4 }),
        useRow(hour(0), { ...of(busy.id), outcome: 'revoked', requests: 6, cut: 6 }),
        useRow(hour(0), { ...of(off.id), model: 'other' }),
      ];
      await usage.add({ instanceId: randomUUID(), seq: 1, nowMs: NOW, rows });
      const figures = await records.projectFigures([empty.id, busy.id, off.id, randomUUID()], NOW);
      expect(Object.fromEntries(figures)).to.deep.equal({
        [busy.id]: { tokenCount: 4, activeTokenCount: 1, lastUsedAtMs: NOW - 7, requests24h: 18, errors24h: 15 },
        [off.id]: { tokenCount: 1, activeTokenCount: 0, lastUsedAtMs: NOW - 9, requests24h: 1, errors24h: 0 },
        [empty.id]: { tokenCount: 0, activeTokenCount: 0, lastUsedAtMs: null, requests24h: 0, errors24h: 0 },
      });
      expect((await records.projectFigures([], NOW)).size).to.equal(0);
      // For most of all projects everything is read.
      const most = Array.from({ length: 2_000 }, () => randomUUID());
      const ofMost = await records.projectFigures([empty.id, ...most, busy.id, off.id], NOW);
      expect([...ofMost].sort()).to.deep.equal([...figures].sort());
    });
  });

  describe('anchors', () => {
    it('are stored once and deleted from the front', async () => {
      const anchors = new SqlAnchors(database);
      const anchor = { line: 3, head: 'a'.repeat(64), seq: null, atMs: NOW };
      await anchors.save('/x', anchor);
      await anchors.save('/x', { ...anchor, head: 'b'.repeat(64) });
      expect(await anchors.last('/x')).to.deep.equal(anchor);
      await anchors.deleteBefore('/x', 4);
      expect(await anchors.last('/x')).to.equal(null);
    });
  });

  describe('migrations', () => {
    it('are applied once, by the first process', async () => {
      const up = (on: Database) => new Migrator(on, '0.1.0', () => NOW).up();
      const [one, two] = await Promise.all([up(database), up(other)]);
      expect(one).to.deep.equal(two);
      expect(one.pending).to.deep.equal([]);
    });
  });
}
