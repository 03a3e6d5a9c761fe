/**
 * What a request and its answer say of themselves: the model, the tokens it took, and if asked for the bodies. It looks at what goes by
 * and holds up nobody; what it cannot tell within its bounds is missing.
 *
 * **Compressed answers** are kept as they come, up to a bound, and decoded when the request is over: so the few large ones are
 * late with what they say, and nothing else is.
 *
 * **Answers out of the cache** took no tokens, whatever the provider said of them when they were made.
 */
import type { ContentFacts, ModelUsage } from '../events.js';
import { fieldsOf } from '../cache/field-values.js';
import type { KeptAnswer } from '../ports.js';
import { BodyCapture, type CaptureContext } from './body.js';
import { Ends } from './ends.js';
import { modelNamed, modelShown, usageIn } from './facts.js';
import { memberOf, type Span, whole } from './members.js';
import { modelAskedFor } from './request.js';
import { EventStreamReader } from './stream.js';

/**
 * Undoes a content coding, of what is there of it.
 *
 * @returns null for a coding it does not know, for what is none, and for more than it may be. It does not throw.
 */
export type Decode = (coding: string, bytes: Buffer) => Buffer | null | Promise<Buffer | null>;

export interface ContentOptions {
  decode: Decode;
  /** How many bytes of each body are told of; null: none. */
  mostCaptured: number | null;
}

// Beyond it the ends are known.
const LARGEST_HEAD = 64 * 1024;
const LARGEST_COMPRESSED = 1024 * 1024;
// As much as comes from a socket at once.
const MOST_AT_ONCE = 64 * 1024;
// Copies of compressed answers, of all requests together.
const MOST_COPIED = 64 * 1024 * 1024;

const IS_JSON = /^application\/(?:[\w.-]+\+)?json\b/i;
const IS_EVENT_STREAM = /^text\/event-stream\b/i;

/** Reads requests and answers for one daemon. */
export class ContentReaders {
  readonly options: ContentOptions;
  /** Of compressed answers that are not decoded yet. */
  copiedBytes = 0;
  /** Models of answers in the cache. */
  readonly #models = new WeakMap<object, { name: string | null }>();

  readonly #late = new Set<Promise<void>>();

  constructor(options: ContentOptions) {
    this.options = options;
  }

