/**
 * What the management API can do, declared once: the routes (daemon/http/manage.ts), the OpenAPI
 * description (daemon/http/openapi.ts) and the tests' check of every answer are made from this list.
 */
import * as z from 'zod';
import * as schemas from './schemas.js';

export interface Operation {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** As OpenAPI writes it; the only variable part is `{id}`. */
  path: `/manage/${string}`;
  summary: string;
  /** What the summary has no room for. */
  description?: string;
  query?: z.ZodObject;
  /** Other names under which a query name is accepted. */
  aliases?: Record<string, string>;
  body?: z.ZodObject;
  /** Of the success; 200 unless stated. */
  status?: 200 | 201;
  /** The success's body. An operation with neither this nor `list` nor `stream` is always refused. */
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

const PURGING = `Takes exactly one of \`method\` with \`url\`, \`project_id\`, and \`all\`, which can be \`true\` only.
\`url\` is what stands in a request line: a path under /v1, query included, in the plain form that /v1 itself accepts, so
without dot segments, \`//\`, a backslash or a fragment, and no full URL. It is compared byte for byte: \`/v1/models?\` is
another than \`/v1/models\`, and \`%41\` another than \`A\`. Every variant of the answer goes, in every project.
\`purged_count\` is how many answers were removed; 0 if there were none, and while the cache is off. With \`dry_run\` they
are counted and stay, and no audit record is kept. A request that was on its way before does not bring its answer back. 503
when Redis cannot be reached: then nothing is known of what was removed, so ask again.`;

const FOLLOWING_EVENTS = `With Redis those of all instances, otherwise of this one. Begins with the next event, or behind
\`Last-Event-ID\` as far as what came after it is kept. The filters narrow together; \`status\` lets requests through only,
for nothing else has one. 404 when nothing is published (LLM_PROXY_EVENT_BUS=off).`;

const FILTERING = `The filters narrow together. \`state\` and \`project_id\` take several with commas between, of which one must hold;
with \`!\` in front none may. \`q\` is a part of the name in any letter case, or the beginning of the id. Each of \`words\` is
sought like that, and all must be found but those with \`!\` in front: \`words=ci "two words" !old\`. \`expires_after\` and \`expires_before\`
take spans, counted from each request: \`expires_before=2h\`. Only tokens with a cap have a share of it that is \`used_over\` or
\`used_under\` a percentage.`;

const STATUS = `Rates, \`hit_ratio\` and the upstream's times are those of the last minute on this instance; \`hit_ratio\` is the share of
requests answered from the cache among those that were not refused, and null, as the times are, where there were none. Errors are
answers of 500 and above, and those that broke off because of the upstream. Tokens and projects are counted for all
instances; among very many not for each asking, so \`counted_at\` says when, and while the database is away they are null.
\`published\`, \`dropped\`, \`records\` and \`failures\` are counted from the start of this instance.`;

const LOGGING_IN = `For front ends whose users type the management token into a page. What was typed is in the body, beside the
front end's own credential; wrong ones are 403, and slowed down and recorded by \`X-Llmp-Client-IP\`, as wrong credentials of requests
are by their address. The right one is never held up. The session's id is known on every instance, and in the audit log.`;

const AUDIT = `\`token.use\` records stand for what a token was used for in the hour that begins at \`time\`, with one result and one
model: \`count\` requests. A change is one record, whoever made it and however it ended. \`since\` is the first moment shown,
\`until\` the first that is not; a span such as \`24h\` is so long ago. \`q\` finds records of changes of which it is said, in ids, addresses, the reason and the
details: each word of \`q\` begins a word there, in any letter case. Records are not counted.`;

const ADDING_UP = `The answer has a line for each combination of what \`by\` names; without it, one line for all. A request
counts in the hour in which it ended. \`since\` goes back to the beginning of its hour and \`until\` on to the end of its
own; unless given, \`until\` is now and \`since\` seven days before it. \`hour\` and \`day\` are when those begin, in UTC.
Lines are in the order of time, and of those of one time the one with most requests comes first.
\`refused\` are those that llmp said no to, revoked ones included; \`errors\` those for which the upstream did not answer,
or not whole, or with a status of 500 or more. Requests whose token is not known are under a \`token_id\` of null; they
have no model. A \`model\` of null was not told, and \`other\` are those beyond the 500 that a day may have.
Token counts are the provider's. An answer that tells none adds nothing to them, and neither does one out of the cache.
More than 50000 lines are 400.`;

export const operations = {
  createProject: {
    method: 'POST',
    path: '/manage/projects',
    summary: 'Creates a project.',
    body: schemas.projectCreate,
    status: 201,
    answer: schemas.project,
    refusals: ['name_taken'],
  },
  listProjects: {
    method: 'GET',
    path: '/manage/projects',
    summary: 'Lists projects, the newest first.',
    query: schemas.projectQuery,
    list: schemas.project,
    refusals: [],
  },
  readProject: {
    method: 'GET',
    path: '/manage/projects/{id}',
    summary: 'Shows a project.',
    answer: schemas.project,
    refusals: ['not_found'],
  },
  updateProject: {
    method: 'PATCH',
    path: '/manage/projects/{id}',
    summary: 'Changes the name or the upstream key of a project, deactivates or reactivates it.',
    body: schemas.projectPatch,
    answer: schemas.project,
    refusals: ['not_found', 'name_taken'],
  },
  deleteProject: {
    method: 'DELETE',
    path: '/manage/projects/{id}',
    summary: 'Always refused, whether or not there is such a project: projects are deactivated instead.',
    refusals: ['method_not_allowed'],
  },
  revokeTokensOfProject: {
    method: 'POST',
    path: '/manage/projects/{id}/tokens/revoke',
    summary: 'Revokes every token of a project. Counts those that were not revoked already.',
    answer: schemas.tokensRevoked,
    refusals: ['not_found'],
  },
  createToken: {
    method: 'POST',
    path: '/manage/tokens',
    summary: 'Issues a token, for 24 hours unless a duration is given. Its secret is in this answer only.',
    body: schemas.tokenCreate,
    status: 201,
    answer: schemas.tokenCreated,
    holdsSecret: true,
    refusals: ['not_found', 'token_for_inactive_project'],
  },
  listTokens: {
    method: 'GET',
    path: '/manage/tokens',
    summary: 'Lists tokens.',
    description: FILTERING,
    query: schemas.tokenQuery,
    aliases: { projectId: 'project_id' }, // As the older Go implementation's clients write it.
    list: schemas.token,
    refusals: [],
  },
  lookUpToken: {
    method: 'POST',
    path: '/manage/tokens/lookup',
    summary: 'Shows the token that a secret belongs to. The secret is neither logged nor audited.',
    body: schemas.tokenLookup,
    answer: schemas.token,
    refusals: ['not_found'],
  },
  readToken: {
    method: 'GET',
    path: '/manage/tokens/{id}',
    summary: 'Shows a token.',
    answer: schemas.token,
    refusals: ['not_found'],
  },
  updateToken: {
    method: 'PATCH',
    path: '/manage/tokens/{id}',
    summary: 'Revokes or reactivates a token, in whatever state it is.',
    body: schemas.tokenPatch,
    answer: schemas.token,
    refusals: ['not_found'],
  },
  revokeToken: {
    method: 'DELETE',
    path: '/manage/tokens/{id}',
    summary: 'Revokes a token. Doing it again succeeds.',
    answer: schemas.message,
    refusals: ['not_found'],
  },
  readUsage: {
    method: 'GET',
    path: '/manage/usage',
    summary: 'Adds up what tokens were used for, by the hour.',
    description: ADDING_UP,
    query: schemas.usageQuery,
    answer: z.array(schemas.usageLine),
    refusals: [],
  },
  readCache: {
    method: 'GET',
    path: '/manage/cache',
    summary: 'Shows what the response cache holds, and its hits and misses since this instance started.',
    answer: schemas.cache,
    refusals: [],
  },
  purgeCache: {
    method: 'POST',
    path: '/manage/cache/purge',
    summary: 'Removes kept answers: those to one request line in every project, those of a project, or all.',
    description: PURGING,
    body: schemas.cachePurge,
    answer: schemas.cachePurged,
    refusals: ['not_found'],
  },
  streamEvents: {
    method: 'GET',
    path: '/manage/events/stream',
    summary: 'Follows what is published: requests that are over, and changes that were made.',
    description: FOLLOWING_EVENTS,
    query: schemas.eventQuery,
    stream: schemas.event,
    refusals: ['not_found'],
  },
  readStatus: {
    method: 'GET',
    path: '/manage/status',
    summary: 'Shows how this instance is, at a glance.',
    description: STATUS,
    answer: schemas.status,
    refusals: [],
  },
  listAudit: {
    method: 'GET',
    path: '/manage/audit',
    summary: 'Lists audit records, the newest first.',
    description: AUDIT,
    query: schemas.auditQuery,
    list: schemas.auditRecord,
    isUncounted: true,
    refusals: [],
  },
  followAudit: {
    method: 'GET',
    path: '/manage/audit/stream',
    summary: 'Sends records of changes as they are made; the id of each event is the number of the record.',
    query: schemas.auditStreamQuery,
    stream: schemas.auditRecord,
    refusals: [],
  },
  readAuditRecord: {
    method: 'GET',
    path: '/manage/audit/{id}',
    summary: 'Shows an audit record.',
    answer: schemas.auditRecord,
    refusals: ['not_found'],
  },
  logIn: {
    method: 'POST',
    path: '/manage/sessions',
    summary: 'Begins a session of the Admin UI for whoever typed the management token.',
    description: LOGGING_IN,
    body: schemas.sessionCreate,
    status: 201,
    answer: schemas.session,
    refusals: ['log_in_refused'],
  },
  readSession: {
    method: 'GET',
    path: '/manage/sessions/{id}',
    summary: 'Shows a session of the Admin UI, and whether it was ended on any instance.',
    answer: schemas.session,
    refusals: ['not_found'],
  },
  logOut: {
    method: 'DELETE',
    path: '/manage/sessions/{id}',
    summary: 'Ends a session of the Admin UI, on all instances. Doing it again succeeds.',
    answer: schemas.session,
    refusals: ['not_found'],
  },
  readMigrations: {
    method: 'GET',
    path: '/manage/migrations',
    summary: 'Shows which migrations are applied and which are pending.',
    answer: schemas.migrations,
    refusals: [],
  },
  migrateUp: {
    method: 'POST',
    path: '/manage/migrations/up',
    summary: 'Applies the pending migrations.',
    answer: schemas.migrations,
    refusals: ['schema_too_new'],
  },
  describeApi: {
    method: 'GET',
    path: '/manage/openapi.json',
    summary: 'This description.',
    answer: z.record(z.string(), z.unknown()),
    refusals: [],
  },
} as const satisfies Record<string, Operation>;

export type Operations = typeof operations;
