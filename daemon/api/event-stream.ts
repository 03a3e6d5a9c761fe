/** Parser for server-sent events as specified by the HTML standard, for Node.js and browsers. */

export interface ServerSentEvent {
  /** ID of the last event that had one; empty before that. */
  id: string;
  data: string;
}

// Events of llmp are much shorter: a longer one is not from llmp.
const MAX_EVENT_CHARACTERS = 4_000_000;

/** The response is not an event stream. */
export class NotAnEventStream extends Error {
  override name = 'NotAStream';
}

/** Incremental parser: input may be split at any position. */
export class EventStreamParser {
  /** Pieces of an incomplete line, joined once when the line ends, however many there are. */
  #partialLine: string[] = [];
  #partialLineLength = 0;
  #endsInReturn = false;
  #data: string[] = [];
  #dataLength = 0;
  #id = '';

  /** @returns the events that this piece completes. @throws {NotAnEventStream} */
  push(piece: string): ServerSentEvent[] {
    this.#partialLine.push(piece);
    this.#partialLineLength += piece.length;
    const events = this.#endsInReturn || /[\r\n]/.test(piece) ? this.#parseLines(this.#partialLine.join('')) : [];
    if (this.#partialLineLength + this.#dataLength > MAX_EVENT_CHARACTERS) throw new NotAnEventStream('event too long');
    return events;
  }

  #parseLines(text: string): ServerSentEvent[] {
    // A carriage return at the end may be the first half of a line break.
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    const rest = lines.pop() ?? '';
    this.#partialLine = [rest];
    this.#partialLineLength = rest.length;
    this.#endsInReturn = rest.endsWith('\r');
    return lines.flatMap((line) => this.#processLine(line) ?? []);
  }

  #processLine(line: string): ServerSentEvent | undefined {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'id' && !value.includes('\0')) this.#id = value;
    if (field === 'data') {
      this.#data.push(value);
      this.#dataLength += value.length;
    }
    return undefined; // Other fields and comments are ignored.
  }

  #dispatch(): ServerSentEvent | undefined {
    const lines = this.#data;
    this.#data = [];
    this.#dataLength = 0;
    return lines.length === 0 ? undefined : { id: this.#id, data: lines.join('\n') };
  }
}

/** The result of `work`, unless the signal is aborted first. @throws errors of `work`, or the reason of the abort. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let abort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => {
      reject(signal.reason as Error);
    };
  });
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Idle timeout: aborts its signal when the running timer expires or when another signal is aborted. */
export class IdleTimeout {
  readonly #other: AbortSignal | undefined;
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #abort = () => {
    this.#controller.abort(this.#other?.reason);
  };

  constructor(other: AbortSignal | undefined) {
    this.#other = other;
    if (other?.aborted) this.#abort();
    other?.addEventListener('abort', this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  start(ms: number): void {
    this.stop();
    this.#timer = setTimeout(() => {
      this.#controller.abort(new DOMException('no data in time', 'TimeoutError'));
    }, ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Stops the timer and aborts the signal, so that the connection closes even if the reader stopped early. */
  dispose(): void {
    this.stop();
    this.#other?.removeEventListener('abort', this.#abort);
    this.#abort();
  }
}

/**
 * Reads the events of a response body until it ends.
 *
 * The signal cancels the reader directly. Passing the signal to `fetch` is not enough: Node.js holds it weakly, and after the request is
 * garbage-collected, an abort reaches neither the body nor the connection.
 *
 * @param idleTimeoutMs maximum time between two pieces of data, including heartbeats.
 * @throws {NotAnEventStream}, errors of reading the body, or the reason of the abort.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  idle: IdleTimeout,
  idleTimeoutMs: number,
): AsyncGenerator<ServerSentEvent> {
  const parser = new EventStreamParser();
  const decoder = new TextDecoder();
  const reader = body.getReader(); // Not every browser supports iterating over a body.
  const { signal } = idle;
  const cancel = () => {
    reader.cancel(signal.reason).catch(() => undefined);
  };
  signal.addEventListener('abort', cancel);
  if (signal.aborted) cancel();
  try {
    for (;;) {
      idle.start(idleTimeoutMs);
      const { done, value } = await reader.read();
      idle.stop(); // No timeout while the consumer is busy.
      signal.throwIfAborted(); // A cancelled reader reports the end of the body.
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    signal.removeEventListener('abort', cancel);
    await reader.cancel().catch(() => undefined);
  }
}
