/**
 * Finds the models that a JSON document names, while its bytes pass, and checks that it is JSON in every byte.
 *
 * A client must not be able to name one model here and another to the provider. So there is one way to read the document: a known key must
 * stand there once, in its own letters and without escapes; what is not JSON in UTF-8 is refused, because a lenient parser could find other
 * members in it. A name is known when its last byte has passed, and that one is named at all, when the last brace has.
 */
import { isUtf8 } from 'node:buffer';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;

/** Deeper documents are refused. */
const MAX_DEPTH = 1_000;
/** The longest known key, each character escaped. */
const MAX_KEY_BYTES = 64;
const MAX_NAME_BYTES = 1_200;
/** A request names one model, or a few to choose from. */
const MAX_NAMES = 100;

/** A container whose keys or entries are looked at: the document, a part of it, a list of models, the tools, one of them. */
type Place = 'top' | 'part' | 'list' | 'tools' | 'tool';

/** What the reader expects next. */
const enum Expect {
  value,
  valueOrEnd,
  key,
  keyOrEnd,
  colon,
  afterValue,
  string,
  escape,
  hex,
  literal,
  minus,
  zero,
  integer,
  point,
  fraction,
  exponent,
  exponentSign,
  exponentDigits,
  nothing,
}

/** A value that is looked at. */
type Wanted = 'model' | 'models' | 'agent' | 'part' | 'background' | 'entry' | 'tools' | 'tool' | null;

type Keys = Readonly<Record<string, Wanted>>;

/** Known keys of the document, of its parts, and of a tool, which may run a model of its own. */
const BACKGROUND: Keys = { background: 'background' };
const KEYS: Keys = {
  ...BACKGROUND,
  model: 'model',
  model_id: 'model',
  models: 'models',
  agent_id: 'agent',
  session: 'part',
  tools: 'tools',
};
const KEYS_OF_PART: Keys = { ...BACKGROUND, model: 'model', tools: 'tools' };
const KEYS_OF_TOOL: Keys = { model: 'model' };
const NO_KEYS: Keys = {};

/** Known keys of each place. */
const keysOf = ({ models, isMessage }: Sought): Readonly<Record<Place, Keys>> => ({
  top: { ...(models ? KEYS : BACKGROUND), ...(isMessage && ({ response: 'part' } as const)) },
  part: models ? KEYS_OF_PART : BACKGROUND,
  tool: KEYS_OF_TOOL,
  list: NO_KEYS,
  tools: NO_KEYS,
});

/** What is to be found: a response in the background only, or models too. */
export interface Sought {
  models: boolean;
  /** Whether the document is a message on a WebSocket, in which the request may be in a part of its own. */
  isMessage: boolean;
}

/** The place that a value which is looked at opens, if it is an object, and if it is an array. */
const PLACES: Readonly<Record<string, { object?: Place; array?: Place }>> = {
  part: { object: 'part' },
  models: { array: 'list' },
  tools: { array: 'tools' },
  tool: { object: 'tool' },
};
const ENTRIES: Partial<Record<Place, Wanted>> = { list: 'entry', tools: 'tool' };

const KEYS_BY_SOUGHT = [false, true].map((isMessage) => [false, true].map((models) => keysOf({ models, isMessage })));

/** Which known keys were seen is a number, one bit for each. */
const BITS: Readonly<Record<string, number>> = {
  background: 1,
  model: 2,
  models: 4,
  session: 8,
  tools: 16,
  response: 32,
  model_id: 64,
  agent_id: 128,
};

const LITERALS: Readonly<Record<number, string>> = { 0x74: 'true', 0x66: 'false', 0x6e: 'null' };

