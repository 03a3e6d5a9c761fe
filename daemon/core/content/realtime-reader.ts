/**
 * Reads the model of a realtime (WebSocket) connection from its target, and the token usage from each `response.done` event.
 *
 * The upstream's frames (RFC 6455, 5.2) pass through unchanged and without delay. Only the beginning of each message is examined; the
 * few messages with a usage are buffered up to a limit. Messages compressed with `permessage-deflate` are not read: decoding one
 * requires all previous messages.
 */
import type { ContentFacts, ModelUsage } from '../events.js';
import type { CaptureContext } from './body-capture.js';
import { HeadAndTail } from './head-and-tail.js';
import { modelNameFrom, maskedModelName } from './facts.js';
import { IN_EVENTS, memberOf, memberOfSmall, USAGE_NAMES } from './members.js';
import { addedUsage, usageFrom } from './token-counts.js';

const MAX_HEADER_BYTES = 14;
const MAX_MESSAGE_BYTES = 64 * 1024;
// Messages up to this size are parsed at once.
const SMALL_MESSAGE_BYTES = 4 * 1024;
// The type of an event is near its beginning.
const EXAMINED_BYTES = 256;
const RESPONSE_DONE = Buffer.from('"response.done"');

const CONTINUATION = 0;
const TEXT = 1;
const FIRST_CONTROL = 8;

export class RealtimeReader {
  #usage: ModelUsage | null = null;
  readonly #model: string | null;
  /** Header of the current frame, as far as received. */
  readonly #header = Buffer.alloc(MAX_HEADER_BYTES);
  #headerBytes = 0;
  /** Payload bytes left in the current frame. */
  #payloadLeft = 0;
  #isControl = false;
  #isFinal = false;
  /** The current message; null if it is not needed. */
  #message: HeadAndTail | null = null;
  #isDecided = false;
  /** The data is not a valid sequence of server frames. */
  #isUnreadable = false;

  /** @param target of the upgrade request. */
  constructor(target: string) {
    const query = target.indexOf('?');
    this.#model = query === -1 ? null : modelNameFrom(new URLSearchParams(target.slice(query + 1)).get('model'));
  }

  /** Data from the upstream, after the handshake. */
  chunk(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length && !this.#isUnreadable) {
      if (this.#payloadLeft === 0) {
        this.#header[this.#headerBytes] = bytes[at] ?? 0;
        this.#headerBytes += 1;
        at += 1;
        if (this.#headerBytes === this.#headerSize) this.#beginFrame();
      } else {
        const end = Math.min(bytes.length, at + this.#payloadLeft);
        this.#payload(bytes.subarray(at, end));
        this.#payloadLeft -= end - at;
        at = end;
        if (this.#payloadLeft === 0) this.#endFrame();
      }
    }
  }

  /** Call when the connection has ended. */
  facts({ isServed, upstreamKey }: CaptureContext): ContentFacts {
    const model = isServed ? maskedModelName(this.#model, upstreamKey) : null;
    return { model, usage: this.#usage, requestBody: null, responseBody: null };
  }

  /** Header size as far as known from the bytes received. */
  get #headerSize(): number {
    if (this.#headerBytes < 2) return 2;
    const length = (this.#header[1] ?? 0) & 0x7f;
    return length === 126 ? 4 : length === 127 ? 10 : 2;
  }

  #beginFrame(): void {
    const [first = 0, second = 0] = this.#header;
    const length = second & 0x7f;
    this.#payloadLeft =
      length === 126
        ? this.#header.readUInt16BE(2)
        : length === 127
          ? this.#header.readUInt32BE(2) * 2 ** 32 + this.#header.readUInt32BE(6)
          : length;
    this.#headerBytes = 0;
    this.#isFinal = (first & 0x80) !== 0;
    const kind = first & 0x0f;
    this.#isControl = kind >= FIRST_CONTROL;
    // A server does not mask what it sends.
    this.#isUnreadable = (second & 0x80) !== 0;
    if (!this.#isControl && kind !== CONTINUATION) this.#beginMessage(kind === TEXT && (first & 0x70) === 0);
    if (this.#payloadLeft === 0) this.#endFrame();
  }

  #beginMessage(isPlainText: boolean): void {
    this.#message = isPlainText ? new HeadAndTail(MAX_MESSAGE_BYTES, false) : null;
    this.#isDecided = false;
  }

  #payload(bytes: Buffer): void {
    const message = this.#isControl ? null : this.#message;
    if (!message) return;
    const room = this.#isDecided ? bytes.length : EXAMINED_BYTES - message.bytes;
    message.add(bytes.subarray(0, room));
    if (message.bytes >= EXAMINED_BYTES && !this.#isOfInterest(message)) this.#message = null;
    else if (bytes.length > room) message.add(bytes.subarray(room));
  }

  /** Decided once per message, by its beginning. */
  #isOfInterest(message: HeadAndTail): boolean {
    const isOfInterest = this.#isDecided || message.head.subarray(0, EXAMINED_BYTES).includes(RESPONSE_DONE);
    this.#isDecided = true;
    return isOfInterest;
  }

  #endFrame(): void {
    if (this.#isControl || !this.#isFinal) return;
    const used = this.#message && this.#isOfInterest(this.#message) ? usageOf(this.#message) : null;
    if (used) this.#usage = addedUsage(this.#usage, used);
    this.#message = null;
  }
}

const usageOf = (message: HeadAndTail): ModelUsage | null =>
  usageFrom(
    message.isWhole && message.bytes <= SMALL_MESSAGE_BYTES
      ? memberOfSmall(message.head, USAGE_NAMES, IN_EVENTS)
      : memberOf(message, USAGE_NAMES, IN_EVENTS),
  );
