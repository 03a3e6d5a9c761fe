/**
 * Reads the model, the token usage, and optionally the bodies from requests and responses as they pass through, without delaying
 * them. Each byte is looked at once, and little is held, so that this never costs more than forwarding them did.
 *
 * **Compressed responses** are decoded as they pass, within the limits of the budget (decoding-budget.ts). Beyond these their usage is
 * unknown.
 *
 * **Cached responses** used no tokens, whatever usage the provider reported when it generated them. Nor did responses that are only
 * retrieved (runs-model.ts).
 */
import type { DetailedUsage } from '../events.js';
import { fieldsOf } from '../cache/field-values.js';
import type { Clock, StoredResponse } from '../ports.js';
import { BodyCapture, type CaptureContext } from './body-capture.js';
import { CompressedData } from './compressed-data.js';
import { DecodingBudget, type OpenDecoder } from './decoding-budget.js';
import { EventStreamReader } from './event-stream-reader.js';
import { maskedErrorCode, maskedModelName } from './facts.js';
import { JsonScanner } from './json-scanner.js';
import type { Readings } from './readings.js';
import { RequestedModel } from './requested-model.js';
import { BODY_MEMBERS } from './response-members.js';
import { onlyStores, runsModel, withoutQuery } from './runs-model.js';
import { usageOf } from './token-counts.js';

export interface ContentOptions {
  openDecoder: OpenDecoder;
  clock: Pick<Clock, 'monotonic'>;
  /** Maximum bytes of each body to capture; null: bodies are not captured. */
  maxCaptured: number | null;
}

const IS_JSON = /^application\/(?:[\w.-]+\+)?json\b/i;
const IS_EVENT_STREAM = /^text\/event-stream\b/i;

/** Shared state of the content readers of one daemon. */
export class ContentReaders {
  readonly options: ContentOptions;
  readonly budget: DecodingBudget;
  /** Models of cached responses. */
  readonly #models = new WeakMap<object, { name: string | null }>();

  constructor(options: ContentOptions) {
    this.options = options;
    this.budget = new DecodingBudget(options.clock);
  }

  begin(projectId: string): ContentReader {
    return new ContentReader(this, projectId);
  }

  /** Whether a response of a model reports an error, or cannot be read. */
  readonly reportsError = (projectId: string, answer: Pick<StoredResponse, 'body' | 'headers'>): boolean => {
    const fields = fieldsOf(answer.headers);
    const reader = this.begin(projectId);
    reader.responseStarted(fields.get('content-type') ?? null, fields.get('content-encoding') ?? null);
    reader.piece(answer.body);
    return reader.mayBeError();
  };

  modelOfStored(answer: { body: Buffer }): string | null {
    let model = this.#models.get(answer);
    if (!model) {
      const scanner = new JsonScanner(BODY_MEMBERS.wanted);
      scanner.scan(answer.body);
      model = { name: BODY_MEMBERS.modelIn(scanner) };
      this.#models.set(answer, model);
    }
    return model.name;
  }
}

type Kind = 'json' | 'events' | 'other';

export class ContentReader {
  readonly #readers: ContentReaders;
  readonly #projectId: string;
  readonly #requested: RequestedModel;
  #kind: Kind = 'other';
  #isFromCache = false;
  #json: JsonScanner | null = null;
  #events: EventStreamReader | null = null;
  #compressed: CompressedData | null = null;
  #model: string | null = null;
  /** Whether the response names the model of the facts. Known with them. */
  isModelAnswered = false;
  readonly #capture: BodyCapture | null;

  constructor(readers: ContentReaders, projectId: string) {
    const { maxCaptured } = readers.options;
    this.#readers = readers;
    this.#projectId = projectId;
    this.#capture = maxCaptured === null ? null : new BodyCapture(maxCaptured);
    this.#requested = new RequestedModel(this.#capture);
  }

  /** The complete body of the request. */
  requestBody(body: Buffer): void {
    this.#requested.whole(body);
  }

