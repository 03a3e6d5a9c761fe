/**
 * What the management API can do, declared once: the routes (daemon/http/manage/routes.ts), the OpenAPI
 * description (daemon/http/manage/openapi.ts) and the tests' check of every answer are made from this list.
 */
import * as z from 'zod';
import { type Route, ROUTES, type Routes } from './routes.js';
import * as schemas from './schemas.js';

/** The groups of operations, in the order in which they are shown, with what each is about. */
export const TAGS = {
  Projects:
    'A project stands for a key of a provider. Its tokens are used in place of that key. Projects are never deleted, but deactivated: DELETE is 405.',
  Tokens:
    'A token is what a client of /v1 uses as its API key. It expires, may have a cap, and can be revoked at any time.',
  Usage: 'What tokens were used for.',
  Audit: 'Who changed what, and when.',
  Events: 'What happens, as it happens.',
  Cache: 'Answers that are kept and given again.',
  Status: 'How an instance is.',
  Migrations: 'The state of the database schema.',
  Sessions: 'Logging in to the Admin UI, or to another front end.',
  Description: 'The description of this API.',
} as const;

export interface Operation extends Route {
  tag: keyof typeof TAGS;
  /** A few words, as a title. */
  summary: string;
  description: string;
  query?: z.ZodObject;
  /** Other names under which a query name is accepted. They are not described: a client made from both would have one name twice. */
  aliases?: Record<string, string>;
  body?: z.ZodObject;
  /** Of the success; 200 unless stated. */
  status?: 200 | 201;
  /** The success's body. An operation with neither this nor `list` nor `stream` is always refused, and not described. */
  answer?: z.ZodType;
  /** In place of `answer`: what the success is a page of. */
  list?: z.ZodType;
  /** In place of `answer`: what each of the server-sent events that are the success holds, as JSON. */
  stream?: z.ZodType;
  /** With `list`: how many there are on all pages is not said. */
  isUncounted?: true;
  /** The answer is the only one that ever holds a secret, and nobody may store it. */
  holdsSecret?: true;
  /** Kinds of refusal (daemon/core/refusal.ts) beside those that may befall any request. */
  refusals: readonly string[];
}

/** What a route says its success is, is what has a schema. */
type Given<R> = R extends { gives: 'page' }
  ? { list: z.ZodType }
  : R extends { gives: 'stream' }
    ? { stream: z.ZodType }
    : { list?: never; stream?: never };

/** Whether an operation is ever anything but refused: a client could do nothing with one that is not. */
export const canSucceed = ({ answer, list, stream }: Operation): boolean => (answer ?? list ?? stream) !== undefined;

const PURGING = `Removes kept answers: those to one request line, with \`method\` and \`url\`; those of a project, with \`project_id\`;
or all of them, with \`all\`. Give exactly one of the three.

\`url\` is what stands in a request line: a path under /v1, query included, in the plain form that /v1 itself accepts, so
without dot segments, \`//\`, a backslash or a fragment, and no full URL. It is compared byte for byte: \`/v1/models?\` is
another than \`/v1/models\`, and \`%41\` another than \`A\`. Every variant of the answer is removed, in every project.
\`purged_count\` is how many answers were removed; 0 if there were none, and while the cache is off. With \`dry_run\` they
are counted and stay, and no audit record is kept. A request that was on its way before does not bring its answer back. 503
means that Redis cannot be reached: it is not known then what was removed, so ask again.`;

const FOLLOWING_EVENTS = `Sends requests that are over, and changes that were made, as they happen. The \`data\` of each
server-sent event is one \`event\`. With Redis the events of all instances are sent, otherwise those of this one. The stream begins with
the next event, or with the one after \`Last-Event-ID\` if the events since then are still kept. The filters narrow together; \`status\` lets requests
through only, because nothing else has one. 404 means that nothing is published (LLM_PROXY_EVENT_BUS=off).`;

const FOLLOWING_AUDIT = `Sends records of changes as they are made. The \`data\` of each server-sent event is one \`auditRecord\`; its
\`id\` is the number of the record. The stream begins with the next record, or behind \`Last-Event-ID\`.`;

const FILTERING = `The filters narrow together. \`state\` and \`project_id\` take several values with commas between, of which one must
match; with \`!\` in front none may. \`active_only=true\` is \`state=active\`: with another \`state\` it is 400. \`expires_after\` and
\`expires_before\` also take spans, which are counted from each request: \`expires_before=2h\`. Only tokens with a cap have a share of it
that is \`used_over\` or \`used_under\` a percentage.`;

