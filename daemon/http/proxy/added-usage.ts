/**
 * `missing_usage: refuse`: refuses a streamed chat completion that does not ask for its usage.
 *
 * `missing_usage: inject`: asks the provider for the usage of a streamed chat completion that does not ask for it, and removes what the
 * provider adds to the response for that.
 *
 * The response is filtered before it reaches the cache and the client. So the cache has what the client asked for, and a response from it
 * is right for each later request with the same body.
 */
import type { IncomingMessage } from 'node:http';
import type { MissingUsage } from '../../api/vocabulary.js';
import { BoundedBytes } from '../../core/content/bounded-bytes.js';
import { isUsageEvent, lacksUsage, requestingUsage } from '../../core/content/stream-options.js';
import { Refusal } from '../../core/refusal.js';
import { pathOf, type RequestFields } from '../request-head.js';
import type { Receiver } from './forwarder.js';
import { EVENT_STREAM, latin1 } from './headers.js';

/** A longer body is not waited for, and forwarded as it is. */
const MAX_EXTENDED_BODY_BYTES = 1024 * 1024;
const MAX_CHECKED_BODY_BYTES = 8 * 1024 * 1024;
/** The size up to which a body is waited for, to change or check it. */
export const MAX_BODY_BYTES: Partial<Record<MissingUsage, number>> = {
  inject: MAX_EXTENDED_BODY_BYTES,
  refuse: MAX_CHECKED_BODY_BYTES,
};
/** A longer event is not the one that reports the usage, which has a few hundred bytes. */
const MAX_EVENT_BYTES = 4 * 1024;
/** Nor is a shorter one. A stream may have millions of empty lines. */
const MIN_EVENT_BYTES = 32;

const IS_JSON = /^application\/json\s*(?:;|$)/i;
/** A request with one of these headers is not changed: they are about its body. */
const ABOUT_BODY = new Set(['content-encoding', 'content-md5', 'digest', 'content-digest', 'repr-digest', 'signature']);
/** Headers of a response that are wrong once a part of it is removed. */
const ABOUT_RESPONSE_BODY = new Set(['content-length', 'content-md5', 'digest', 'content-digest', 'repr-digest']);

/** Whether a request of a project that wants it may have to be changed or refused, so that its body has to be waited for. */
export function mayLackUsage(
  missingUsage: MissingUsage,
  req: IncomingMessage,
  { contentLength = '0' }: Pick<RequestFields, 'contentLength'>,
): boolean {
  const most = MAX_BODY_BYTES[missingUsage] ?? 0;
  return (
    most > 0 &&
    req.method === 'POST' &&
    pathOf(req.url ?? '').endsWith('/chat/completions') &&
    IS_JSON.test(req.headers['content-type'] ?? '') && // Node parses these headers only when they are read.
    Number(contentLength) <= most
  );
}

/** @throws {Refusal} `usage_not_requested` */
export function checkAsksForUsage(body: Buffer): void {
  if (lacksUsage(body)) {
    throw new Refusal(
      'usage_not_requested',
      'the project requires that streamed chat completions ask for their usage',
      {
        hint: 'send "stream_options": {"include_usage": true}',
      },
    );
  }
}

/** @returns the request to send instead, with its headers (names and values in turn); null if it is not to be changed. */
export function askingForUsage(
  body: Buffer,
  forwarded: readonly string[],
): { body: Buffer; forwarded: string[] } | null {
  const fields: [name: string, value: string][] = [];
  for (let i = 0; i < forwarded.length; i += 2) fields.push([forwarded[i] ?? '', forwarded[i + 1] ?? '']);
  if (fields.some(([name]) => ABOUT_BODY.has(name.toLowerCase()))) return null;
  const extended = requestingUsage(body);
  if (extended === null) return null;
  const kept = fields.filter(([name]) => !['content-length', 'accept-encoding'].includes(name.toLowerCase()));
  // A compressed response could not be filtered without decompressing it.
  kept.push(['content-length', String(extended.length)], ['accept-encoding', 'identity']);
  return { body: extended, forwarded: kept.flat() };
}

const LF = 0x0a;
const CR = 0x0d;

/** What a byte is for the event that it belongs to. */
const WITHIN = 0;
const LAST = 1;
/** The second half of a line end, of which the first one was the last byte of the event. */
const AFTER_LAST = 2;

