/**
 * Reads the model and the token usage of the responses from the messages that the upstream sends on a WebSocket.
 *
 * Its frames (RFC 6455, 5.2) pass through unchanged and without delay. A connection may have any number of them, however small, so the
 * reader allocates nothing for a frame or a message: messages that can hold no usage are passed over, the others are scanned where they
 * are. Compressed messages (RFC 7692) are decoded together, since each may refer to those before it.
 */
import type { ModelUsage } from '../events.js';
import type { CaptureContext } from './body-capture.js';
import { BoundedBytes } from './bounded-bytes.js';
import { CompressedData, type DecodingOptions } from './compressed-data.js';
import { modelNameFrom, maskedModelName } from './facts.js';
import { JsonScanner } from './json-scanner.js';
import { mattersIn, NOTHING } from './may-matter.js';
import { NO_READINGS, type Readings } from './readings.js';
import { MESSAGE_MEMBERS } from './response-members.js';
import { addedUsage, usageOf } from './token-counts.js';

const MAX_HEADER_BYTES = 10;
/** No shorter message has a usage: `{"usage":{"input_tokens":1}}`. */
const MIN_MESSAGE_BYTES = 28;
// The first messages describe the session.
const MESSAGES_TO_NAME_MODEL = 8;
// Less than the size of the slices of a decoder.
const WHOLE_BYTES = 16 * 1024;
// Compressed messages that arrive together are decoded together.
const BATCH_BYTES = 16 * 1024;
// Silence is compressed as much as the format can.
const DEFLATE_RATIO = 1032;
/** What a sender removes from the end of each compressed message. */
const END_OF_MESSAGE = Buffer.from([0, 0, 0xff, 0xff]);

const CONTINUATION = 0;
const BINARY = 2;
const FIRST_CONTROL = 8;
const RSV1 = 0x40;
const OTHER_RSV = 0x30;

/** Events that report what a response or a transcription has used; those of Gemini have no type. */
const REPORTS_USAGE =
  /^(?:response\.(?:done|completed|failed|incomplete)|conversation\.item\.input_audio_transcription\.completed)?$/;

export class RealtimeReader {
  readonly #options: Pick<DecodingOptions, 'budget' | 'open'>;
  readonly #scanner: JsonScanner;
  #model: string | null;
  #namesLeft = MESSAGES_TO_NAME_MODEL;
  #usage: ModelUsage | null = null;
  /** Header of the current frame, as far as received. */
  readonly #header = Buffer.alloc(MAX_HEADER_BYTES);
  #headerBytes = 0;
  #headerSize = 2;
  /** Payload bytes left in the current frame. */
  #payloadLeft = 0;
  #isControl = false;
  #isFinal = false;
  #isCompressed = false;
  /** Whether the current message is scanned. */
  #isWanted = false;
  /** Compressed messages; null unless the handshake agreed on them. */
  #deflated: CompressedData | null = null;
  /** The upstream compresses each message by itself. */
  #forgets = false;
  #batch: BoundedBytes | null = null;
  /** Whether the batch begins with a message, and whether it ends with one. */
  #batchBegins = false;
  #batchEnds = false;
  #isNewMessage = false;
  /** The data is not a valid sequence of server frames. */
  #isUnreadable = false;