const STATUS = `Rates, \`hit_ratio\` and the upstream's times are those of the last minute on this instance; \`hit_ratio\` is the share of
requests answered from the cache among those that were not refused, and null, as the times are, where there were none. Errors are
answers of 500 and above, and those that broke off because of the upstream. Tokens and projects are counted for all
instances; among very many not for each request, so \`counted_at\` says when. They are null while the database does not answer.
\`published\`, \`dropped\`, \`records\` and \`failures\` are counted from the start of this instance.`;

const LOGGING_IN = `For front ends whose users type the management token into a page. What the user typed is in the body; the front end's own
credential is in \`Authorization\`. A wrong token is 403; wrong ones are slowed down and recorded by \`X-Llmp-Client-IP\`, as wrong
credentials of requests are by their address. A right token is never delayed. The session is known on every instance, and its id
is in the audit log.`;

const AUDIT = `The newest come first. \`token.use\` records stand for what a token was used for in the hour that begins at \`time\`, with one result and one
model: \`count\` requests. A change is one record, whoever made it and however it ended. \`since\` is the first moment shown,
\`until\` the first that is not; a span such as \`24h\` is so long ago. \`since\` must not be after \`until\`. Records are not counted.`;

const ADDING_UP = `The answer has a line for each combination of what \`by\` names; without it, one line for everything. A request
counts in the hour in which it ended. \`since\` goes back to the beginning of its hour and \`until\` on to the end of its
own; unless given, \`until\` is now and \`since\` seven days before it. \`since\` must not be after \`until\`. \`hour\` and \`day\` are when
those begin, in UTC. Lines are in the order of time, and of those of one time the one with most requests comes first.

Requests whose token is not known are under a \`token_id\` of null; they have no model. Token counts are the provider's: an answer that tells
none adds nothing to them, and neither does one out of the cache. More than 50000 lines are 400.`;