  /** The same for a streamed body. @returns the chunks, which the caller must consume instead of `body`. */
  async *streamedRequestBody(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of body) {
      this.#requested.part(chunk);
      yield chunk;
    }
  }

  /** The model that the request names, if that part of its body was read. It may contain a secret. */
  requestedModel(target: string | undefined): string | null {
    return this.#requested.name(target);
  }

  /** The response has started. @param coding its content coding; null if none. */
  responseStarted(contentType: string | null, coding: string | null): void {
    const type = contentType ?? '';
    this.#kind = IS_JSON.test(type) ? 'json' : IS_EVENT_STREAM.test(type) ? 'events' : 'other';
    this.#capture?.responseStarted(type);
    const isCompressed = coding !== null && coding !== '' && coding !== 'identity';
    if (isCompressed && (this.#kind !== 'other' || this.#capture)) this.#compressed = this.#decoded(coding);
  }

  #decoded(coding: string): CompressedData {
    const { budget, options } = this.#readers;
    const decoding = { budget, open: options.openDecoder, projectId: this.#projectId };
    return new CompressedData(decoding, coding, (slice) => {
      this.#plain(slice);
    });
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

  /** The next bytes of the response. */
  piece(bytes: Buffer): void {
    if (this.#compressed) this.#compressed.add(bytes);
    else this.#plain(bytes);
  }

  #plain(bytes: Buffer): void {
    if (this.#kind === 'json') (this.#json ??= new JsonScanner(BODY_MEMBERS.wanted)).scan(bytes);
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

  /** Call once, when the request has ended. If it failed, the result covers the part that was read. */
  facts(context: CaptureContext): Readings {
    this.#finish();
    if (this.#compressed?.hasFailed === true)
      this.#capture?.notDecoded(this.#compressed.coding, this.#compressed.bytes);
    const { method = '', target = '' } = context;
    const ranModel = !this.#isFromCache && runsModel(method, target);
    const usage = ranModel ? this.#usage() : null;
    return {
      // A refused request is not searched: it must not cause more work.
      model: context.isServed ? this.#modelShown(context) : null,
      usage,
      usageExtent: (usage && this.#events?.usageExtent) ?? 'part',
      // Where one provider only stores something, another one may run a model (Mistral's conversations).
      ranModel: ranModel && (usage !== null || this.#kind === 'events' || !onlyStores(withoutQuery(target))),
      error: ranModel ? this.#error(context) : null,
      requestBody: this.#requested.shown(context),
      responseBody: this.#capture?.responseBody(context) ?? null,
    };
  }

  /** Instead of `facts`. */
  mayBeError(): boolean {
    this.#finish();
    return this.#compressed?.hasFailed === true || this.#errorCode() !== null;
  }

  #finish(): void {
    this.#compressed?.end();
    this.#json?.finish();
    this.#events?.end();
  }

  #modelShown({ upstreamKey, target }: CaptureContext): string | null {
    const answered = this.#responseModel();
    this.isModelAnswered = answered !== null;
    return maskedModelName(answered ?? this.#requested.name(target), upstreamKey);
  }

  #responseModel(): string | null {
    if (this.#model !== null) return this.#model;
    if (this.#events) return this.#events.model;
    return this.#json && BODY_MEMBERS.modelIn(this.#json);
  }

  #usage(): DetailedUsage | null {
    // What was decoded before it failed is only a part.
    if (this.#compressed?.hasFailed === true) return null;
    if (this.#events) return this.#events.usage;
    const reported = this.#json && BODY_MEMBERS.usageIn(this.#json);
    return reported && usageOf(reported);
  }

  #errorCode(): string | null {
    return this.#events ? this.#events.error : this.#json && BODY_MEMBERS.errorIn(this.#json);
  }

  #error({ upstreamKey }: CaptureContext): string | null {
    return maskedErrorCode(this.#errorCode(), upstreamKey);
  }
}