  /** What is told of a request after its end. */
  await(telling: Promise<void>): void {
    this.#late.add(telling);
    void telling.finally(() => this.#late.delete(telling));
  }

  /** Resolves when all requests that are over have been told of. */
  async settled(): Promise<void> {
    while (this.#late.size > 0) await Promise.allSettled(this.#late);
  }

  begin(): ContentReader {
    return new ContentReader(this, this.options.mostCaptured);
  }

  modelOfKept(answer: { body: Buffer }): string | null {
    let model = this.#models.get(answer);
    if (!model) {
      model = { name: modelNamed(memberOf(whole(answer.body), 'model', null)) };
      this.#models.set(answer, model);
    }
    return model.name;
  }
}

type Kind = 'json' | 'events' | 'other';

export class ContentReader {
  readonly #readers: ContentReaders;
  #asked: Buffer | Ends | null = null;
  #kind: Kind = 'other';
  #coding: string | null = null;
  #isRepeated = false;
  #json: Ends | null = null;
  #events: EventStreamReader | null = null;
  #compressed: Ends | null = null;
  #model: string | null = null;
  readonly #capture: BodyCapture | null;

  constructor(readers: ContentReaders, mostBodyBytes: number | null) {
    this.#readers = readers;
    this.#capture = mostBodyBytes === null ? null : new BodyCapture(mostBodyBytes);
  }

  /** The whole body of the request. */
  asked(body: Buffer): void {
    this.#asked = body;
  }

  /** The same for one that comes in pieces. @returns its pieces, to be read in their place. */
  async *askedInPieces(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const ends = new Ends(Math.max(LARGEST_HEAD, this.#capture?.heldBytes ?? 0), false);
    this.#asked = ends;
    for await (const piece of body) {
      ends.add(piece);
      yield piece;
    }
  }

  /** The answer begins. @param coding of its content; null if it has none. */
  answered(contentType: string | null, coding: string | null): void {
    const type = contentType ?? '';
    this.#kind = IS_JSON.test(type) ? 'json' : IS_EVENT_STREAM.test(type) ? 'events' : 'other';
    this.#coding = coding === null || coding === '' || coding === 'identity' ? null : coding;
    this.#capture?.answered(type, this.#coding);
  }

  /** What follows was told before: out of the cache, and now confirmed. */
  repeated(): void {
    this.#isRepeated = true;
  }

  /** The whole answer is out of the cache. */
  replayed(answer: Pick<KeptAnswer, 'body' | 'headers'>): void {
    this.#isRepeated = true;
    this.#model = this.#readers.modelOfKept(answer);
    if (!this.#capture) return;
    const fields = fieldsOf(answer.headers);
    this.answered(fields.get('content-type') ?? null, fields.get('content-encoding') ?? null);
    this.piece(answer.body);
  }

  piece(bytes: Buffer): void {
    if (this.#coding !== null) this.#keepCompressed(bytes);
    else if (this.#kind === 'json') (this.#json ??= new Ends(LARGEST_HEAD, true)).add(bytes);
    else if (this.#kind === 'events') (this.#events ??= this.#newEvents()).piece(bytes);
    this.#capture?.piece(bytes);
  }

  #newEvents(): EventStreamReader {
    const capture = this.#capture;
    return new EventStreamReader(
      capture &&
        ((data) => {
          capture.event(data);
        }),
    );
  }

  #keepCompressed(bytes: Buffer): void {
    if (this.#kind === 'other' && !this.#capture) return;
    this.#compressed ??= new Ends(LARGEST_COMPRESSED, false);
    if (!this.#compressed.isWhole) return;
    if (
      this.#readers.copiedBytes + bytes.length > MOST_COPIED ||
      this.#compressed.bytes + bytes.length > LARGEST_COMPRESSED
    ) {
      this.#readers.copiedBytes -= this.#compressed.bytes;
      this.#compressed = TOO_LARGE;
      return;
    }
    this.#readers.copiedBytes += bytes.length;
    this.#compressed.add(bytes);
  }

  toldLater(telling: Promise<void>): void {
    this.#readers.await(telling);
  }

  /** Once, when the request is over: what it said so far, if it did not end well. */
  facts(context: CaptureContext): ContentFacts | Promise<ContentFacts> {
    const compressed = this.#compressed;
    if (!compressed || this.#coding === null || !compressed.isWhole) return this.#factsOf(context);
    const decoded = this.#readers.options.decode(this.#coding, compressed.head);
    const read = (bytes: Buffer | null): ContentFacts | Promise<ContentFacts> => {
      this.#readers.copiedBytes -= compressed.bytes;
      if (!bytes) return this.#factsOf(context);
      this.#coding = null;
      this.#capture?.decoded();
      if (bytes.length > MOST_AT_ONCE) return this.#piecewise(bytes).then(() => this.#factsOf(context));
      this.piece(bytes);
      return this.#factsOf(context);
    };
    return decoded instanceof Promise ? decoded.then(read) : read(decoded);
  }

  /** What was decoded can be many times as large as what came, and the others are to have their turn in between. */
  async #piecewise(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; at += MOST_AT_ONCE) {
      this.piece(bytes.subarray(at, at + MOST_AT_ONCE));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #factsOf(context: CaptureContext): ContentFacts {
    this.#events?.end();
    const usage = this.#isRepeated ? null : this.#usage();
    return {
      // A refused request is not searched: whoever sends what we refuse must not make us work for it.
      model: context.isServed ? this.#modelShown(context) : null,
      usage,
      requestBody: this.#capture?.requestBody(this.#span(), this.#askedBytes, context) ?? null,
      responseBody: this.#capture?.responseBody(context) ?? null,
    };
  }

  #modelShown({ upstreamKey }: CaptureContext): string | null {
    return modelShown(this.#answeringModel() ?? modelAskedFor(this.#span()), upstreamKey);
  }

  #answeringModel(): string | null {
    if (this.#model !== null) return this.#model;
    if (this.#events) return this.#events.model;
    return this.#json && modelNamed(memberOf(this.#json, 'model', null));
  }

  #usage(): ModelUsage | null {
    if (this.#events) return this.#events.usage;
    return this.#json && usageIn(memberOf(this.#json, 'usage', null));
  }

  #span(): Span | null {
    return Buffer.isBuffer(this.#asked) ? whole(this.#asked) : this.#asked;
  }

  get #askedBytes(): number {
    return Buffer.isBuffer(this.#asked) ? this.#asked.length : (this.#asked?.bytes ?? 0);
  }
}

const TOO_LARGE = new Ends(0, false);
TOO_LARGE.add(Buffer.alloc(1));
