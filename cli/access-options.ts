/** The options that say what an operator or a trust may do. */
import { integer, type Kind } from '../config/kinds.js';
import { usage } from '../console/failure.js';
import { hoursOf, lifetime, moment, span } from '../console/span.js';
import type { ManagementClient } from '../daemon/api/client.js';
import { type Ceilings, MAX_CAP, MAX_DURATION_HOURS, policiesWithin } from '../daemon/api/vocabulary.js';
import { checkedId, wholeIdOf } from './ids.js';
import { type Option, type Options, value, type Values } from './option.js';
import { hasPolicies, NONE, orNone, policiesIn, policyOptions } from './policy-options.js';

const listOfProjects: Kind<string[]> = {
  accepts: 'names or IDs of projects, separated by commas',
  isList: true,
  parse(given) {
    const all = given.split(',').map((each) => each.trim());
    return all.every((each) => each !== '') ? all : undefined;
  },
};

/** The projects that an operator may see. @param byDefault what holds without it. */
export const projectsOption = (byDefault: string): Option<string[]> =>
  value(
    '--project-id <IDS>',
    listOfProjects,
    `projects that the operator may see, by name or ID, separated by commas (default: ${byDefault})`,
    'project',
  );

/**
 * Checks the form of the given projects, before anything is sent.
 *
 * @returns a function that asks the daemon for their full IDs; undefined if none are given.
 */
export function projectsIn(given: readonly string[] | undefined) {
  const checked = given?.map((project) => checkedId('project', project));
  return checked && ((client: ManagementClient) => Promise.all(checked.map((id) => wholeIdOf(client, 'project', id))));
}

/** From now, or until a time. */
type Expiry = { inMs: number } | { at: string };

const expiry: Kind<Expiry> = {
  accepts:
    'a time from now such as 12h, 30d or 8w, a day such as 2030-01-31, or a time in UTC such as 2030-01-31T12:00:00Z',
  parse(given) {
    const inMs = span.parse(given);
    if (inMs !== undefined) return inMs > 0 ? { inMs } : undefined;
    const at = moment.parse(given);
    return at && 'at' in at ? at : undefined;
  },
};

export const expiryOption = value(
  '--expires <TIME>',
  orNone<Expiry | 'never'>(expiry, 'never'),
  `when the secret ends by itself, for example 90d or 2030-01-31; ${NONE}: never`,
);

/** @returns RFC 3339, null for never; undefined if none is given. */
export function expiryIn(given: Expiry | 'never' | undefined, nowMs: number): string | null | undefined {
  if (given === undefined) return undefined;
  if (given === 'never') return null;
  return 'at' in given ? given.at : new Date(nowMs + given.inMs).toISOString();
}

const wholeHours: Kind<number> = {
  accepts: `whole hours from 1 to ${MAX_DURATION_HOURS} such as 48, or a time with a unit such as 48h, 7d or 2w`,
  parse(given) {
    const hours = hoursOf(lifetime.parse(given));
    return hours > 0 && Number.isInteger(hours) ? hours : undefined;
  },
};

export const countOrNone = orNone(integer(1, MAX_CAP), 0);

/** The same options with other words about what they say. */
const reworded = <O extends Options>(options: O, meaning: (of: string) => string): O =>
  Object.fromEntries(
    Object.entries(options).map(([key, option]) => [key, { ...option, meaning: meaning(option.meaning) }]),
  ) as O;

/** The most that a token issued by an operator may have. */
export const ceilingOptions = {
  maxDuration: value(
    '--max-duration <HOURS>',
    orNone(wholeHours, 0),
    `ceiling of the lifetime, in hours or with a unit, for example 24h or 7d; ${NONE} removes the ceiling`,
  ),
  maxRequests: value(
    '--max-requests <COUNT>',
    countOrNone,
    `ceiling of the request cap: a token without a cap is beyond it; ${NONE} removes the ceiling`,
  ),
  maxActive: value(
    '--max-active <COUNT>',
    countOrNone,
    `maximum number of tokens of the operator that are active at the same time; ${NONE} removes the ceiling`,
  ),
  ...reworded(policyOptions, (of) => `ceiling: ${of}`),
};

type GivenCeilings = Values<typeof ceilingOptions>;

/** Named by messages that ask for an option. */
export const CEILING_OPTIONS_SHOWN =
  '--max-duration HOURS, --max-requests COUNT, --max-active COUNT, --allow-model MODEL or --budget-usd AMOUNT';

/**
 * @param before the ceilings that stay, unless an option replaces or removes them.
 * @returns undefined without any of the options.
 */
export function ceilingsIn(given: GivenCeilings, before: Ceilings | null): Ceilings | null | undefined {
  const { maxDuration, maxRequests, maxActive } = given;
  const areCountsGiven = [maxDuration, maxRequests, maxActive].some((each) => each !== undefined);
  if (!areCountsGiven && !hasPolicies(given)) return undefined;
  const { hours, requests, active_tokens: tokens } = before ?? {};
  const policies = policiesWithin(before ?? {});
  const after = { ...policies, ...policiesIn(given, policies) };
  const all: Ceilings = {
    hours: maxDuration ?? hours,
    requests: maxRequests ?? requests,
    active_tokens: maxActive ?? tokens,
    ...after.allow,
    limits: after.limits ?? undefined,
    budget: after.budget ?? undefined,
  };
  // 0 removes a ceiling.
  const left = Object.entries(all).filter(([, each]) => each !== undefined && each !== 0);
  return left.length === 0 ? null : Object.fromEntries(left);
}

/** Claims from texts such as `repository=acme/web`. @throws {Failure} for a text without a claim or a value, and for a claim that is given twice. */
export function claimsIn(given: readonly string[]): Record<string, string> {
  const claims = new Map<string, string>();
  for (const text of given) {
    const [, claim, wanted] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
    if (claim === undefined || wanted === undefined) {
      throw usage('--match must be CLAIM=VALUE', { advice: "For example --match 'repository=acme/web'" });
    }
    if (claims.has(claim))
      throw usage(`--match names ${JSON.stringify(claim)} twice`, { advice: 'A claim has one value' });
    claims.set(claim, wanted);
  }
  return Object.fromEntries(claims);
}
