import type * as z from 'zod';
import type { FrontEnd, WireProblem } from './contract.js';
import { readEvents, NotAnEventStream, IdleTimeout, unlessAborted } from './event-stream.js';
import type { Operations } from './operations.js';
import { type Route, ROUTES } from './routes.js';
import { holdsSecret, NO_SUCH_PATH } from './vocabulary.js';

// Three heartbeat intervals.
const IDLE_TIMEOUT_MS = 45_000;

/** An error response of the daemon. `code` is for programs, `message` for people. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;
  override name = 'ApiError';
  constructor(
    status: number,
    code: string,
    message: string,
    requestId: string | null,
    retryAfterSeconds: number | null,
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** No response: connection refused or lost, `timeoutMs` exceeded, or the server is not llmp. */
export class Unreachable extends Error {
  override name = 'Unreachable';
}

/** The part of a response that the client reads. */
export interface FetchResponse {
  ok: boolean;
  status: number;
  headers: { get(name: string): string | null };
  /** @throws {SyntaxError} if the body is not JSON; another error if it is incomplete. */
  json(): Promise<unknown>;
  /** Null if the response has no body. */
  readonly body: ReadableStream<Uint8Array> | null;
}

export interface FetchInit {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** A response that redirects is an error. */
  redirect: 'error';
  signal: AbortSignal;
}

/** The part of `fetch` that the client uses. An error of the connection is the cause of the error with which it rejects. */
export type Fetch = (url: URL, init: FetchInit) => Promise<FetchResponse>;

export interface ClientOptions {
  /** URL of the daemon, such as `http://127.0.0.1:8080`. */
  server: string;
  /** Or what stands in its place: the secret of an operator or a session. Null: none is sent, for operations that need none. */
  managementToken: string | null;
  frontEnd: FrontEnd;
  /** ID of a session of the Admin UI: the request has the authority of the person who logged in. It needs the management token itself. */
  session?: string | undefined;
  /** IP address of the user, if it is not that of this process: the Admin UI sends the browser's. */
  clientIp?: string | undefined;
  /** User for the audit records, such as `ana@laptop`; up to 100 characters. */
  user?: string | undefined;
  /** Reason for the audit records of all changes made with this client; up to 200 characters. */
  reason?: string | undefined;
  /** ID that all changes made with this client have in common, see `inBatch`. */
  batch?: string | undefined;
  timeoutMs: number;
  /** Called before each change is sent. If it throws, the change is not sent. */
  beforeChange?: (() => Promise<void>) | undefined;
  /** Determines how to connect: TCP, Unix socket, or a test double. */
  fetch: Fetch;
}

export interface StreamOptions {
  /** Resume after this event, if the daemon still has the events since then. */
  lastEventId?: string | undefined;
  /** Ends the stream, without an error. */
  signal?: AbortSignal | undefined;
  /** Called when the daemon has started the stream. */
  onOpen?: (() => void) | undefined;
  /** Maximum time without data or a heartbeat (default: 45 s). */
  idleTimeoutMs?: number;
}

/** Makes a change conditional. */
export interface ChangeOptions {
  /** Changes the resource only if it is as it was with this ETag (see `etagOf`); else the error has the code `precondition_failed`. */
  ifMatch: string;
  signal?: AbortSignal | undefined;
}

const etags = new WeakMap<object, string>();

/** The ETag that a project, token or session had when this client received it; undefined for other values, such as items of a list. */
export const etagOf = (received: object): string | undefined => etags.get(received);

/** An item of an event stream. */
export interface StreamItem<T> {
  /** For `lastEventId`. */
  id: string;
  item: T;
}

type Query = Record<string, string | undefined>;

/** One page of a list, and the cursor of the next one or null. */
export interface Page<T> {
  items: T[];
  next: string | null;
  total: number | null;
}

type IdOf<Op> = Op extends { path: `${string}{id}${string}` } ? [id: string] : [];
type BodyOf<Op> = Op extends { body: infer Body extends z.ZodType } ? [body: z.infer<Body>] : [];
/** Query names and values as they are written on the wire. */
type QueryOf<Op> = Op extends { query: infer Query extends z.ZodType }
  ? [query?: Partial<Record<keyof z.input<Query>, string>>]
  : [];