  /** @param target of the upgrade request. */
  constructor(target: string, options: Pick<DecodingOptions, 'budget' | 'open'>) {
    this.#options = options;
    const query = target.indexOf('?');
    const fields = new URLSearchParams(query === -1 ? '' : target.slice(query + 1));
    this.#model = modelNameFrom(fields.get('model') ?? fields.get('deployment'));
    this.#scanner = new JsonScanner(MESSAGE_MEMBERS.wanted, () => {
      this.#read();
    });
  }

  /** The handshake is complete. @param extensions `Sec-WebSocket-Extensions` of the response. */
  connected(projectId: string, extensions: string | undefined): void {
    if (extensions === undefined || !/(?:^|,)\s*permessage-deflate\b/i.test(extensions)) return;
    this.#forgets = /;\s*server_no_context_takeover\b/i.test(extensions);
    this.#batch = new BoundedBytes(BATCH_BYTES);
    const options = { ...this.#options, projectId, maxRatio: DEFLATE_RATIO };
    this.#deflated = new CompressedData(options, 'permessage-deflate', (slice) => {
      this.#decoded(slice);
    });
  }

  /** Data from the upstream, after the handshake. */
  chunk(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length && !this.#isUnreadable) {
      if (this.#payloadLeft === 0) {
        this.#header[this.#headerBytes] = bytes[at] ?? 0;
        this.#headerBytes += 1;
        at += 1;
        if (this.#headerBytes === 2) this.#headerSize = headerSizeOf(this.#header[1] ?? 0);
        if (this.#headerBytes === this.#headerSize) this.#beginFrame();
      } else {
        const end = Math.min(bytes.length, at + this.#payloadLeft);
        if (!this.#isControl && this.#isWanted) this.#payload(bytes, at, end);
        this.#payloadLeft -= end - at;
        at = end;
        if (this.#payloadLeft === 0) this.#endFrame();
      }
    }
    this.#decodeBatch();
  }

  /** Call when the connection has ended. */
  facts({ isServed, upstreamKey }: CaptureContext): Readings {
    this.#deflated?.end();
    const model = isServed ? maskedModelName(this.#model, upstreamKey) : null;
    // What was read before a failure is only a part.
    return { ...NO_READINGS, model, usage: this.#deflated?.hasFailed === true ? null : this.#usage };
  }

  get #namesModel(): boolean {
    return this.#model === null && this.#namesLeft > 0;
  }

  #beginFrame(): void {
    const header = this.#header;
    const [first = 0, second = 0] = header;
    const length = second & 0x7f;
    this.#payloadLeft =
      length === 126
        ? header.readUInt16BE(2)
        : length === 127
          ? header.readUInt32BE(2) * 2 ** 32 + header.readUInt32BE(6)
          : length;
    this.#headerBytes = 0;
    this.#headerSize = 2;
    this.#isFinal = (first & 0x80) !== 0;
    const kind = first & 0x0f;
    this.#isControl = kind >= FIRST_CONTROL;
    // A server does not mask what it sends.
    this.#isUnreadable = (second & 0x80) !== 0;
    if (!this.#isControl && kind !== CONTINUATION) this.#beginMessage(first, kind);
    if (this.#payloadLeft === 0) this.#endFrame();
  }

  /** Gemini sends JSON in binary messages. */
  #beginMessage(first: number, kind: number): void {
    this.#isCompressed = (first & RSV1) !== 0;
    this.#isNewMessage = true;
    if (this.#isCompressed) this.#isWanted = this.#deflated !== null;
    else this.#isWanted = !this.#isFinal || this.#payloadLeft >= MIN_MESSAGE_BYTES;
    if ((first & OTHER_RSV) !== 0 || kind > BINARY) this.#isWanted = false;
  }

  #payload(bytes: Buffer, from: number, to: number): void {
    if (this.#isCompressed) {
      this.#addToBatch(bytes.subarray(from, to));
      return;
    }
    // Whether a whole message may matter can be seen faster than by scanning it.
    const isWhole = this.#isNewMessage && this.#isFinal && to - from === this.#payloadLeft;
    this.#isNewMessage = false;
    if (!isWhole || this.#namesModel || mattersIn(bytes, from, to) !== NOTHING) this.#scanner.scan(bytes, from, to);
  }

  #endFrame(): void {
    if (this.#isControl || !this.#isFinal || !this.#isWanted) return;
    if (this.#isCompressed) this.#addToBatch(END_OF_MESSAGE);
    else this.#scanner.finish();
    if (this.#namesModel) this.#namesLeft -= 1;
    else this.#scanner.unwanted = MESSAGE_MEMBERS.modelBits;
  }

  #addToBatch(part: Buffer): void {
    const batch = this.#batch;
    if (!batch) return;
    const begins = this.#isNewMessage;
    this.#isNewMessage = false;
    if (begins && this.#forgets) {
      this.#decodeBatch();
      this.#deflated?.reset();
    }
    if (batch.bytes === 0) this.#batchBegins = begins;
    for (let at = 0; at < part.length;) {
      if (batch.bytes === BATCH_BYTES) {
        this.#batchEnds = false;
        this.#decodeBatch();
        this.#batchBegins = false;
      }
      const end = Math.min(part.length, at + BATCH_BYTES - batch.bytes);
      batch.add(part.subarray(at, end));
      at = end;
    }
    this.#batchEnds = part === END_OF_MESSAGE;
  }

  #decodeBatch(): void {
    const batch = this.#batch;
    if (!batch || batch.bytes === 0) return;
    if (this.#batchBegins) this.#scanner.finish();
    this.#deflated?.addNow(batch.head);
    batch.clear();
  }

  /** Decoded messages, or a part of them. Only whole ones can be passed over. */
  #decoded(slice: Buffer): void {
    const areWhole = this.#batchBegins && this.#batchEnds && slice.length < WHOLE_BYTES;
    this.#batchBegins = false; // Another slice would be the rest.
    if (!areWhole || this.#namesModel || mattersIn(slice, 0, slice.length) !== NOTHING) this.#scanner.scan(slice);
  }

  /** A message that has something of interest. */
  #read(): void {
    const scanner = this.#scanner;
    if (this.#namesModel) this.#model = MESSAGE_MEMBERS.modelIn(scanner);
    const reported = REPORTS_USAGE.test(MESSAGE_MEMBERS.typeIn(scanner)) ? MESSAGE_MEMBERS.usageIn(scanner) : null;
    if (reported) this.#usage = addedUsage(this.#usage, usageOf(reported));
  }
}

function headerSizeOf(second: number): number {
  const length = second & 0x7f;
  return length === 126 ? 4 : length === 127 ? 10 : 2;
}
