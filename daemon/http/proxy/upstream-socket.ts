/** What a connection to the upstream does otherwise than a socket of Node: memory for reads, small writes, and `100 Continue`. */
import type { OnReadOpts, Socket } from 'node:net';

/** The most that is read at once, as with Node's own reads. */
const READ_BYTES = 64 * 1024;
/** Several responses to chats fit into one. */
const BLOCK_BYTES = 8 * 1024;

interface Block {
  bytes: Buffer;
  /** Where its free part begins. */
  end: number;
}

// All connections read into it, one at a time: what was read is copied before anything else is read.
const READ = Buffer.allocUnsafeSlow(READ_BYTES);

/**
 * The option `onread` for connections. By default, Node allocates 64 KB for each read and then shrinks them, and the garbage collector frees
 * each of them separately while requests wait. With this option, what was read is copied into a block of its connection, which small
 * reads share. A block belongs to one connection. So what waits for a slow client retains at most one block more than its own size.
 */
export function readIntoBlocks(): OnReadOpts {
  const blocks = new WeakMap<Socket, Block>();

  /** @returns a copy of the first `length` bytes. */
  function copied(socket: Socket, length: number): Buffer {
    if (length > BLOCK_BYTES / 2) {
      // Not from Node's pool, which connections share.
      const copy = Buffer.allocUnsafeSlow(length);
      READ.copy(copy, 0, 0, length);
      return copy;
    }
    let block = blocks.get(socket);
    if (!block || block.end + length > BLOCK_BYTES) {
      block = { bytes: Buffer.allocUnsafeSlow(BLOCK_BYTES), end: 0 };
      blocks.set(socket, block);
    }
    const begin = block.end;
    block.end += READ.copy(block.bytes, begin, 0, length);
    return block.bytes.subarray(begin, block.end);
  }

  return {
    buffer: READ,
    /** `this` is the connection. Its stream gets no other data. */
    callback(this: Socket, length: number): boolean {
      return this.push(copied(this, length));
    },
  };
}

// Above this size, copying the chunks costs more than it saves; Node then also has to allocate memory for the text.
const MAX_TEXT_BYTES = 16 * 1024;

interface Chunk {
  chunk: Buffer | string;
  encoding: string;
}
type Callback = (error?: Error | null) => void;

/** The methods of a stream that `Writable` calls: for chunks that were written while it was corked, and for a single one. */
interface Writer {
  _writev(chunks: readonly Chunk[], callback: Callback): void;
  _write(chunk: string, encoding: string, callback: Callback): void;
}

/**
 * Makes a connection write the small chunks of a message as one text. For a list of chunks Node allocates several objects and asks V8 for
 * each of their parts, which takes longer than copying them. latin1 maps each byte to one character.
 */
export function joinSmallWrites(socket: Socket): void {
  const writer = socket as unknown as Writer;
  const writeList = writer._writev.bind(writer);
  writer._writev = (chunks, callback) => {
    const text = joined(chunks);
    if (text === null) writeList(chunks, callback);
    else writer._write(text, 'latin1', callback);
  };
}

/** @returns null if they are not small, or contain other text than latin1. */
function joined(chunks: readonly Chunk[]): string | null {
  let text = '';
  for (const { chunk, encoding } of chunks) {
    if (text.length + chunk.length > MAX_TEXT_BYTES) return null;
    if (typeof chunk !== 'string') text += chunk.toString('latin1');
    else if (encoding === 'latin1') text += chunk;
    else return null;
  }
  return text;
}

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
