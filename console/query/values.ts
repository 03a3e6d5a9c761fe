/** Values of the filter keys: each is resolved to what the API takes, or to a problem. */
import {
  isSameName,
  type AuditAction,
  type AUDIT_ACTORS,
  type AuditOutcome,
  type BudgetFilter,
  BY_MANAGEMENT_TOKEN,
  ERROR_CODE_PATTERN,
  type EventKind,
  ID_PREFIX_PATTERN,
  MODEL_PART_PATTERN,
  NAMED_ACTOR_PATTERN,
  NAMED_ACTORS,
  type RequestOutcome,
  STATUS_LIST_PATTERN,
  type TokenState,
  UUID_PATTERN,
  spanMs,
  tookMs,
} from '../../daemon/api/vocabulary.js';
import { nanoOf } from '../../daemon/api/money.js';
import { COMMON_CAUSES } from '../../daemon/api/request-outcome.js';
import { DEFAULT_PROVIDER, OTHER_PROVIDER, PROVIDER_NAMES, PROVIDERS } from '../../daemon/api/providers.js';
import { utcMs } from '../span.js';
import type { Completion, KnownNames } from './types.js';
import type { TermPart } from './terms.js';

/** @returns the value for the API; `open` for a prefix that is still being typed; otherwise the problem. */
export type ValueResolver = (part: TermPart) => { value: string } | 'open' | { problem: string };

const STATES: Record<TokenState, string> = {
  active: 'can be used',
  expired: 'past its expiry time',
  revoked: 'was revoked',
  rate_limited: 'its request cap is used up',
  project_inactive: 'its project is inactive',
};
// Short names, as in lists.
const STATE_ALIASES: Record<string, TokenState> = { limited: 'rate_limited', off: 'project_inactive' };

const PROJECT_STATES = { active: 'requests are forwarded', inactive: 'requests are refused' };

const PROVIDER_TITLES: Record<string, string> = {
  ...Object.fromEntries(PROVIDER_NAMES.map((name) => [name, PROVIDERS[name].title])),
  [DEFAULT_PROVIDER]: 'UPSTREAM_BASE_URL of the daemon',
  [OTHER_PROVIDER]: 'a base URL of its own',
};

// Records, so that the compiler reports a missing value.
const ACTIONS: Record<AuditAction, string> = {
  'token.create': 'a token was issued',
  'token.use': 'what tokens were used for, by the hour',
  'token.update': 'a token was changed',
  'token.revoke': 'a token was revoked',
  'token.reactivate': 'a token was reactivated',
  'token.revoke_all': 'all tokens of a project were revoked',
  'project.create': 'a project was created',
  'project.update': 'a project was changed',
  'project.delete_refused': 'deleting a project was refused',
  'cache.purge': 'cached responses were purged',
  'migrations.up': 'the database was migrated',
  'prices.change': 'the prices in force have changed',
  'management.denied': 'a wrong management token, or a change that a role does not allow',
  'admin.login': 'a log-in to the Admin UI',
  'admin.logout': 'a log-out of the Admin UI',
  'cli.login': 'a person logged in on the command line',
  'cli.logout': 'a person logged out on the command line',
  'operator.create': 'an operator was created',
  'operator.update': 'an operator was changed',
  'operator.deactivate': 'an operator was deactivated',
  'trust.create': 'a trust was created',
  'trust.update': 'a trust was changed',
  'trust.delete': 'a trust was deleted',
  'token.exchange': 'a JWT was exchanged for a token',
};
const ACTORS: Record<(typeof AUDIT_ACTORS)[number], string> = {
  management: 'a caller of the management API',
  admin: 'the Admin UI',
  cli: 'the command line',
  tui: 'the terminal UI',
  token: 'a client with a token',
  system: 'llmp itself',
};
const OUTCOMES: Record<AuditOutcome, string> = {
  success: 'it was done',
  denied: 'it was refused',
  error: 'it failed',
};
const REQUEST_OUTCOMES: Record<RequestOutcome, string> = {
  ok: 'the provider responded with success',
  refused: 'llmp refused it',
  upstream_refused: 'the provider responded with 4xx',
  upstream_error: 'the provider responded with 5xx, or not at all',
  provider_error: 'the provider reported an error within its response',
  client_closed: 'the client disconnected',
  timeout: 'it took too long',
  truncated: 'the response broke off',
  revoked: 'its token was revoked meanwhile',
  drained: 'the daemon stopped',
};
/** Stands for the outcomes of all failures. */
export const FAILED = 'failed';

