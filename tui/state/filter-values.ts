/** What values of the filter's keys stand for, one by one: what the API takes, or why not. */
import {
  type AuditAction,
  type AuditActor,
  type AuditOutcome,
  BEGINNING_OF_ID,
  type EventKind,
  STATUS_LIST,
  type TokenState,
  WHOLE_ID,
} from '../../daemon/api/vocabulary.js';
import type { Completion, Known } from './filter-reading.js';
import type { Part } from './filter-terms.js';

/** @returns what the API takes; `open` for the beginning of something that is still being typed; otherwise what is wrong. */
export type Resolve = (part: Part) => { value: string } | 'open' | { problem: string };

const STATES: Record<TokenState, string> = {
  active: 'can be used now',
  expired: 'its time is over',
  revoked: 'was revoked',
  rate_limited: 'its cap is used up',
  project_inactive: 'its project is off',
};
// As lists write them.
const STATE_ALIASES: Record<string, TokenState> = { limited: 'rate_limited', off: 'project_inactive' };

const PROJECT_STATES = { active: 'requests pass', inactive: 'requests are refused' };

// As records, so that one that is added is missed here at once.
const ACTIONS: Record<AuditAction, string> = {
  'token.create': 'a token was issued',
  'token.use': 'what tokens were used for, by the hour',
  'token.revoke': 'a token was revoked',
  'token.reactivate': 'a token was reactivated',
  'token.revoke_all': 'all tokens of a project were revoked',
  'project.create': 'a project was created',
  'project.update': 'a project was changed',
  'project.delete_refused': 'somebody tried to delete a project',
  'cache.purge': 'answers were removed from the cache',
  'migrations.up': 'the database was migrated',
  'management.denied': 'a wrong management token',
  'admin.login': 'a log-in to the Admin UI',
  'admin.logout': 'a log-out of the Admin UI',
};
const ACTORS: Record<AuditActor, string> = {
  management: 'whoever called the API',
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
const KINDS: Record<EventKind, string> = {
  'request.completed': 'a request is over',
  'token.created': 'a token was issued',
  'token.revoked': 'a token was revoked',
  'token.reactivated': 'a token was reactivated',
  'project.changed': 'a project was changed',
  'cache.purged': 'answers were removed from the cache',
};

interface Choice {
  resolve: Resolve;
  completions: Completion[];
}

function oneOf(what: string, values: Record<string, string>, aliases: Record<string, string> = {}): Choice {
  const names = Object.keys(values);
  return {
    completions: Object.entries(values).map(([insert, meaning]) => ({ insert, what: meaning })),
    resolve: ({ text, isLast }) => {
      const given = text.toLowerCase();
      if (Object.hasOwn(values, given)) return { value: given };
      if (Object.hasOwn(aliases, given)) return { value: aliases[given] ?? given };
      const mayGoOn = isLast && [...names, ...Object.keys(aliases)].some((name) => name.startsWith(given));
      return mayGoOn ? 'open' : { problem: `${what} is one of ${names.join(', ')}` };
    },
  };
}

export const tokenState = oneOf('state', STATES, STATE_ALIASES);
export const projectState = oneOf('state', PROJECT_STATES, { off: 'inactive' });
export const action = oneOf('action', ACTIONS);
export const actor = oneOf('actor', ACTORS);
export const outcome = oneOf('outcome', OUTCOMES);
export const kind = oneOf('kind', KINDS);

/** A project by its name, which is unique, or by its id or six characters of it. */
export function projectIn(projects: Known['projects']): Resolve {
  return ({ text, isLast }) => {
    const given = text.toLowerCase();
    const named =
      projects.find(({ name }) => name === text) ?? soleOf(projects, ({ name }) => name.toLowerCase() === given);
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

/** A token by its whole id, or by six characters of one that is at hand. */
export const tokenIn =
  (ids: readonly string[]): Resolve =>
  ({ text, isLast }) =>
    idAmong(ids, 'token', text.toLowerCase(), isLast && /^[0-9a-f-]{0,35}$/i.test(text));

function idAmong(ids: readonly string[], noun: string, given: string, mayGoOn: boolean): ReturnType<Resolve> {
  if (WHOLE_ID.test(given)) return { value: given };
  const found = BEGINNING_OF_ID.test(given) ? ids.filter((id) => id.startsWith(given)) : [];
  if (found.length === 1 && found[0] !== undefined) return { value: found[0] };
  if (mayGoOn) return 'open';
  if (found.length > 1) return { problem: `several ${noun}s begin like this; give more of the id` };
  return { problem: noun === 'project' ? 'there is no such project' : 'give the whole id of the token' };
}

function soleOf<T>(items: readonly T[], isMeant: (item: T) => boolean): T | undefined {
  const [one, ...others] = items.filter(isMeant);
  return others.length === 0 ? one : undefined;
}

export const statuses: Choice = {
  completions: [
    { insert: '4xx', what: 'refused, or wrong' },
    { insert: '5xx', what: 'failed' },
    { insert: '429', what: 'too many' },
    { insert: '2xx', what: 'done' },
  ],
  resolve: ({ text, isLast }) => {
    const given = text.toLowerCase();
    if (STATUS_LIST.test(given) && !given.includes(',')) return { value: given };
    const mayGoOn = isLast && /^(?:[1-5](?:x|\d)?)?$/.test(given);
    return mayGoOn ? 'open' : { problem: 'status is such as 429 or 4xx' };
  },
};

const SPAN = /^-?\d{1,6}[smhd]$/;
const TIMESTAMP = /^\d{4}-\d\d-\d\d(?:t\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?z)?$/;

/**
 * A span such as `2h` goes to the daemon as it is: what is asked for stays the same while time goes on, and the daemon's clock
 * counts.
 */
export const time: Resolve = ({ text, isLast }) => {
  const given = text.toLowerCase();
  if (SPAN.test(given)) return { value: given };
  const atMs = TIMESTAMP.test(given) ? Date.parse(given.toUpperCase()) : NaN;
  if (!Number.isNaN(atMs)) return { value: new Date(atMs).toISOString() };
  const mayGoOn = isLast && /^-?(?:\d{0,6}|\d{4}-[\d:.tz-]*)$/.test(given);
  return mayGoOn ? 'open' : { problem: 'a time is such as 30m, 2h, 7d, 2030-01-31 or 2030-01-31T12:00:00Z' };
};

/** A time ago. */
export const timeAgo: Resolve = (part) =>
  part.text.startsWith('-') ? { problem: 'a time ago is such as 24h or 7d' } : time(part);

export const percent: Resolve = ({ text, isLast }) => {
  const given = text.replace(/%$/, '');
  if (/^\d{1,3}$/.test(given) && Number(given) <= 100) return { value: String(Number(given)) };
  return text === '' && isLast ? 'open' : { problem: 'it is a percentage from 0% to 100%' };
};

/** Whether a request's status is one of these, such as `429` and `4xx`. */
export function isOfStatus(status: number, written: readonly string[]): boolean {
  const text = String(status);
  return written.some((one) => (one.endsWith('xx') ? text.startsWith(one.charAt(0)) : text === one));
}

export function projectCompletions(projects: Known['projects']): Completion[] {
  const sorted = [...projects].sort((a, b) => a.name.localeCompare(b.name, 'en'));
  return sorted.map(({ name, id }) => ({ insert: name, what: id.slice(0, 8) }));
}
