import { type RequestHandler, Router } from 'express';
import type { Live } from '../../../config/settings.js';
import { type MigrationReport, wireMigrations } from '../../api/migrations.js';
import { type Operations, operations } from '../../api/operations.js';
import { ConcurrencyLimit } from '../../core/concurrency-limit.js';
import type { AuditLog } from '../../core/audit-log.js';
import type { CacheManager } from '../../core/cache/cache-manager.js';
import { isEverything } from '../../core/authority.js';
import type { Clock, EventBus, RecordStore, Scope } from '../../core/ports.js';
import { orUnavailable, Refusal } from '../../core/refusal.js';
import type { Registry } from '../../core/registry.js';
import type { StatusReport } from '../../core/status.js';
import type { Incidents } from '../../core/incidents.js';
import type { TopReports } from '../../core/top.js';
import type { UsageStatistics } from '../../core/usage.js';
import { MANAGEMENT_WAIT_MS, withDatabaseTimeout } from '../../core/timing.js';
import type { Locals } from './caller.js';
import { corsFields, type CorsSettings, preflightFields } from '../cors.js';
import { type Handlers, serve } from './endpoints.js';
import { eventFeed, eventPage } from './event-feed.js';
import type { EventStreams } from './event-streams.js';
import { readDescription } from './description.js';
import {
  auditFilter,
  followFilter,
  policiesIn,
  purgeSelection,
  tokenDraft,
  tokenFilter,
  tokenSort,
  wireAuditRecord,
  wirePage,
  wirePurged,
  wireSelf,
  wireStatus,
  wireToken,
} from './wire.js';
import { wireIncidents } from './wire-incidents.js';
import { topQuery, wireTop } from './wire-top.js';
import { usageQuery, wireUsageLine } from './wire-usage.js';
import { authenticate, type AuthenticationOptions } from './authenticate.js';
import { idIn, idOf, isId, notFound } from './ids.js';
import { logInHandlers, type LogInOptions } from './log-ins.js';
import { batchHandlers, type BatchOptions } from './batches.js';
import { priceHandlers, type PriceOptions } from './prices.js';
import { operatorHandlers, type OperatorOptions } from './operators.js';
import { projectHandlers, type ProjectOptions } from './projects.js';
import { sessionHandlers, type SessionOptions } from './sessions.js';
import { trustHandlers, type TrustOptions } from './trusts.js';

export interface ManageOptions
  extends
    AuthenticationOptions,
    OperatorOptions,
    SessionOptions,
    LogInOptions,
    ProjectOptions,
    BatchOptions,
    PriceOptions,
    TrustOptions {
  cacheManager: CacheManager;
  /** Whether a target belongs to the proxy, so that its responses may be cached. */
  isForwarded: (target: string) => boolean;
  auditLog: AuditLog;
  usage: Pick<UsageStatistics, 'report'>;
  top: TopReports;
  incidents: Incidents;
  /** Names for lists that show IDs. */
  names: RecordStore['names'];
  /** Both reject with `StoreUnavailable` if the database does not respond. */
  migrations: {
    status(): Promise<MigrationReport>;
    /** Rejects in the same way if the migration could not be recorded. @throws {Refusal} `schema_too_new` */
    up(): Promise<MigrationReport>;
  };
  /** The open event streams of all paths. */
  streams: EventStreams;
  /** Null if no events are published. */
  bus: EventBus | null;
  /** @param scope of its counts of projects and tokens. */
  status: (scope: Scope) => Promise<StatusReport>;
  /**
   * Resolves when all processes of this daemon have handed over and written their counts, and before a change when all that do not respond have ended;
   * null if it is one process.
   */
  settled: ((isChange: boolean) => Promise<void>) | null;
  clock: Clock;
  /** The current settings: SIGHUP may replace them. */
  live: Live<keyof CorsSettings | 'clientBodyTimeoutMs' | 'upstreamAllowedHosts'>;
}

