/** Capture of request and response bodies for events: decoded, truncated, and with secrets masked. */
import { withoutSecret } from '../masking.js';
import { HeadAndTail } from './head-and-tail.js';
import type { Span } from './members.js';
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
  #coding: string | null = null;
  #body: HeadAndTail;
  #message: StreamedMessage | null = null;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.heldBytes = maxBytes + MARGIN_BYTES;
    this.#body = new HeadAndTail(this.heldBytes, false);
  }

  responseStarted(type: string, coding: string | null): void {
    this.#type = type;
    this.#coding = coding;
    if (IS_EVENT_STREAM.test(type)) this.#message = new StreamedMessage(this.heldBytes);
  }

  chunk(bytes: Buffer): void {
    this.#body.add(bytes);
  }

  /** Data of a server-sent event. */
  event(data: Buffer): void {
    this.#message?.event(data);
  }

  /** The following chunks are the body again, decoded. */
  decoded(): void {
    this.#coding = null;
    this.#body = new HeadAndTail(this.heldBytes, false);
  }

  requestBody(body: Span | null, bytes: number, context: CaptureContext): string | null {
    if (!body || bytes === 0) return null;
    return this.#shown(body.head, bytes, context.requestType() ?? '', context);
  }

  responseBody(context: CaptureContext): string | null {
    const { bytes, head } = this.#body;
    if (bytes === 0) return null;
    if (this.#coding !== null) return `[${bytes} bytes of ${typeName(this.#type)}, ${typeName(this.#coding)}]`;
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
