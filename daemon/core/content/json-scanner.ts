/**
 * Extracts a few members from JSON documents of any length while their bytes pass.
 *
 * Responses can be megabytes of text or numbers, of which a few hundred bytes are needed, and their bytes come from strangers. So nothing
 * is parsed but the wanted values. The scanner looks at each byte once, follows only the objects that lead to a wanted member, and skips
 * everything else with a counter for the depth. It allocates nothing but the text of the values that it found. It does not validate: what
 * is not JSON yields no value, or one that does not parse.
 *
 * A document may end anywhere and continue in the next bytes. Documents may follow each other directly, as messages and events do. Only
 * objects are searched, and lists if a path asks for them.
 */
import { BoundedBytes } from './bounded-bytes.js';
import type { Node, Wanted } from './wanted-members.js';

// A longer value is not a name or a usage; it is skipped.
const MAX_VALUE_BYTES = 64 * 1024;
const MAX_KEY_BYTES = 48;
// A search in native code is faster, but its call costs as much as looking at about this many bytes here.
const SHORT_RUN = 24;
// The same for five searches, of which each may find nothing up to its limit.
const LONG_RUN = 512;
const MAX_NATIVE_RUN = 8 * 1024;

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const PLAIN = 0;
const OPENS = 1;
const CLOSES = 2;
const QUOTES = 3;
const CLASS_OF = new Uint8Array(256);
CLASS_OF[OPEN_BRACKET] = CLASS_OF[OPEN_BRACE] = OPENS;
CLASS_OF[CLOSE_BRACKET] = CLASS_OF[CLOSE_BRACE] = CLOSES;
CLASS_OF[QUOTE] = QUOTES;
const STRUCTURE = [CLOSE_BRACKET, QUOTE, OPEN_BRACKET, OPEN_BRACE, CLOSE_BRACE];

/** Between documents. */
const OUTSIDE = 0;
const BEFORE_KEY = 1;
const IN_KEY = 2;
const BEFORE_COLON = 3;
const BEFORE_VALUE = 4;
const BEFORE_ELEMENT = 5;
const IN_STRING = 6;
/** In an object or list of which nothing is wanted, or all of it. */
const IN_NESTED = 7;
const IN_NESTED_STRING = 8;
/** The value was found that ends the search. */
const DONE = 9;

export class JsonScanner {
  /** The JSON text of the values of the current document, in the order of their paths; null for those that were not found. */
  readonly values: (string | null)[];
  /** A bit for each of the values that are no longer wanted. */
  unwanted = 0;
  /** A bit for each of the values that were found. */
  found = 0;
  /** A bit for each of the values that were found more than once in the current document; the last one counts. */
  repeated = 0;
  readonly #root: Node;
  readonly #onDocument: (() => void) | null;
  readonly #stopsAtFirst: boolean;
  readonly #decodesKeys: boolean;
  #state = OUTSIDE;
  /** The objects and lists around the current position that lead to wanted members. */
  readonly #levels: Node[] = [];
  /** How many they are. The arrays are never shortened, because each document would allocate them again. */
  #level = 0;
  /** For each of these lists the index of the current element; -1 for objects. */
  readonly #indexes: number[] = [];
  /** The part of the current key that was in earlier bytes. */
  #key: Buffer | null = null;
  #keyBytes = 0;
  /** What is wanted of the member whose key was read. */
  #member: Node | null = null;
  /** Within an object or list that is passed over: how many of them are open. */
  #depth = 0;
  /** The next byte of a string is escaped. */
  #isEscaped = false;
  /** The slot of the value that is being captured; -1 if none is. */
  #slot = -1;
  /** The part of it that was in earlier bytes. */
  #held: BoundedBytes | null = null;

