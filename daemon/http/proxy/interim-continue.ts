import type { Socket } from 'node:net';

const STATUS_LINE = Buffer.from('HTTP/1.1 1'); // HTTP/1.0 has no interim responses.
const FIRST_DIGIT = STATUS_LINE.length - 1;
const LAST_DIGIT = STATUS_LINE.length + 1;
const [CR = 0, LF = 0, ZERO = 0, ONE = 0, TWO = 0] = Buffer.from('\r\n012');

/**
 * Lets undici pass over `100 Continue`, as it passes over every other interim response: a provider may send one that was not requested (RFC
 * 9110, 15.2), and undici takes it for a broken response. What undici reads becomes a 102, which means nothing either. Of a final
 * response only the status line is looked at.
 */
export class InterimContinue {
  /** Where the next byte belongs: to a status line, to the rest of an interim response, or to a final response. */
  #part: 'status' | 'interim' | 'final' = 'status';
  /** The number of bytes of the status line, or of the blank line after an interim response, so far. */
  #matched = 0;
  #mayBeContinue = true;

  /** @param socket a new connection to the upstream. */
  constructor(socket: Socket) {
    const read = socket.read.bind(socket);
    socket.read = (size?: number): unknown => {
      const bytes: unknown = read(size);
      if (this.#part !== 'final' && Buffer.isBuffer(bytes)) this.#look(bytes);
      return bytes;
    };
  }

  /** A request is about to be sent: what is read next is the beginning of its response. */
  expectResponse(): void {
    this.#part = 'status';
    this.#matched = 0;
    this.#mayBeContinue = true;
  }

  #look(bytes: Buffer): void {
    // Nearly always this is all there is to see: a final status.
    if (this.#part === 'status' && this.#matched === 0 && (bytes[FIRST_DIGIT] ?? ONE) !== ONE) {
      this.#part = 'final';
      return;
    }
    for (let at = 0; at < bytes.length && this.#part !== 'final'; at++) {
      if (this.#part === 'status') this.#status(bytes, at);
      else this.#interim(bytes[at]);
    }
  }

  #status(bytes: Buffer, at: number): void {
    const place = this.#matched++;
    if (place < STATUS_LINE.length) {
      if (bytes[at] !== STATUS_LINE[place]) this.#part = 'final';
      return;
    }
    this.#mayBeContinue &&= bytes[at] === ZERO;
    if (place < LAST_DIGIT) return;
    if (this.#mayBeContinue) bytes[at] = TWO;
    this.#part = 'interim';
    this.#matched = 0;
  }

  #interim(byte: number | undefined): void {
    const expected = this.#matched % 2 === 0 ? CR : LF;
    this.#matched = byte === expected ? this.#matched + 1 : byte === CR ? 1 : 0;
    if (this.#matched === 4) this.expectResponse();
  }
}
