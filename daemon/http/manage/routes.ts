import { type RequestHandler, Router } from 'express';
import type { Live } from '../../../config/settings.js';
import { type MigrationReport, wireMigrations } from '../../api/migrations.js';
import { type Operations, operations } from '../../api/operations.js';
import { AtOnce } from '../../core/at-once.js';
import type { WrongAttempts } from '../../core/attempts.js';
import type { AuditBook } from '../../core/audit-book.js';
import type { CacheUpkeep } from '../../core/cache/upkeep.js';
import type { Clock, EventBus } from '../../core/ports.js';
import { managementTokenRefused, reading, Refusal } from '../../core/refusal.js';
import type { Registry } from '../../core/registry.js';
import type { Sessions } from '../../core/sessions.js';
import type { StatusReport } from '../../core/status.js';
import type { HourlyUsage } from '../../core/usage.js';
import { MANAGEMENT_WAIT_MS, within } from '../../core/within.js';
import type { Locals } from './caller.js';
import type { AddressOf } from '../client-address.js';
import { corsFields, type CorsSettings, preflightFields } from '../cors.js';
import { bearerOf, exactly } from '../credentials.js';
import { type Asked, type Handlers, serve } from './endpoints.js';
import { eventFeed } from './event-feed.js';
import type { EventStreams } from './event-stream.js';
import { openApi } from './openapi.js';
import {
  auditFilter,
  followFilter,
  purgeSelection,
  tokenDraft,
  tokenFilter,
  tokenSort,
  wireAuditRecord,
  wirePage,
  wireProject,
  wirePurged,
  wireSession,
  wireStatus,
  wireToken,
} from './wire.js';
import { usageQuery, wireUsageLine } from './wire-usage.js';
import { WHOLE_ID } from '../../api/vocabulary.js';

export interface LogIns {
  sessions: Sessions;
  attempts: Pick<WrongAttempts, 'refuse'>;
}

export interface ManageOptions {
  managementToken: string;
  attempts: Pick<WrongAttempts, 'refuse'>;
  logIns: LogIns;
  addressOf: AddressOf;
  registry: Registry;
  cacheUpkeep: CacheUpkeep;
  auditBook: AuditBook;
  usage: Pick<HourlyUsage, 'report'>;
  /** Both reject with `StoreUnavailable` when the database does not answer. */
  migrations: {
    status(): Promise<MigrationReport>;
    /** Also rejects so when it could not be recorded. @throws {Refusal} `schema_too_new` */
    up(): Promise<MigrationReport>;
  };
  /** Those that are open, on whichever path. */
  streams: EventStreams;
  /** Null when nothing is published. */
  bus: EventBus | null;
  status: () => Promise<StatusReport>;
  version: string;
  clock: Clock;
  /** Those in force: SIGHUP may put others in their place. */
  live: Live<keyof CorsSettings | 'clientBodyTimeoutMs'>;
}

export function manageRoutes(options: ManageOptions): Router {
  const { registry, version } = options;
  const router = Router({ caseSensitive: true, strict: true });
  // Before the credential, which no preflight has, and on its refusal too.
  router.use('/manage', crossOrigin(options), authenticate(options));
  const description = openApi(version);
  const handlers: Handlers<Operations> = {
    ...projectHandlers(registry),
    ...tokenHandlers(registry),
    ...cacheHandlers(options.cacheUpkeep),
    ...auditHandlers(options),
    ...usageHandlers(options),
    ...migrationHandlers(options),
    ...sessionHandlers(options),
    // An `async` function refuses in its promise, as the others do.
    // eslint-disable-next-line @typescript-eslint/require-await
    streamEvents: async ({ query, lastEventId }) => eventFeed(options.bus, query, lastEventId),
    readStatus: async () => wireStatus(await options.status()),
    describeApi: () => Promise.resolve(description),
  };
  serve(router, operations, bounded(handlers, options), options);
  return router;
}

/** Lists and reports that are made at once: a page may hold a megabyte of rows. */
const LISTS_AT_ONCE = 8;

