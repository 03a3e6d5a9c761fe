/**
 * Finds members of a JSON object without parsing all of it. Only two members of a response are needed, and a response may be
 * megabytes of numbers, so parsing every response would be too expensive.
 *
 * Within a JSON string, a quote is preceded by a backslash. So the quoted name without a backslash before it and with a colon after
 * it is always a member name. Whether the member belongs to the object itself or to a nested one is tested by parsing: the text up to
 * the end of its value plus `}` is valid JSON only for a member of the object itself, and so is `{` plus the text from its name on.
 * The search starts from the end where the member is expected. In a list of objects, as Gemini streams them, the last object with the
 * member counts.
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

/** The members that are read from responses; those of Gemini are second. */
export const MODEL_NAMES = ['model', 'modelVersion'] as const;
export const USAGE_NAMES = ['usage', 'usageMetadata'] as const;
export type MemberNames = typeof MODEL_NAMES | typeof USAGE_NAMES;
type MemberName = MemberNames[number];
const QUOTED: Record<MemberName, Buffer> = {
  model: Buffer.from('"model"'),
  modelVersion: Buffer.from('"modelVersion"'),
  usage: Buffer.from('"usage"'),
  usageMetadata: Buffer.from('"usageMetadata"'),
};

/** Only Gemini sends lists. */
const IN_LISTS: ReadonlySet<MemberName> = new Set(['modelVersion', 'usageMetadata']);

/** Objects in events that may contain the members: of the Responses API and of Anthropic's messages. */
export const IN_EVENTS = ['response', 'message'] as const;
/** Responses contain the members themselves. */
export const IN_RESPONSES = [] as const;
type Within = typeof IN_EVENTS | typeof IN_RESPONSES;

/** A body or an event: complete, or only its beginning and end. */
export type Span = Pick<HeadAndTail, 'head' | 'tail' | 'isWhole'>;

const NOTHING = Buffer.alloc(0);

export const wholeSpan = (head: Buffer): Span => ({ head, tail: NOTHING, isWhole: true });

/**
 * The value of the first of these members that exists; undefined if none does or it cannot be read. Of duplicates the last one counts, as
 * in `JSON.parse`.
 *
 * @param within the members may also be nested in an object with one of these names.
 */
export function memberOf(span: Span, names: MemberNames, within: Within): unknown {
  return valueOf(span, names[0], within) ?? valueOf(span, names[1], within);
}

function valueOf({ head, tail, isWhole }: Span, name: MemberName, within: Within): unknown {
  // `model` is usually near the beginning, the others near the end.
  const beginning = name === 'model' ? beginningWith(name, head, within) : null;
  if (beginning) return valueIn(beginning, name, within);
  const end = isWhole ? head : tail;
  const last = end.lastIndexOf(QUOTED[name]);
  if (last === -1) return undefined;
  const object = endingWith(name, end, last, within) ?? (isWhole && isNamed(name, head) ? parseObject(head) : null);
  return valueIn(object, name, within);
}

/** The same for complete JSON that is small enough to parse at once. */
export function memberOfSmall(json: Buffer, names: MemberNames, within: Within): unknown {
  const object = parseObject(json);
  return valueIn(object, names[0], within) ?? valueIn(object, names[1], within);
}

function valueIn(object: Json | null, name: MemberName, within: Within): unknown {
  const own = object?.[name] ?? undefined;
  if (object === null || own !== undefined) return own;
  for (const each of within) {
    const inner = object[each];
    if (typeof inner !== 'object' || inner === null) continue;
    const value = (inner as Json)[name] ?? undefined;
    if (value !== undefined) return value;
  }
  return undefined;
}

// A flat object up to the value, without escapes, braces or brackets. A string that contains any of them does not match, which is safe.
const FLAT = /^\{[^{}[\]\\]*"[^"\\]*"\s*:\s*"([\x20\x21\x23-\x5b\x5d-\x7e]*)"$/;

/** Same result as parsing, in a fifth of the time, for nearly all responses. */
function plainMember(text: string, name: MemberName): Json | null {
  const value = FLAT.exec(text)?.[1];
  return value === undefined ? null : { [name]: value };
}

/** @param last index of the last match of the name. */
function endingWith(name: MemberName, bytes: Buffer, last: number, within: Within): Json | null {
  let at = last;
  let parsedBytes = 0;
  const isList = IN_LISTS.has(name) && endsList(bytes);
  for (let tries = 0; tries < MAX_ATTEMPTS && at >= 0; tries++) {
    if (tries > 0) at = at === 0 ? -1 : bytes.lastIndexOf(QUOTED[name], at - 1);
    parsedBytes += bytes.length - at;
    if (at === -1 || bytes.length - at > MAX_PARSED_BYTES || parsedBytes > MAX_TOTAL_PARSED_BYTES) return null;
    if (!isName(bytes, at, QUOTED[name].length)) continue;
    const rest = bytes.toString('utf8', at);
    // The name of an object that contains it is not known from here.
    const found = isList
      ? firstIn(parsed(`[{${rest}`))
      : (parseObject(`{${rest}`) ?? (within.length === 0 ? null : parseObject(`{"${within[0]}":{${rest}`)));
    if (found) return found;
  }
  return null;
}

/** Whether it may be the end of a list. White space may follow. */
function endsList(bytes: Buffer): boolean {
  let at = bytes.length - 1;
  for (const end = at - MAX_SPACE_AT_END; at > end && isSpace(bytes[at]);) at -= 1;
  return bytes[at] === CLOSING_BRACKET;
}

function beginningWith(name: MemberName, all: Buffer, within: Within): Json | null {
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
    const found = parseObject(`${text}}`) ?? (within.length === 0 ? null : parseObject(`${text}}}`));
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
  while (isSpace(bytes[at])) at += 1;
  return at;
}

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

const MAX_SPACE_AT_END = 16;
const CLOSING_BRACKET = 0x5d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** Parses a JSON object; null for any other value and for invalid JSON. */
export const parseObject = (json: Buffer | string): Json | null => objectOrNull(parsed(json));

const firstIn = (list: unknown): Json | null => (Array.isArray(list) ? objectOrNull(list[0]) : null);

const objectOrNull = (value: unknown): Json | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;

function parsed(json: Buffer | string): unknown {
  try {
    const text = typeof json === 'string' ? json : json.toString('utf8');
    return JSON.parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text);
  } catch {
    return null;
  }
}

const BYTE_ORDER_MARK = 0xfeff;
