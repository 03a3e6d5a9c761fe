/**
 * Reads the model and the token usage from a stream of server-sent events.
 *
 * Nearly all chunks are complete events with neither. A native search and a look at the last bytes suffice to skip these. Other chunks
 * are parsed: events are separated by empty lines, lines may end with LF, CR or CRLF, and a chunk may end anywhere.
 */
import type { ModelUsage } from '../events.js';
import { HeadAndTail } from './head-and-tail.js';
import { modelNameFrom } from './facts.js';
import {
  IN_EVENTS,
  memberOf,
  memberOfSmall,
  MODEL_NAMES,
  skipWhitespace,
  type Span,
  USAGE_NAMES,
  wholeSpan,
} from './members.js';
import { mergedUsage, type ReportedUsage, reportedUsage, usageOf } from './token-counts.js';

// Of a longer event only the beginning and end are buffered.
const MAX_EVENT_BYTES = 64 * 1024;
// Events up to this size are parsed at once, because searching for a member may take several attempts.
const SMALL_EVENT_BYTES = 4 * 1024;
// Some providers repeat the usage in every event, so only the last ones are read.
const MAX_USAGES_READ = 4;
// Some providers begin with an event that names no model.
const EVENTS_TO_NAME_MODEL = 4;
const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const DATA = Buffer.from('data:');
const QUOTE = 0x22;
// Without the closing quote: Gemini's names for both, `usageMetadata` and `modelVersion`, begin like this too.
const USAGE = Buffer.from('"usage');
const MODEL = Buffer.from('"model');
const METADATA = Buffer.from('Metadata"');

export class EventStreamReader {
  readonly #onEvent: ((data: Buffer) => void) | null;
  model: string | null = null;
  /** What the events reported together. */
  #reported: ReportedUsage | null = null;
  /** The current event, if it spans several chunks. */
  readonly #event = new HeadAndTail(MAX_EVENT_BYTES, false);
  /** Complete events with a usage that are read only if no others follow. */
  readonly #deferred = new HeadAndTail(SMALL_EVENT_BYTES, false);
  #isAtLineStart = true;
  #isAfterCr = false;
  #namesLeft = EVENTS_TO_NAME_MODEL;
  /** The last events of this chunk that contain a usage. */
  #withUsage: Span[] = [];

  /** @param onEvent called with the data of each event that is not too long. */
  constructor(onEvent: ((data: Buffer) => void) | null) {
    this.#onEvent = onEvent;
  }

  /** The usage reported so far. */
  get usage(): ModelUsage | null {
    return this.#reported && usageOf(this.#reported);
  }

  chunk(bytes: Buffer): void {
    const isOfNoInterest = this.#onEvent === null && (this.model !== null || this.#namesLeft === 0);
    if (isOfNoInterest && this.#event.bytes === 0 && this.#isAtLineStart && endsEvent(bytes)) {
      if (!containsUsage(bytes) || this.#defers(bytes)) {
        this.#isAfterCr = false;
        return;
      }
    }
    this.#readDeferred();
    this.#parse(bytes);
    this.#readUsage(memberOfEvent);
  }

  /**
   * Gemini and some others repeat the usage in every event. It is cumulative, so after the first one only the last one has to be read.
   *
   * @param bytes complete events. @returns whether they are read later, unless others with a usage replace them.
   */
  #defers(bytes: Buffer): boolean {
    if (this.#reported === null || this.#reported.isOfAnthropic || bytes.length > SMALL_EVENT_BYTES) return false;
    this.#deferred.clear();
    this.#deferred.add(bytes);
    return true;
  }

  #readDeferred(): void {
    if (this.#deferred.bytes === 0) return;
    this.#parse(this.#deferred.head);
    this.#readUsage(memberOfEvent);
    this.#deferred.clear();
  }

