/** Bodies as they are shown to whoever asked for it: decoded, cut, and without our secrets. */
import { withoutSecret } from '../masking.js';
import { Ends } from './ends.js';
import type { Span } from './members.js';
import { StreamedMessage } from './message.js';

// Longer than any secret: what the cut goes through is seen whole, and masked, before it is cut.
const MARGIN_BYTES = 1024;

const IS_TEXT = /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|jsonl|x-ndjson|x-www-form-urlencoded)\b)/i;
const IS_EVENT_STREAM = /^text\/event-stream\b/i;

/** What is known by the end of a request only. */
export interface CaptureContext {
  /** Whether it was forwarded, or answered out of the cache. A request that was refused is not searched for its model. */
  isServed: boolean;
  requestType: () => string | undefined;
  /** Should somebody repeat it. */
  upstreamKey: string | null;
}

export class BodyCapture {
  readonly #mostBytes: number;
  /** So much of a body is to be held. */
  readonly heldBytes: number;
  #type = '';
  #coding: string | null = null;
  #body: Ends;
  #message: StreamedMessage | null = null;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
    this.heldBytes = mostBytes + MARGIN_BYTES;
    this.#body = new Ends(this.heldBytes, false);
  }

  answered(type: string, coding: string | null): void {
    this.#type = type;
    this.#coding = coding;
    if (IS_EVENT_STREAM.test(type)) this.#message = new StreamedMessage(this.heldBytes);
  }

  piece(bytes: Buffer): void {
    this.#body.add(bytes);
  }

  /** The data of an event. */
  event(data: Buffer): void {
    this.#message?.event(data);
  }

  /** What follows is the body once more, without its coding. */
  decoded(): void {
    this.#coding = null;
    this.#body = new Ends(this.heldBytes, false);
  }

  requestBody(body: Span | null, bytes: number, context: CaptureContext): string | null {
    if (!body || bytes === 0) return null;
    return this.#shown(body.head, bytes, context.requestType() ?? '', context);
  }

  responseBody(context: CaptureContext): string | null {
    const { bytes, head } = this.#body;
    if (bytes === 0) return null;
    if (this.#coding !== null) return `[${bytes} bytes of ${typeName(this.#type)}, ${typeName(this.#coding)}]`;
    const message = this.#message?.spelled();
    if (message === undefined || message === null) return this.#shown(head, bytes, this.#type, context);
    const spelled = Buffer.from(message);
    return this.#shown(spelled.subarray(0, this.heldBytes), spelled.length, 'application/json', context);
  }

  #shown(head: Buffer, bytes: number, type: string, { upstreamKey }: CaptureContext): string {
    const isText = type === '' ? !head.includes(0) : IS_TEXT.test(type);
    if (!isText) return `[${bytes} bytes of ${typeName(type)}]`;
    // Invalid UTF-8 is replaced, by characters that may take more room than what they stand for.
    const text = withoutSecret(upstreamKey, head.toString('utf8'));
    const isHeld = head.length >= bytes;
    const size = Buffer.byteLength(text);
    if (isHeld && size <= this.#mostBytes) return text;
    // What is left of a secret that the end of what is held goes through, should masking have moved it here.
    const most = isHeld ? this.#mostBytes : Math.min(this.#mostBytes, Math.max(0, size - MARGIN_BYTES));
    const cut = beginningOf(text, most);
    return `${cut}…[cut: ${Buffer.byteLength(cut)} of ${Math.max(bytes, size)} bytes]`;
  }
}

/** As many whole characters as take no more than that many bytes. */
function beginningOf(text: string, mostBytes: number): string {
  const bytes = Buffer.from(text);
  let end = Math.min(mostBytes, bytes.length);
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}

const LONGEST_TYPE = 100;

const typeName = (type: string) =>
  (type.split(';')[0] ?? '').replace(/[^\x21-\x7e]/g, '').slice(0, LONGEST_TYPE) || 'unknown type';
