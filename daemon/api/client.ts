import type * as z from 'zod';
import type { FrontEnd, WireProblem } from './contract.js';
import { eventsIn, NotAStream, Silence, unlessAborted } from './event-stream.js';
import type { Operations } from './operations.js';
import { type Route, ROUTES, type Routes } from './routes.js';

// Three heartbeats.
const SILENCE_MS = 45_000;

/** The daemon answered, and the answer was no. `code` is for programs, `message` for people. */
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

/** No answer came: nothing listens there, the connection broke, or `timeoutMs` passed. */
export class Unreachable extends Error {
  override name = 'Unreachable';
}

export interface ClientOptions {
  /** Where the daemon is, such as `http://127.0.0.1:8080`. */
  server: string;
  managementToken: string;
  frontEnd: FrontEnd;
  /** The address of whoever acts, where that is not the caller itself: the browser's, for the Admin UI. */
  clientIp?: string | undefined;
  /** Goes into the audit record of every change made through this client; at most 200 characters. */
  reason?: string | undefined;
  timeoutMs: number;
  /** Asked before each change is sent, which is not if it throws. */
  beforeChange?: (() => Promise<void>) | undefined;
  /** Handed in so that the caller decides how to connect (TCP, unix socket, a test's double). */
  fetch: typeof fetch;
}

export interface StreamOptions {
  /** Goes on behind this event, as far as the daemon has kept what came after it. */
  lastEventId?: string | undefined;
  /** Ends the stream, without an error. */
  signal?: AbortSignal | undefined;
  /** Told when the daemon has begun to answer with a stream. */
  opened?: (() => void) | undefined;
  /** So long nothing, not even a heartbeat, may come; 45 s unless given. */
  silenceMs?: number;
}

/** An event of a stream. */
export interface Streamed<T> {
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
type AnswerOf<Op> = Op extends { list: infer Item extends z.ZodType }
  ? Promise<Page<z.infer<Item>>>
  : Op extends { stream: infer Item extends z.ZodType }
    ? AsyncGenerator<Streamed<z.infer<Item>>>
    : Op extends { answer: infer Answer extends z.ZodType }
      ? Promise<z.infer<Answer>>
      : never;
/** What ends it. What was aborted may have been done all the same: a token issued whose secret nobody knows. */
type EndOf<Op> = Op extends { stream: z.ZodType } ? [options?: StreamOptions] : [enough?: AbortSignal];

type NameOf<Name extends keyof Routes> = Routes[Name] extends { call: infer Call extends string } ? Call : Name;

/** A method for each operation that can succeed: with its id, its body, its query and what ends it, as many of these as it has. */
type Calls = {
  [Name in keyof Operations as AnswerOf<Operations[Name]> extends never ? never : NameOf<Name>]: (
    ...given: [
      ...IdOf<Operations[Name]>,
      ...BodyOf<Operations[Name]>,
      ...QueryOf<Operations[Name]>,
      ...EndOf<Operations[Name]>,
    ]
  ) => AnswerOf<Operations[Name]>;
};

/**
 * The management API, typed. Every method throws `ApiError` when the daemon refuses and `Unreachable`
 * when it does not answer. Its methods follow from routes.ts, their types from operations.ts, which is not loaded.
 */
export type ManagementClient = Caller & Calls;

class Caller {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** Sends what an operation asks for. @param given what `Calls` says. */
  ask(route: Route, given: readonly unknown[]): unknown {
    const { method, gives } = route;
    const [id, ...rest] = route.path.includes('{id}') ? given : [undefined, ...given];
    const path = route.path.replace('{id}', encodeURIComponent(String(id)));
    if (gives === 'stream') return this.#stream(path, (rest[0] ?? {}) as Query, rest[1] ?? {});

    const enough = rest.find((it) => it instanceof AbortSignal);
    const fields = rest[0] instanceof AbortSignal ? undefined : rest[0];
    if (method === 'GET') {
      const query = (fields ?? {}) as Query;
      return gives === 'page'
        ? this.#page(path, query, enough)
        : this.#json(method, withQuery(path, query), undefined, enough);
    }
    const isRehearsal = (fields as { dry_run?: boolean } | undefined)?.dry_run === true;
    return route.changesNothing === true || isRehearsal
      ? this.#json(method, path, fields, enough)
      : this.#change(method, path, fields, enough);
  }

  /** Asks at once what is asked before a change. @throws what `beforeChange` throws. */
  async mayChange(): Promise<void> {
    await this.#options.beforeChange?.();
  }

  async #change<T>(method: string, path: string, body?: unknown, enough?: AbortSignal): Promise<T> {
    await this.mayChange();
    return this.#json<T>(method, path, body, enough);
  }

  #json<T>(method: string, path: string, body?: unknown, enough?: AbortSignal): Promise<T> {
    return within(this.#options.timeoutMs, enough, async (signal) => {
      return (await answerOf(await this.#send(method, path, body, { signal }))) as T;
    });
  }