export class JsonModels {
  /** Those that may run the request. */
  readonly names: string[] = [];
  /** Those that its tools name. */
  readonly namesOfTools: string[] = [];
  /** Whether the response is to be made in the background. */
  isInBackground = false;
  /** Whether it names what the provider has stored, with a model of its own. */
  isUncheckable = false;
  /** Why the document is refused. */
  problem: string | null = null;
  readonly #keys: Readonly<Record<Place, Keys>>;
  /** From the first piece on that is not UTF-8 in itself; null until then. */
  #utf8: InstanceType<typeof TextDecoder> | null = null;
  #expect: Expect = Expect.value;
  /** Whether each open container is an object. */
  readonly #open: boolean[] = [];
  /** The place that each of them is; null if it is not looked at. */
  readonly #places: (Place | null)[] = [];
  /** The known keys that were seen in each of them. */
  readonly #seen: number[] = [];
  /** Value that the last key leads to. */
  #wanted: Wanted = null;
  #isKey = false;
  /** Text of a string that is looked at, as it was written; null if it is not. */
  #text: string | null = null;
  #literal = '';
  #left = 0;

  constructor({ models, isMessage }: Sought = { models: true, isMessage: false }) {
    this.#keys = KEYS_BY_SOUGHT[Number(isMessage)]?.[Number(models)] ?? keysOf({ models, isMessage });
  }

  /** Whether the document is complete. */
  get isComplete(): boolean {
    return this.#expect === Expect.nothing;
  }

  add(bytes: Buffer, from = 0, to = bytes.length): void {
    if (this.problem !== null) return;
    if (!this.#isUtf8(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to))) {
      this.#fail('the body is not JSON in UTF-8');
      return;
    }
    for (let at = from; at < to && !this.#hasFailed;) at = this.#read(bytes, at, to);
  }

  /** Pieces may end within a character. */
  #isUtf8(piece: Buffer): boolean {
    if (this.#utf8 === null && isUtf8(piece)) return true;
    this.#utf8 ??= new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    try {
      this.#utf8.decode(piece, { stream: true });
      return true;
    } catch {
      return false;
    }
  }

  /** There are no more bytes. */
  end(): void {
    if (this.problem === null && !this.isComplete) this.#fail('the body is not complete JSON');
  }

