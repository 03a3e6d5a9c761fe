/**
 * Reads the model, the token usage and errors from a stream of server-sent events (WHATWG HTML, 9.2.6).
 *
 * Nearly all chunks are complete events with none of these. One look at every few of their bytes suffices to skip them. Other chunks are
 * scanned: events are separated by empty lines, lines may end with LF, CR or CRLF, and a chunk may end anywhere. Nothing of an event is
 * buffered, unless its data is captured.
 */
import type { DetailedUsage } from '../events.js';
import { BoundedBytes } from './bounded-bytes.js';
import { JsonScanner } from './json-scanner.js';
import { mattersIn, MAYBE_USAGE, NOTHING } from './may-matter.js';
import { UNNAMED_ERROR } from './facts.js';
import type { UsageExtent } from './readings.js';
import { EVENT_MEMBERS, usageExtentOf } from './response-members.js';
import { mergedUsage, type ReportedUsage, usageOf } from './token-counts.js';

// Longer events are not captured.
const MAX_EVENT_BYTES = 64 * 1024;
const MAX_DEFERRED_BYTES = 4 * 1024;
// Some providers begin with an event that names no model.
const EVENTS_TO_NAME_MODEL = 4;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const BYTE_ORDER_MARK = Buffer.from('\ufeff');
const DATA = Buffer.from('data:');
const EVENT = Buffer.from('event:');
const ERROR = Buffer.from('error');

/** What the current line is, as far as its first bytes show. */
const UNKNOWN = 0;
const IS_DATA = 1;
const IS_EVENT = 2;
const IS_OTHER = 3;

export class EventStreamReader {
  readonly #onEvent: ((data: Buffer) => void) | null;
  readonly #scanner: JsonScanner;
  /** The data of the current event, if it is captured. */
  readonly #data: BoundedBytes | null;
  model: string | null = null;
  /** Code of the error that the provider reported; null if it did not. */
  error: string | null = null;
  /** What the last usage is of. */
  usageExtent: UsageExtent = 'part';
  /** The last complete events with a usage, if they are read only if no others follow. */
  #deferred: BoundedBytes | null = null;
  /** What the events reported together. */
  #reported: ReportedUsage | null = null;
  #line = UNKNOWN;
  /** The first bytes of a line, until it is known what it is; then those of an event's name. */
  readonly #start = Buffer.alloc(8);
  #startBytes = 0;
  #isLineEmpty = true;
  #isAfterCr = false;
  /** The current event has a line of data. */
  #hasData = false;
  #isError = false;
  #isFirstLine = true;
  #namesLeft = EVENTS_TO_NAME_MODEL;

