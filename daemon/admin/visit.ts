/** A request to a page by somebody who is logged in, and what it is answered with. */
import type { ReactElement } from 'react';
import { ApiError, type ManagementClient, type Page } from '../api/client.js';
import type { WireProject } from '../api/contract.js';
import type { Section } from './pages/document.js';
import { MAX_PAGE_SIZE } from '../api/vocabulary.js';

export interface Visit {
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  /** Empty for a page that is only looked at. */
  form: URLSearchParams;
  /** Asks the management API, with the browser's address beside it. */
  client(): ManagementClient;
  /** The same for a change: with the reason that the form gives. */
  changing(): ManagementClient;
  nowMs: number;
  /** Where clients reach the proxy, as far as it is known here: such as `http://127.0.0.1:8080/v1`. */
  baseUrl: string;
  /** Keeps a secret for the next page and no other: it is sealed, and sent to that page only. */
  handOver(to: string, secret: string): void;
  /** Takes what was handed over to this page, which is gone then. */
  takeOver(): string | null;
}

export interface PageAnswer {
  title: string;
  section: Section | 'none';
  body: ReactElement;
  /** 200 unless stated. */
  status?: number;
  /** Whether parts of the page keep themselves up to date. */
  isLive?: boolean;
}

/** A file that is made while it is sent. */
export interface Download {
  name: string;
  type: string;
  pieces: AsyncIterable<string>;
}

/** A page, a file, or where to go: below the base, without a slash in front. */
export type Answer = PageAnswer | { to: string } | { download: Download };

export interface Route {
  method: 'GET' | 'POST';
  path: string;
  answer: (visit: Visit) => Promise<Answer>;
}

export const get = (path: string, answer: Route['answer']): Route => ({ method: 'GET', path, answer });
export const post = (path: string, answer: Route['answer']): Route => ({ method: 'POST', path, answer });

const REFUSED = 400;

/** Of a page that says why something was refused. */
export const statusOf = (refused: string | null): Pick<PageAnswer, 'status'> =>
  refused === null ? {} : { status: REFUSED };

/** Said by a page itself, as the management API would. */
export const refusal = (message: string, code = 'invalid_request') => new ApiError(REFUSED, code, message, null, null);

/**
 * What the management API refused because of what was asked, in its words; null when all went well. Anything else is no matter of
 * the page that asked.
 */
export async function refusedBecause(asking: () => Promise<unknown>): Promise<string | null> {
  try {
    await asking();
    return null;
  } catch (error) {
    if (error instanceof ApiError && (error.status === REFUSED || error.status === 409)) return sentence(error.message);
    throw error;
  }
}

/** Fields as the pages call them. */
const IN_WORDS: Readonly<Record<string, string>> = {
  max_requests: 'the most requests',
  api_key: 'the upstream key',
  used_over: 'the share used',
  url: 'the path',
  q: 'what is looked for',
  'X-Audit-Reason': 'the reason',
};

function sentence(text: string): string {
  const words = text.replace(/^[\w-]+(?= must be )/, (name) =>
    Object.hasOwn(IN_WORDS, name) ? (IN_WORDS[name] ?? name) : name,
  );
  return `${words.charAt(0).toUpperCase()}${words.slice(1).replace(/\.$/, '')}.`;
}

// What one page of the API can hold; who has more projects sees the rest of them by their ids.
const MOST_NAMED = String(MAX_PAGE_SIZE);

/** All projects, as far as a choice of one makes sense. */
export async function allProjects(client: ManagementClient, more: { is_active?: string } = {}): Promise<WireProject[]> {
  const { items } = await client.projects({ limit: MOST_NAMED, ...more });
  return items.sort((one, other) => one.name.localeCompare(other.name, 'en'));
}

/** A page of a list, or why its filter was not understood. */
export async function listed<T>(list: () => Promise<Page<T>>) {
  let page: Pick<Page<T>, 'items' | 'next' | 'total'> = { items: [], next: null, total: null };
  const refused = await refusedBecause(async () => {
    page = await list();
  });
  return { ...page, refused };
}

/** What of the query is for the API, under the names that both have. */
export function givenOf(query: URLSearchParams, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = query.get(name)?.trim() ?? '';
      return value === '' ? [] : [[name, value]];
    }),
  );
}

/** The moment so many hours away; undefined for what is no number of hours. */
export function hoursFrom(nowMs: number, hours: string | null, direction: 1 | -1): string | undefined {
  return hours !== null && /^\d{1,5}$/.test(hours)
    ? new Date(nowMs + direction * Number(hours) * 3_600_000).toISOString()
    : undefined;
}
