/** Reads server-sent events, as the HTML standard has them, in Node and in browsers. */

export interface StreamedText {
  /** Empty until there was one. */
  id: string;
  data: string;
}

// Events are far below this: what is longer is something else.
const LONGEST_CHARACTERS = 4_000_000;

/** What answers is no stream of events. */
export class NotAStream extends Error {
  override name = 'NotAStream';
}

/** Puts events together again, however they were taken apart on the way. */
export class EventStreamParser {
  /** Of a line that goes on. Put together once it ends, for it may come in any number of pieces. */
  #rest: string[] = [];
  #restLength = 0;
  #endsInReturn = false;
  #data: string[] = [];
  #length = 0;
  #id = '';

  /** @returns the events that this piece completes. @throws {NotAStream} */
  push(piece: string): StreamedText[] {
    this.#rest.push(piece);
    this.#restLength += piece.length;
    const events = this.#endsInReturn || /[\r\n]/.test(piece) ? this.#linesOf(this.#rest.join('')) : [];
    if (this.#restLength + this.#length > LONGEST_CHARACTERS) throw new NotAStream('an event without an end');
    return events;
  }

  #linesOf(text: string): StreamedText[] {
    // A carriage return at the end may be the first half of a line break.
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    const rest = lines.pop() ?? '';
    this.#rest = [rest];
    this.#restLength = rest.length;
    this.#endsInReturn = rest.endsWith('\r');
    return lines.flatMap((line) => this.#take(line) ?? []);
  }

  #take(line: string): StreamedText | undefined {
    if (line === '') return this.#complete();
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'id' && !value.includes('\0')) this.#id = value;
    if (field === 'data') {
      this.#data.push(value);
      this.#length += value.length;
    }
    return undefined; // Whatever else there is, a comment too.
  }

  #complete(): StreamedText | undefined {
    const lines = this.#data;
    this.#data = [];
    this.#length = 0;
    return lines.length === 0 ? undefined : { id: this.#id, data: lines.join('\n') };
  }
}

/** What comes of `work`, unless the signal is aborted before that. @throws what `work` throws, and the reason of the abort. */
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

/** Aborts its signal when what is waited for does not come in time, or when another signal is aborted. */
export class Silence {
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

  waits(ms: number): void {
    this.heard();
    this.#timer = setTimeout(() => {
      this.#controller.abort(new DOMException('nothing was heard in time', 'TimeoutError'));
    }, ms);
  }

  heard(): void {
    clearTimeout(this.#timer);
  }

  /** Whoever stops reading in the middle leaves no connection behind. */
  end(): void {
    this.heard();
    this.#other?.removeEventListener('abort', this.#abort);
    this.#abort();
  }
}

/**
 * The events of a response's body, until it ends.
 *
 * The reader is cancelled by the signal itself. The signal that `fetch` was given is not enough: Node holds it weakly, and once the
 * garbage collector has taken the request, an abort reaches neither the body nor the connection.
 *
 * @param silenceMs so long each piece, be it a heartbeat, may take.
 * @throws {NotAStream}, what the body's reading throws, and the reason of the abort.
 */
export async function* eventsIn(
  body: ReadableStream<Uint8Array>,
  silence: Silence,
  silenceMs: number,
): AsyncGenerator<StreamedText> {
  const parser = new EventStreamParser();
  const decoder = new TextDecoder();
  const reader = body.getReader(); // Not every browser lets one iterate over the body.
  const { signal } = silence;
  const cancel = () => {
    reader.cancel(signal.reason).catch(() => undefined);
  };
  signal.addEventListener('abort', cancel);
  if (signal.aborted) cancel();
  try {
    for (;;) {
      silence.waits(silenceMs);
      const { done, value } = await reader.read();
      silence.heard(); // While nobody asks for more, nobody waits.
      signal.throwIfAborted(); // A cancelled reader says that the body has ended.
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    signal.removeEventListener('abort', cancel);
    await reader.cancel().catch(() => undefined);
  }
}