  /** @param onEvent called with the data of each event that is not too long. */
  constructor(onEvent: ((data: Buffer) => void) | null) {
    this.#onEvent = onEvent;
    this.#data = onEvent && new BoundedBytes(MAX_EVENT_BYTES);
    this.#scanner = new JsonScanner(EVENT_MEMBERS.wanted, () => {
      this.#read();
    });
  }

  /** The usage reported, once the stream has ended. */
  get usage(): DetailedUsage | null {
    return this.#reported && usageOf(this.#reported);
  }

  /** @param bytes are only read from `from` up to `to`. */
  chunk(bytes: Buffer, from = 0, to = bytes.length): void {
    const at = this.#isBetweenEvents ? from : this.#parse(bytes, from, to, true);
    const end = this.#onEvent === null && this.#knowsModel ? this.#passOver(bytes, at, to) : at;
    if (end === to) return;
    this.#readDeferred(); // It is older than what follows.
    this.#parse(bytes, end, to, false);
  }

  /** Passes over complete events without anything of interest. @returns where the others begin. */
  #passOver(bytes: Buffer, from: number, to: number): number {
    const end = endOfLastEvent(bytes, from, to);
    if (end === from) return from;
    const matter = mattersIn(bytes, from, end);
    if (matter !== NOTHING && !(matter === MAYBE_USAGE && this.#defers(bytes, from, end))) return from;
    this.#isAfterCr = false;
    return end;
  }

  /**
   * Gemini and some others repeat the usage in every event. It is cumulative, so after the first one only the last one has to be read.
   *
   * @returns whether they are read later, unless others with a usage replace them.
   */
  #defers(bytes: Buffer, from: number, to: number): boolean {
    if (this.#reported === null || this.#reported.isOfAnthropic || to - from > MAX_DEFERRED_BYTES) return false;
    this.#deferred ??= new BoundedBytes(MAX_DEFERRED_BYTES);
    this.#deferred.clear();
    this.#deferred.add(bytes.subarray(from, to));
    return true;
  }

  #readDeferred(): void {
    const deferred = this.#deferred;
    this.#deferred = null;
    if (deferred) this.#parse(deferred.head, 0, deferred.bytes, false);
  }

  /** @param endsBetweenEvents whether to stop there. @returns where it stopped. */
  #parse(bytes: Buffer, from: number, to: number, endsBetweenEvents: boolean): number {
    let at = from;
    while (at < to && !(endsBetweenEvents && at > from && this.#isBetweenEvents)) {
      if (this.#isBetweenEvents) at = this.#passEmptyLines(bytes, at, to);
      const end = endOfLine(bytes, at, to);
      if (end > at) this.#part(bytes, at, end);
      if (end === to) return to;
      this.#lineEnd(bytes[end]);
      at = end + 1;
    }
    return at;
  }

  /** Empty lines between events mean nothing. A stream may have millions of them. */
  #passEmptyLines(bytes: Buffer, from: number, to: number): number {
    let at = from;
    while (at < to && (bytes[at] === LF || bytes[at] === CR)) at += 1;
    if (at > from) this.#isAfterCr = bytes[at - 1] === CR;
    return at;
  }

  get #knowsModel(): boolean {
    return this.model !== null || this.#namesLeft <= 0;
  }

  get #isBetweenEvents(): boolean {
    return this.#isLineEmpty && !this.#hasData && !this.#isError && !this.#isFirstLine;
  }

  /** The stream has ended. Also reads an unfinished last event. */
  end(): void {
    if (this.#hasData || this.#isError) this.#endEvent();
    this.#readDeferred();
  }

  /** A part of a line. */
  #part(bytes: Buffer, from: number, to: number): void {
    this.#isLineEmpty = this.#isAfterCr = false;
    let at = from;
    while (this.#line === UNKNOWN && at < to) {
      this.#start[this.#startBytes++] = bytes[at++] ?? 0;
      this.#recognize();
    }
    if (at === to) return;
    if (this.#line === IS_DATA) {
      this.#scanner.scan(bytes, at, to);
      this.#data?.add(bytes.subarray(at, to));
    } else if (this.#line === IS_EVENT) {
      while (at < to && this.#startBytes < this.#start.length) {
        const byte = bytes[at++] ?? 0;
        if (byte !== SPACE || this.#startBytes > 0) this.#start[this.#startBytes++] = byte;
      }
    }
  }

  #recognize(): void {
    const length = this.#startBytes;
    const start = this.#start.subarray(0, length);
    if (this.#isFirstLine && start.equals(BYTE_ORDER_MARK)) this.#startBytes = 0;
    else if (start.equals(DATA)) {
      this.#line = IS_DATA;
      if (this.#hasData) this.#data?.add(LINE_END);
      this.#hasData = true;
    } else if (start.equals(EVENT)) {
      this.#line = IS_EVENT;
      this.#startBytes = 0;
    } else if (length === EVENT.length || !isBeginning(start, this.#isFirstLine)) this.#line = IS_OTHER;
  }

  #lineEnd(byte: number | undefined): void {
    const isSecondHalf = byte === LF && this.#isAfterCr;
    this.#isAfterCr = byte === CR;
    if (isSecondHalf) return;
    if (this.#line === IS_EVENT) this.#isError = this.#start.subarray(0, this.#startBytes).equals(ERROR);
    if (this.#isLineEmpty && (this.#hasData || this.#isError)) this.#endEvent();
    this.#line = UNKNOWN;
    this.#startBytes = 0;
    this.#isLineEmpty = true;
    this.#isFirstLine = false;
  }

  #endEvent(): void {
    this.#scanner.finish();
    if (this.#isError) this.error ??= UNNAMED_ERROR;
    if (this.#hasData) this.#namesLeft -= 1;
    if (this.#knowsModel) this.#scanner.unwanted = EVENT_MEMBERS.modelBits;
    this.#hasData = this.#isError = false;
    if (!this.#data || !this.#onEvent) return;
    if (this.#data.isWhole && this.#data.bytes > 0) this.#onEvent(this.#data.head);
    this.#data.clear();
  }

  /** A document that has something of interest. */
  #read(): void {
    const scanner = this.#scanner;
    if (this.model === null && this.#namesLeft > 0) this.model = EVENT_MEMBERS.modelIn(scanner);
    const reported = EVENT_MEMBERS.usageIn(scanner);
    if (reported) {
      this.#reported = mergedUsage(this.#reported, reported);
      this.usageExtent = usageExtentOf(scanner);
    }
    this.error ??= EVENT_MEMBERS.errorIn(scanner);
  }
}

const LINE_END = Buffer.from('\n');

const isBeginning = (start: Buffer, isFirstLine: boolean) =>
  [DATA, EVENT, ...(isFirstLine ? [BYTE_ORDER_MARK] : [])].some((name) => name.subarray(0, start.length).equals(start));

/** Index of the next line end; `to` if there is none. */
function endOfLine(bytes: Buffer, from: number, to: number): number {
  for (let at = from; at < to; at++) {
    const byte = bytes[at];
    if (byte === LF || byte === CR) return at;
  }
  return to;
}

/**
 * Index after the last empty line; `from` if there is none. Line ends with a single CR are not recognised; they are not used in practice.
 */
function endOfLastEvent(bytes: Buffer, from: number, to: number): number {
  for (let at = to - 1; at > from; at--) {
    if (bytes[at] !== LF) continue;
    if (bytes[at - 1] === LF || (bytes[at - 1] === CR && bytes[at - 2] === LF)) return at + 1;
  }
  return from;
}
