/**
 * An answer as a stream of server-sent events, as far as it says which model answers and what that took.
 *
 * Nearly all of its pieces are whole events that say neither. To see that takes a search in native code and a look at the last bytes.
 * What is left is taken apart: events lie between empty lines, lines end as they like, and a piece may end anywhere.
 */
import type { ModelUsage } from '../events.js';
import { Ends } from './ends.js';
import { modelNamed, usageIn } from './facts.js';
import { behindSpace, memberOf, memberOfSmall, type Span, whole } from './members.js';

// A longer event is known by its two ends.
const LARGEST_EVENT = 64 * 1024;
// Up to here an event is parsed whole: to look for one of its members can take several tries.
const SMALL_EVENT = 4 * 1024;
// Providers that tell the usage with every event tell it again with the next one.
const MOST_USAGES_READ = 4;
// Some providers begin with an event that names no model.
const EVENTS_TO_NAME_MODEL = 4;
const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const DATA = Buffer.from('data:');
const USAGE = Buffer.from('"usage"');
const MODEL = Buffer.from('"model"');

export class EventStreamReader {
  readonly #onEvent: ((data: Buffer) => void) | null;
  model: string | null = null;
  /** As it was said last. */
  usage: ModelUsage | null = null;
  /** Of the event that goes on. */
  readonly #event = new Ends(LARGEST_EVENT, false);
  #isAtLineStart = true;
  #isBehindCr = false;
  #namesLeft = EVENTS_TO_NAME_MODEL;
  /** The last events of this piece that tell a usage. */
  #tellUsage: Span[] = [];

  /** @param onEvent told of the data of every event that is not too long. */
  constructor(onEvent: ((data: Buffer) => void) | null) {
    this.#onEvent = onEvent;
  }

  piece(bytes: Buffer): void {
    const isOfNoInterest = this.#onEvent === null && (this.model !== null || this.#namesLeft === 0);
    if (isOfNoInterest && this.#event.bytes === 0 && this.#isAtLineStart && endsEvent(bytes) && !tellsUsage(bytes)) {
      this.#isBehindCr = false;
      return;
    }
    this.#takeApart(bytes);
    this.#readUsage(memberOfEvent);
  }

  /** No more will come. What an unfinished event said whole is said. */
  end(): void {
    // It may be cut off anywhere, and then cannot be parsed whole.
    if (this.#event.bytes > 0) this.#read(this.#event, memberOf);
    this.#readUsage(memberOf);
    this.#event.clear();
  }

  #takeApart(bytes: Buffer): void {
    let begin = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte !== LF && byte !== CR) {
        this.#isAtLineStart = this.#isBehindCr = false;
        continue;
      }
      const isSecondHalf = byte === LF && this.#isBehindCr;
      this.#isBehindCr = byte === CR;
      if (isSecondHalf) continue;
      if (this.#isAtLineStart) {
        // Of empty lines alone there is no event, however many come.
        if (this.#event.bytes > 0 || at > begin + 1) this.#finish(bytes.subarray(begin, at + 1));
        begin = at + 1;
      }
      this.#isAtLineStart = true;
    }
    if (begin < bytes.length) this.#event.add(bytes.subarray(begin));
  }

  #finish(last: Buffer): void {
    if (this.#event.bytes === 0) {
      this.#read(whole(last), memberOfEvent);
      return;
    }
    this.#event.add(last);
    this.#read(this.#event, memberOfEvent);
    this.#readUsage(memberOfEvent); // Before what it lies in is used for the next event.
    this.#event.clear();
  }

  #read(event: Span, memberIn: typeof memberOf): void {
    if (!event.head.includes(DATA)) return; // A comment, say, of which a provider may send any number.
    const mayName = this.model === null && this.#namesLeft > 0;
    const namesModel = mayName && event.head.includes(MODEL);
    const hasUsage = tellsUsage(event.isWhole ? event.head : event.tail);
    if (!namesModel && !hasUsage && !mayName && this.#onEvent === null) return;
    if (hasUsage) this.#willTell(event);
    if (!namesModel && !mayName && this.#onEvent === null) return;
    const data = dataIn(event);
    if (mayName) this.#namesLeft -= 1;
    if (data.head.length === 0) return;
    if (namesModel) this.model = modelNamed(memberIn(data, 'model', 'response'));
    if (event.isWhole) this.#onEvent?.(data.head);
  }

  #willTell(event: Span): void {
    this.#tellUsage.push(event);
    if (this.#tellUsage.length > MOST_USAGES_READ) this.#tellUsage.shift();
  }

  #readUsage(memberIn: typeof memberOf): void {
    for (let event = this.#tellUsage.pop(); event; event = this.#tellUsage.pop()) {
      const usage = usageIn(memberIn(dataIn(event), 'usage', 'response'));
      if (!usage) continue;
      this.usage = usage;
      this.#tellUsage = [];
    }
  }
}

const memberOfEvent: typeof memberOf = (data, name, within) =>
  data.isWhole && data.head.length <= SMALL_EVENT
    ? memberOfSmall(data.head, name, within)
    : memberOf(data, name, within);

/** Whether an empty line is the last of it; not for line ends that nobody uses. */
function endsEvent(bytes: Buffer): boolean {
  const { length } = bytes;
  if (bytes[length - 1] !== LF) return false;
  return bytes[length - 2] === LF || (bytes[length - 2] === CR && bytes[length - 3] === LF);
}

/** Whether a usage that is not null may stand in it. All chunks of a stream have one that is, where the client asked for it. */
function tellsUsage(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(USAGE); at !== -1; at = bytes.indexOf(USAGE, at + 1)) {
    const colon = behindSpace(bytes, at + USAGE.length);
    if (bytes[colon] === COLON && bytes[behindSpace(bytes, colon + 1)] === 0x7b) return true; // {
  }
  return false;
}

/** What the `data` lines of an event say together (WHATWG HTML, 9.2.6). */
function dataOf(event: Buffer): Buffer {
  const text = event.toString('utf8');
  const lines: string[] = [];
  for (const line of text.replace(/^\u{feff}/u, '').split(/\r\n|\n|\r/)) {
    if (line.startsWith('data:')) lines.push(line.slice(line[5] === ' ' ? 6 : 5));
  }
  return Buffer.from(lines.join('\n'));
}

const dataIn = (event: Span): Span => (event.isWhole ? whole(dataOf(event.head)) : withoutFieldName(event));

const withoutFieldName = ({ head, tail, isWhole }: Span): Span => ({
  head: head.subarray(Math.max(0, head.indexOf(0x7b))),
  tail,
  isWhole,
});
