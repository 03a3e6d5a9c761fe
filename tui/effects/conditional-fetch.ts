/** A `fetch` with conditional requests (`If-None-Match`): lists are polled every two seconds and seldom change. */
import { LRUCache } from 'lru-cache';

export interface ConditionalOptions {
  fetch: typeof fetch;
  /** Called when a response begins to arrive. */
  onResponse: (response: Response) => void;
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
 * Stores `ETag` and body of recent responses to GET, sends `If-None-Match`, and returns the stored response for a 304. Streams and
 * other methods pass through unchanged. Request headers are not part of the key, so an instance must be
 * used with one server and one management token only.
 */
export function conditionalFetch(options: ConditionalOptions): typeof fetch {
  const { onResponse, maxResponses = MAX_RESPONSES, maxBytes = MAX_BYTES } = options;
  const responses = new LRUCache<string, StoredResponse>({
    max: maxResponses,
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => Math.max(1, body.byteLength),
  });

  async function send(input: Input, init: Init): Promise<Response> {
    const response = await options.fetch(input, init);
    onResponse(response);
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
    if (response.status !== 200 || etag === null || isStream(response)) return response;
    const body = new Uint8Array(await response.arrayBuffer());
    const fresh = { etag, status: response.status, headers: response.headers, body };
    responses.set(key, fresh); // Unless it is too long.
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