/** None waits for the database for ever, and few lists are made at once. But a migration takes as long as it takes. */
function bounded(handlers: Handlers<Operations>, { clock }: ManageOptions): Handlers<Operations> {
  type Run = (...asked: unknown[]) => Promise<unknown>;
  const lists = new AtOnce(LISTS_AT_ONCE);
  const isList = (name: string) => name === 'readUsage' || 'list' in operations[name as keyof Operations];
  const all = Object.entries(handlers as Record<string, Run>).map(([name, run]): [string, Run] => {
    if (name === 'migrateUp') return [name, run];
    if (!isList(name)) return [name, (...asked) => within(clock, MANAGEMENT_WAIT_MS, () => run(...asked))];
    const inTurn: Run = (...asked) =>
      within(clock, MANAGEMENT_WAIT_MS, (isLate) => lists.run(() => (isLate() ? Promise.resolve() : run(...asked))));
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

function authenticate({ managementToken, attempts, addressOf }: ManageOptions): RequestHandler {
  const isManagementToken = exactly(managementToken);
  return (req, res, next) => {
    const { requestId } = res.locals as Locals;
    const clientIp = addressOf(req.socket, req.get('x-forwarded-for'));
    (res.locals as Locals).clientIp = clientIp;
    // Node keeps the first of two and says nothing; whatever stands in front of us may read the other.
    const given = req.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'authorization');
    if (given.length > 1) throw new Refusal('invalid_request', 'more than one Authorization header');
    const authorization = req.get('authorization');
    // Nothing was tried: many a client asks without at first, and must learn that it should not.
    if (authorization === undefined) throw managementTokenRefused();
    const presented = bearerOf(authorization);
    if (presented === null || !isManagementToken(presented)) {
      throw attempts.refuse(clientIp, requestId);
    }
    next();
  };
}

type ProjectOperation =
  'createProject' | 'listProjects' | 'readProject' | 'updateProject' | 'deleteProject' | 'revokeTokensOfProject';

function projectHandlers(registry: Registry): Handlers<Pick<Operations, ProjectOperation>> {
  return {
    createProject: async ({ body, caller }) =>
      wireProject(await registry.createProject({ name: body.name, upstreamKey: body.api_key }, caller)),

    listProjects: async ({ query }, page) =>
      wirePage(await registry.projects({ isActive: query.is_active }, page), wireProject),

    readProject: async (asked) => wireProject(await registry.project(idOf(asked, 'project'))),

    updateProject: async (asked) => {
      const { body, caller } = asked;
      if (Object.keys(body).length === 0) {
        throw new Refusal('invalid_request', 'nothing to change: give any of is_active, name, api_key');
      }
      const changes = { name: body.name, upstreamKey: body.api_key, isActive: body.is_active };
      return wireProject(await registry.updateProject(idOf(asked, 'project'), changes, caller));
    },

    // Whether or not there is such a project: none is ever deleted, and trying leaves a record.
    deleteProject: ({ id, caller }) => registry.refuseProjectDeletion(idIn(id), caller),

    revokeTokensOfProject: async (asked) => {
      const count = await registry.revokeTokensOf(idOf(asked, 'project'), asked.caller);
      return { message: `${count} ${count === 1 ? 'token' : 'tokens'} revoked`, revoked_count: count };
    },
  };
}

type TokenOperation = 'createToken' | 'listTokens' | 'lookUpToken' | 'readToken' | 'updateToken' | 'revokeToken';

function tokenHandlers(registry: Registry): Handlers<Pick<Operations, TokenOperation>> {
  return {
    createToken: async ({ body, caller }) => {
      if (!isId(body.project_id)) throw notFound('project');
      const { token, secret } = await registry.issueToken(tokenDraft(body), caller);
      return { ...wireToken(token), token: secret };
    },

    listTokens: async ({ query }, page) =>
      wirePage(await registry.tokens(tokenFilter(query), tokenSort(query.sort), page), wireToken),

    lookUpToken: async ({ body }) => wireToken(await registry.tokenOfSecret(body.token)),

    readToken: async (asked) => wireToken(await registry.token(idOf(asked, 'token'))),

    updateToken: async (asked) => {
      const id = idOf(asked, 'token');
      const { body, caller } = asked;
      const token = body.is_active ? registry.reactivateToken(id, caller) : registry.revokeToken(id, caller);
      return wireToken(await token);
    },

    revokeToken: async (asked) => {
      await registry.revokeToken(idOf(asked, 'token'), asked.caller);
      return { message: 'token revoked' };
    },
  };
}

function cacheHandlers(upkeep: CacheUpkeep): Handlers<Pick<Operations, 'readCache' | 'purgeCache'>> {
  return {
    readCache: () => upkeep.report(),

    purgeCache: async ({ body, caller }) => {
      const selection = purgeSelection(body);
      if (selection.kind === 'project' && !isId(selection.projectId)) throw notFound('project');
      const isRehearsal = body.dry_run === true;
      return wirePurged(
        await (isRehearsal ? upkeep.rehearsePurge(selection) : upkeep.purge(selection, caller)),
        isRehearsal,
      );
    },
  };
}

function auditHandlers({
  auditBook: book,
  clock,
}: ManageOptions): Handlers<Pick<Operations, 'listAudit' | 'followAudit' | 'readAuditRecord'>> {
  return {
    listAudit: async ({ query }, page) =>
      wirePage(await book.records(auditFilter(query, clock.now()), page), wireAuditRecord),

    followAudit: async ({ query, lastEventId }) => {
      const after = lastEventId === null ? await book.last() : numberOf(lastEventId);
      return async function* (signal) {
        for await (const records of book.follow(after, followFilter(query), signal)) {
          yield records.map((record) => ({ id: String(record.seq), data: JSON.stringify(wireAuditRecord(record)) }));
        }
      };
    },

    readAuditRecord: async (asked) => wireAuditRecord(await book.record(idOf(asked, 'record'))),
  };
}

function numberOf(lastEventId: string): number {
  if (/^\d{1,15}$/.test(lastEventId)) return Number(lastEventId);
  throw new Refusal('invalid_request', 'Last-Event-ID must be the id of an event of this stream');
}

function usageHandlers({ usage, clock }: ManageOptions): Handlers<Pick<Operations, 'readUsage'>> {
  return {
    readUsage: async ({ query }) => (await usage.report(usageQuery(query, clock.now()))).map(wireUsageLine),
  };
}

function migrationHandlers({
  registry,
  migrations,
}: ManageOptions): Handlers<Pick<Operations, 'readMigrations' | 'migrateUp'>> {
  return {
    readMigrations: async () => wireMigrations(await reading(migrations.status())),

    migrateUp: async ({ caller }) => {
      const { pending } = await reading(migrations.status());
      const report = await reading(migrations.up());
      await registry.recordMigrations(pending, caller);
      return wireMigrations(report);
    },
  };
}

function sessionHandlers({
  managementToken,
  logIns: { sessions, attempts },
}: ManageOptions): Handlers<Pick<Operations, 'logIn' | 'readSession' | 'logOut'>> {
  const isManagementToken = exactly(managementToken);
  return {
    logIn: async ({ body, caller }) => {
      // Before anything is waited for, as for the header: a flood of guesses costs no more here than there.
      if (!isManagementToken(body.token)) throw attempts.refuse(caller.clientIp, caller.requestId);
      return wireSession(await sessions.begin(caller));
    },

    readSession: async (asked) => wireSession(await sessions.session(idOf(asked, 'session'))),

    logOut: async (asked) => wireSession(await sessions.end(idOf(asked, 'session'), asked.caller)),
  };
}

const isId = (text: unknown): text is string => typeof text === 'string' && WHOLE_ID.test(text);

const notFound = (what: 'project' | 'token' | 'record' | 'session') => new Refusal('not_found', `${what} not found`);

/** The id in a path, in the letter case in which it is stored; null for what cannot be one. */
function idIn(path: unknown): string | null {
  const id = typeof path === 'string' ? path.toLowerCase() : null;
  return isId(id) ? id : null;
}

/** What cannot be an id is not found without asking. */
function idOf({ id: path }: Pick<Asked, 'id'>, what: 'project' | 'token' | 'record' | 'session'): string {
  const id = idIn(path);
  if (id === null) throw notFound(what);
  return id;
}