type ResponseOf<Op> = Op extends { list: infer Item extends z.ZodType }
  ? Promise<Page<z.infer<Item>>>
  : Op extends { stream: infer Item extends z.ZodType }
    ? AsyncGenerator<StreamItem<z.infer<Item>>>
    : Op extends { response: infer Response extends z.ZodType }
      ? Promise<z.infer<Response>>
      : never;
/** The last argument. An aborted change may still have been made: for example, a token was created but its secret is lost. */
type OptionsOf<Op> = Op extends { stream: z.ZodType }
  ? [options?: StreamOptions]
  : Op extends { method: 'PATCH' | 'DELETE'; version: z.ZodType }
    ? [options?: AbortSignal | ChangeOptions]
    : [signal?: AbortSignal];

/** The arguments are the ID, body and query that the operation has, and an abort signal. */
type Method<Op> = (...given: [...IdOf<Op>, ...BodyOf<Op>, ...QueryOf<Op>, ...OptionsOf<Op>]) => ResponseOf<Op>;

/**
 * Typed client of the management API, with a method for each operation that can succeed. Every method throws `ApiError` for an error
 * response and `Unreachable` without a response. Method and path are in routes.ts; the types are derived from operations.ts, which is
 * not loaded.
 */
export class ManagementClient {
  readonly createProject = this.#method('createProject');
  readonly projects = this.#method('listProjects');
  readonly project = this.#method('readProject');
  readonly updateProject = this.#method('updateProject');
  readonly revokeTokensOf = this.#method('revokeTokensOfProject');
  readonly checkProject = this.#method('checkProject');
  readonly createToken = this.#method('createToken');
  readonly tokens = this.#method('listTokens');
  readonly lookUpToken = this.#method('lookUpToken');
  readonly token = this.#method('readToken');
  readonly updateToken = this.#method('updateToken');
  readonly revokeToken = this.#method('revokeToken');
  readonly usage = this.#method('readUsage');
  readonly top = this.#method('readTop');
  readonly prices = this.#method('listPrices');
  readonly pricesMissing = this.#method('checkPrices');
  readonly priceExplained = this.#method('explainPrice');
  readonly auditRecords = this.#method('listAudit');
  readonly auditStream = this.#method('followAudit');
  readonly auditRecord = this.#method('readAuditRecord');
  readonly undoBatch = this.#method('undoBatch');
  readonly storedEvents = this.#method('listEvents');
  readonly events = this.#method('streamEvents');
  readonly cache = this.#method('readCache');
  readonly purgeCache = this.#method('purgeCache');
  readonly incidents = this.#method('readIncidents');
  readonly status = this.#method('readStatus');
  readonly migrations = this.#method('readMigrations');
  readonly migrateUp = this.#method('migrateUp');
  readonly logIn = this.#method('logIn');
  readonly session = this.#method('readSession');
  readonly logOut = this.#method('logOut');
  readonly self = this.#method('readSelf');
  readonly createOperator = this.#method('createOperator');
  readonly operators = this.#method('listOperators');
  readonly operator = this.#method('readOperator');
  readonly updateOperator = this.#method('updateOperator');
  readonly deactivateOperator = this.#method('deactivateOperator');
  readonly createTrust = this.#method('createTrust');
  readonly trusts = this.#method('listTrusts');
  readonly trust = this.#method('readTrust');
  readonly updateTrust = this.#method('updateTrust');
  readonly deleteTrust = this.#method('deleteTrust');
  readonly login = this.#method('readLogin');
  readonly beginWebLogin = this.#method('beginWebLogin');
  readonly finishWebLogin = this.#method('finishWebLogin');
  readonly beginDeviceLogin = this.#method('beginDeviceLogin');
  readonly finishDeviceLogin = this.#method('finishDeviceLogin');
  readonly describeApi = this.#method('describeApi');

  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** A client for the changes of one command or dialog. @param batch a UUID. */
  inBatch(batch: string): ManagementClient {
    return new ManagementClient({ ...this.#options, batch });
  }

  /** The batch of its changes; undefined if they have none. */
  get batch(): string | undefined {
    return this.#options.batch;
  }

  #method<Name extends keyof Operations>(name: Name): Method<Operations[Name]> {
    return (...given) => this.#call(ROUTES[name], given) as ResponseOf<Operations[Name]>;
  }

  /** Sends the request of an operation. @param given the arguments of its `Method`. */
  #call(route: Route, given: readonly unknown[]): unknown {
    const { method, returns } = route;
    const [id, ...rest] = route.path.includes('{id}') ? given : [undefined, ...given];
    const path = route.path.replace('{id}', encodeURIComponent(String(id)));
    if (returns === 'stream') return this.#stream(path, (rest[0] ?? {}) as Query, rest[1] ?? {});

    const { signal, ifMatch } = optionsIn(rest);
    const hasBody = method === 'POST' || method === 'PATCH';
    const [body, query] = (hasBody ? rest : [undefined, ...rest]).map((each) => (isOptions(each) ? undefined : each));
    if (returns === 'page') return this.#page(path, (query ?? {}) as Query, signal);
    const target = withQuery(path, (query ?? {}) as Query);
    const isDryRun = (body as { dry_run?: boolean } | undefined)?.dry_run === true;
    return method === 'GET' || route.isReadOnly === true || isDryRun
      ? this.#json(method, target, body, signal, ifMatch)
      : this.#change(method, target, body, signal, ifMatch);
  }