  /**
   * @param onDocument called at the end of each document in which a value was found; `values` are cleared afterwards.
   * @param stopsAtFirst ends the search at the first value.
   * @param decodesKeys whether keys with escapes are recognised, as no serializer writes them, but a client may.
   */
  constructor(wanted: Wanted, onDocument: (() => void) | null = null, stopsAtFirst = false, decodesKeys = false) {
    this.#root = wanted.root;
    this.values = wanted.noValues.slice();
    this.#onDocument = onDocument;
    this.#stopsAtFirst = stopsAtFirst;
    this.#decodesKeys = decodesKeys;
  }

  /** No further bytes are needed. */
  get isDone(): boolean {
    return this.#state === DONE;
  }

  /** The next bytes, which are `bytes` from `from` up to `to`. */
  scan(bytes: Buffer, from = 0, to = bytes.length): void {
    let begin = from;
    let at = from;
    while (at < to) {
      switch (this.#state) {
        case OUTSIDE:
          this.#open(bytes[at++]);
          break;
        case BEFORE_KEY: {
          // Also passes over commas, white space, numbers and the like.
          const byte = bytes[at++];
          if (byte === QUOTE) {
            this.#state = IN_KEY;
            this.#keyBytes = 0;
          } else if (byte === CLOSE_BRACE) this.#leave();
          break;
        }
        case IN_KEY:
          at = this.#readKey(bytes, at, to);
          break;
        case BEFORE_COLON:
          if (bytes[at++] === COLON) this.#state = BEFORE_VALUE;
          break;
        case BEFORE_VALUE:
          begin = at;
          at += this.#beginValue(bytes[at] ?? 0, this.#member);
          break;
        case BEFORE_ELEMENT:
          begin = at;
          at += this.#beginElement(bytes[at] ?? 0);
          break;
        case IN_STRING:
        case IN_NESTED_STRING: {
          const end = this.#endOfString(bytes, at, to);
          at = end === -1 ? to : end;
          if (end === -1) break;
          if (this.#state === IN_NESTED_STRING) this.#state = IN_NESTED;
          else this.#endValue(bytes, begin, at);
          break;
        }
        case IN_NESTED:
          at = this.#passNested(bytes, at, to);
          if (this.#depth === 0) this.#endValue(bytes, begin, at);
          break;
        default:
          return; // It is done.
      }
    }
    if (this.#slot !== -1) this.#hold(bytes.subarray(begin, to));
  }

  /** The document ends here, complete or not. The next bytes begin another one. */
  finish(): void {
    if (this.found !== 0) this.#endDocument();
    this.#state = OUTSIDE;
    this.#level = 0;
    this.#depth = 0;
    this.#isEscaped = false;
    this.#slot = -1;
    this.#held?.clear();
  }

  #endDocument(): void {
    if (!this.#onDocument) return; // Its owner reads the values later.
    this.#onDocument();
    this.repeated = 0;
    for (let slot = 0; this.found !== 0; slot++, this.found >>>= 1) this.values[slot] = null;
  }

  // ---- objects and lists that lead to wanted members

  #open(byte: number | undefined): void {
    if (byte === OPEN_BRACE) this.#enter(this.#root, -1);
    else if (byte === OPEN_BRACKET && this.#root.elements) this.#enter(this.#root, 0);
    else if (byte === OPEN_BRACKET) this.#passOver(IN_NESTED);
  }

  /** @param index 0 for a list. */
  #enter(node: Node, index: number): void {
    this.#levels[this.#level] = node;
    this.#indexes[this.#level] = index;
    this.#level += 1;
    this.#state = index === -1 ? BEFORE_KEY : BEFORE_ELEMENT;
  }

  #leave(): void {
    this.#level -= 1;
    this.#continue();
  }

  /** After a value: continues with the object or list that contains it. */
  #continue(): void {
    const last = this.#level - 1;
    if (last >= 0) this.#state = this.#indexes[last] === -1 ? BEFORE_KEY : BEFORE_ELEMENT;
    else {
      this.#state = OUTSIDE;
      if (this.found !== 0) this.#endDocument();
    }
  }

