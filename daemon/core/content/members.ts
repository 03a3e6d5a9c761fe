/**
 * Members of a JSON object, found without reading all of it. An answer may be megabytes of numbers, and of every answer only two
 * members are of interest; nobody could afford to parse them all.
 *
 * Inside of a string a quote has a backslash in front, so that the name with its two quotes, no backslash before them and a
 * colon behind is a member's name wherever it stands. And whether it is a member of the object itself, and not of
 * something within it, its surroundings tell: what is before it, closed behind its value, is a whole JSON object just then; and so
 * is what begins with it, opened in front. That is how it is read, from whichever end is nearer.
 */
import type { Ends } from './ends.js';

type Json = Record<string, unknown>;

const MOST_TRIES = 8;
// Larger ones are read at their ends only.
const LARGEST_PARSED = 64 * 1024;
// The bytes are a stranger's, who may put the name where every try has to read as much as it can.
const MOST_PARSED_IN_ALL = 2 * LARGEST_PARSED;
// The name of a model has 200 characters at most, each of up to six bytes.
const LONGEST_STRING = 4 * 1024;

/** The two members of an answer that are of interest. */
export type MemberName = 'model' | 'usage';
const QUOTED: Record<MemberName, Buffer> = { model: Buffer.from('"model"'), usage: Buffer.from('"usage"') };

/** What there is of an answer, or of one of its events: all of it, or its two ends. */
export type Span = Pick<Ends, 'head' | 'tail' | 'isWhole'>;

const NOTHING = Buffer.alloc(0);

export const whole = (head: Buffer): Span => ({ head, tail: NOTHING, isWhole: true });

/**
 * The value of a member; undefined when it is not there or cannot be read. Of several the last one, as JSON has it.
 *
 * @param within that member's value may have it instead: what happens to a `response` is said of it in an event.
 */
export function memberOf({ head, tail, isWhole }: Span, name: MemberName, within: string | null): unknown {
  const behind = isWhole ? head : tail;
  // The model stands in front as a rule, and the usage behind.
  const object =
    (name === 'model' ? beginningWith(name, head, within) : null) ??
    endingWith(name, behind, within) ??
    (isWhole && isNamed(name, head) ? parsed(head) : null);
  return valueIn(object, name, within);
}

/** The same of what is all there and small enough to be parsed whole: that takes one try. */
export const memberOfSmall = (json: Buffer, name: MemberName, within: string | null): unknown =>
  valueIn(parsed(json), name, within);

function valueIn(object: Json | null, name: MemberName, within: string | null): unknown {
  const inner = within === null ? undefined : object?.[within];
  return object?.[name] ?? (typeof inner === 'object' && inner !== null ? (inner as Json)[name] : undefined);
}

// A flat object up to the value, which needs no decoding. What is a brace or a bracket to JSON it takes for no such thing.
const FLAT = /^\{[^{}[\]\\]*"[^"\\]*"\s*:\s*"([\x20\x21\x23-\x5b\x5d-\x7e]*)"$/;

/** The same as to parse it, in a fifth of the time, for nearly all answers there are. */
function plainMember(text: string, name: MemberName): Json | null {
  const value = FLAT.exec(text)?.[1];
  return value === undefined ? null : { [name]: value };
}

function endingWith(name: MemberName, bytes: Buffer, within: string | null): Json | null {
  let at = bytes.length;
  let parsedBytes = 0;
  for (let tries = 0; tries < MOST_TRIES && at > 0; tries++) {
    at = bytes.lastIndexOf(QUOTED[name], at - 1);
    parsedBytes += bytes.length - at;
    if (at === -1 || bytes.length - at > LARGEST_PARSED || parsedBytes > MOST_PARSED_IN_ALL) return null;
    if (!isName(bytes, at, QUOTED[name].length)) continue;
    const rest = bytes.toString('utf8', at);
    const found = parsed(`{${rest}`) ?? (within === null ? null : parsed(`{${JSON.stringify(within)}:{${rest}`));
    if (found) return found;
  }
  return null;
}

function beginningWith(name: MemberName, all: Buffer, within: string | null): Json | null {
  const bytes = all.length > LARGEST_PARSED ? all.subarray(0, LARGEST_PARSED) : all;
  const quoted = QUOTED[name];
  let at = -1;
  let parsedBytes = 0;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    at = bytes.indexOf(quoted, at + 1);
    parsedBytes += at;
    if (at === -1 || parsedBytes > MOST_PARSED_IN_ALL) return null;
    if (!isName(bytes, at, quoted.length)) continue;
    const end = endOfString(bytes, behindSpace(bytes, behindSpace(bytes, at + quoted.length) + 1));
    if (end === -1) continue;
    const text = bytes.toString('utf8', 0, end);
    const plain = plainMember(text, name);
    if (plain) return plain;
    const found = parsed(`${text}}`) ?? (within === null ? null : parsed(`${text}}}`));
    if (found) return found;
  }
  return null;
}

/** Whether such a member is in there, however deep, as far as one looks. A list of models has the word in each of them. */
function isNamed(name: MemberName, bytes: Buffer): boolean {
  if (bytes.length > LARGEST_PARSED) return false;
  const { length } = QUOTED[name];
  let at = -1;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    at = bytes.indexOf(QUOTED[name], at + 1);
    if (at === -1) return false;
    if (isName(bytes, at, length)) return true;
  }
  return false;
}

function isName(bytes: Buffer, at: number, length: number): boolean {
  return bytes[at - 1] !== BACKSLASH && bytes[behindSpace(bytes, at + length)] === COLON;
}

/** @returns where the string that begins there is over; -1 if it is none, goes on, or is too long for a name. */
function endOfString(bytes: Buffer, from: number): number {
  if (bytes[from] !== QUOTE) return -1;
  const end = Math.min(bytes.length, from + LONGEST_STRING);
  for (let at = from + 1; at < end; at++) {
    if (bytes[at] === BACKSLASH) at += 1;
    else if (bytes[at] === QUOTE) return at + 1;
  }
  return -1;
}

export function behindSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** An object; null for anything else, and for what is no JSON. */
export function parsed(json: Buffer | string): Json | null {
  try {
    const text = typeof json === 'string' ? json : json.toString('utf8');
    const value: unknown = JSON.parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;
  } catch {
    return null;
  }
}

const BYTE_ORDER_MARK = 0xfeff;