  /** Calls `beforeChange` now, ahead of a change. @throws what `beforeChange` throws. */
  async confirmChange(): Promise<void> {
    await this.#options.beforeChange?.();
  }

  async #change<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, ifMatch?: string): Promise<T> {
    await this.confirmChange();
    return this.#json<T>(method, path, body, signal, ifMatch);
  }

  #json<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, ifMatch?: string): Promise<T> {
    return withTimeout(this.#options.timeoutMs, signal, async (requestSignal) => {
      const headers = ifMatch === undefined ? {} : { 'if-match': ifMatch };
      const response = await this.#send(method, path, body, { headers, signal: requestSignal });
      const received = await jsonOf(response);
      const etag = response.headers.get('etag');
      if (etag !== null && typeof received === 'object' && received !== null) etags.set(received, etag);
      return received as T;
    });
  }

  #page<T>(path: string, query: Query, signal?: AbortSignal): Promise<Page<T>> {
    return withTimeout(this.#options.timeoutMs, signal, async (requestSignal) => {
      const response = await this.#send('GET', withQuery(path, query), undefined, { signal: requestSignal });
      const next = /<([^<>]*)>;\s{0,9}rel="next"/.exec(response.headers.get('link') ?? '');
      const total = response.headers.get('x-total-count');
      const items = await jsonOf(response);
      if (!Array.isArray(items)) throw new Unreachable(NOT_LLMP);
      return {
        items: items as T[],
        next: next?.[1] === undefined ? null : new URL(next[1], 'http://daemon').searchParams.get('cursor'),
        total: total === null ? null : Number(total),
      };
    });
  }

  /** Ends without an error when the daemon ends the stream: reconnect after the last event. */
  async *#stream<T>(
    path: string,
    query: Query,
    { lastEventId, signal, onOpen, idleTimeoutMs = IDLE_TIMEOUT_MS }: StreamOptions,
  ): AsyncGenerator<StreamItem<T>> {
    const idle = new IdleTimeout(signal);
    try {
      idle.start(this.#options.timeoutMs);
      const headers = {
        accept: 'text/event-stream',
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      };
      const request = this.#send('GET', withQuery(path, query), undefined, { headers, signal: idle.signal });
      const response = await unlessAborted(idle.signal, request);
      if (!response.body || !/^text\/event-stream\b/.test(response.headers.get('content-type') ?? '')) {
        throw new Unreachable(NOT_LLMP);
      }
      onOpen?.();
      for await (const { id, data } of readEvents(response.body, idle, idleTimeoutMs)) {
        yield { id, item: JSON.parse(data) as T };
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof ApiError || error instanceof Unreachable) throw error;
      const isOther = error instanceof SyntaxError || error instanceof NotAnEventStream;
      throw new Unreachable(isOther ? NOT_LLMP : connectionProblem(error), { cause: error });
    } finally {
      idle.dispose();
    }
  }

  async #send(
    method: string,
    path: string,
    body: unknown,
    { headers: more, signal }: { headers?: Record<string, string>; signal: AbortSignal },
  ): Promise<FetchResponse> {
    const { server, managementToken, frontEnd, session, clientIp, user, reason, batch } = this.#options;
    const headers: Record<string, string> = { 'x-llmp-actor': frontEnd, accept: 'application/json', ...more };
    if (managementToken !== null) headers.authorization = `Bearer ${managementToken}`;
    if (session !== undefined) headers['x-llmp-session'] = session;
    if (clientIp !== undefined) headers['x-llmp-client-ip'] = clientIp;
    // Percent-encoded, because fetch refuses header values beyond Latin-1.
    if (user !== undefined) headers['x-llmp-user'] = encodeURIComponent(user);
    if (reason !== undefined) headers['x-audit-reason'] = encodeURIComponent(reason);
    if (batch !== undefined) headers['x-audit-batch'] = batch;
    if (body !== undefined) headers['content-type'] = 'application/json';

    let response: FetchResponse;
    try {
      response = await this.#options.fetch(new URL(path, server), {
        method,
        headers,
        redirect: 'error', // A redirect must not send the management token to another server.
        signal,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      throw new Unreachable(connectionProblem(error), { cause: error });
    }
    if (!response.ok) throw await apiErrorOf(response);
    return response;
  }
}