/** Removes the events that report only the usage from a stream, and holds back at most one event until it is complete. */
export class UsageFilter implements Receiver {
  readonly #next: Receiver;
  #isActive = false;
  /** The beginning of the current event, as far as it was in earlier bytes. */
  readonly #held = new BoundedBytes(MAX_EVENT_BYTES);
  /** The current event is too long: the rest of it passes. */
  #isPassing = false;
  #isLineEmpty = true;
  #isAfterCr = false;
  #isAfterEvent = false;
  /** Whether the last complete event was removed. */
  #isRemoved = false;
  /** The last event that was removed; null if none was. */
  removed: Buffer | null = null;

  constructor(next: Receiver) {
    this.#next = next;
  }

  head(status: number, rawHeaders: readonly Buffer[]): void {
    const names = rawHeaders.map((bytes, i) => (i % 2 === 0 ? latin1(bytes).toLowerCase() : ''));
    const valueOf = (name: string) => (names.includes(name) ? latin1(rawHeaders[names.indexOf(name) + 1]).trim() : '');
    this.#isActive =
      status === 200 &&
      EVENT_STREAM.test(valueOf('content-type')) &&
      /^(?:identity)?$/i.test(valueOf('content-encoding'));
    const isRight = (_: Buffer, i: number) => !ABOUT_RESPONSE_BODY.has(names[i - (i % 2)] ?? '');
    this.#next.head(status, this.#isActive ? rawHeaders.filter(isRight) : rawHeaders);
  }

  data(chunk: Buffer): boolean {
    if (!this.#isActive) return this.#next.data(chunk);
    /** What passes. */
    const pieces: Buffer[] = [];
    let passFrom = 0;
    let eventFrom = 0;
    for (let at = 0; at < chunk.length; at++) {
      const kind = this.#kindOf(chunk[at]);
      if (kind === WITHIN) continue;
      const held = this.#takeHeld();
      if (kind === LAST) this.#isRemoved = this.#judge(held, chunk, eventFrom, at + 1);
      if (this.#isRemoved) {
        pieces.push(chunk.subarray(passFrom, eventFrom));
        passFrom = at + 1;
      } else if (held !== null) pieces.push(held);
      this.#isPassing = false;
      eventFrom = at + 1;
    }
    const rest = chunk.subarray(eventFrom);
    if (this.#isPassing || this.#held.bytes + rest.length > MAX_EVENT_BYTES) {
      this.#isPassing = true;
      const held = this.#takeHeld();
      if (held !== null) pieces.push(held);
      eventFrom = chunk.length;
    } else if (rest.length > 0) {
      this.#held.add(rest);
    }
    pieces.push(chunk.subarray(passFrom, eventFrom));
    const passing = pieces.filter(({ length }) => length > 0);
    const [only] = passing;
    return only === undefined || this.#next.data(passing.length === 1 ? only : Buffer.concat(passing));
  }

  /** Events end with an empty line. Lines end with LF, CR or both. */
  #kindOf(byte: number | undefined): typeof WITHIN | typeof LAST | typeof AFTER_LAST {
    const isSecondHalf = byte === LF && this.#isAfterCr;
    this.#isAfterCr = byte === CR;
    if (isSecondHalf) return this.#isAfterEvent ? AFTER_LAST : WITHIN;
    const isLineEnd = byte === LF || byte === CR;
    this.#isAfterEvent = isLineEnd && this.#isLineEmpty;
    this.#isLineEmpty = isLineEnd;
    return this.#isAfterEvent ? LAST : WITHIN;
  }

  /** @returns whether a complete event is to be removed. */
  #judge(held: Buffer | null, chunk: Buffer, from: number, to: number): boolean {
    const length = (held?.length ?? 0) + to - from;
    if (this.#isPassing || length < MIN_EVENT_BYTES || length > MAX_EVENT_BYTES) return false;
    const rest = chunk.subarray(from, to);
    const event = held === null ? rest : Buffer.concat([held, rest]);
    if (!isUsageEvent(event)) return false;
    this.removed = Buffer.from(event);
    return true;
  }

  /** @returns a copy. */
  #takeHeld(): Buffer | null {
    if (this.#held.bytes === 0) return null;
    const held = Buffer.from(this.#held.head);
    this.#held.clear();
    return held;
  }

  end(): void {
    const rest = this.#takeHeld();
    if (rest !== null && !this.#judge(null, rest, 0, rest.length)) this.#next.data(rest);
    this.#next.end();
  }

  /** An incomplete event is of no use to the client. */
  fail(refusal: Refusal): void {
    this.#next.fail(refusal);
  }
}
