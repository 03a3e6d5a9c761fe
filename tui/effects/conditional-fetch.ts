/** A `fetch` with conditional requests (`If-None-Match`): lists are polled every two seconds and seldom change. */
import { LRUCache } from 'lru-cache';

/** Facts about a response. */
export interface ResponseInfo {
  /** When it began to arrive, by the local clock. */
  atMs: number;
  /** When it was sent, by the server's clock (`Date`, whole seconds); null without that header. */
  dateMs: number | null;
  status: number;
  /** Whether the status was 304. */
  notModified: boolean;
  /** From the request to the start of the response. */
  durationMs: number;
}

export interface ConditionalOptions {
  fetch: typeof fetch;
  clock: { now(): number; monotonic(): number };
  /** Called for each response. */
  onResponse: (answered: ResponseInfo) => void;
  /** Maximum number of stored responses; 32 by default. */
  maxResponses?: number;
  /** Maximum size of all stored bodies; 4 MiB by default. */
  maxBytes?: number;
}

const MAX_RESPONSES = 32;
const MAX_BYTES = 4 * 1024 * 1024;

interface StoredResponse {
  etag: string;
  status: number;
  headers: Headers;
  body: Uint8Array<ArrayBuffer>;
}

type Input = Parameters<typeof fetch>[0];
type Init = Parameters<typeof fetch>[1];

/**
 * Stores `ETag` and body of recent responses to GET, sends `If-None-Match`, and returns the stored response for a 304. Streams, other
 * methods and bodies above the size limit pass through unchanged. Request headers are not part of the key, so an instance must be
 * used with one server and one management token only.
 */
export function conditionalFetch(options: ConditionalOptions): typeof fetch {
  const { clock, onResponse, maxResponses = MAX_RESPONSES, maxBytes = MAX_BYTES } = options;
  const responses = new LRUCache<string, StoredResponse>({
    max: maxResponses,
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => Math.max(1, body.byteLength),
  });

  async function send(input: Input, init: Init): Promise<Response> {
    const sentAtMs = clock.monotonic();
    const response = await options.fetch(input, init);
    const dateMs = Date.parse(response.headers.get('date') ?? '');
    onResponse({
      atMs: clock.now(),
      dateMs: Number.isNaN(dateMs) ? null : dateMs,
      status: response.status,
      notModified: response.status === 304,
      durationMs: clock.monotonic() - sentAtMs,
    });
    return response;
  }

  return async (input, init) => {
    const key = cacheKeyOf(input, init);
    if (key === null) return send(input, init);
    // A reference is held here because the entry may be evicted before the response arrives.
    const known = responses.get(key);
    const headers = new Headers(init?.headers);
    if (known) headers.set('if-none-match', known.etag);
    const response = await send(input, { ...init, headers });
    if (known && response.status === 304) {
      // The total and the cursor of the next page may have changed.
      const renewed = { ...known, headers: merged(known.headers, response.headers) };
      responses.set(key, renewed);
      await response.body?.cancel();
      return responseFrom(renewed);
    }
    responses.delete(key);
    const etag = response.headers.get('etag');
    if (response.status !== 200 || etag === null || isStream(response) || !response.body) return response;
    const read = await readUpTo(response.body, maxBytes);
    if (read.rest) return new Response(read.rest, response);
    const fresh = { etag, status: response.status, headers: response.headers, body: read.body };
    responses.set(key, fresh);
    return responseFrom(fresh);
  };
}

/** @returns null for a request that passes through unchanged. */
function cacheKeyOf(input: Input, init: Init): string | null {
  if (input instanceof Request || (init?.method ?? 'GET') !== 'GET') return null;
  const headers = new Headers(init?.headers);
  if (headers.has('if-none-match') || /text\/event-stream/.test(headers.get('accept') ?? '')) return null;
  const url = new URL(input);
  return `${url.origin}${url.pathname}${url.search}`;
}

const isStream = (response: Response) => /^text\/event-stream\b/.test(response.headers.get('content-type') ?? '');

const responseFrom = ({ body, status, headers }: StoredResponse) => new Response(body, { status, headers });

function merged(before: Headers, after: Headers): Headers {
  const headers = new Headers(before);
  // `Link` is the only header that a newer response may omit: there is no next page any more.
  headers.delete('link');
  for (const [name, value] of after) headers.set(name, value);
  return headers;
}

/** The whole body, or for a longer body a stream of the part read so far and the rest. */
async function readUpTo(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  most: number,
): Promise<{ body: Uint8Array<ArrayBuffer>; rest?: never } | { rest: ReadableStream<Uint8Array> }> {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { body: new Uint8Array(Buffer.concat(chunks)) };
    chunks.push(value);
    bytes += value.byteLength;
    if (bytes > most) return { rest: continued(chunks, reader) };
  }
}

function continued(
  chunks: readonly Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  const waiting = [...chunks];
  return new ReadableStream({
    async pull(controller) {
      const first = waiting.shift();
      if (first) {
        controller.enqueue(first);
        return;
      }
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