const KINDS: Record<EventKind, string> = {
  'request.completed': 'a request completed',
  'token.created': 'a token was issued',
  'token.changed': 'a token was changed',
  'token.revoked': 'a token was revoked',
  'token.reactivated': 'a token was reactivated',
  'project.changed': 'a project was changed',
  'cache.purged': 'cached responses were purged',
  'budget.threshold': '80 or 100 % of a budget is used',
  'budget.would_refuse': 'a shadow budget would have refused requests',
};

interface ValueSet {
  resolve: ValueResolver;
  completions: Completion[];
}

function oneOf(what: string, values: Record<string, string>, aliases: Record<string, string> = {}): ValueSet {
  const names = Object.keys(values);
  return {
    completions: Object.entries(values).map(([insert, meaning]) => ({ insert, what: meaning })),
    resolve: ({ text, isLast }) => {
      const given = text.toLowerCase();
      if (Object.hasOwn(values, given)) return { value: given };
      if (Object.hasOwn(aliases, given)) return { value: aliases[given] ?? given };
      const mayGoOn = isLast && [...names, ...Object.keys(aliases)].some((name) => name.startsWith(given));
      return mayGoOn ? 'open' : { problem: `${what} must be one of ${names.join(', ')}` };
    },
  };
}

export const tokenState = oneOf('state', STATES, STATE_ALIASES);
export const projectState = oneOf('state', PROJECT_STATES, { off: 'inactive' });
export const provider = oneOf('provider', PROVIDER_TITLES);
export const action = oneOf('action', ACTIONS);

const NAMED_ACTOR = new RegExp(`^${NAMED_ACTOR_PATTERN}$`);
const isNameBegun = ({ text, isLast }: TermPart) => isLast && NAMED_ACTORS.some((kind) => `${kind}:`.startsWith(text));

const unnamed = oneOf('actor', ACTORS);
export const actor: ValueSet = {
  ...unnamed,
  resolve(part) {
    if (NAMED_ACTOR.test(part.text)) return { value: part.text };
    const found = isNameBegun(part) ? 'open' : unnamed.resolve(part);
    if (found === 'open' || 'value' in found) return found;
    return { problem: `${found.problem}, or operator:NAME, person:ISSUER#ID or trust:ID` };
  },
};

/** What `by` takes. */
export const ISSUERS = `operator:NAME, person:ISSUER#ID, trust:ID or ${BY_MANAGEMENT_TOKEN}`;

/** Who has issued a token. Another name alone is that of an operator. */
export const issuer: ValueSet = {
  completions: [{ insert: BY_MANAGEMENT_TOKEN, what: 'the holder of the management token' }],
  resolve(part) {
    const { text } = part;
    if (text === BY_MANAGEMENT_TOKEN || NAMED_ACTOR.test(text)) return { value: text };
    if (isNameBegun(part)) return 'open';
    if (text !== '' && !text.includes(':')) return { value: `operator:${text}` };
    return { problem: `by must be ${ISSUERS}` };
  },
};

export const outcome = oneOf('outcome', OUTCOMES);
export const kind = oneOf('kind', KINDS);
export const requestOutcome = oneOf('outcome', { [FAILED]: 'all failures, of every kind', ...REQUEST_OUTCOMES });

/** Resolves a project by its name, which is unique, or by its id or a prefix of at least six characters. */
export function projectIn(projects: KnownNames['projects']): ValueResolver {
  return ({ text, isLast }) => {
    const given = text.toLowerCase();
    const named =
      projects.find(({ name }) => isSameName(name, text)) ??
      soleOf(projects, ({ name }) => name.toLowerCase() === given);
    if (named) return { value: named.id };
    const begun = isLast && projects.some(({ name }) => name.toLowerCase().startsWith(given));
    return idAmong(
      projects.map(({ id }) => id),
      'project',
      given,
      begun,
    );
  };
}

