/**
 * Reads the model, the token usage, and optionally the bodies from requests and responses as they pass through, without delaying
 * them. Its work is bounded; what it cannot read within the limits is missing from the result.
 *
 * **Compressed responses** are buffered up to a limit and decoded after the request has ended, so only their facts are late.
 *
 * **Cached responses** used no tokens, whatever usage the provider reported when it generated them.
 */
import type { ContentFacts, ModelUsage } from '../events.js';
import { fieldsOf } from '../cache/field-values.js';
import type { StoredResponse } from '../ports.js';
import { BodyCapture, type CaptureContext } from './body-capture.js';
import { HeadAndTail } from './head-and-tail.js';
import { modelNameFrom, maskedModelName } from './facts.js';
import { IN_RESPONSES, memberOf, MODEL_NAMES, type Span, USAGE_NAMES, wholeSpan } from './members.js';
import { requestedModel } from './requested-model.js';
import { usageFrom } from './token-counts.js';
import { EventStreamReader } from './event-stream-reader.js';

/**
 * Decodes a content coding; the input may be truncated.
 *
 * @returns null for an unknown coding, invalid data, or a result over the size limit. Does not throw.
 */
export type Decode = (coding: string, bytes: Buffer) => Buffer | null | Promise<Buffer | null>;

export interface ContentOptions {
  decode: Decode;
  /** Maximum bytes of each body to capture; null: bodies are not captured. */
  maxCaptured: number | null;
}

// Of larger bodies only the beginning and end are buffered.
const MAX_HEAD_BYTES = 64 * 1024;
const MAX_COMPRESSED_BYTES = 1024 * 1024;
// About as much as one read from a socket returns.
const BYTES_PER_TURN = 64 * 1024;
// Limit for buffered compressed responses, of all requests together.
const MAX_COPIED_BYTES = 64 * 1024 * 1024;

const IS_JSON = /^application\/(?:[\w.-]+\+)?json\b/i;
const IS_EVENT_STREAM = /^text\/event-stream\b/i;

/** Shared state of the content readers of one daemon. */
export class ContentReaders {
  readonly options: ContentOptions;
  /** Bytes of compressed responses that are not decoded yet. */
  copiedBytes = 0;
  /** Models of cached responses. */
  readonly #models = new WeakMap<object, { name: string | null }>();

  readonly #late = new Set<Promise<void>>();

  constructor(options: ContentOptions) {
    this.options = options;
  }

