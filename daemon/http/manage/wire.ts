/** Conversion between the core's values and the shapes of daemon/api, which have the same content under other names. */
import type * as z from 'zod';
import type {
  WireAuditRecord,
  WireCachePurged,
  WireProject,
  WireSelf,
  WireSession,
  WireStatus,
  WireToken,
  WireTrust,
} from '../../api/contract.js';
import * as schemas from '../../api/schemas.js';
import { nanoOf, usdOf } from '../../api/money.js';
import { cachedUrl } from '../../api/schemas/fields.js';
import { timestampMs } from '../../api/timestamp.js';
import {
  type AuditActor,
  BY_MANAGEMENT_TOKEN,
  MS_PER_UNIT,
  type PolicyChanges,
  spanMs,
  type TokenSortField,
  type TokenSortOrder,
} from '../../api/vocabulary.js';
import type { PurgeResult, PurgeSelection } from '../../core/cache/cache-manager.js';
import type { NamedRecord } from '../../core/audit.js';
import type { Authority } from '../../core/authority.js';
import type { FollowFilter } from '../../core/audit-log.js';
import type { AuditFilter, Moment, PageOf, Selection, TokenFilter, TokenSort, ShownTrust } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import { DEFAULT_LIFETIME_MS, type ShownProject, type ShownToken, type TokenDraft } from '../../core/registry.js';
import type { ShownSession } from '../../core/sessions.js';
import type { StatusReport } from '../../core/status.js';
import { DEFAULT_TERMS, TERM_NAMES, type Token, type TokenState } from '../../core/token.js';
import { isNormalizedTarget } from '../request-head.js';
import { wireSpent } from '../spent.js';
import { wirePriceLists } from './wire-prices.js';

export const isoTime = (ms: number) => new Date(ms).toISOString();
const isoTimeOrNull = (ms: number | null) => (ms === null ? null : isoTime(ms));

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;

/** Name of the core's property for one of the wire: `maxRequests` for `max_requests`, and `createdAtMs` for `created_at`. */
type CoreName<Name extends string> = Name extends TimeName ? `${Camel<Name>}Ms` : Camel<Name>;
type CoreValue<Name, Value> = Name extends TimeName ? number | Extract<Value, null> : Value;
type TimeName = 'time' | `${string}_at`;
const TIME_NAME = /^time$|_at$/;

/** The core's type for a value that is shown as `Wire`. */
export type Core<Wire> = { readonly [Name in keyof Wire & string as CoreName<Name>]: CoreValue<Name, Wire[Name]> };

const coreName = (name: string) =>
  name.replace(TIME_NAME, '$&_ms').replace(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase());

/**
 * Converter to a wire shape: copies each property under its wire name, times as timestamps. A property that the core's type lacks does
 * not compile.
 */
export function wired<Shape extends z.ZodObject>({ shape }: Shape): (value: Core<z.output<Shape>>) => z.output<Shape> {
  const properties = Object.keys(shape).map((name) => ({ name, core: coreName(name), isTime: TIME_NAME.test(name) }));
  return (value) => {
    const values = value as Readonly<Record<string, unknown>>;
    const wire: Record<string, unknown> = {};
    for (const { name, core, isTime } of properties) {
      wire[name] = isTime ? isoTimeOrNull(values[core] as number | null) : values[core];
    }
    return wire as z.output<Shape>;
  };
}

const wireProjectFields = wired(schemas.project.omit({ spent: true }));
const wireTokenFields = wired(schemas.token.omit({ spent: true }));
export const wireProject = (project: ShownProject): WireProject => ({
  ...wireProjectFields(project),
  spent: wireSpent(project.spent),
});
export const wireToken = (token: ShownToken): WireToken => ({
  ...wireTokenFields(token),
  spent: wireSpent(token.spent),
});
/** @param authority null: the holder of the management token. */
export const wireSelf = (authority: Authority | null): WireSelf => ({
  actor: authority?.actor ?? 'management',
  name: authority?.name ?? null,
  role: authority?.role ?? null,
  projects: authority?.projects ? [...authority.projects] : null,
  ceilings: authority?.ceilings ?? null,
  expires_at: authority?.expiresAtMs ? new Date(authority.expiresAtMs).toISOString() : null,
});
export const wireTrust: (trust: ShownTrust) => WireTrust = wired(schemas.trust);
export const wireSession: (session: ShownSession) => WireSession = wired(schemas.session);
export const wireAuditRecord: (record: NamedRecord) => WireAuditRecord = wired(schemas.auditRecord);

/** The policies in a request; what it does not name is undefined. Equal budgets are equal texts. */
export function policiesIn({ allow, limits, budget }: PolicyChanges): PolicyChanges {
  if (!budget) return { allow, limits, budget };
  const { usd, tokens, period, mode } = budget;
  return {
    allow,
    limits,
    budget: {
      ...(usd !== undefined && { usd: usdOf(nanoOf(usd) ?? 0) }), // The schema has checked it.
      ...(tokens !== undefined && { tokens }),
      ...{ period, mode },
    },
  };
}

