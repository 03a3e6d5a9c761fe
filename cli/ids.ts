/** Resolves what an operator types (a full ID, a prefix of an ID, or a name) to the full ID of one project, token, operator or trust. */
import type { ManagementClient, Page } from '../daemon/api/client.js';
import type { WireOperator, WireProject, WireToken, WireTrust } from '../daemon/api/contract.js';
import {
  ID_PREFIX_PATTERN,
  MAX_NAME_LENGTH,
  isSameName,
  MAX_PAGE_SIZE,
  MIN_ID_PREFIX,
  plainName,
  policiesOf,
  UUID_PATTERN,
} from '../daemon/api/vocabulary.js';
import { shownSecret, tokensShownAs } from '../daemon/api/tokens-of-secret.js';
import { EXIT, Failure, quoted, usage } from '../console/failure.js';

export type Noun = 'project' | 'token' | 'operator' | 'trust';

const LARGEST = String(MAX_PAGE_SIZE);
// How many candidates and similar names an error lists.
const MAX_SHOWN = 5;

/**
 * Checks the form of an ID or name before anything is sent.
 *
 * @throws {Failure} if it can be neither. A pasted secret is neither repeated in the message nor sent anywhere.
 */
export function checkedId(noun: Noun, given: string): string {
  if (noun === 'token' && shownSecret(given) !== null) return given;
  const isSecret = /sk-(?:wt|op|ss)-/i.test(given);
  // A name can begin in the same way, but a name that is so long and without a space is more likely a provider's key.
  if (isSecret || /^sk-[\w-]{16,}$/i.test(given)) {
    throw usage(`this is ${isSecret ? 'a secret' : 'an API key'}, not ${aNoun(noun)} name or ID`, {
      why: "it is now in the shell's history, where others may read it",
      advice: /sk-wt-/i.test(given)
        ? 'Find its token with `llmp token whois`, and revoke it'
        : `See: llmp ${noun} list`,
    });
  }
  if (/^(?=.*\S)\P{Cc}+$/u.test(given) && Array.from(given).length <= MAX_NAME_LENGTH) return given;
  throw usage(`${quoted(given)} is not ${aNoun(noun)} name or ID`, { advice: `See: llmp ${noun} list` });
}

const aNoun = (noun: Noun): string => `${noun === 'operator' ? 'an' : 'a'} ${noun}`;

/** @returns the full ID of the resource that `given` identifies. It asks the daemon unless `given` is a full ID. */
export async function wholeIdOf(client: ManagementClient, noun: Noun, given: string): Promise<string> {
  if (UUID_PATTERN.test(given)) return given.toLowerCase();
  return onlyIdOf(noun, given, await (noun === 'token' ? tokensMeant(client, given) : meantOf(noun, client, given)));
}

/**
 * The full ID of the token that a new token is to be like. Tokens that were issued again share their name: of several tokens with the
 * same terms the newest is used.
 */
export async function templateIdOf(client: ManagementClient, given: string): Promise<string> {
  if (UUID_PATTERN.test(given)) return given.toLowerCase();
  const found = await tokensMeant(client, given);
  const areAlike = new Set(found.meant.map(termsOf)).size === 1;
  return onlyIdOf('token', given, areAlike ? { ...found, meant: found.meant.slice(0, 1) } : found);
}

function termsOf(token: WireToken): string {
  const { project_id, name, max_requests, created_at, expires_at } = token;
  const lifetimeMs = Date.parse(expires_at) - Date.parse(created_at);
  return JSON.stringify([project_id, name, max_requests, policiesOf(token), lifetimeMs]);
}