  /** Registers work that records a request after its end. */
  track(telling: Promise<void>): void {
    this.#late.add(telling);
    void telling.finally(() => this.#late.delete(telling));
  }

  /** Resolves when all ended requests are recorded. */
  async settled(): Promise<void> {
    while (this.#late.size > 0) await Promise.allSettled(this.#late);
  }

  begin(): ContentReader {
    return new ContentReader(this, this.options.maxCaptured);
  }

  modelOfStored(answer: { body: Buffer }): string | null {
    let model = this.#models.get(answer);
    if (!model) {
      model = { name: modelNameFrom(memberOf(wholeSpan(answer.body), MODEL_NAMES, IN_RESPONSES)) };
      this.#models.set(answer, model);
    }
    return model.name;
  }
}

type Kind = 'json' | 'events' | 'other';

export class ContentReader {
  readonly #readers: ContentReaders;
  #request: Buffer | HeadAndTail | null = null;
  #kind: Kind = 'other';
  #coding: string | null = null;
  #isFromCache = false;
  #json: HeadAndTail | null = null;
  #events: EventStreamReader | null = null;
  #compressed: HeadAndTail | null = null;
  #model: string | null = null;
  /** Whether the response names the model of the facts. Known with them. */
  isModelAnswered = false;
  readonly #capture: BodyCapture | null;

  constructor(readers: ContentReaders, mostBodyBytes: number | null) {
    this.#readers = readers;
    this.#capture = mostBodyBytes === null ? null : new BodyCapture(mostBodyBytes);
  }

  /** The complete body of the request. */
  requestBody(body: Buffer): void {
    this.#request = body;
  }

  /** The same for a streamed body. @returns the chunks, which the caller must consume instead of `body`. */
  async *streamedRequestBody(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const ends = new HeadAndTail(Math.max(MAX_HEAD_BYTES, this.#capture?.heldBytes ?? 0), false);
    this.#request = ends;
    for await (const chunk of body) {
      ends.add(chunk);
      yield chunk;
    }
  }

  /** The response has started. @param coding its content coding; null if none. */
  responseStarted(contentType: string | null, coding: string | null): void {
    const type = contentType ?? '';
    this.#kind = IS_JSON.test(type) ? 'json' : IS_EVENT_STREAM.test(type) ? 'events' : 'other';
    this.#coding = coding === null || coding === '' || coding === 'identity' ? null : coding;
    this.#capture?.responseStarted(type, this.#coding);
  }

  /** The following response is a revalidated one from the cache, so its usage was recorded before. */
  revalidated(): void {
    this.#isFromCache = true;
  }

  /** The complete response comes from the cache. */
  replayedFromCache(answer: Pick<StoredResponse, 'body' | 'headers'>): void {
    this.#isFromCache = true;
    this.#model = this.#readers.modelOfStored(answer);
    if (!this.#capture) return;
    const fields = fieldsOf(answer.headers);
    this.responseStarted(fields.get('content-type') ?? null, fields.get('content-encoding') ?? null);
    this.piece(answer.body);
  }

  piece(bytes: Buffer): void {
    if (this.#coding !== null) this.#bufferCompressed(bytes);
    else if (this.#kind === 'json') (this.#json ??= new HeadAndTail(MAX_HEAD_BYTES, true)).add(bytes);
    else if (this.#kind === 'events') (this.#events ??= this.#newEvents()).chunk(bytes);
    this.#capture?.chunk(bytes);
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

  #bufferCompressed(bytes: Buffer): void {
    if (this.#kind === 'other' && !this.#capture) return;
    this.#compressed ??= new HeadAndTail(MAX_COMPRESSED_BYTES, false);
    if (!this.#compressed.isWhole) return;
    if (
      this.#readers.copiedBytes + bytes.length > MAX_COPIED_BYTES ||
      this.#compressed.bytes + bytes.length > MAX_COMPRESSED_BYTES
    ) {
      this.#readers.copiedBytes -= this.#compressed.bytes;
      this.#compressed = TOO_LARGE;
      return;
    }
    this.#readers.copiedBytes += bytes.length;
    this.#compressed.add(bytes);
  }

  recordedLater(telling: Promise<void>): void {
    this.#readers.track(telling);
  }

  /** Call once, when the request has ended. If it failed, the result covers the part that was read. */
  facts(context: CaptureContext): ContentFacts | Promise<ContentFacts> {
    const compressed = this.#compressed;
    if (!compressed || this.#coding === null || !compressed.isWhole) return this.#factsOf(context);
    const decoded = this.#readers.options.decode(this.#coding, compressed.head);
    const read = (bytes: Buffer | null): ContentFacts | Promise<ContentFacts> => {
      this.#readers.copiedBytes -= compressed.bytes;
      if (!bytes) return this.#factsOf(context);
      this.#coding = null;
      this.#capture?.decoded();
      if (bytes.length > BYTES_PER_TURN) return this.#readInTurns(bytes).then(() => this.#factsOf(context));
      this.piece(bytes);
      return this.#factsOf(context);
    };
    return decoded instanceof Promise ? decoded.then(read) : read(decoded);
  }

  /** Decoded data can be many times larger than the compressed data, so it yields to other requests between chunks. */
  async #readInTurns(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; at += BYTES_PER_TURN) {
      this.piece(bytes.subarray(at, at + BYTES_PER_TURN));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #factsOf(context: CaptureContext): ContentFacts {
    this.#events?.end();
    const usage = this.#isFromCache ? null : this.#usage();
    return {
      // A refused request is not searched: it must not cause more work.
      model: context.isServed ? this.#modelShown(context) : null,
      usage,
      requestBody: this.#capture?.requestBody(this.#span(), this.#requestBytes, context) ?? null,
      responseBody: this.#capture?.responseBody(context) ?? null,
    };
  }

  #modelShown({ upstreamKey, target }: CaptureContext): string | null {
    const answered = this.#responseModel();
    this.isModelAnswered = answered !== null;
    return maskedModelName(answered ?? requestedModel(this.#span(), target), upstreamKey);
  }

  #responseModel(): string | null {
    if (this.#model !== null) return this.#model;
    if (this.#events) return this.#events.model;
    return this.#json && modelNameFrom(memberOf(this.#json, MODEL_NAMES, IN_RESPONSES));
  }

  #usage(): ModelUsage | null {
    if (this.#events) return this.#events.usage;
    return this.#json && usageFrom(memberOf(this.#json, USAGE_NAMES, IN_RESPONSES));
  }

  #span(): Span | null {
    return Buffer.isBuffer(this.#request) ? wholeSpan(this.#request) : this.#request;
  }

  get #requestBytes(): number {
    return Buffer.isBuffer(this.#request) ? this.#request.length : (this.#request?.bytes ?? 0);
  }
}

const TOO_LARGE = new HeadAndTail(0, false);
TOO_LARGE.add(Buffer.alloc(1));