  get #hasFailed(): boolean {
    return this.problem !== null;
  }

  #fail(problem = 'the body is not JSON'): void {
    this.problem ??= problem;
  }

  /** @returns the index of the next byte to read. */
  #read(bytes: Buffer, at: number, to: number): number {
    if (this.#expect === Expect.string) return this.#readString(bytes, at, to);
    const byte = bytes[at] ?? 0;
    // What ends a number is read again.
    return this.#take(byte) ? at + 1 : at;
  }

  #readString(bytes: Buffer, from: number, to: number): number {
    let at = from;
    let byte = 0;
    while (at < to) {
      byte = bytes[at] ?? 0;
      if (byte === QUOTE || byte === BACKSLASH || byte < SPACE) break;
      at += 1;
    }
    if (this.#text !== null) this.#keepText(bytes.toString('latin1', from, at));
    if (at === to) return at;
    if (byte === QUOTE) this.#endString();
    else if (byte === BACKSLASH) {
      this.#keepText('\\');
      this.#expect = Expect.escape;
    } else this.#fail();
    return at + 1;
  }

  #keepText(more: string): void {
    if (this.#text === null) return;
    if (this.#text.length + more.length <= (this.#isKey ? MAX_KEY_BYTES : MAX_NAME_BYTES)) this.#text += more;
    else {
      // No known key is as long.
      this.#text = null;
      if (!this.#isKey) this.#fail('the name of a model in the body is too long');
    }
  }

  /** @returns false if the byte must be read again. */
  #take(byte: number): boolean {
    const character = String.fromCharCode(byte);
    switch (this.#expect) {
      case Expect.value:
      case Expect.valueOrEnd:
        if (isSpace(byte)) return true;
        if (this.#expect === Expect.valueOrEnd && character === ']') this.#close(false);
        else this.#beginValue(byte, character);
        return true;
      case Expect.key:
      case Expect.keyOrEnd:
        if (isSpace(byte)) return true;
        if (byte === QUOTE) this.#beginString(true);
        else if (this.#expect === Expect.keyOrEnd && character === '}') this.#close(true);
        else this.#fail();
        return true;
      case Expect.colon:
        if (isSpace(byte)) return true;
        if (character === ':') this.#expect = Expect.value;
        else this.#fail();
        return true;
      case Expect.afterValue:
        if (isSpace(byte)) return true;
        if (character === ',') this.#expect = this.#open.at(-1) === true ? Expect.key : Expect.value;
        else if (character === '}' || character === ']') this.#close(character === '}');
        else this.#fail();
        if (character === ',') this.#wanted = this.#wantedEntry;
        return true;
      case Expect.escape:
        this.#keepText(character);
        if (character === 'u') [this.#expect, this.#left] = [Expect.hex, 4];
        else if ('"\\/bfnrt'.includes(character)) this.#expect = Expect.string;
        else this.#fail();
        return true;
      case Expect.hex:
        this.#keepText(character);
        if (!isHex(byte)) this.#fail();
        this.#left -= 1;
        if (this.#left === 0) this.#expect = Expect.string;
        return true;
      case Expect.literal:
        if (this.#literal.charCodeAt(this.#literal.length - this.#left) !== byte) this.#fail();
        this.#left -= 1;
        if (this.#left === 0) this.#endValue();
        return true;
      case Expect.nothing:
        if (!isSpace(byte)) this.#fail();
        return true;
      default:
        return this.#takeOfNumber(byte, character);
    }
  }

  #takeOfNumber(byte: number, character: string): boolean {
    const isDigit = byte >= 0x30 && byte <= 0x39;
    const isExponent = character === 'e' || character === 'E';
    switch (this.#expect) {
      case Expect.minus:
        if (isDigit) this.#expect = character === '0' ? Expect.zero : Expect.integer;
        else this.#fail();
        return true;
      case Expect.zero:
      case Expect.integer:
        if (isDigit && this.#expect === Expect.integer) return true;
        if (character === '.') this.#expect = Expect.point;
        else if (isExponent) this.#expect = Expect.exponent;
        else return this.#endNumber();
        return true;
      case Expect.point:
        if (isDigit) this.#expect = Expect.fraction;
        else this.#fail();
        return true;
      case Expect.fraction:
        if (isDigit) return true;
        if (isExponent) this.#expect = Expect.exponent;
        else return this.#endNumber();
        return true;
      case Expect.exponent:
        if (isDigit) this.#expect = Expect.exponentDigits;
        else if (character === '+' || character === '-') this.#expect = Expect.exponentSign;
        else this.#fail();
        return true;
      case Expect.exponentSign:
        if (isDigit) this.#expect = Expect.exponentDigits;
        else this.#fail();
        return true;
      default:
        return isDigit || this.#endNumber();
    }
  }

  #endNumber(): false {
    this.#endValue();
    return false;
  }

  /** The place that the innermost container is. */
  get #place(): Place | null {
    return this.#places.at(-1) ?? null;
  }

  get #wantedEntry(): Wanted {
    return this.#place === null ? null : (ENTRIES[this.#place] ?? null);
  }

  #beginValue(byte: number, character: string): void {
    if (this.#open.length === 0 && character !== '{') {
      this.#fail('the body is not a JSON object');
      return;
    }
    this.#checkKind(character);
    if (character === '{' || character === '[') this.#openContainer(character === '{');
    else if (byte === QUOTE) this.#beginString(false);
    else if (character === '-') this.#expect = Expect.minus;
    else if (byte >= 0x30 && byte <= 0x39) this.#expect = character === '0' ? Expect.zero : Expect.integer;
    else if (LITERALS[byte] !== undefined) {
      this.#literal = LITERALS[byte];
      [this.#expect, this.#left] = [Expect.literal, this.#literal.length - 1];
    } else this.#fail();
  }

  /** @param character the first one of a value that is looked at. */
  #checkKind(character: string): void {
    const isNull = character === 'n';
    switch (this.#wanted) {
      case 'model':
        if (character !== '"' && !isNull) this.#fail('model must be a string');
        break;
      case 'entry':
        if (character !== '"') this.#fail('models must be a list of strings');
        break;
      case 'models':
        if (character !== '[' && !isNull) this.#fail('models must be a list of strings');
        break;
      case 'agent':
        if (!isNull) this.isUncheckable = true;
        break;
      case 'background':
        if (character !== 'f' && !isNull) this.isInBackground = true;
        break;
      default:
    }
  }

  #openContainer(isObject: boolean): void {
    if (this.#open.length >= MAX_DEPTH) this.#fail('the body is nested too deeply');
    const place = this.#open.length === 0 ? 'top' : PLACES[this.#wanted ?? '']?.[isObject ? 'object' : 'array'];
    this.#places.push(place ?? null);
    this.#seen.push(0);
    this.#wanted = this.#wantedEntry;
    this.#open.push(isObject);
    this.#expect = isObject ? Expect.keyOrEnd : Expect.valueOrEnd;
  }

  #close(isObject: boolean): void {
    if (this.#open.pop() !== isObject) {
      this.#fail();
      return;
    }
    this.#places.pop();
    this.#seen.pop();
    this.#endValue();
  }

  #endValue(): void {
    this.#wanted = null;
    this.#expect = this.#open.length === 0 ? Expect.nothing : Expect.afterValue;
  }

  #beginString(isKey: boolean): void {
    this.#isKey = isKey;
    this.#expect = Expect.string;
    const isLookedAt = isKey ? this.#place !== null : this.#wanted === 'model' || this.#wanted === 'entry';
    this.#text = isLookedAt ? '' : null;
  }

  #endString(): void {
    const text = this.#text;
    this.#text = null;
    if (this.#isKey) {
      this.#expect = Expect.colon;
      this.#wanted = text === null ? null : this.#keyRead(text);
      return;
    }
    if (text !== null) this.#nameRead(meaningOf(text));
    this.#endValue();
  }

  /** @param written as it stands between the quotes. */
  #keyRead(written: string): Wanted {
    const place = this.#place ?? 'top';
    const keys = this.#keys[place];
    const plain = Object.hasOwn(keys, written) ? written : plainKey(meaningOf(written));
    const wanted = Object.hasOwn(keys, plain) ? (keys[plain] ?? null) : null;
    if (wanted === null) return null;
    if (written !== plain) this.#fail(`the key ${plain} must be written in its own letters, without escapes`);
    const last = this.#seen.length - 1;
    const [seen = 0, bit = 0] = [this.#seen[last], BITS[plain]];
    if ((seen & bit) !== 0) this.#fail(`the key ${plain} must not be repeated`);
    this.#seen[last] = seen | bit;
    return wanted;
  }

  #nameRead(name: string): void {
    const names = this.#place === 'tool' ? this.namesOfTools : this.names;
    if (names.length >= MAX_NAMES) this.#fail('the body names too many models');
    names.push(name);
  }
}

const isSpace = (byte: number) => byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09;

function isHex(byte: number): boolean {
  const letter = byte | 0x20;
  return (byte >= 0x30 && byte <= 0x39) || (letter >= 0x61 && letter <= 0x66);
}

/** @param written the text between the quotes of a valid JSON string; each character is a byte. */
function meaningOf(written: string): string {
  if (PLAIN.test(written)) return written;
  const text = Buffer.from(written, 'latin1').toString();
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}

/** ASCII without escapes. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** A key as the most lenient parsers compare it: Go's takes `ſ` for `s`, and the sign for Kelvin for `k`. */
export const plainKey = (key: string): string => key.toUpperCase().toLowerCase();