/** Resolves a token by its whole id; a known one also by a unique name, or by a prefix of its id of at least six characters. */
export function tokenIn(tokens: KnownNames['tokens']): ValueResolver {
  return ({ text, isLast }) => {
    const named = tokens?.filter(({ name }) => isSameName(name, text)) ?? [];
    if (named.length > 1) return { problem: 'several tokens have this name; use an ID' };
    if (named[0]) return { value: named[0].id };
    const ids = tokens?.map(({ id }) => id);
    return idAmong(ids, 'token', text.toLowerCase(), isLast && /^[0-9a-f-]{0,35}$/i.test(text));
  };
}

/** A batch by its whole id. */
export const batch: ValueResolver = ({ text, isLast }) =>
  idAmong(undefined, 'batch', text.toLowerCase(), isLast && /^[0-9a-f-]{0,35}$/i.test(text));

/** @param ids undefined: not known, so that only a whole id identifies a resource. */
function idAmong(
  ids: readonly string[] | undefined,
  noun: string,
  given: string,
  mayGoOn: boolean,
): ReturnType<ValueResolver> {
  if (UUID_PATTERN.test(given)) return { value: given };
  const found = ID_PREFIX_PATTERN.test(given) ? (ids ?? []).filter((id) => id.startsWith(given)) : [];
  if (found.length === 1 && found[0] !== undefined) return { value: found[0] };
  if (mayGoOn) return 'open';
  if (found.length > 1) return { problem: `several ${noun}s have this prefix; type more of the ID` };
  return { problem: ids ? `no such ${noun}` : `type the whole ${noun} ID` };
}

function soleOf<T>(items: readonly T[], isMeant: (item: T) => boolean): T | undefined {
  const [one, ...others] = items.filter(isMeant);
  return others.length === 0 ? one : undefined;
}

export const statuses: ValueSet = {
  completions: [
    { insert: '4xx', what: 'client errors' },
    { insert: '5xx', what: 'server errors' },
    { insert: '429', what: 'too many requests' },
    { insert: '2xx', what: 'success' },
  ],
  resolve: ({ text, isLast }) => {
    const given = text.toLowerCase();
    if (STATUS_LIST_PATTERN.test(given) && !given.includes(',')) return { value: given };
    const mayGoOn = isLast && /^(?:[1-5](?:x|\d)?)?$/.test(given);
    return mayGoOn ? 'open' : { problem: 'status must be like 429 or 4xx' };
  },
};

/** The codes that operators look for most. Any other code is accepted too. */
const COMMON_CODES = {
  request_limit_reached: 'the cap of the token is used up',
  route_not_allowed: 'the token may not use the route',
  model_not_allowed: 'the token may not use the model',
  rate_limited: 'a rate limit of llmp',
  concurrency_limited: 'too many requests at the same time',
  unauthorized: 'the token is expired or revoked',
  project_inactive: 'the project is inactive',
  upstream_unreachable: 'no connection to the provider',
  upstream_key_rejected: "the provider rejected the project's key",
  upstream_timeout: 'the provider was too slow',
  unavailable: 'llmp was overloaded, or had no database',
};
const ERROR_CODE = new RegExp(`^${ERROR_CODE_PATTERN}$`);
export const errorCode: ValueSet = {
  completions: Object.entries(COMMON_CODES).map(([insert, what]) => ({ insert, what })),
  resolve: ({ text, isLast }) => {
    const given = text.toLowerCase();
    const mayGoOn = isLast && Object.keys(COMMON_CODES).some((code) => code !== given && code.startsWith(given));
    if (mayGoOn) return 'open';
    return ERROR_CODE.test(given) ? { value: given } : { problem: 'code must be an error code, such as rate_limited' };
  },
};

/** Why a request failed, as lists show it, or a part of it. */
export const cause: ValueSet = {
  completions: COMMON_CAUSES.map((insert) => ({ insert, what: '' })),
  resolve: ({ text, isLast }) => {
    if (text.trim() !== '') return { value: text.toLowerCase() };
    return isLast ? 'open' : { problem: 'a cause is missing' };
  },
};

