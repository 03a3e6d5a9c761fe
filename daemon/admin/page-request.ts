/** Requests to pages by logged-in users, and the responses. */
import type { ReactElement } from 'react';
import { moment } from '../../console/span.js';
import { ApiError, type ManagementClient, type Page } from '../api/client.js';
import type { WireProject } from '../api/contract.js';
import { counted } from '../api/formats.js';
import type { Permission } from '../api/permissions.js';
import type { PageStream } from './page-streams.js';
import type { Section } from './parts/document.js';
import type { Frame, Offers, User } from './parts/frame.js';
import { MAX_PAGE_SIZE } from '../api/vocabulary.js';

export interface PageRequest {
  /** The ID in the path of the page; empty if there is none. */
  id: string;
  query: URLSearchParams;
  /** Empty for a GET request. */
  form: URLSearchParams;
  user: User;
  may: Offers['may'];
  /** Client of the management API with the authority of the user, which passes on the browser's address. */
  client: ManagementClient;
  /** The same for changes: it also sends the reason from the form, and an ID that all changes of the form have in common. */
  changeClient: ManagementClient;
  nowMs: number;
  /** Base URL of the proxy for clients, as far as known here, such as `http://127.0.0.1:8080/v1`. */
  baseUrl: string;
  /** Whether a text must not be in an address. */
  isSecret(text: string): boolean;
  /** Passes a secret to the page `to` in an encrypted cookie that only that page receives. */
  storeSecret(to: string, secret: string): void;
  /** Reads and deletes the secret that was passed to this page. */
  takeSecret(): string | null;
}

export interface PageView {
  title: string;
  section: Section | 'none';
  body: ReactElement;
  /** Default: 200. */
  status?: number;
  /** Whether parts of the page refresh automatically. */
  isLive?: boolean;
  /** The field of its form that was refused. */
  wrong?: Frame['wrong'];
  /** Parts that are sent when they are made, in place of the last element of `PartsOfPage` in the body. If the browser goes, no more are made. */
  rest?: AsyncIterable<PagePart>;
}

export type PagePart = ReactElement;

/** A file that is generated while it is sent. */
export interface Download {
  name: string;
  type: string;
  pieces: AsyncIterable<string>;
}

/** A page, a file, events for an open page, or a redirect to a path relative to the base, without a leading slash. */
export type PageResponse = PageView | { to: string } | { download: Download } | { stream: PageStream };

export interface Route {
  method: 'GET' | 'POST';
  path: string;
  /** What the user must be permitted to do. */
  permission: Permission;
  handler: (request: PageRequest) => Promise<PageResponse>;
}

type Declare = (path: string, permission: Permission, handler: Route['handler']) => Route;
export const get: Declare = (path, permission, handler) => ({ method: 'GET', path, permission, handler });
export const post: Declare = (path, permission, handler) => ({ method: 'POST', path, permission, handler });

const REFUSED = 400;

/**
 * Status of a page with or without an error message. A page with one does not refresh: it would get the error again, and the address of a
 * form has no page of its own.
 */
export const statusOf = (refused: string | null): Pick<PageView, 'status' | 'isLive'> =>
  refused === null ? {} : { status: REFUSED, isLive: false };

/** An error that a page reports itself, in the form of an error of the management API. */
export const invalidRequest = (message: string, code = 'invalid_request') =>
  new ApiError(REFUSED, code, message, null, null);

/** What is wrong with a field of a form. The message is shown next to it too. */
class InvalidField extends ApiError {
  readonly field: string;

  constructor(field: string, message: string) {
    super(REFUSED, 'invalid_request', message, null, null);
    this.field = field;
  }
}

export const invalidField = (field: string, message: string): ApiError => new InvalidField(field, message);

/**
 * Runs requests to the management API.
 *
 * @returns their value; `otherwise` with an error message if the input was refused. @throws other errors.
 */
export async function attempt<T>(
  asking: () => Promise<T>,
  otherwise: T,
): Promise<{ value: T; refused: string | null; field: string | null }> {
  try {
    return { value: await asking(), refused: null, field: null };
  } catch (error) {
    if (!(error instanceof ApiError && isOfInput(error))) throw error;
    return { value: otherwise, refused: sentence(error.message), field: fieldOf(error) };
  }
}

/** Whether other input would have been accepted. */
const isOfInput = ({ status, code }: ApiError) => status === REFUSED || status === 409 || code === 'beyond_ceiling';

/**
 * Makes a change.
 *
 * @param change returns where to redirect to. @param again shows the form again with the error message if the input was refused.
 */
export async function changed(
  change: () => Promise<string>,
  again: (refused: string) => PageResponse | Promise<PageResponse>,
): Promise<PageResponse> {
  const { value: to, refused, field } = await attempt(change, '');
  if (refused === null) return { to };
  const page = await again(refused);
  return field !== null && 'body' in page ? { ...page, wrong: { field, why: refused } } : page;
}

