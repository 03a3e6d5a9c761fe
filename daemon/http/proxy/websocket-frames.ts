/** Receives the messages that a `FrameReader` finds. */
export interface MessageReceiver {
  /** Whether the payload of the current message is to be passed to `payload`. */
  readonly wantsPayload: boolean;
  /** A message begins. @param bytes its length; null if it comes in several frames. */
  begin(bytes: number | null): void;
  /** The next bytes of the message, unmasked. They are valid only during the call. */
  payload(bytes: Buffer, from: number, to: number): void;
  /** The message is complete. */
  end(): void;
}

const CONTINUATION = 0x0;
const BINARY = 0x2;
const CLOSE = 0x8;
const PONG = 0xa;
const IS_FINAL = 0x80;
const RESERVED_BITS = 0x70;
const IS_MASKED = 0x80;
// Values of the length field that mean that the length follows in 2 or 8 bytes.
const LENGTH_OF_TWO_BYTES = 126;
const LENGTH_OF_EIGHT_BYTES = 127;
const MAX_CONTROL_BYTES = 125;
const MASK_BYTES = 4;
const MAX_HEADER_BYTES = 2 + 8 + MASK_BYTES;
// Numbers up to 2^53 are exact.
const MAX_UPPER_LENGTH = 0x1fffff;

/** Shared by all readers, because each use ends before the next one begins. */
const unmasked = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * Reads the frames of a WebSocket in one direction (RFC 6455, 5.2), without extensions. There may be any number of them, however small,
 * so nothing is allocated for a frame or a message.
 */
export class FrameReader {
  readonly #isFromClient: boolean;
  readonly #receiver: MessageReceiver;
  /** Header of the current frame, as far as it has arrived. */
  readonly #header = Buffer.alloc(MAX_HEADER_BYTES);
  #headerBytes = 0;
  #headerSize = 2;
  /** Bytes left of the payload of the current frame. */
  #left = 0;
  /** How many bytes of the payload were read; the mask repeats every four. */
  #position = 0;
  #isInMessage = false;
  /** Whether the current or the last frame is a control frame. */
  isControl = false;
  /** Whether that frame ends a message. */
  #isFinal = false;
  /** Whether the frame that was read last is complete. */
  isFrameComplete = false;
  /** Whether a close frame has begun. Nothing may follow it. */
  isClosed = false;
  /** Whether what was read is not a sequence of frames. Nothing more is read then. */
  isMalformed = false;

  /** @param isFromClient a client must mask what it sends, and a server must not. */
  constructor(isFromClient: boolean, receiver: MessageReceiver) {
    this.#isFromClient = isFromClient;
    this.#receiver = receiver;
  }

  get isBetweenFrames(): boolean {
    return this.#headerBytes === 0 && !this.isMalformed;
  }

  /** Whether a message may begin here: a control frame may come between the frames of a message, another message may not. */
  get isBetweenMessages(): boolean {
    return this.isBetweenFrames && !this.#isInMessage;
  }

  /** Whether the header of the current frame is incomplete, so that it is not known yet what its message is. */
  get isInHeader(): boolean {
    return this.#headerBytes > 0 && this.#headerBytes < this.#headerSize;
  }

  /** Whether the frame that was read last ended a message. */
  get hasEndedMessage(): boolean {
    return this.isFrameComplete && this.#isFinal && !this.isControl;
  }

