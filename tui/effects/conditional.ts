/** A `fetch` that asks whether what it was answered last still holds: a list that is looked at every two seconds seldom changes. */
import { LRUCache } from 'lru-cache';

/** How an answer came. */
export interface Answered {
  /** When it began to arrive, by the clock here. */
  atMs: number;
  /** When it was sent, by the clock there (`Date`, whole seconds); null where it does not say. */
  dateMs: number | null;
  status: number;
  /** Whether it said that what is known still holds. */
  notModified: boolean;
  /** From asking to the beginning of the answer. */
  durationMs: number;
}

export interface ConditionalOptions {
  fetch: typeof fetch;
  clock: { now(): number; monotonic(): number };
  /** Told of each answer, whatever was asked. */
  onAnswer: (answered: Answered) => void;
  /** So many answers are remembered at most; 32 unless given. */
  mostAnswers?: number;
  /** So many bytes of bodies are remembered at most; 4 MiB unless given. */
  mostBytes?: number;
}

const MOST_ANSWERS = 32;
const MOST_BYTES = 4 * 1024 * 1024;

interface Remembered {
  etag: string;
  status: number;
  headers: Headers;
  body: Uint8Array<ArrayBuffer>;
}

type Input = Parameters<typeof fetch>[0];
type Init = Parameters<typeof fetch>[1];

/**
 * Remembers `ETag` and body of the last answers to GET, sends `If-None-Match`, and gives what it remembers for a 304. Streams, other
 * methods, and what is larger than all it may remember pass untouched. What stands in the headers of a request is not remembered,
 * so one of these serves one server and one management token.
 */
export function conditionalFetch(options: ConditionalOptions): typeof fetch {
  const { clock, onAnswer, mostAnswers = MOST_ANSWERS, mostBytes = MOST_BYTES } = options;
  const answers = new LRUCache<string, Remembered>({
    max: mostAnswers,
    maxSize: mostBytes,
    sizeCalculation: ({ body }) => Math.max(1, body.byteLength),
  });

  async function ask(input: Input, init: Init): Promise<Response> {
    const askedAtMs = clock.monotonic();
    const response = await options.fetch(input, init);
    const dateMs = Date.parse(response.headers.get('date') ?? '');
    onAnswer({
      atMs: clock.now(),
      dateMs: Number.isNaN(dateMs) ? null : dateMs,
      status: response.status,
      notModified: response.status === 304,
      durationMs: clock.monotonic() - askedAtMs,
    });
    return response;
  }

  return async (input, init) => {
    const key = placeOf(input, init);
    if (key === null) return ask(input, init);
    // Kept in hand: it may be let go before the answer comes.
    const known = answers.get(key);
    const headers = new Headers(init?.headers);
    if (known) headers.set('if-none-match', known.etag);
    const response = await ask(input, { ...init, headers });
    if (known && response.status === 304) {
      // How many there are in all may have changed, and where the next page begins.
      const renewed = { ...known, headers: merged(known.headers, response.headers) };
      answers.set(key, renewed);
      await response.body?.cancel();
      return given(renewed);
    }
    answers.delete(key);
    const etag = response.headers.get('etag');
    if (response.status !== 200 || etag === null || isStream(response) || !response.body) return response;
    const read = await readUpTo(response.body, mostBytes);
    if (read.rest) return new Response(read.rest, response);
    const fresh = { etag, status: response.status, headers: response.headers, body: read.body };
    answers.set(key, fresh);
    return given(fresh);
  };
}

/** @returns null for what passes untouched. */
function placeOf(input: Input, init: Init): string | null {
  if (input instanceof Request || (init?.method ?? 'GET') !== 'GET') return null;
  const headers = new Headers(init?.headers);
  if (headers.has('if-none-match') || /text\/event-stream/.test(headers.get('accept') ?? '')) return null;
  const url = new URL(input);
  return `${url.origin}${url.pathname}${url.search}`;
}

const isStream = (response: Response) => /^text\/event-stream\b/.test(response.headers.get('content-type') ?? '');

const given = ({ body, status, headers }: Remembered) => new Response(body, { status, headers });

function merged(before: Headers, after: Headers): Headers {
  const headers = new Headers(before);
  // Only that there is another page can cease to be.
  headers.delete('link');
  for (const [name, value] of after) headers.set(name, value);
  return headers;
}

/** The whole body, or, where it is longer, a stream of what was read of it and of the rest. */
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