/** The field of a form that an error is about. The messages of the API begin with the name of its field, which is mostly that of the form's too. */
function fieldOf(error: ApiError): string | null {
  if (error instanceof InvalidField) return error.field;
  const [name = null] = /^[\w-]+(?= (?:must|needs) )/.exec(error.message) ?? [];
  return name !== null && Object.hasOwn(FORM_FIELDS, name) ? (FORM_FIELDS[name] ?? null) : name;
}

/** Fields of forms that have another name than in the API. */
const FORM_FIELDS: Readonly<Record<string, string>> = {
  upstream_base_url: 'base_url',
  'X-Audit-Reason': 'reason',
};

/** Labels of API fields in error messages. */
const FIELD_LABELS: Readonly<Record<string, string>> = {
  max_requests: 'the request cap',
  api_key: 'the upstream key',
  upstream_base_url: 'the base URL',
  used_over: 'the percentage used',
  idle_over: 'the time without use',
  errors_over: 'the number of failures',
  url: 'the path',
  q: 'the search text',
  'X-Audit-Reason': 'the reason',
};

/** An error message of the API as a sentence for a page. */
export function sentence(text: string): string {
  const words = text.replace(/^[\w-]+(?= must be )/, (name) =>
    Object.hasOwn(FIELD_LABELS, name) ? (FIELD_LABELS[name] ?? name) : name,
  );
  return `${words.charAt(0).toUpperCase()}${words.slice(1).replace(/\.$/, '')}.`;
}

// The page size limit of the API. Projects beyond it appear by ID.
const MAX_PROJECTS = String(MAX_PAGE_SIZE);

/** The projects to choose from, up to the page size limit of the API. */
export async function allProjects(client: ManagementClient, more: { is_active?: string } = {}): Promise<WireProject[]> {
  const { items } = await client.projects({ limit: MAX_PROJECTS, ...more });
  return items.sort((one, other) => one.name.localeCompare(other.name, 'en'));
}

/** A page of a list, or an empty page with the error message for its filter. */
export async function listPage<T>(list: () => Promise<Page<T>>) {
  const { value, refused } = await attempt(list, { items: [], next: null, total: null });
  return { ...value, refused };
}

/** Success message on the page after a change. A parameter of the query selects one of `words` by name and cannot contain a text. */
export function doneMessage(
  { query }: PageRequest,
  words: Readonly<Record<string, string>>,
  parameter = 'done',
): string | null {
  const done = query.get(parameter) ?? '';
  return Object.hasOwn(words, done) ? (words[done] ?? null) : null;
}

/** Success message with a count, which is in the query under the name `done`. */
export function countMessage({ query }: PageRequest, done: string, one: string): string | null {
  const count = query.get(done);
  return count !== null && /^\d{1,12}$/.test(count) ? `${counted(Number(count), one)} ${done}.` : null;
}

/** The non-empty parameters of the query that are passed on to the API under the same names. */
export function parametersOf(query: URLSearchParams, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = query.get(name)?.trim() ?? '';
      return value === '' ? [] : [[name, value]];
    }),
  );
}

/** The fields of a form that `empty` has, without white space around their values. */
export const formValues = <T extends object>(fields: URLSearchParams, empty: T): { [K in keyof T]: string } =>
  Object.fromEntries(Object.keys(empty).map((name) => [name, (fields.get(name) ?? '').trim()])) as {
    [K in keyof T]: string;
  };

/** @returns the parameter, or `usual` if it is absent or empty. @throws {ApiError} if it is not one of the choices. */
export function choiceOf<T extends string>(query: URLSearchParams, name: string, choices: readonly T[], usual: T): T {
  const given = query.get(name) || usual;
  const choice = choices.find((it) => it === given);
  if (choice !== undefined) return choice;
  throw invalidRequest(`${name} must be one of ${choices.join(' ')}`);
}

/**
 * A number of hours in the query as a time span of the API. It stays relative, because a cursor is valid for the same filter only.
 *
 * @returns undefined if the parameter is absent or empty. @throws {ApiError} if it is not a number.
 */
export function hoursOf(query: URLSearchParams, name: string): string | undefined {
  const { [name]: hours } = parametersOf(query, [name]);
  if (hours !== undefined && !/^\d{1,5}$/.test(hours)) throw invalidRequest(`${name} must be a number of hours`);
  return hours && `${hours}h`;
}

/**
 * The period in the query: `since` and `until`, in the grammar of the options of commands, or one of the fixed choices. Times before now
 * stay relative, because a cursor is valid for the same filter only.
 *
 * @throws {ApiError} if one is invalid.
 */
export function periodOf(query: URLSearchParams): { since?: string; until?: string } {
  const since = momentOf(query, 'since') ?? hoursOf(query, 'since_hours');
  const until = momentOf(query, 'until');
  return { ...(since !== undefined && { since }), ...(until !== undefined && { until }) };
}

function momentOf(query: URLSearchParams, name: string): string | undefined {
  const { [name]: given } = parametersOf(query, [name]);
  if (given === undefined) return undefined;
  const parsed = moment.parse(given);
  if (parsed === undefined) throw invalidRequest(`${name} must be ${moment.accepts}`);
  return 'at' in parsed ? parsed.at : given;
}