  /** Reads up to the end of the current frame. @returns the index after the last byte that was read. */
  read(bytes: Buffer, from: number): number {
    let at = from;
    while (at < bytes.length && !this.isMalformed) {
      if (this.#headerBytes < this.#headerSize) {
        this.#header[this.#headerBytes++] = bytes[at++] ?? 0;
        if (this.#headerBytes === 1) this.#readFirst();
        else if (this.#headerBytes === 2) this.#readSecond();
        if (this.#headerBytes === this.#headerSize) this.#beginPayload();
      } else {
        const end = Math.min(bytes.length, at + this.#left);
        if (!this.isControl && this.#receiver.wantsPayload) this.#passOn(bytes, at, end);
        this.#position += end - at;
        this.#left -= end - at;
        at = end;
      }
      if (this.#headerBytes === this.#headerSize && this.#left === 0) {
        this.#endFrame();
        return at;
      }
    }
    return at;
  }

  #readFirst(): void {
    const first = this.#header[0] ?? 0;
    const opcode = first & 0x0f;
    this.isFrameComplete = false;
    this.#isFinal = (first & IS_FINAL) !== 0;
    this.isControl = opcode >= CLOSE;
    const isKnown = opcode <= BINARY || (opcode >= CLOSE && opcode <= PONG);
    const isInPlace = this.isControl ? this.#isFinal : (opcode === CONTINUATION) === this.#isInMessage;
    if (!isKnown || !isInPlace || (first & RESERVED_BITS) !== 0 || this.isClosed) this.isMalformed = true;
    if (opcode === CLOSE) this.isClosed = true;
  }

  #readSecond(): void {
    const second = this.#header[1] ?? 0;
    const length = second & 0x7f;
    const isMasked = (second & IS_MASKED) !== 0;
    if (isMasked !== this.#isFromClient || (this.isControl && length > MAX_CONTROL_BYTES)) this.isMalformed = true;
    const lengthBytes = length === LENGTH_OF_EIGHT_BYTES ? 8 : length === LENGTH_OF_TWO_BYTES ? 2 : 0;
    this.#headerSize = 2 + lengthBytes + (isMasked ? MASK_BYTES : 0);
  }

  #beginPayload(): void {
    const header = this.#header;
    const length = (header[1] ?? 0) & 0x7f;
    if (length === LENGTH_OF_EIGHT_BYTES) {
      const upper = header.readUInt32BE(2);
      if (upper > MAX_UPPER_LENGTH) this.isMalformed = true;
      this.#left = upper * 2 ** 32 + header.readUInt32BE(6);
    } else {
      this.#left = length === LENGTH_OF_TWO_BYTES ? header.readUInt16BE(2) : length;
    }
    this.#position = 0;
    if (this.isMalformed || this.isControl || this.#isInMessage) return;
    this.#isInMessage = true;
    this.#receiver.begin(this.#isFinal ? this.#left : null);
  }

  #endFrame(): void {
    this.#headerBytes = 0;
    this.#headerSize = 2;
    this.isFrameComplete = true;
    if (this.isControl || !this.#isFinal) return;
    this.#isInMessage = false;
    this.#receiver.end();
  }

  #passOn(bytes: Buffer, from: number, to: number): void {
    if (!this.#isFromClient) {
      this.#receiver.payload(bytes, from, to);
      return;
    }
    const mask = this.#headerSize - MASK_BYTES;
    for (let at = from; at < to;) {
      const count = Math.min(unmasked.length, to - at);
      const phase = this.#position + at - from;
      for (let i = 0; i < count; i++)
        unmasked[i] = (bytes[at + i] ?? 0) ^ (this.#header[mask + ((phase + i) % MASK_BYTES)] ?? 0);
      this.#receiver.payload(unmasked, 0, count);
      at += count;
    }
  }
}

const FINAL_TEXT = 0x81;
const FINAL_CLOSE = 0x88;

/** @returns frames from a server: an optional text message of at most 64 KiB, and a close frame. */
export function closingFrames(text: string | null, closeCode: number, reason: string): Buffer {
  // Our own reasons are far shorter than the limit of 123 bytes.
  const close = Buffer.concat([Buffer.from([closeCode >> 8, closeCode & 0xff]), Buffer.from(reason)]);
  const frames: Buffer[] = [Buffer.from([FINAL_CLOSE, close.length]), close];
  if (text !== null) frames.unshift(frameOf(Buffer.from(text)));
  return Buffer.concat(frames);
}

function frameOf(text: Buffer): Buffer {
  const head =
    text.length < LENGTH_OF_TWO_BYTES
      ? [FINAL_TEXT, text.length]
      : [FINAL_TEXT, LENGTH_OF_TWO_BYTES, text.length >> 8, text.length & 0xff];
  return Buffer.concat([Buffer.from(head), text]);
}
