/** What a connection to the upstream does otherwise than a socket of Node: memory for reads, small writes, `100 Continue`, and the pace of reads. */
import type { OnReadOpts, Socket } from 'node:net';
import { HeldMemory, type MemoryLimit } from '../../core/memory-limit.js';
import type { Scheduler } from '../scheduler.js';
import { stopHandle } from '../socket-handle.js';

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

// ---- the pace of reads

// What a chat response fits into. More is read at once if this contained few pieces.
const FIRST_BYTES = 8 * 1024;
const SLICE_BYTES = 4 * 1024;
/** A read with more pieces, which are smaller than `SMALL_BYTES` on average, is dense. */
const MANY_PIECES = 64;
const SMALL_BYTES = 32;
/** What is read ahead of a connection that is parsed in slices, in blocks that were read at once. */
const READ_AHEAD_BYTES = 128 * 1024;
/** Memory for each byte of a head or of trailers: undici keeps a buffer for each name and value, which can have one byte each. */
const HEADER_FACTOR = 50;
/** Pieces that all connections together parse in a turn of the event loop. */
const PIECES_PER_TURN = 1_000;

/** What the connections to all upstreams parse in a turn of the event loop, in pieces: each one costs as much as many bytes do. */
export class ParsingTurn {
  readonly #scheduler: Pick<Scheduler, 'add'>;
  /** What waits in the buffers of connections counts here. */
  readonly memory: MemoryLimit;
  #pieces = 0;

  constructor(scheduler: Pick<Scheduler, 'add'>, memory: MemoryLimit) {
    this.#scheduler = scheduler;
    this.memory = memory;
  }

  get isOver(): boolean {
    return this.#pieces >= PIECES_PER_TURN;
  }

  count(pieces: number): void {
    if (this.#pieces === 0) {
      setImmediate(() => {
        this.#pieces = 0;
      });
    }
    this.#pieces += pieces;
  }

  /** @param isDense whether it parses many small pieces, so that others come first. */
  later(work: () => void, isDense: boolean): void {
    this.#scheduler.add(work, isDense ? 'late' : 'usual');
  }
}

/** What undici has parsed of a response. */
export interface ParsedResponse {
  /** @returns the number of pieces since the last call. */
  parsedPieces(): number;
  /** Nothing more is read for now: passes on what was parsed, as one piece. */
  handOver(): void;
}

/**
 * Paces what undici reads from a connection: it can be paused, and a connection whose peer sends many small pieces is parsed in slices,
 * when others need no time.
 *
 * undici's own way to pause, returning `false` for a piece of the body, must not be used: if the upstream then closes the connection,
 * undici fails an assertion in an event handler, which would end the process. undici reads only with `socket.read()`, when the socket is
 * `readable`, and until it gets null.
 */
export class PacedReads {
  readonly #socket: Socket;
  readonly #turn: ParsingTurn;
  /** The response that is read. Null between two requests, so that an idle connection retains none. */
  #response: ParsedResponse | null = null;
  #isResponseOver = false;
  readonly #read: (size?: number) => unknown;
  #isPaused = false;
  /** Whether the peer has sent many small pieces. */
  #isDense = false;
  /** Whether a slice may be read now. */
  #isGranted = false;
  #isWaiting = false;
  /** Bytes of the last read that are not parsed yet. */
  #unparsed = 0;
  /** Bytes that were parsed since the last piece: of an incomplete head, or of trailers. */
  #headerBytes = 0;
  /** What waits here of a peer that sends much at little cost. Null until there is some. */
  #memory: HeldMemory | null = null;

  constructor(socket: Socket, turn: ParsingTurn) {
    this.#socket = socket;
    this.#turn = turn;
    this.#read = socket.read.bind(socket);
    // Node calls `read(0)` to fill the buffer of the socket, and to end it once it is empty.
    socket.read = (size?: number): unknown => (size === 0 ? this.#read(0) : this.#next());
  }

  #next(): unknown {
    const hasRead = this.#unparsed > 0;
    if (hasRead) this.#judge();
    const bytes = this.#mayRead() ? this.#readSome(hasRead) : null;
    this.#unparsed = bytes === null ? 0 : bytes.length;
    if (bytes === null && hasRead) this.#handOver();
    return bytes;
  }

  #handOver(): void {
    this.#response?.handOver();
    if (this.#isResponseOver) this.#response = null;
  }

  /** Judges the last read by its pieces. */
  #judge(): void {
    const pieces = this.#response?.parsedPieces() ?? 0;
    if (pieces === 0) this.#countHeader();
    else if (this.#headerBytes > 0) this.#endHeader();
    if (pieces <= MANY_PIECES) return;
    this.#turn.count(pieces);
    if (this.#unparsed >= pieces * SMALL_BYTES) return;
    this.#isDense = true;
  }

  #countHeader(): void {
    this.#headerBytes += this.#unparsed;
    if (this.#headerBytes >= FIRST_BYTES) this.#hold(this.#headerBytes * HEADER_FACTOR);
  }

  #hold(bytes: number): void {
    if (this.#socket.destroyed) return;
    this.#memory ??= new HeldMemory(this.#turn.memory, () => {
      this.#socket.destroy(new Error('dropped because memory was short'));
    });
    this.#memory.hold(bytes);
  }

  #endHeader(): void {
    this.#headerBytes = 0;
    if (!this.#isDense) this.#memory?.release();
  }

  #mayRead(): boolean {
    // undici must not get anything for a connection that was ended meanwhile.
    if (this.#isPaused || this.#socket.destroyed) return false;
    if ((!this.#isDense && !this.#turn.isOver) || this.#isGranted) return true;
    this.#readLater();
    return false;
  }

  #readSome(hasRead: boolean): Buffer | null {
    const { readableLength } = this.#socket;
    const isHeader = this.#headerBytes >= FIRST_BYTES;
    const most = this.#isDense || isHeader ? SLICE_BYTES : hasRead ? Infinity : FIRST_BYTES;
    this.#isGranted = false;
    if (readableLength <= most) return this.#read() as Buffer | null;
    const slice = this.#read(most) as Buffer | null;
    // A socket with `onread` reads on with each call, whatever waits in its buffer.
    if (readableLength - most >= this.#socket.readableHighWaterMark) stopHandle(this.#socket);
    return slice;
  }

  #readLater(): void {
    if (this.#isWaiting || this.#socket.readableLength === 0) return;
    if (this.#isDense) this.#hold(READ_AHEAD_BYTES);
    this.#isWaiting = true;
    this.#turn.later(() => {
      this.#isWaiting = false;
      this.#isGranted = true;
      if (!this.#isPaused) this.#socket.emit('readable');
      this.#isGranted = false;
    }, this.#isDense);
  }

  /** What is read next is this response. */
  begin(response: ParsedResponse): void {
    this.#response = response;
    this.#isResponseOver = false;
  }

  /** The connection is closed. */
  end(): void {
    this.#isPaused = true;
    this.#memory?.release();
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** The response has ended. Lets undici read again, but only with the next event of the socket. */
  endResponse(): void {
    this.#isResponseOver = true;
    this.#isPaused = false;
    this.#headerBytes = 0;
    this.#memory?.release();
  }

  /** Lets undici read what has arrived meanwhile. */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    // Not at once: while undici parses what another connection has read, it cannot parse anything else.
    process.nextTick(() => {
      if (!this.#isPaused) this.#socket.emit('readable');
    });
  }
}
