/** Capture of request and response bodies for events: decoded, truncated, and with secrets masked. */
import { withoutSecret } from '../masking.js';
import { BoundedBytes } from './bounded-bytes.js';
import { StreamedMessage } from './streamed-message.js';

// Longer than any secret: a secret at the cut is still complete when it is masked, before truncation.
const MARGIN_BYTES = 1024;

const IS_TEXT = /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|jsonl|x-ndjson|x-www-form-urlencoded)\b)/i;
const IS_EVENT_STREAM = /^text\/event-stream\b/i;

/** Facts that are known only at the end of a request. */
export interface CaptureContext {
  /** Whether it was forwarded or answered from the cache. Refused requests are not searched for a model. */
  isServed: boolean;
  requestType: () => string | undefined;
  method?: string | undefined;
  /** Path and query of the request. */
  target?: string | undefined;
  /** Masked, in case a body repeats it. */
  upstreamKey: string | null;
}

export class BodyCapture {
  readonly #maxBytes: number;
  /** Bytes of each body to buffer. */
  readonly heldBytes: number;
  #type = '';
  readonly #body: BoundedBytes;
  /** What is shown of a body that could not be decoded. */
  #note: string | null = null;
  #message: StreamedMessage | null = null;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.heldBytes = maxBytes + MARGIN_BYTES;
    this.#body = new BoundedBytes(this.heldBytes);
  }

  responseStarted(type: string): void {
    this.#type = type;
    if (IS_EVENT_STREAM.test(type)) this.#message = new StreamedMessage(this.heldBytes);
  }

  chunk(bytes: Buffer): void {
    this.#body.add(bytes);
  }

  /** Data of a server-sent event. */
  event(data: Buffer): void {
    this.#message?.event(data);
  }

  /** The chunks are not all of the body, because it could not be decoded. @param bytes its size. */
  notDecoded(coding: string, bytes: number): void {
    if (bytes > 0) this.#note = `[${bytes} bytes of ${typeName(this.#type)}, ${typeName(coding)}]`;
  }

  /** @param head the body, or the first `heldBytes` of it. @param bytes its size. */
  requestBody(head: Buffer, bytes: number, context: CaptureContext): string | null {
    if (bytes === 0) return null;
    return this.#shown(head.subarray(0, this.heldBytes), bytes, context.requestType() ?? '', context);
  }

  responseBody(context: CaptureContext): string | null {
    if (this.#note !== null) return this.#note;
    const { bytes, head } = this.#body;
    if (bytes === 0) return null;
    const message = this.#message?.assembled();
    if (message === undefined || message === null) return this.#shown(head, bytes, this.#type, context);
    const spelled = Buffer.from(message);
    return this.#shown(spelled.subarray(0, this.heldBytes), spelled.length, 'application/json', context);
  }

  #shown(head: Buffer, bytes: number, type: string, { upstreamKey }: CaptureContext): string {
    const isText = type === '' ? !head.includes(0) : IS_TEXT.test(type);
    if (!isText) return `[${bytes} bytes of ${typeName(type)}]`;
    // Invalid UTF-8 is replaced by characters that may be longer than the original bytes.
    const text = withoutSecret(upstreamKey, head.toString('utf8'));
    const isHeld = head.length >= bytes;
    const size = Buffer.byteLength(text);
    if (isHeld && size <= this.#maxBytes) return text;
    // The buffer may end in the middle of a secret, which is then not masked; this margin removes it, even if masking moved it here.
    const limit = isHeld ? this.#maxBytes : Math.min(this.#maxBytes, Math.max(0, size - MARGIN_BYTES));
    const beginning = truncated(text, limit);
    return `${beginning}…[cut: ${Buffer.byteLength(beginning)} of ${Math.max(bytes, size)} bytes]`;
  }
}

/** Truncates to `maxBytes` at a character boundary. */
function truncated(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  let end = Math.min(maxBytes, bytes.length);
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}

const MAX_TYPE_LENGTH = 100;

const typeName = (type: string) =>
  (type.split(';')[0] ?? '').replace(/[^\x21-\x7e]/g, '').slice(0, MAX_TYPE_LENGTH) || 'unknown type';
