/**
 * What a realtime connection says of itself: the model that its target names, and the tokens of each response that was done.
 *
 * The upstream's frames (RFC 6455, 5.2) go by and are not changed or held. Of each message only the beginning is looked at; the few
 * that tell a usage are kept up to a bound. What was compressed for the connection (`permessage-deflate`) is not read: each of its
 * messages can only be read by whoever has read all before.
 */
import type { ContentFacts, ModelUsage } from '../events.js';
import type { CaptureContext } from './body.js';
import { Ends } from './ends.js';
import { modelNamed, modelShown, usageIn } from './facts.js';
import { memberOf, memberOfSmall } from './members.js';

const LONGEST_HEADER = 14;
const LARGEST_MESSAGE = 64 * 1024;
// Up to here a message is parsed whole, which takes one try.
const SMALL_MESSAGE = 4 * 1024;
// The type of an event stands in front of what it says.
const BEGINNING = 256;
const RESPONSE_DONE = Buffer.from('"response.done"');

const CONTINUATION = 0;
const TEXT = 1;
const FIRST_CONTROL = 8;

export class RealtimeReader {
  #usage: ModelUsage | null = null;
  readonly #model: string | null;
  /** Of the frame that begins, as far as it came. */
  readonly #header = Buffer.alloc(LONGEST_HEADER);
  #headerBytes = 0;
  /** Of the frame that goes on. */
  #payloadLeft = 0;
  #isControl = false;
  #isFinal = false;
  /** Of the message that goes on. Null when it is of no interest. */
  #message: Ends | null = null;
  #isDecided = false;
  /** These are no frames of a server. */
  #isUnreadable = false;

  /** @param target of the request that asked for the connection. */
  constructor(target: string) {
    const query = target.indexOf('?');
    this.#model = query === -1 ? null : modelNamed(new URLSearchParams(target.slice(query + 1)).get('model'));
  }

  /** From the upstream, behind its handshake. */
  piece(bytes: Buffer): void {
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

  /** When the connection is over. */
  facts({ isServed, upstreamKey }: CaptureContext): ContentFacts {
    const model = isServed ? modelShown(this.#model, upstreamKey) : null;
    return { model, usage: this.#usage, requestBody: null, responseBody: null };
  }

  /** As far as the first bytes tell. */
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
    this.#message = isPlainText ? new Ends(LARGEST_MESSAGE, false) : null;
    this.#isDecided = false;
  }

  #payload(bytes: Buffer): void {
    const message = this.#isControl ? null : this.#message;
    if (!message) return;
    const room = this.#isDecided ? bytes.length : BEGINNING - message.bytes;
    message.add(bytes.subarray(0, room));
    if (message.bytes >= BEGINNING && !this.#isOfInterest(message)) this.#message = null;
    else if (bytes.length > room) message.add(bytes.subarray(room));
  }

  /** Decided once, by its beginning. */
  #isOfInterest(message: Ends): boolean {
    const isOfInterest = this.#isDecided || message.head.subarray(0, BEGINNING).includes(RESPONSE_DONE);
    this.#isDecided = true;
    return isOfInterest;
  }

  #endFrame(): void {
    if (this.#isControl || !this.#isFinal) return;
    if (this.#message && this.#isOfInterest(this.#message)) this.#add(usageOf(this.#message));
    this.#message = null;
  }

  #add(more: ModelUsage | null): void {
    if (!more) return;
    const { promptTokens, completionTokens, totalTokens } = this.#usage ?? NO_TOKENS;
    this.#usage = {
      promptTokens: sum(promptTokens, more.promptTokens),
      completionTokens: sum(completionTokens, more.completionTokens),
      totalTokens: sum(totalTokens, more.totalTokens),
    };
  }
}

const NO_TOKENS: ModelUsage = { promptTokens: null, completionTokens: null, totalTokens: null };

const sum = (a: number | null, b: number | null) => (a === null ? b : b === null ? a : a + b);

const usageOf = (message: Ends): ModelUsage | null =>
  usageIn(
    message.isWhole && message.bytes <= SMALL_MESSAGE
      ? memberOfSmall(message.head, 'usage', 'response')
      : memberOf(message, 'usage', 'response'),
  );