  #readKey(bytes: Buffer, from: number, to: number): number {
    const end = this.#endOfString(bytes, from, to);
    if (end === -1) {
      this.#holdKey(bytes, from, to);
      return to;
    }
    const quote = end - 1;
    if (this.#keyBytes === 0) this.#member = this.#memberNamed(bytes, from, quote);
    else {
      this.#holdKey(bytes, from, quote);
      this.#member = this.#key && this.#memberNamed(this.#key, 0, this.#keyBytes);
    }
    const isColonNext = end < to && bytes[end] === COLON;
    this.#state = isColonNext ? BEFORE_VALUE : BEFORE_COLON;
    return isColonNext ? end + 1 : end;
  }

  /** A key that is too long keeps a length that no wanted one has. */
  #holdKey(bytes: Buffer, from: number, to: number): void {
    this.#key ??= Buffer.alloc(MAX_KEY_BYTES);
    bytes.copy(this.#key, this.#keyBytes, from, to);
    this.#keyBytes = Math.min(MAX_KEY_BYTES, this.#keyBytes + to - from);
  }

  /** A key with escapes is none of the wanted ones, unless keys are decoded. */
  #memberNamed(key: Buffer, from: number, to: number): Node | null {
    if (this.#decodesKeys && key.subarray(from, to).includes(BACKSLASH)) {
      const decoded = decodedKey(key.subarray(from, to));
      return this.#memberWithName(decoded, 0, decoded.length);
    }
    return this.#memberWithName(key, from, to);
  }

  #memberWithName(key: Buffer, from: number, to: number): Node | null {
    const named = this.#levels[this.#level - 1]?.named[to - from];
    if (named === undefined) return null; // As nearly always: no wanted name has this length.
    search: for (const { name, node } of named) {
      for (let i = 0; i < name.length; i++) if (name[i] !== key[from + i]) continue search;
      return node;
    }
    return null;
  }

  /** @returns the number of bytes read: 0 for a byte that belongs to what follows. */
  #beginValue(byte: number, node: Node | null): 0 | 1 {
    if (node !== null && node.kind === 'literal' && byte > SPACE) this.#keep(node.slot, String.fromCharCode(byte));
    switch (byte) {
      case QUOTE:
        this.#passOver(IN_STRING);
        if (node?.kind === 'string') this.#capture(node);
        return 1;
      case OPEN_BRACE:
        if (node && node.named.length > 0) this.#enter(node, -1);
        else {
          this.#passOver(IN_NESTED);
          if (node?.kind === 'object') this.#capture(node);
        }
        return 1;
      case OPEN_BRACKET:
        if (node?.elements) this.#enter(node, 0);
        else this.#passOver(IN_NESTED);
        return 1;
      case SPACE:
      case LF:
      case CR:
      case TAB:
        return 1;
      default:
        this.#continue();
        return 0;
    }
  }

  #beginElement(byte: number): 0 | 1 {
    const last = this.#level - 1;
    if (byte === CLOSE_BRACKET) this.#leave();
    else if (byte === COMMA) this.#indexes[last] = (this.#indexes[last] ?? 0) + 1;
    else if (byte === QUOTE) this.#passOver(IN_STRING);
    else if (byte === OPEN_BRACKET) this.#passOver(IN_NESTED);
    else if (byte === OPEN_BRACE) {
      const list = this.#levels[last];
      const node = list && (!list.isFirstOnly || this.#indexes[last] === 0) ? list.elements : null;
      return this.#beginValue(byte, node);
    }
    return 1;
  }

  // ---- values that are passed over or captured

  #capture({ slot }: Node): void {
    if ((this.unwanted & (1 << slot)) === 0) this.#slot = slot;
  }

  #passOver(state: typeof IN_STRING | typeof IN_NESTED): void {
    this.#state = state;
    this.#depth = 1;
  }

  /** @returns the index after the closing quote; -1 if it is not among these bytes. */
  #endOfString(bytes: Buffer, from: number, to: number): number {
    let at = this.#isEscaped ? from + 1 : from;
    for (;;) {
      // Text with many escaped quotes would need a search in native code for each of them.
      for (const end = Math.min(to, at + SHORT_RUN); at < end; at++) {
        const byte = bytes[at];
        if (byte === QUOTE) {
          this.#isEscaped = false;
          return at + 1;
        }
        if (byte === BACKSLASH) at += 1;
      }
      if (at >= to) break;
      const quote = bytes.indexOf(QUOTE, at);
      const end = quote === -1 || quote > to ? to : quote;
      let slash = end;
      while (slash > at && bytes[slash - 1] === BACKSLASH) slash -= 1;
      // After an odd number of backslashes the next byte is escaped.
      at = (end - slash) % 2 === 1 ? end + 1 : end;
    }
    this.#isEscaped = at > to;
    return -1;
  }

  #passNested(bytes: Buffer, from: number, to: number): number {
    let depth = this.#depth;
    let at = from;
    let nativeAt = from + LONG_RUN;
    while (at < to) {
      const kind = CLASS_OF[bytes[at++] ?? 0];
      if (kind === PLAIN) {
        // A long list of numbers.
        if (at < nativeAt) continue;
        at = nextStructure(bytes, at, Math.min(to, at + MAX_NATIVE_RUN));
        nativeAt = at;
        continue;
      }
      nativeAt = at + LONG_RUN;
      if (kind === QUOTES) {
        const end = this.#endOfString(bytes, at, to);
        if (end === -1) {
          this.#state = IN_NESTED_STRING;
          at = to;
        } else at = end;
      } else if (kind === OPENS) depth += 1;
      else if (--depth === 0) break;
    }
    this.#depth = depth;
    return at;
  }

  #endValue(bytes: Buffer, begin: number, end: number): void {
    const slot = this.#slot;
    if (slot === -1) {
      this.#continue();
      return;
    }
    const held = this.#held && this.#held.bytes > 0 ? this.#held : null;
    if (held) this.#hold(bytes.subarray(begin, end));
    // Too long if `hold` gave up.
    if (this.#slot !== -1 && end - begin <= MAX_VALUE_BYTES)
      this.#keep(slot, held ? held.head.toString('utf8') : bytes.toString('utf8', begin, end));
    held?.clear();
    this.#slot = -1;
    if (this.#stopsAtFirst) this.#state = DONE;
    else this.#continue();
  }

  #keep(slot: number, value: string): void {
    this.values[slot] = value;
    this.repeated |= this.found & (1 << slot);
    this.found |= 1 << slot;
  }

  #hold(part: Buffer): void {
    const held = (this.#held ??= new BoundedBytes(MAX_VALUE_BYTES));
    held.add(part);
    if (held.isWhole) return;
    this.#slot = -1;
    held.clear();
  }
}

/** What the JSON text of a value means; null if there is none, or it is not JSON. */
export function parsedValue(json: string | null | undefined): unknown {
  try {
    return JSON.parse(json ?? 'null');
  } catch {
    return null;
  }
}

/** @param key its JSON text, without the quotes. @returns the same if it is not valid. */
function decodedKey(key: Buffer): Buffer {
  try {
    return Buffer.from(String(JSON.parse(`"${key.toString()}"`)));
  } catch {
    return key;
  }
}

/** Index of the next quote, bracket or brace; `to` if there is none. */
function nextStructure(bytes: Buffer, from: number, to: number): number {
  const rest = bytes.subarray(from, to);
  let next = rest.length;
  for (const byte of STRUCTURE) {
    // Each search covers only what the ones before it left, so a list of numbers is searched up to its end once.
    const found = rest.subarray(0, next).indexOf(byte);
    if (found !== -1) next = found;
  }
  return from + next;
}
