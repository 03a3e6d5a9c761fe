/**
 * Finds members of a JSON object without parsing all of it. Only two members of a response are needed, and a response may be
 * megabytes of numbers, so parsing every response would be too expensive.
 *
 * Within a JSON string, a quote is preceded by a backslash. So the quoted name without a backslash before it and with a colon after
 * it is always a member name. Whether the member belongs to the object itself or to a nested one is tested by parsing: the text up to
 * the end of its value plus `}` is valid JSON only for a member of the object itself, and so is `{` plus the text from its name on.
 * The search starts from the end where the member is expected.
 */
import type { HeadAndTail } from './head-and-tail.js';

type Json = Record<string, unknown>;

const MAX_ATTEMPTS = 8;
// Of larger bodies only both ends are read.
const MAX_PARSED_BYTES = 64 * 1024;
// The input is untrusted: it may be crafted so that each attempt has to parse as much as possible.
const MAX_TOTAL_PARSED_BYTES = 2 * MAX_PARSED_BYTES;
// A model name has up to 200 characters, each of up to six bytes in JSON.
const MAX_STRING_BYTES = 4 * 1024;

/** The two members that are read from responses. */
export type MemberName = 'model' | 'usage';
const QUOTED: Record<MemberName, Buffer> = { model: Buffer.from('"model"'), usage: Buffer.from('"usage"') };

/** A body or an event: complete, or only its beginning and end. */
export type Span = Pick<HeadAndTail, 'head' | 'tail' | 'isWhole'>;

const NOTHING = Buffer.alloc(0);

export const wholeSpan = (head: Buffer): Span => ({ head, tail: NOTHING, isWhole: true });

/**
 * The value of a member; undefined if it is missing or cannot be read. Of duplicates the last one counts, as in `JSON.parse`.
 *
 * @param within the member may also be nested in the object with this name, such as `response` in events of the Responses API.
 */
export function memberOf({ head, tail, isWhole }: Span, name: MemberName, within: string | null): unknown {
  const end = isWhole ? head : tail;
  // The model is usually near the beginning, the usage near the end.
  const object =
    (name === 'model' ? beginningWith(name, head, within) : null) ??
    endingWith(name, end, within) ??
    (isWhole && isNamed(name, head) ? parseObject(head) : null);
  return valueIn(object, name, within);
}

/** The same for complete JSON that is small enough to parse at once. */
export const memberOfSmall = (json: Buffer, name: MemberName, within: string | null): unknown =>
  valueIn(parseObject(json), name, within);

function valueIn(object: Json | null, name: MemberName, within: string | null): unknown {
  const inner = within === null ? undefined : object?.[within];
  return object?.[name] ?? (typeof inner === 'object' && inner !== null ? (inner as Json)[name] : undefined);
}

// A flat object up to the value, without escapes, braces or brackets. A string that contains any of them does not match, which is safe.
const FLAT = /^\{[^{}[\]\\]*"[^"\\]*"\s*:\s*"([\x20\x21\x23-\x5b\x5d-\x7e]*)"$/;

/** Same result as parsing, in a fifth of the time, for nearly all responses. */
function plainMember(text: string, name: MemberName): Json | null {
  const value = FLAT.exec(text)?.[1];
  return value === undefined ? null : { [name]: value };
}

function endingWith(name: MemberName, bytes: Buffer, within: string | null): Json | null {
  let at = bytes.length;
  let parsedBytes = 0;
  for (let tries = 0; tries < MAX_ATTEMPTS && at > 0; tries++) {
    at = bytes.lastIndexOf(QUOTED[name], at - 1);
    parsedBytes += bytes.length - at;
    if (at === -1 || bytes.length - at > MAX_PARSED_BYTES || parsedBytes > MAX_TOTAL_PARSED_BYTES) return null;
    if (!isName(bytes, at, QUOTED[name].length)) continue;
    const rest = bytes.toString('utf8', at);
    const found =
      parseObject(`{${rest}`) ?? (within === null ? null : parseObject(`{${JSON.stringify(within)}:{${rest}`));
    if (found) return found;
  }
  return null;
}

function beginningWith(name: MemberName, all: Buffer, within: string | null): Json | null {
  const bytes = all.length > MAX_PARSED_BYTES ? all.subarray(0, MAX_PARSED_BYTES) : all;
  const quoted = QUOTED[name];
  let at = -1;
  let parsedBytes = 0;
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    at = bytes.indexOf(quoted, at + 1);
    parsedBytes += at;
    if (at === -1 || parsedBytes > MAX_TOTAL_PARSED_BYTES) return null;
    if (!isName(bytes, at, quoted.length)) continue;
    const end = endOfString(bytes, skipWhitespace(bytes, skipWhitespace(bytes, at + quoted.length) + 1));
    if (end === -1) continue;
    const text = bytes.toString('utf8', 0, end);
    const plain = plainMember(text, name);
    if (plain) return plain;
    const found = parseObject(`${text}}`) ?? (within === null ? null : parseObject(`${text}}}`));
    if (found) return found;
  }
  return null;
}

/** Whether the first matches of the name include a member name, at any depth. A list of models contains the word many times. */
function isNamed(name: MemberName, bytes: Buffer): boolean {
  if (bytes.length > MAX_PARSED_BYTES) return false;
  const { length } = QUOTED[name];
  let at = -1;
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    at = bytes.indexOf(QUOTED[name], at + 1);
    if (at === -1) return false;
    if (isName(bytes, at, length)) return true;
  }
  return false;
}

function isName(bytes: Buffer, at: number, length: number): boolean {
  return bytes[at - 1] !== BACKSLASH && bytes[skipWhitespace(bytes, at + length)] === COLON;
}

/** @returns the index after the string that begins at `from`; -1 if there is no string, or it is incomplete or too long for a name. */
function endOfString(bytes: Buffer, from: number): number {
  if (bytes[from] !== QUOTE) return -1;
  const end = Math.min(bytes.length, from + MAX_STRING_BYTES);
  for (let at = from + 1; at < end; at++) {
    if (bytes[at] === BACKSLASH) at += 1;
    else if (bytes[at] === QUOTE) return at + 1;
  }
  return -1;
}

export function skipWhitespace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** Parses a JSON object; null for any other value and for invalid JSON. */
export function parseObject(json: Buffer | string): Json | null {
  try {
    const text = typeof json === 'string' ? json : json.toString('utf8');
    const value: unknown = JSON.parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;
  } catch {
    return null;
  }
}

const BYTE_ORDER_MARK = 0xfeff;