const MODEL_PART = new RegExp(`^${MODEL_PART_PATTERN}$`);
export const modelPart: ValueResolver = ({ text, isLast }) => {
  if (MODEL_PART.test(text)) return { value: text.toLowerCase() };
  return text === '' && isLast ? 'open' : { problem: 'a part of the name of a model has no spaces' };
};

/** The name of a model, in which `*` stands for any characters. It is compared in its own letters. */
export const modelPattern: ValueResolver = ({ text, isLast }) => {
  if (MODEL_PART.test(text)) return { value: text };
  return text === '' && isLast ? 'open' : { problem: 'the name of a model has no spaces' };
};

export const isLimited = oneOf('limited', { yes: 'it or its project has limits', no: 'without limits' });

const BUDGETS: Record<BudgetFilter, string> = {
  yes: 'it or its project has a budget',
  no: 'neither it nor its project has a budget',
  hard: 'a budget that no request can exceed',
  soft: 'a budget that requests in flight can exceed',
  shadow: 'a budget that only reports',
};
export const budget = oneOf('budget', BUDGETS);

/** US dollars. */
export const dollars: ValueResolver = ({ text, isLast }) => {
  const given = text.replace(/^\$/, '');
  if (nanoOf(given) !== null) return { value: given };
  return isLast && /^(?:\d{1,7}\.)?$/.test(given) ? 'open' : { problem: 'must be US dollars like 10 or 0.50' };
};

/** How long a request took. */
export const took: ValueResolver = ({ text, isLast }) => {
  const given = text.toLowerCase();
  if (tookMs(given) !== undefined) return { value: given };
  return isLast && /^\d{0,6}$/.test(given) ? 'open' : { problem: 'must be a duration like 500ms, 2s or 1m' };
};

/**
 * A time span such as `2h` is sent unchanged, so that the query stays the same over time and the daemon's clock decides.
 */
export const time: ValueResolver = ({ text, isLast }) => {
  const given = text.toLowerCase();
  if (spanMs(given) !== undefined) return { value: given };
  const atMs = utcMs(given.toUpperCase());
  if (atMs !== undefined) return { value: new Date(atMs).toISOString() };
  const mayGoOn = isLast && /^-?(?:\d{0,6}|\d{4}-[\d:.tz-]*)$/.test(given);
  return mayGoOn ? 'open' : { problem: 'a time must be like 30m, 2h, 7d, 2030-01-31 or 2030-01-31T12:00:00Z' };
};

/** A time in the past. */
export const timeAgo: ValueResolver = (part) =>
  part.text.startsWith('-') ? { problem: 'must be a time in the past, like 24h or 7d' } : time(part);

/** How long: a time span, which the daemon subtracts from its clock. */
export const span: ValueResolver = ({ text, isLast }) => {
  const given = text.toLowerCase();
  if (!given.startsWith('-') && spanMs(given) !== undefined) return { value: given };
  return isLast && /^\d{0,6}$/.test(given) ? 'open' : { problem: 'must be a time span like 12h, 30d or 8w' };
};

const MAX_ERRORS = 1_000_000;
export const errors: ValueResolver = ({ text, isLast }) => {
  if (/^\d{1,7}$/.test(text) && Number(text) <= MAX_ERRORS) return { value: String(Number(text)) };
  return text === '' && isLast ? 'open' : { problem: `must be a whole number up to ${MAX_ERRORS}` };
};

export const percent: ValueResolver = ({ text, isLast }) => {
  const given = text.replace(/%$/, '');
  if (/^\d{1,3}$/.test(given) && Number(given) <= 100) return { value: String(Number(given)) };
  return text === '' && isLast ? 'open' : { problem: 'must be a percentage from 0% to 100%' };
};

/** Whether a status matches one of these patterns, such as `429` or `4xx`. */
export function isOfStatus(status: number, written: readonly string[]): boolean {
  const text = String(status);
  return written.some((one) => (one.endsWith('xx') ? text.startsWith(one.charAt(0)) : text === one));
}

export function projectCompletions(projects: KnownNames['projects']): Completion[] {
  const sorted = [...projects].sort((a, b) => a.name.localeCompare(b.name, 'en'));
  return sorted.map(({ name, id }) => ({ insert: name, what: id.slice(0, 8) }));
}