/** Runs `ask` with a timeout, until `signal` is aborted. @throws {Unreachable} after the timeout. */
export async function withTimeout<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const idle = new IdleTimeout(signal);
  try {
    idle.start(timeoutMs);
    // `fetch` alone may miss an abort: see `readEvents`.
    return await unlessAborted(idle.signal, ask(idle.signal));
  } catch (error) {
    // `ask` reports its own errors; this one is for aborts that it did not notice.
    if (error === idle.signal.reason) throw new Unreachable(connectionProblem(error), { cause: error });
    throw error;
  } finally {
    idle.dispose();
  }
}

const isOptions = (given: unknown): given is AbortSignal | ChangeOptions =>
  given instanceof AbortSignal || (typeof given === 'object' && given !== null && 'ifMatch' in given);

/** @param given the arguments of a method, of which the last may be its options. */
function optionsIn(given: readonly unknown[]): Partial<ChangeOptions> {
  const options = given.find(isOptions);
  return options instanceof AbortSignal ? { signal: options } : (options ?? {});
}

const secretInQuery = (name: string) =>
  `${name} contains a secret and was not sent; \`llmp token whois\` finds the token of a secret`;

/** @throws {ApiError} for a secret, which is not sent: addresses are logged on the way, and a front end may have it pasted anywhere. */
function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const secret = given.find(([name, value]) => name !== 'cursor' && holdsSecret(value));
  if (secret) throw new ApiError(400, 'invalid_request', secretInQuery(secret[0]), null, null);
  const search = new URLSearchParams(given).toString();
  return search === '' ? path : `${path}?${search}`;
}

export const NOT_LLMP = 'the server is not llmp';
const UNKNOWN_OPERATION = 'the daemon does not have this operation. Is it of another release than this llmp?';

/** Reads the JSON body of a success, within the same timeout. @throws {Unreachable} if it is not JSON: the server is not llmp. */
export async function jsonOf(response: FetchResponse): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    throw new Unreachable(error instanceof SyntaxError ? NOT_LLMP : connectionProblem(error), { cause: error });
  }
}

export async function apiErrorOf(response: FetchResponse): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => null);
  const problem = (typeof body === 'object' && body !== null ? body : {}) as Partial<WireProblem> & {
    /** Of the exchange of a JWT, whose `error` is a code (RFC 6749, 5.2). */
    error_description?: unknown;
  };
  const retryAfter = response.headers.get('retry-after');
  return new ApiError(
    response.status,
    problem.code ?? 'unknown',
    messageOf(problem.error_description ?? problem.error, response.status) ??
      `the server responded with ${response.status} and no error message. Is it llmp?`,
    problem.request_id ?? null,
    retryAfter === null ? null : Number(retryAfter),
  );
}

/** @param error an object in the formats of providers' SDKs, which `ERROR_SHAPE` may require for clients of /v1. */
function messageOf(error: unknown, status: number): string | undefined {
  const text = typeof error === 'object' && error !== null && 'message' in error ? error.message : error;
  if (typeof text !== 'string') return undefined;
  return status === 404 && text.startsWith(NO_SUCH_PATH) ? UNKNOWN_OPERATION : text;
}

/** Short reason why there is no response. */
export function connectionProblem(error: unknown): string {
  if (!(error instanceof Error)) return 'no response';
  if (error.name === 'TimeoutError') return 'no response in time';
  const cause = error.cause as { code?: string; message?: string } | undefined;
  return cause?.code ?? cause?.message ?? error.message;
}