  /** The stream has ended. Also reads an unfinished last event. */
  end(): void {
    this.#readDeferred();
    // It may be truncated anywhere, so that it cannot be parsed as JSON.
    if (this.#event.bytes > 0) this.#read(this.#event, memberOf);
    this.#readUsage(memberOf);
    this.#event.clear();
  }

  #parse(bytes: Buffer): void {
    let begin = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte !== LF && byte !== CR) {
        this.#isAtLineStart = this.#isAfterCr = false;
        continue;
      }
      const isSecondHalf = byte === LF && this.#isAfterCr;
      this.#isAfterCr = byte === CR;
      if (isSecondHalf) {
        if (begin === at) begin = at + 1; // It ended the last event.
        continue;
      }
      if (this.#isAtLineStart) {
        // Empty lines alone are not an event.
        if (this.#event.bytes > 0 || at > begin + 1) this.#finish(bytes.subarray(begin, at + 1));
        begin = at + 1;
      }
      this.#isAtLineStart = true;
    }
    if (begin < bytes.length) this.#event.add(bytes.subarray(begin));
  }

  #finish(last: Buffer): void {
    if (this.#event.bytes === 0) {
      this.#read(wholeSpan(last), memberOfEvent);
      return;
    }
    this.#event.add(last);
    this.#read(this.#event, memberOfEvent);
    this.#readUsage(memberOfEvent); // Before its buffer is reused for the next event.
    this.#event.clear();
  }

  #read(event: Span, memberIn: typeof memberOf): void {
    if (!event.head.includes(DATA)) return; // Not an event with data: a comment, for example, of which there may be any number.
    const mayName = this.model === null && this.#namesLeft > 0;
    const namesModel = mayName && event.head.includes(MODEL);
    const hasUsage = containsUsage(event.isWhole ? event.head : event.tail);
    if (!namesModel && !hasUsage && !mayName && this.#onEvent === null) return;
    if (hasUsage) this.#addUsage(event);
    if (!namesModel && !mayName && this.#onEvent === null) return;
    const data = dataIn(event);
    if (mayName) this.#namesLeft -= 1;
    if (data.head.length === 0) return;
    if (namesModel) this.model = modelNameFrom(memberIn(data, MODEL_NAMES, IN_EVENTS));
    if (event.isWhole) this.#onEvent?.(data.head);
  }

  #addUsage(event: Span): void {
    this.#withUsage.push(event);
    // The first one of a stream may have counts that no other has.
    if (this.#withUsage.length > MAX_USAGES_READ) this.#withUsage.splice(this.#reported === null ? 1 : 0, 1);
  }

  /** Usage is cumulative, so the last event has it all, except in Anthropic's format: its parts are in several events. */
  #readUsage(memberIn: typeof memberOf): void {
    let found: ReportedUsage | null = null;
    for (let event = this.#withUsage.pop(); event; event = this.#withUsage.pop()) {
      const earlier = reportedUsage(memberIn(dataIn(event), USAGE_NAMES, IN_EVENTS));
      if (!earlier) continue;
      found = found === null ? earlier : mergedUsage(earlier, found);
      if (!found.isOfAnthropic) this.#withUsage = [];
    }
    if (found !== null) this.#reported = mergedUsage(this.#reported, found);
  }
}

const memberOfEvent: typeof memberOf = (data, names, within) =>
  data.isWhole && data.head.length <= SMALL_EVENT_BYTES
    ? memberOfSmall(data.head, names, within)
    : memberOf(data, names, within);

/** Whether it ends with an empty line. Line ends with a single CR are not recognised; they are not used in practice. */
function endsEvent(bytes: Buffer): boolean {
  const { length } = bytes;
  if (bytes[length - 1] !== LF) return false;
  return bytes[length - 2] === LF || (bytes[length - 2] === CR && bytes[length - 3] === LF);
}

/** Whether it may contain a usage that is an object. If the client asked for usage, all other events contain `"usage":null`. */
function containsUsage(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(USAGE); at !== -1; at = bytes.indexOf(USAGE, at + 1)) {
    const end = at + USAGE.length;
    const isMetadata = bytes[end] !== QUOTE && bytes.subarray(end, end + METADATA.length).equals(METADATA);
    if (bytes[end] !== QUOTE && !isMetadata) continue;
    const colon = skipWhitespace(bytes, end + (isMetadata ? METADATA.length : 1));
    if (bytes[colon] === COLON && bytes[skipWhitespace(bytes, colon + 1)] === 0x7b) return true; // {
  }
  return false;
}

/** Whether the event is one line of data and the empty line after it, as nearly all are. JSON may begin and end with white space. */
function isOneLineOfData(event: Buffer): boolean {
  const end = event.indexOf(LF);
  const cr = event.indexOf(CR);
  const isLast = end !== -1 && end >= event.length - 3 && (cr === -1 || cr >= end - 1);
  return isLast && DATA.equals(event.subarray(0, DATA.length));
}

/** The joined `data` lines of an event (WHATWG HTML, 9.2.6). */
function dataOf(event: Buffer): Buffer {
  if (isOneLineOfData(event)) return event.subarray(DATA.length);
  const text = event.toString('utf8');
  const lines: string[] = [];
  for (const line of text.replace(/^\u{feff}/u, '').split(/\r\n|\n|\r/)) {
    if (line.startsWith('data:')) lines.push(line.slice(line[5] === ' ' ? 6 : 5));
  }
  return Buffer.from(lines.join('\n'));
}

const dataIn = (event: Span): Span => (event.isWhole ? wholeSpan(dataOf(event.head)) : withoutFieldName(event));

const withoutFieldName = ({ head, tail, isWhole }: Span): Span => ({
  head: head.subarray(Math.max(0, head.indexOf(0x7b))),
  tail,
  isWhole,
});
