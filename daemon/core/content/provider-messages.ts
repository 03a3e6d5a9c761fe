/**
 * Reads what the provider's messages on a WebSocket say about responses: that one begins or ends, its model and token usage, and errors.
 *
 * A connection may have any number of messages, however small, so nothing is allocated for those that can say none of this: they are
 * passed over. The others are scanned where they are.
 */
import type { DetailedUsage } from '../events.js';
import { JsonScanner } from './json-scanner.js';
import { MESSAGE_MEMBERS, MODEL_TURN, TURN_COMPLETE } from './response-members.js';
import { usageOf } from './token-counts.js';

export interface ProviderMessage {
  /** A response begins. */
  begins: boolean;
  /** It is a part of a turn of Gemini's Live API, which has no message for its beginning. */
  isOfTurn: boolean;
  /** The response has ended, completely or not. */
  ends: boolean;
  /** The whole message is about an error, not about a response that failed. */
  isError: boolean;
  model: string | null;
  /** What a response or a transcription has used. */
  usage: DetailedUsage | null;
  /** Code of the reported error. It may contain a secret. */
  error: string | null;
}

/** No shorter message says anything: `{"type":"error"}`. */
const MIN_MESSAGE_BYTES = 16;

const BEGINS = 'response.created';
const ENDS = /^response\.(?:done|completed|failed|incomplete|cancelled)$/;
/** Messages that report what was used. Those of Gemini have no type. */
const REPORTS_USAGE =
  /^(?:response\.(?:done|completed|failed|incomplete|cancelled)|conversation\.item\.input_audio_transcription\.completed)?$/;

// How OpenAI's messages begin.
const BEGINNING = Buffer.from('{"type":"');
const QUOTE = 0x22;
const DELTA = Buffer.from('.delta');
const LONGEST_TYPE = 80;

export class ProviderMessages {
  readonly #onMessage: (message: ProviderMessage) => void;
  readonly #scanner: JsonScanner;
  /** Whether the current message can say something. */
  wantsPayload = false;
  #isAtStart = false;

  /** @param onMessage called for each message that says something. */
  constructor(onMessage: (message: ProviderMessage) => void) {
    this.#onMessage = onMessage;
    this.#scanner = new JsonScanner(MESSAGE_MEMBERS.wanted, () => {
      this.#read();
    });
  }

  /** @see MessageReceiver. Gemini sends JSON in binary messages. */
  begin(bytes: number | null): void {
    this.wantsPayload = bytes === null || bytes >= MIN_MESSAGE_BYTES;
    this.#isAtStart = true;
  }

  payload(bytes: Buffer, from: number, to: number): void {
    if (this.#isAtStart && isDelta(bytes, from, to)) this.wantsPayload = false;
    else this.#scanner.scan(bytes, from, to);
    this.#isAtStart = false;
  }

  end(): void {
    if (this.wantsPayload) this.#scanner.finish();
  }

  #read(): void {
    const scanner = this.#scanner;
    const type = MESSAGE_MEMBERS.typeIn(scanner);
    const reported = REPORTS_USAGE.test(type) ? MESSAGE_MEMBERS.usageIn(scanner) : null;
    this.#onMessage({
      begins: type === BEGINS,
      isOfTurn: MESSAGE_MEMBERS.markIn(scanner, MODEL_TURN) !== null,
      ends: ENDS.test(type) || MESSAGE_MEMBERS.markIn(scanner, TURN_COMPLETE) === 't',
      isError: type === 'error',
      model: MESSAGE_MEMBERS.modelIn(scanner),
      usage: reported && usageOf(reported),
      error: MESSAGE_MEMBERS.errorIn(scanner),
    });
  }
}

/** Whether a message with this beginning is a part of a response, which nearly all are. */
function isDelta(bytes: Buffer, from: number, to: number): boolean {
  const first = from + BEGINNING.length;
  if (to - first < DELTA.length || bytes.compare(BEGINNING, 0, BEGINNING.length, from, first) !== 0) return false;
  let end = first;
  for (const last = Math.min(to, first + LONGEST_TYPE); end < last && bytes[end] !== QUOTE; end++);
  const begin = end - DELTA.length;
  return bytes[end] === QUOTE && begin > first && bytes.compare(DELTA, 0, DELTA.length, begin, end) === 0;
}