export function manageRoutes(options: ManageOptions): Router {
  const { registry } = options;
  const router = Router({ caseSensitive: true, strict: true });
  // CORS before authentication: a preflight has no credential, and refusals need CORS headers too.
  router.use('/manage', crossOrigin(options), authenticate(options));
  if (options.settled) router.use('/manage', after(options.settled));
  const handlers: Handlers<Operations> = {
    ...projectHandlers(options),
    ...tokenHandlers(registry),
    ...cacheHandlers(options),
    ...auditHandlers(options),
    ...batchHandlers(options),
    ...usageHandlers(options),
    ...priceHandlers(options),
    ...migrationHandlers(options),
    ...sessionHandlers(options),
    ...eventHandlers(options),
    readStatus: async ({ scope }) => wireStatus(await options.status(scope), isEverything(scope)),
    ...operatorHandlers(options),
    ...trustHandlers(options),
    ...logInHandlers(options),
    readSelf: ({ authority }) => Promise.resolve(wireSelf(authority)),
    describeApi: readDescription,
  };
  serve(router, operations, bounded(handlers, options), {
    ...options,
    recordNotPermitted: (operation, id, ...refused) => registry.recordNotPermitted(operation, idIn(id), ...refused),
    refusals: registry.refusals,
  });
  return router;
}

/** Waits before a handler reads counts or changes anything. Only after authentication: nobody else can make the daemon write to the database. */
function after(settled: (isChange: boolean) => Promise<void>): RequestHandler {
  return ({ method }, res, next) => {
    if ((res.locals as Locals).authority === undefined) {
      next();
      return;
    }
    void settled(method !== 'GET' && method !== 'HEAD').then(() => {
      next();
    });
  };
}

/** Limit of lists and reports that are built at the same time: a page may take a megabyte. */
const MAX_CONCURRENT_LISTS = 8;

/** Limits how long handlers wait for the database, and how many lists are built at the same time. A migration has no time limit. */
function bounded(handlers: Handlers<Operations>, { clock }: ManageOptions): Handlers<Operations> {
  type Run = (...args: unknown[]) => Promise<unknown>;
  const lists = new ConcurrencyLimit(MAX_CONCURRENT_LISTS);
  const isList = (name: string) =>
    name === 'readUsage' ||
    name === 'readTop' ||
    name === 'readIncidents' ||
    name === 'listPrices' ||
    name === 'checkPrices' ||
    'list' in operations[name as keyof Operations];
  const all = Object.entries(handlers as Record<string, Run>).map(([name, run]): [string, Run] => {
    if (name === 'migrateUp') return [name, run];
    if (!isList(name)) return [name, (...args) => withDatabaseTimeout(clock, MANAGEMENT_WAIT_MS, () => run(...args))];
    const inTurn: Run = (...args) =>
      withDatabaseTimeout(clock, MANAGEMENT_WAIT_MS, (isLate) =>
        lists.run(() => (isLate() ? Promise.resolve() : run(...args))),
      );
    return [name, inTurn];
  });
  return Object.fromEntries(all) as unknown as Handlers<Operations>;
}

function crossOrigin({ live }: ManageOptions): RequestHandler {
  return (req, res, next) => {
    if (req.method === 'OPTIONS' && req.headers.origin !== undefined) {
      res.set(preflightFields(live.current, req)).status(204).end();
      return;
    }
    const cors = corsFields(live.current, req);
    (res.locals as Locals).cors = cors;
    res.set(cors);
    next();
  };
}

type TokenOperation = 'createToken' | 'listTokens' | 'lookUpToken' | 'readToken' | 'updateToken' | 'revokeToken';

function tokenHandlers(registry: Registry): Handlers<Pick<Operations, TokenOperation>> {
  return {
    createToken: async ({ body, caller, authority, scope }) => {
      // Only what the caller may see: the terms of another token are in the response.
      const like = body.like === undefined ? null : await registry.token(idOf({ id: body.like }, 'token'), scope);
      const draft = tokenDraft(body, like);
      if (!isId(draft.projectId)) throw notFound('project');
      const { token, secret } = await registry.issueToken(draft, caller, authority);
      return { ...wireToken(token), token: secret };
    },

    listTokens: async ({ query, scope }, page) =>
      wirePage(await registry.tokens(tokenFilter(query), tokenSort(query.sort), page, scope), wireToken),

    lookUpToken: async ({ body, scope }) => wireToken(await registry.tokenOfSecret(body.token, scope)),

    readToken: async (request) => wireToken(await registry.token(idOf(request, 'token'), request.scope)),

    updateToken: async (request) => {
      const id = idOf(request, 'token');
      const { body, caller, authority, expectMatch } = request;
      const changes = { isActive: body.is_active, ...policiesIn(body) };
      if (Object.values(changes).every((value) => value === undefined)) {
        throw new Refusal(
          'invalid_request',
          'nothing to change: give at least one of is_active, allow, limits and budget',
        );
      }
      // Who may revoke tokens may not do more with them: all else could lift what the token was issued with.
      const isRevocation = body.is_active === false && Object.keys(body).length === 1;
      const scope = isRevocation ? request.scope : await request.scopeOf('change tokens');
      return wireToken(await registry.updateToken(id, changes, caller, scope, expectMatch, authority));
    },

    revokeToken: async (request) => {
      const { caller, scope, expectMatch } = request;
      await registry.revokeToken(idOf(request, 'token'), caller, scope, expectMatch);
      return { message: 'token revoked' };
    },
  };
}

