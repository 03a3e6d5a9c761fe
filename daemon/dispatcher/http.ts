/**
 * Posting to a back end over HTTP, and what its answer means for what was posted.
 *
 * Redirects are never followed: they would carry the credential to wherever the answer points.
 */
import { Agent, request } from 'undici';
import { httpDateMs } from '../core/cache/http-date.js';
import type { Clock } from '../core/ports.js';
import { Unauthorized, type Verdict } from './backends/backend.js';

const TIMEOUT_MS = 20_000;
const CONNECT_MS = 5_000;
const MOST_CONNECTIONS = 16;
const MOST_ANSWER_BYTES = 256 * 1024;
const LONGEST_RETRY_AFTER_MS = 3_600_000; // Whoever asks for more is asked again after an hour.

export interface Post {
  url: string;
  headers: Record<string, string>;
  body: string | Buffer;
  /** Aborts it. */
  signal: AbortSignal;
}

/** What became of a post. A refused credential is thrown. */
export type Posted =
  /** `body`: the answer's text, cut at 256 KiB. Some back ends refuse part of what they accept. */
  { kind: 'accepted'; body: string } | Exclude<Verdict, { kind: 'delivered' }>;

export class HttpClient {
  readonly #agent: Agent;
  readonly #clock: Clock;
  readonly #timeoutMs: number;

  /**
   * @param timeoutMs from the beginning of a post to the end of its answer.
   * @param connections how many posts are under way at most.
   */
  constructor(clock: Clock, { timeoutMs = TIMEOUT_MS, connections = MOST_CONNECTIONS } = {}) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#agent = new Agent({
      connections,
      connect: { timeout: CONNECT_MS },
      // The timer below is the one that counts; undici's can be half a second late.
      headersTimeout: 2 * timeoutMs,
      bodyTimeout: 2 * timeoutMs,
    });
  }

  /**
   * Posts once. What goes wrong on the way, a time-out and an abort included, is `retry`.
   *
   * @throws {Unauthorized} when the back end does not accept the credential.
   */
  async post({ url, headers, body, signal }: Post): Promise<Posted> {
    // Not AbortSignal.any: a signal that outlives many posts would keep something of each.
    const giveUp = new AbortController();
    const onAbort = () => {
      giveUp.abort();
    };
    const cancel = this.#clock.after(this.#timeoutMs, () => {
      giveUp.abort();
    });
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) giveUp.abort();
    try {
      const answer = await request(url, {
        method: 'POST',
        headers,
        body,
        dispatcher: this.#agent,
        signal: giveUp.signal,
      });
      const text = await readSome(answer.body);
      return this.#judge(answer.statusCode, text, answer.headers['retry-after']);
    } catch (error) {
      if (error instanceof Unauthorized) throw error;
      if (signal.aborted) return { kind: 'retry', why: 'aborted' };
      if (giveUp.signal.aborted) return { kind: 'retry', why: `no answer within ${this.#timeoutMs} ms` };
      return { kind: 'retry', why: `unreachable${codeOf(error)}` };
    } finally {
      cancel();
      signal.removeEventListener('abort', onAbort);
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #judge(status: number, body: string, retryAfter: string | string[] | undefined): Posted {
    const why = `status ${status}`;
    if (status >= 200 && status < 300) return { kind: 'accepted', body };
    if (status === 401 || status === 403 || status === 407) throw new Unauthorized(why);
    if (IS_ABOUT_THE_BODY.has(status)) return { kind: 'rejected', why };
    const afterMs = this.#waitOf(retryAfter);
    return { kind: 'retry', why, ...(afterMs !== undefined && { afterMs }) };
  }

  /** @param value seconds, or a date of HTTP. */
  #waitOf(value: string | string[] | undefined): number | undefined {
    if (typeof value !== 'string') return undefined;
    const waitMs = /^\d+$/.test(value)
      ? Number(value) * 1000
      : httpDateMs(value, this.#clock.now()) - this.#clock.now();
    return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), LONGEST_RETRY_AFTER_MS);
  }
}

/**
 * The statuses that say that this body will never do. Any other failure, of 404 and redirects too, is that of the address, of the
 * account or of the moment: no event is to blame for it.
 */
const IS_ABOUT_THE_BODY = new Set([400, 411, 413, 414, 415, 422, 431]);

/** The same verdict for each of `count` deliveries that were posted together. */
export function verdictsOf(posted: Posted, count: number): Verdict[] {
  const verdict: Verdict = posted.kind === 'accepted' ? { kind: 'delivered' } : posted;
  return Array<Verdict>(count).fill(verdict);
}

async function readSome(body: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes >= MOST_ANSWER_BYTES) break; // Ends the connection with it.
  }
  return Buffer.concat(pieces).subarray(0, MOST_ANSWER_BYTES).toString('utf8');
}

/** ` (ECONNREFUSED)`, or nothing. An error's message could quote the other side. */
function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^[A-Z_]+$/.test(code) ? ` (${code})` : '';
}