type Term = keyof typeof TERM_NAMES;

/** The terms in a request; missing ones are those of `like`, or the defaults. */
function termsIn(body: z.output<typeof schemas.tokenCreate>, like: Token | null): typeof DEFAULT_TERMS {
  const terms = (Object.keys(TERM_NAMES) as Term[]).map((term) => [
    term,
    body[TERM_NAMES[term]] ?? (like ?? DEFAULT_TERMS)[term],
  ]);
  return Object.fromEntries(terms) as typeof DEFAULT_TERMS;
}

/** @param like the token that the new one is to be like, if the body names one. @throws {Refusal} if the body contradicts itself. */
export function tokenDraft(body: z.output<typeof schemas.tokenCreate>, like: Token | null): TokenDraft {
  const { duration_hours: hours, duration_minutes: minutes } = body;
  if (hours !== undefined && minutes !== undefined) {
    throw new Refusal('invalid_request', 'give either duration_hours or duration_minutes, not both');
  }
  const lifetimeMs =
    hours !== undefined ? hours * MS_PER_UNIT.h : minutes !== undefined ? minutes * MS_PER_UNIT.m : undefined;
  const { allow, limits, budget } = policiesIn(body);
  return {
    projectId: body.project_id ?? like?.projectId ?? '', // The schema requires one of the two.
    lifetimeMs: lifetimeMs ?? (like ? like.expiresAtMs - like.createdAtMs : DEFAULT_LIFETIME_MS),
    ...termsIn(body, like),
    // Null is a value here: nothing of `like`.
    allow: allow === undefined ? (like?.allow ?? null) : allow,
    limits: limits === undefined ? (like?.limits ?? null) : limits,
    budget: budget === undefined ? (like?.budget ?? null) : budget,
    like: like?.id,
  };
}

export function tokenFilter(query: z.output<typeof schemas.tokenQuery>): TokenFilter {
  if (query.active_only && query.state !== undefined && query.state !== 'active') {
    throw new Refusal('invalid_request', 'active_only and state contradict each other: give only one of them');
  }
  const state = query.active_only ? 'active' : query.state;
  return {
    projects: query.project_id === undefined ? undefined : selectionOf(query.project_id),
    states: state === undefined ? undefined : (selectionOf(state) as Selection<TokenState>), // Validated by the schema.
    expiresAfter: momentOf(query.expires_after),
    expiresBefore: momentOf(query.expires_before),
    createdAfter: pastMoment(query.created_after),
    createdBefore: pastMoment(query.created_before),
    idleSince: pastMoment(query.idle_over),
    errorsOver: query.errors_over,
    models: query.model === undefined ? undefined : selectionOf(query.model),
    allows: query.allows === undefined ? undefined : selectionOf(query.allows),
    isLimited: query.limited,
    usedOverPercent: query.used_over,
    usedUnderPercent: query.used_under,
    budget: query.budget,
    spentOverNano: nanoIn(query.spent_over),
    spentUnderNano: nanoIn(query.spent_under),
    leftOverPercent: query.left_over,
    leftUnderPercent: query.left_under,
    issuedBy: query.issued_by === BY_MANAGEMENT_TOKEN ? null : (query.issued_by as AuditActor | undefined), // Validated by the schema.
    text: query.q,
    words: query.words === undefined ? undefined : wordsOf(query.words),
  };
}

const nanoIn = (usd: string | undefined): number | undefined => (usd === undefined ? undefined : (nanoOf(usd) ?? NaN));

/** @param written such as `a,b`, or `!a,b` for all others. */
const selectionOf = (written: string): Selection<string> => ({
  among: written.replace(/^!/, '').split(','),
  isExcluded: written.startsWith('!'),
});

/** @param written such as `one "two words" !other`. */
function wordsOf(written: string): TokenFilter['words'] {
  return Array.from(written.matchAll(/(!?)(?:"([^"]*)"|(\S+))/g), ([, sign, quoted, bare = '']) => ({
    text: quoted ?? bare,
    isExcluded: sign === '!',
  }));
}

/** @param written a timestamp, or a time span such as `2h`. */
function momentOf(written: string | undefined): Moment | undefined {
  if (written === undefined) return undefined;
  const inMs = spanMs(written);
  return inMs === undefined ? { atMs: timestampMs(written) ?? NaN } : { inMs };
}

/** @param written a timestamp, or how long ago, such as `2h`. */
function pastMoment(written: string | undefined): Moment | undefined {
  const moment = momentOf(written);
  return moment && 'inMs' in moment ? { inMs: -moment.inMs } : moment;
}

/** @param written a timestamp, or a time span such as `2h`, which is subtracted from now. */
export function pastMs(written: string | undefined, nowMs: number): number | undefined {
  const moment = pastMoment(written);
  return moment && ('atMs' in moment ? moment.atMs : nowMs + moment.inMs);
}