function cacheHandlers({
  cacheManager,
  isForwarded,
}: Pick<ManageOptions, 'cacheManager' | 'isForwarded'>): Handlers<Pick<Operations, 'readCache' | 'purgeCache'>> {
  return {
    readCache: () => cacheManager.report(),

    purgeCache: async ({ body, caller, scope }) => {
      const selection = purgeSelection(body, isForwarded);
      if (selection.kind === 'project' && !isId(selection.projectId)) throw notFound('project');
      const isDryRun = body.dry_run === true;
      return wirePurged(
        await (isDryRun ? cacheManager.previewPurge(selection, scope) : cacheManager.purge(selection, caller, scope)),
        isDryRun,
      );
    },
  };
}

function auditHandlers({
  auditLog,
  clock,
}: ManageOptions): Handlers<Pick<Operations, 'listAudit' | 'followAudit' | 'readAuditRecord'>> {
  return {
    listAudit: async ({ query, scope }, page) =>
      wirePage(await auditLog.records(auditFilter(query, clock.now()), page, scope), wireAuditRecord),

    followAudit: async ({ query, lastEventId, scope }) => {
      const after = lastEventId === null ? await auditLog.last() : numberOf(lastEventId);
      return async function* (signal) {
        for await (const records of auditLog.follow(after, followFilter(query), signal, scope)) {
          yield records.map((record) => ({ id: String(record.seq), data: JSON.stringify(wireAuditRecord(record)) }));
        }
      };
    },

    readAuditRecord: async (request) => wireAuditRecord(await auditLog.record(idOf(request, 'record'), request.scope)),
  };
}

function numberOf(lastEventId: string): number {
  if (/^\d{1,15}$/.test(lastEventId)) return Number(lastEventId);
  throw new Refusal('invalid_request', 'Last-Event-ID must be the ID of an event of this stream');
}

function eventHandlers({ bus, clock }: ManageOptions): Handlers<Pick<Operations, 'listEvents' | 'streamEvents'>> {
  return {
    // `async`, so that a refusal rejects the promise, as in the other handlers.
    listEvents: async ({ query, scope }, page) => eventPage(bus, query, page, clock.now(), scope),
    // eslint-disable-next-line @typescript-eslint/require-await
    streamEvents: async ({ query, lastEventId, scope }) => eventFeed(bus, query, lastEventId, clock.now(), scope),
  };
}

function usageHandlers({
  usage,
  top,
  incidents,
  names,
  clock,
}: ManageOptions): Handlers<Pick<Operations, 'readUsage' | 'readTop' | 'readIncidents'>> {
  return {
    readUsage: async ({ query, scope }) => {
      const lines = await usage.report(usageQuery(query, clock.now()), scope);
      const ids = (of: 'tokenId' | 'projectId') => new Set(lines.flatMap((line) => line[of] ?? []));
      const named = await orUnavailable(names(ids('tokenId'), ids('projectId')));
      return lines.map((line) => wireUsageLine(line, named));
    },

    readTop: async ({ query, scope }) => {
      const asked = topQuery(query);
      const report = await top.report(asked, scope);
      const tokenIds = report.groups.flatMap(({ tokenId }) => tokenId ?? []);
      const named = await orUnavailable(
        names(
          tokenIds,
          report.groups.flatMap(({ projectId }) => projectId ?? []),
        ),
      );
      return wireTop(asked, report, named);
    },

    readIncidents: async ({ scope }) => {
      const report = await incidents.report(scope);
      const ids = (of: 'tokenId' | 'projectId') => report.incidents.flatMap((incident) => incident[of] ?? []);
      return wireIncidents(report, await orUnavailable(names(ids('tokenId'), ids('projectId'))));
    },
  };
}

function migrationHandlers({
  registry,
  migrations,
}: ManageOptions): Handlers<Pick<Operations, 'readMigrations' | 'migrateUp'>> {
  return {
    readMigrations: async () => wireMigrations(await orUnavailable(migrations.status())),

    migrateUp: async ({ caller }) => {
      const { pending } = await orUnavailable(migrations.status());
      const report = await orUnavailable(migrations.up());
      await registry.recordMigrations(pending, caller);
      return wireMigrations(report);
    },
  };
}