export const operations = {
  createProject: {
    ...ROUTES.createProject,
    tag: 'Projects',
    summary: 'Create a project',
    description: 'The name must be new. The key is stored encrypted; no answer ever holds it.',
    body: schemas.projectCreate,
    status: 201,
    answer: schemas.project,
    refusals: ['name_taken'],
  },
  listProjects: {
    ...ROUTES.listProjects,
    tag: 'Projects',
    summary: 'List projects',
    description: 'The newest come first.',
    query: schemas.projectQuery,
    list: schemas.project,
    refusals: [],
  },
  readProject: {
    ...ROUTES.readProject,
    tag: 'Projects',
    summary: 'Show a project',
    description: 'Shows a project by its id. Of its key only the last characters are shown.',
    answer: schemas.project,
    refusals: ['not_found'],
  },
  updateProject: {
    ...ROUTES.updateProject,
    tag: 'Projects',
    summary: 'Change a project',
    description:
      'Changes the name or the key of a project, deactivates or reactivates it. Deactivating ends the requests of its tokens that are on their way.',
    body: schemas.projectPatch,
    answer: schemas.project,
    refusals: ['not_found', 'name_taken'],
  },
  deleteProject: {
    ...ROUTES.deleteProject,
    tag: 'Projects',
    summary: 'Delete a project',
    description:
      'Always refused, whether or not there is such a project, and recorded: projects are deactivated instead.',
    refusals: ['method_not_allowed'],
  },
  revokeTokensOfProject: {
    ...ROUTES.revokeTokensOfProject,
    tag: 'Projects',
    summary: 'Revoke all tokens of a project',
    description: 'Revokes every token of a project. Those that were revoked before are not counted.',
    answer: schemas.tokensRevoked,
    refusals: ['not_found'],
  },
  createToken: {
    ...ROUTES.createToken,
    tag: 'Tokens',
    summary: 'Create a token',
    description:
      'The token is valid for 24 hours unless a duration is given, in hours or in minutes. Its secret is in this answer only: it cannot be shown again.',
    body: schemas.tokenCreate,
    status: 201,
    answer: schemas.tokenCreated,
    holdsSecret: true,
    refusals: ['not_found', 'token_for_inactive_project'],
  },
  listTokens: {
    ...ROUTES.listTokens,
    tag: 'Tokens',
    summary: 'List tokens',
    description: FILTERING,
    query: schemas.tokenQuery,
    aliases: { projectId: 'project_id' }, // As the older Go implementation's clients write it.
    list: schemas.token,
    refusals: [],
  },
  lookUpToken: {
    ...ROUTES.lookUpToken,
    tag: 'Tokens',
    summary: 'Find a token by its secret',
    description: 'Shows the token that a secret belongs to. The secret is neither logged nor audited.',
    body: schemas.tokenLookup,
    answer: schemas.token,
    refusals: ['not_found'],
  },
  readToken: {
    ...ROUTES.readToken,
    tag: 'Tokens',
    summary: 'Show a token',
    description: 'Shows a token by its id, without its secret.',
    answer: schemas.token,
    refusals: ['not_found'],
  },
  updateToken: {
    ...ROUTES.updateToken,
    tag: 'Tokens',
    summary: 'Revoke or reactivate a token',
    description: 'Works in whatever state the token is. A reactivated token keeps its expiry and its cap.',
    body: schemas.tokenPatch,
    answer: schemas.token,
    refusals: ['not_found'],
  },
  revokeToken: {
    ...ROUTES.revokeToken,
    tag: 'Tokens',
    summary: 'Revoke a token',
    description: 'Ends the requests of the token that are on their way, too. Doing it again succeeds.',
    answer: schemas.message,
    refusals: ['not_found'],
  },
  readUsage: {
    ...ROUTES.readUsage,
    tag: 'Usage',
    summary: 'Report usage',
    description: ADDING_UP,
    query: schemas.usageQuery,
    answer: z.array(schemas.usageLine),
    refusals: [],
  },
  listAudit: {
    ...ROUTES.listAudit,
    tag: 'Audit',
    summary: 'List audit records',
    description: AUDIT,
    query: schemas.auditQuery,
    list: schemas.auditRecord,
    isUncounted: true,
    refusals: [],
  },
  followAudit: {
    ...ROUTES.followAudit,
    tag: 'Audit',
    summary: 'Follow audit records',
    description: FOLLOWING_AUDIT,
    query: schemas.auditStreamQuery,
    stream: schemas.auditRecord,
    refusals: [],
  },
  readAuditRecord: {
    ...ROUTES.readAuditRecord,
    tag: 'Audit',
    summary: 'Show an audit record',
    description: 'Shows an audit record by its id.',
    answer: schemas.auditRecord,
    refusals: ['not_found'],
  },
  streamEvents: {
    ...ROUTES.streamEvents,
    tag: 'Events',
    summary: 'Follow events',
    description: FOLLOWING_EVENTS,
    query: schemas.eventQuery,
    stream: schemas.event,
    refusals: ['not_found'],
  },
  readCache: {
    ...ROUTES.readCache,
    tag: 'Cache',
    summary: 'Show the cache',
    description: 'Shows what the response cache holds, and its hits and misses since this instance started.',
    answer: schemas.cache,
    refusals: [],
  },
  purgeCache: {
    ...ROUTES.purgeCache,
    tag: 'Cache',
    summary: 'Purge the cache',
    description: PURGING,
    body: schemas.cachePurge,
    answer: schemas.cachePurged,
    refusals: ['not_found'],
  },
  readStatus: {
    ...ROUTES.readStatus,
    tag: 'Status',
    summary: 'Show the status',
    description: STATUS,
    answer: schemas.status,
    refusals: [],
  },
  readMigrations: {
    ...ROUTES.readMigrations,
    tag: 'Migrations',
    summary: 'Show migrations',
    description: 'Shows which migrations are applied and which are pending.',
    answer: schemas.migrations,
    refusals: [],
  },
  migrateUp: {
    ...ROUTES.migrateUp,
    tag: 'Migrations',
    summary: 'Apply pending migrations',
    description: 'Applies the migrations that are pending, and answers with the state after it.',
    answer: schemas.migrations,
    refusals: ['schema_too_new'],
  },
  logIn: {
    ...ROUTES.logIn,
    tag: 'Sessions',
    summary: 'Log in',
    description: LOGGING_IN,
    body: schemas.sessionCreate,
    status: 201,
    answer: schemas.session,
    refusals: ['log_in_refused'],
  },
  readSession: {
    ...ROUTES.readSession,
    tag: 'Sessions',
    summary: 'Show a session',
    description: 'Shows a session, and whether it was ended on any instance.',
    answer: schemas.session,
    refusals: ['not_found'],
  },
  logOut: {
    ...ROUTES.logOut,
    tag: 'Sessions',
    summary: 'Log out',
    description: 'Ends a session on all instances. Doing it again succeeds.',
    answer: schemas.session,
    refusals: ['not_found'],
  },
  describeApi: {
    ...ROUTES.describeApi,
    tag: 'Description',
    summary: 'Read this description',
    description: 'The description of the management API that you are reading, as OpenAPI 3.1.',
    answer: z.record(z.string(), z.unknown()),
    refusals: [],
  },
} as const satisfies { [Name in keyof Routes]: Operation & Given<Routes[Name]> };

export type Operations = typeof operations;
