/**
 * HTTP client that posts to a backend, and derives from the response what happened to the posted events.
 *
 * It never follows redirects, because they would send the credential to another address.
 */
import { Agent, request } from 'undici';
import { httpDateMs } from '../core/cache/http-date.js';
import type { Clock } from '../core/ports.js';
import { Unauthorized, type DeliveryResult } from './backends/backend.js';

const TIMEOUT_MS = 20_000;
const CONNECT_MS = 5_000;
const MAX_CONNECTIONS = 16;
const MAX_RESPONSE_BYTES = 256 * 1024;
const MAX_RETRY_AFTER_MS = 3_600_000; // A longer Retry-After is cut to an hour.

export interface Post {
  url: string;
  headers: Record<string, string>;
  body: string | Buffer;
  /** Aborts the request. */
  signal: AbortSignal;
}

/** Result of a post. A refused credential is thrown instead. */
export type PostResult =
  /** `body` is the text of the response, cut at 256 KiB. Some backends report there which events they refused. */
  { kind: 'accepted'; body: string } | Exclude<DeliveryResult, { kind: 'delivered' }>;

export class HttpClient {
  readonly #agent: Agent;
  readonly #clock: Clock;
  readonly #timeoutMs: number;

  /**
   * @param timeoutMs limit from the start of a post to the end of its response.
   * @param connections maximum number of posts in flight.
   */
  constructor(clock: Clock, { timeoutMs = TIMEOUT_MS, connections = MAX_CONNECTIONS } = {}) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#agent = new Agent({
      connections,
      connect: { timeout: CONNECT_MS },
      // The timer in `post` is the exact limit; the timers of undici can be half a second late.
      headersTimeout: 2 * timeoutMs,
      bodyTimeout: 2 * timeoutMs,
    });
  }

  /**
   * Posts once. A network error, a timeout or an abort results in `retry`.
   *
   * @throws {Unauthorized} if the backend refuses the credential.
   */
  async post({ url, headers, body, signal }: Post): Promise<PostResult> {
    const limited = limitedSignal(this.#clock, this.#timeoutMs, signal);
    try {
      const response = await request(url, {
        method: 'POST',
        headers,
        body,
        dispatcher: this.#agent,
        signal: limited.signal,
      });
      const text = await readLimited(response.body);
      return this.#resultOf(response.statusCode, text, response.headers['retry-after']);
    } catch (error) {
      if (error instanceof Unauthorized) throw error;
      if (signal.aborted) return { kind: 'retry', why: 'aborted' };
      if (limited.signal.aborted) return { kind: 'retry', why: `no response within ${this.#timeoutMs} ms` };
      return { kind: 'retry', why: `unreachable${codeOf(error)}` };
    } finally {
      limited.end();
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #resultOf(status: number, body: string, retryAfter: string | string[] | undefined): PostResult {
    const why = `status ${status}`;
    if (status >= 200 && status < 300) return { kind: 'accepted', body };
    if (status === 401 || status === 403 || status === 407) throw new Unauthorized(why);
    if (BODY_REJECTED_STATUSES.has(status)) return { kind: 'rejected', why };
    const afterMs = this.#retryAfterMs(retryAfter);
    return { kind: 'retry', why, ...(afterMs !== undefined && { afterMs }) };
  }

  /** @param value a number of seconds, or an HTTP date. */
  #retryAfterMs(value: string | string[] | undefined): number | undefined {
    if (typeof value !== 'string') return undefined;
    const waitMs = /^\d+$/.test(value)
      ? Number(value) * 1000
      : httpDateMs(value, this.#clock.now()) - this.#clock.now();
    return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS);
  }
}

/**
 * Statuses that reject the body itself. All other failures, including 404 and redirects, are caused by the address, the account or a temporary
 * condition, and not by an event.
 */
const BODY_REJECTED_STATUSES = new Set([400, 411, 413, 414, 415, 422, 431]);

/** The result of a post, for each of the `count` events that were posted together. */
export function sameResultFor(posted: PostResult, count: number): DeliveryResult[] {
  const result: DeliveryResult = posted.kind === 'accepted' ? { kind: 'delivered' } : posted;
  return Array<DeliveryResult>(count).fill(result);
}

/**
 * A signal that aborts with `signal`, after `ms`, or by `abort`. Call `end` when it is no longer needed. Not AbortSignal.any: with a long-lived
 * signal it leaks memory for each use.
 */
export function limitedSignal(clock: Pick<Clock, 'after'>, ms: number, signal: AbortSignal) {
  const own = new AbortController();
  const abort = () => {
    own.abort();
  };
  const cancel = clock.after(ms, abort);
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  const end = () => {
    cancel();
    signal.removeEventListener('abort', abort);
  };
  return { signal: own.signal, abort, end };
}

async function readLimited(body: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes >= MAX_RESPONSE_BYTES) break; // Also closes the connection.
  }
  return Buffer.concat(pieces).subarray(0, MAX_RESPONSE_BYTES).toString('utf8');
}

/** ` (ECONNREFUSED)`, or nothing. The message of the error is left out, because it may quote the backend. */
function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^[A-Z_]+$/.test(code) ? ` (${code})` : '';
}