function onlyIdOf(noun: Noun, given: string, { meant, similar }: Found<Identified>): string {
  const [one, ...others] = meant;
  if (!one) {
    throw new Failure(EXIT.notFound, `no ${noun} has the name or ID ${shown(given)}`, {
      code: 'not_found',
      why: similar.length === 0 ? shortPrefixText(given) : `Similar names: ${similar.join(', ')}`,
      advice: `See: llmp ${noun} list`,
    });
  }
  if (others.length === 0) return one.id;
  throw usage(`${shown(given)} matches several ${noun}s`, {
    details: meant.slice(0, MAX_SHOWN).map(candidateOf),
    advice: meant.length > MAX_SHOWN ? `Give an ID. See: llmp ${noun} list` : 'Give one of these IDs',
  });
}

type Identified = WireToken | WireProject | WireOperator | WireTrust;

/** Every project that the caller may see. */
export const allProjects = (client: ManagementClient): Promise<WireProject[]> => allOf((page) => client.projects(page));

/** Those of which there are few. */
const LISTS: Record<Exclude<Noun, 'token'>, (client: ManagementClient) => Promise<Identified[]>> = {
  project: allProjects,
  operator: (client) => allOf((page) => client.operators(page)),
  trust: (client) => allOf((page) => client.trusts(page)),
};

async function allOf<T>(fetchPage: (page: { limit: string; cursor?: string }) => Promise<Page<T>>): Promise<T[]> {
  const all: T[] = [];
  for await (const { items } of pagesOf((cursor) => fetchPage({ limit: LARGEST, ...cursor }))) all.push(...items);
  return all;
}

interface Found<T> {
  /** The resources with exactly this name, or with this prefix of their ID. */
  meant: T[];
  /** A few other names that contain the given text. */
  similar: string[];
}

/** The tokens that `given` may name, the newest first: also by what is shown of a secret. */
export async function tokensMeant(client: ManagementClient, given: string): Promise<Found<WireToken>> {
  const found: Found<WireToken> = { meant: [], similar: [] };
  const secret = shownSecret(given);
  if (secret !== null) return { ...found, meant: await tokensShownAs(client, secret) };
  const q = plainName(given);
  // It selects by parts of names and prefixes of IDs, and ignores case.
  for await (const { items } of pagesOf((cursor) => client.tokens({ q, limit: LARGEST, ...cursor }))) {
    sortInto(found, items, given);
    if (found.meant.length > MAX_SHOWN) break;
  }
  return found;
}

async function meantOf(noun: keyof typeof LISTS, client: ManagementClient, given: string): Promise<Found<Identified>> {
  const found: Found<Identified> = { meant: [], similar: [] };
  sortInto(found, await LISTS[noun](client), given);
  return found;
}

function sortInto<T extends Identified>({ meant, similar }: Found<T>, items: readonly T[], given: string) {
  const lower = given.toLowerCase();
  const isPrefix = ID_PREFIX_PATTERN.test(given);
  for (const item of items) {
    const { id, name } = item;
    if (isSameName(name, given) || (isPrefix && id.startsWith(lower))) meant.push(item);
    else if (name?.toLowerCase().includes(lower) && similar.length < MAX_SHOWN && !similar.includes(name)) {
      similar.push(name);
    }
  }
}

function candidateOf(item: Identified): string {
  const state = 'state' in item ? item.state : item.is_active ? 'active' : 'inactive';
  const created = item.created_at.slice(0, 16).replace('T', ' ');
  return [item.id, ...(item.name === null ? [] : [item.name]), `${state}, created ${created}`].join('  ');
}

const SHORT_PREFIX = new RegExp(`^[0-9a-f]{1,${MIN_ID_PREFIX - 1}}$`, 'i');

const shortPrefixText = (given: string) =>
  SHORT_PREFIX.test(given) ? `If this is the beginning of an ID: at least ${MIN_ID_PREFIX} characters are needed` : '';

const shown = (given: string) => (ID_PREFIX_PATTERN.test(given) || shownSecret(given) !== null ? given : quoted(given));

async function* pagesOf<T>(pageAfter: (cursor: { cursor?: string }) => Promise<Page<T>>): AsyncGenerator<Page<T>> {
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await pageAfter(cursor === undefined ? {} : { cursor });
    yield page;
    cursor = page.next;
  }
}