  #page<T>(path: string, query: Query, enough?: AbortSignal): Promise<Page<T>> {
    return within(this.#options.timeoutMs, enough, async (signal) => {
      const response = await this.#send('GET', withQuery(path, query), undefined, { signal });
      const next = /<([^<>]*)>;\s{0,9}rel="next"/.exec(response.headers.get('link') ?? '');
      const total = response.headers.get('x-total-count');
      const items = await answerOf(response);
      if (!Array.isArray(items)) throw new Unreachable(NOT_LLMP);
      return {
        items: items as T[],
        next: next?.[1] === undefined ? null : new URL(next[1], 'http://daemon').searchParams.get('cursor'),
        total: total === null ? null : Number(total),
      };
    });
  }

  /** Ends when the daemon ends it, which is no failure: ask again, behind the last event. */
  async *#stream<T>(
    path: string,
    query: Query,
    { lastEventId, signal, opened, silenceMs = SILENCE_MS }: StreamOptions,
  ): AsyncGenerator<Streamed<T>> {
    const silence = new Silence(signal);
    try {
      silence.waits(this.#options.timeoutMs);
      const headers = {
        accept: 'text/event-stream',
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      };
      const asked = this.#send('GET', withQuery(path, query), undefined, { headers, signal: silence.signal });
      const response = await unlessAborted(silence.signal, asked);
      if (!response.body || !/^text\/event-stream\b/.test(response.headers.get('content-type') ?? '')) {
        throw new Unreachable(NOT_LLMP);
      }
      opened?.();
      for await (const { id, data } of eventsIn(response.body, silence, silenceMs)) {
        yield { id, item: JSON.parse(data) as T };
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof ApiError || error instanceof Unreachable) throw error;
      const isOther = error instanceof SyntaxError || error instanceof NotAStream;
      throw new Unreachable(isOther ? NOT_LLMP : connectionProblem(error), { cause: error });
    } finally {
      silence.end();
    }
  }

  async #send(
    method: string,
    path: string,
    body: unknown,
    { headers: more, signal }: { headers?: Record<string, string>; signal: AbortSignal },
  ): Promise<Response> {
    const { server, managementToken, frontEnd, clientIp, reason } = this.#options;
    const headers: Record<string, string> = {
      authorization: `Bearer ${managementToken}`,
      'x-llmp-actor': frontEnd,
      accept: 'application/json',
      ...more,
    };
    if (clientIp !== undefined) headers['x-llmp-client-ip'] = clientIp;
    // Percent-encoded, because fetch refuses header values beyond Latin-1.
    if (reason !== undefined) headers['x-audit-reason'] = encodeURIComponent(reason);
    if (body !== undefined) headers['content-type'] = 'application/json';

    let response: Response;
    try {
      response = await this.#options.fetch(new URL(path, server), {
        method,
        headers,
        redirect: 'error', // The management token must not travel to wherever a redirect points.
        signal,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      throw new Unreachable(connectionProblem(error), { cause: error });
    }
    if (!response.ok) throw await refusalOf(response);
    return response;
  }
}

for (const [name, route] of Object.entries<Route>(ROUTES)) {
  Object.defineProperty(Caller.prototype, route.call ?? name, {
    value(this: Caller, ...given: unknown[]) {
      return this.ask(route, given);
    },
  });
}

/** Its methods were put there one line above, which the compiler cannot see. */
export const ManagementClient = Caller as unknown as new (options: ClientOptions) => ManagementClient;

/** Gives up what is asked for after so long, or when `enough` is aborted. */
export async function within<T>(
  timeoutMs: number,
  enough: AbortSignal | undefined,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const silence = new Silence(enough);
  try {
    silence.waits(timeoutMs);
    // `fetch` alone may miss an abort: see `eventsIn`.
    return await unlessAborted(silence.signal, ask(silence.signal));
  } catch (error) {
    // `ask` says in its own words why it failed; only what it never noticed is said here.
    if (error === silence.signal.reason) throw new Unreachable(connectionProblem(error), { cause: error });
    throw error;
  } finally {
    silence.end();
  }
}

function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const search = new URLSearchParams(given).toString();
  return search === '' ? path : `${path}?${search}`;
}

export const NOT_LLMP = 'what answers there is not llmp';

/** The body of a success. The time limit still runs while it arrives, and whatever listens there may not be llmp. */
async function answerOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    throw new Unreachable(error instanceof SyntaxError ? NOT_LLMP : connectionProblem(error), { cause: error });
  }
}

async function refusalOf(response: Response): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => null);
  const problem = (typeof body === 'object' && body !== null ? body : {}) as Partial<WireProblem>;
  const retryAfter = response.headers.get('retry-after');
  return new ApiError(
    response.status,
    problem.code ?? 'unknown',
    problem.error ?? `the server answered ${response.status} without saying why; is this llmp?`,
    problem.request_id ?? null,
    retryAfter === null ? null : Number(retryAfter),
  );
}

/** In a word or two, why no answer came. */
export function connectionProblem(error: unknown): string {
  if (!(error instanceof Error)) return 'no answer';
  if (error.name === 'TimeoutError') return 'no answer in time';
  const cause = error.cause as { code?: string; message?: string } | undefined;
  return cause?.code ?? cause?.message ?? error.message;
}
