/** Bodies in chunks. Each chunk costs the parser a call, so a connection that sends them is parsed in slices. */
import { GatheredBytes } from '../../core/gathered-bytes.js';
import type { BodyHook, CompletionHook, Parser } from './parser.js';

const SLICE_BYTES = 4 * 1024;
/** With more chunks in a slice, the connection is dense. */
const MANY_CHUNKS = 64;
/** From this number of chunks on, a body whose chunks have less than the minimum on average is refused. */
const CHUNKS_TO_JUDGE = 1_000;
// Chunks of 16 bytes pass, although one at the end of a slice counts twice.
const MIN_MEAN_CHUNK_BYTES = 15;

/** Parses what a connection has sent, in slices. What a slice yields of a body is handed over as one piece, whatever chunks it was sent in. */
export class SlicedParsing {
  readonly #parser: Parser;
  readonly #parse: (bytes: Buffer) => void;
  /** The chunks of the current body. */
  #chunks = 0;
  #chunkBytes = 0;
  /** Bytes of the current slice that the parser did not parse, because it has paused. */
  #unparsedBytes = 0;
  /** What follows the current slice. */
  #following: Buffer | null = null;
  isParsing = false;
  /** Whether the last slice had many chunks, so that others should come first. */
  isDense = false;

  /** @param parse parses bytes, up to the next pause of the parser. */
  constructor(parser: Parser, parse: (bytes: Buffer) => void) {
    this.#parser = parser;
    this.#parse = parse;
  }

  /** Whether the current body comes in chunks that are too small. */
  get hasSmallChunks(): boolean {
    return this.#chunks >= CHUNKS_TO_JUDGE && this.#chunkBytes < this.#chunks * MIN_MEAN_CHUNK_BYTES;
  }

  /**
   * Parses slices as long as they are not dense.
   *
   * @param sliceParsed called after each slice with the number of its bytes that were parsed. @returns whether the next one may be parsed.
   * @returns how many of the bytes were parsed, or handed over because the connection has switched protocols.
   */
  parse(bytes: Buffer, sliceParsed: (parsed: number) => boolean): number {
    let at = 0;
    let mayGoOn = true;
    this.isParsing = true;
    try {
      this.#joiningChunks(() => {
        while (mayGoOn) {
          const slice = bytes.subarray(at, at + SLICE_BYTES);
          this.#following = bytes.subarray(at + slice.length);
          const parsed = this.#parseSlice(slice);
          at = this.#wasHandedOver ? bytes.length : at + parsed;
          mayGoOn = sliceParsed(parsed) && at < bytes.length && !this.isDense;
        }
      });
    } finally {
      this.isParsing = false;
      this.#following = null;
    }
    return at;
  }

  #parseSlice(slice: Buffer): number {
    const before = this.#chunks;
    this.#unparsedBytes = 0;
    this.#parse(slice);
    const chunks = this.#chunks - before;
    this.isDense = chunks > MANY_CHUNKS;
    // A large chunk may arrive in many small pieces, which is no fault of its client.
    if (chunks === 1) this.#chunks = before;
    return slice.length - this.#unparsedBytes;
  }

  /** The parser has paused within the current slice. */
  paused(unparsedBytes: number): void {
    this.#unparsedBytes = unparsedBytes;
  }

  /** For an upgrade: what was read after the bytes that Node hands over with it. No more of it is parsed here. */
  takeFollowing(): Buffer | null {
    const following = this.#following;
    this.#following = null;
    return following;
  }

  get #wasHandedOver(): boolean {
    return this.#following === null;
  }

  /** Runs `parse`, counts the chunks of bodies, and hands over what they contain as one piece. The count begins again after each message. */
  #joiningChunks(parse: () => void): void {
    const parser = this.#parser;
    const { kOnBody, kOnMessageComplete } = parser.constructor;
    const onBody = parser[kOnBody] as unknown as BodyHook;
    const onComplete = parser[kOnMessageComplete] as unknown as CompletionHook;
    const gathered = new GatheredBytes();
    const handOver = () => {
      if (gathered.length > 0) onBody.call(parser, gathered.take());
    };
    const hooks = parser as unknown as Record<number, BodyHook | CompletionHook>;
    const gather = (chunk: Buffer) => {
      this.#chunks += 1;
      this.#chunkBytes += chunk.length;
      gathered.add(chunk);
    };
    const complete = () => {
      this.#chunks = this.#chunkBytes = 0;
      handOver();
      onComplete.call(parser);
    };
    hooks[kOnBody] = gather; // Not written here: see `holder` of a pass.
    hooks[kOnMessageComplete] = complete;
    try {
      parse();
    } finally {
      hooks[kOnBody] = onBody;
      hooks[kOnMessageComplete] = onComplete;
    }
    handOver();
  }
}
