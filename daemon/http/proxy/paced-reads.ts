import type { Socket } from 'node:net';
import { stopHandle } from '../socket-handle.js';
import { HeldMemory, type MemoryLimit } from '../../core/memory-limit.js';
import type { Scheduler } from '../scheduler.js';

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

export interface PacedReadsOptions {
  turn: ParsingTurn;
  /**
   * Called when undici has parsed what it read before.
   *
   * @returns of how many pieces it consisted.
   */
  onParsed: () => number;
  /** Called when nothing more is read for now: hands over what was parsed. */
  onReadEnd: () => void;
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
  readonly #options: PacedReadsOptions;
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

  constructor(socket: Socket, options: PacedReadsOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#read = socket.read.bind(socket);
    // Node calls `read(0)` to fill the buffer of the socket, and to end it once it is empty.
    socket.read = (size?: number): unknown => (size === 0 ? this.#read(0) : this.#next());
  }

  #next(): unknown {
    const hasRead = this.#unparsed > 0;
    if (hasRead) this.#judge();
    const bytes = this.#mayRead() ? this.#readSome(hasRead) : null;
    this.#unparsed = bytes === null ? 0 : bytes.length;
    if (bytes === null && hasRead) this.#options.onReadEnd();
    return bytes;
  }

  /** Judges the last read by its pieces. */
  #judge(): void {
    const pieces = this.#options.onParsed();
    if (pieces === 0) this.#countHeader();
    else if (this.#headerBytes > 0) this.#endHeader();
    if (pieces <= MANY_PIECES) return;
    this.#options.turn.count(pieces);
    if (this.#unparsed >= pieces * SMALL_BYTES) return;
    this.#isDense = true;
  }

  #countHeader(): void {
    this.#headerBytes += this.#unparsed;
    if (this.#headerBytes >= FIRST_BYTES) this.#hold(this.#headerBytes * HEADER_FACTOR);
  }

  #hold(bytes: number): void {
    if (this.#socket.destroyed) return;
    this.#memory ??= new HeldMemory(this.#options.turn.memory, () => {
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
    if ((!this.#isDense && !this.#options.turn.isOver) || this.#isGranted) return true;
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
    this.#options.turn.later(() => {
      this.#isWaiting = false;
      this.#isGranted = true;
      if (!this.#isPaused) this.#socket.emit('readable');
      this.#isGranted = false;
    }, this.#isDense);
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
  unpause(): void {
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