/** @param written such as `-created_at`. */
export function tokenSort(written: TokenSortOrder): TokenSort {
  const descending = written.startsWith('-');
  return { field: (descending ? written.slice(1) : written) as TokenSortField, descending };
}

/**
 * @param isForwarded whether a target belongs to the proxy.
 * @throws {Refusal} unless the body selects exactly one kind of entries.
 */
export function purgeSelection(
  body: z.output<typeof schemas.cachePurge>,
  isForwarded: (target: string) => boolean,
): PurgeSelection {
  const { method, url, project_id: projectId, all } = body;
  const isOne = [method ?? url, projectId, all].filter((it) => it !== undefined).length === 1;
  if (isOne && method !== undefined && url !== undefined) {
    if (isForwarded(url) && isNormalizedTarget(url)) return { kind: 'resource', method, url };
    throw new Refusal('invalid_request', `url must be ${cachedUrl.description ?? ''}`);
  }
  if (isOne && projectId !== undefined) return { kind: 'project', projectId };
  if (isOne && all) return { kind: 'all' };
  throw new Refusal('invalid_request', 'give exactly one of: method with url, project_id, or all');
}

export function wirePurged({ count, isCacheOff }: PurgeResult, isDryRun: boolean): WireCachePurged {
  const what = `${count} ${count === 1 ? 'response' : 'responses'} ${isDryRun ? 'would be purged' : 'purged'}`;
  return { message: isCacheOff ? `${what}: the cache is off` : what, purged_count: count };
}

/** @param isWhole whether the caller may see all projects. What is counted over all requests is null for others. */
export function wireStatus(report: StatusReport, isWhole: boolean): WireStatus {
  const { database, bus, audit, population, traffic } = report;
  const ofAll = <Value>(value: Value): Value | null => (isWhole ? value : null);
  return {
    status: report.missing.length === 0 ? 'ready' : 'not ready',
    missing: report.missing,
    degraded: report.degraded,
    version: report.version,
    instance: report.instanceId,
    started_at: isoTime(report.startedAtMs),
    uptime_s: Math.floor(report.uptimeMs / 1000),
    database: {
      driver: database.driver,
      status: database.status,
      schema: database.schema,
      pending_migrations: [...database.pendingMigrations],
    },
    redis: report.redis,
    event_bus: {
      kind: bus.kind,
      status: bus.status,
      buffered: ofAll(bus.buffered),
      published: ofAll(bus.published),
      dropped: ofAll(bus.dropped),
      lag: ofAll(bus.lag),
    },
    audit: { status: audit.status, records: ofAll(audit.records), failures: ofAll(audit.failures) },
    projects: population && population.projects,
    tokens: population && population.tokens,
    counted_at: population && isoTime(population.countedAtMs),
    requests: ofAll({
      in_flight: report.inFlight,
      per_second: rounded(traffic.requestsPerSecond),
      errors_per_second: rounded(traffic.errorsPerSecond),
    }),
    prices: wirePriceLists(report.prices),
    cache: { backend: report.cache, hit_ratio: ofAll(roundedOrNull(traffic.hitRatio)) },
    upstream: {
      p50_ms: ofAll(roundedOrNull(traffic.upstreamP50Ms)),
      p95_ms: ofAll(roundedOrNull(traffic.upstreamP95Ms)),
    },
    workers: report.workers.map((worker) => ({
      number: worker.number,
      pid: worker.pid,
      started_at: isoTime(worker.startedAtMs),
      missing: [...worker.missing],
      in_flight: ofAll(worker.inFlight),
    })),
  };
}

/** Rounds to a thousandth. */
const rounded = (value: number) => Math.round(value * 1000) / 1000;
export const roundedOrNull = (value: number | null) => (value === null ? null : rounded(value));

/** @throws {Refusal} if the period ends before it begins. */
export function periodOf({ since, until }: { since?: string | undefined; until?: string | undefined }, nowMs: number) {
  const sinceMs = pastMs(since, nowMs);
  const untilMs = pastMs(until, nowMs);
  if (sinceMs !== undefined && untilMs !== undefined && sinceMs > untilMs) {
    throw new Refusal('invalid_request', 'since must not be after until');
  }
  return { sinceMs, untilMs };
}

/** @throws {Refusal} if the period ends before it begins. */
export const auditFilter = (query: z.output<typeof schemas.auditQuery>, nowMs: number): AuditFilter => ({
  ...followFilter(query),
  ...periodOf(query, nowMs),
  batch: query.batch,
  isGrouped: query.group === 'batch',
  text: query.q,
});

export function followFilter(query: z.output<typeof schemas.auditStreamQuery>): FollowFilter {
  const { action, actor, outcome, project_id: projectId, token_id: tokenId } = query;
  return { action, actor: actor as AuditActor | undefined, outcome, projectId, tokenId };
}

export function wirePage<Item, Wire>(page: PageOf<Item>, wire: (item: Item) => Wire): PageOf<Wire> {
  return { ...page, rows: page.rows.map(wire) };
}
