/**
 * Whether a part of a stream may hold a usage or report an error: a quick look at every third byte or so, before anything is scanned.
 *
 * Both words have five letters and are searched at once (Horspool): the last byte of a window says how far the window can move on.
 */
const USAGE = Buffer.from('usage');
const ERROR = Buffer.from('error');
const WINDOW = 5;
const LAST_OF_USAGE = 0x65;
const LAST_OF_ERROR = 0x72;

const SHIFT_OF = new Uint8Array(256).fill(WINDOW);
for (let i = 0; i < WINDOW - 1; i++) {
  for (const word of [USAGE, ERROR]) {
    const byte = word[i] ?? 0;
    SHIFT_OF[byte] = Math.min(SHIFT_OF[byte] ?? WINDOW, WINDOW - 1 - i);
  }
}

const LF = 0x0a;
const CR = 0x0d;
const QUOTE = 0x22;
const COLON = 0x3a;
const LOWER_N = 0x6e;
const METADATA = Buffer.from('Metadata');

/** What may be in some bytes. An error matters more than a usage. */
export const NOTHING = 0;
export const MAYBE_USAGE = 1;
export const MAYBE_ERROR = 2;

/** @param bytes complete events or messages, from `from` up to `to`. */
export function mattersIn(
  bytes: Buffer,
  from: number,
  to: number,
): typeof NOTHING | typeof MAYBE_USAGE | typeof MAYBE_ERROR {
  let hasUsage = false;
  for (let at = from + WINDOW - 1; at < to;) {
    const byte = bytes[at] ?? 0;
    if (byte === LAST_OF_USAGE && isWord(bytes, at, USAGE)) hasUsage ||= isUsage(bytes, at, to);
    if (byte === LAST_OF_ERROR && isWord(bytes, at, ERROR) && isError(bytes, at, to)) return MAYBE_ERROR;
    at += SHIFT_OF[byte] ?? 1;
  }
  return hasUsage ? MAYBE_USAGE : NOTHING;
}

function isWord(bytes: Buffer, last: number, word: Buffer): boolean {
  const first = last - WINDOW + 1;
  for (let i = 0; i < WINDOW - 1; i++) if (bytes[first + i] !== word[i]) return false;
  return true;
}

/** Whether it is a member. If the client asked for usage, all events but the last contain `"usage":null`. */
function isUsage(bytes: Buffer, last: number, to: number): boolean {
  if (bytes[last - WINDOW] !== QUOTE) return false;
  let at = last + 1;
  for (let i = 0; i < METADATA.length && bytes[at] === METADATA[i]; i++) at += 1;
  return bytes[at] === QUOTE && hasValue(bytes, at + 1, to);
}

/** Whether it is a member, a type, or the name of an event. */
function isError(bytes: Buffer, last: number, to: number): boolean {
  const after = bytes[last + 1];
  if (after === LF || after === CR) return true;
  return bytes[last - WINDOW] === QUOTE && after === QUOTE && hasValue(bytes, last + 2, to);
}

/** Whether what follows a name is not `null`. */
function hasValue(bytes: Buffer, from: number, to: number): boolean {
  let at = from;
  while (at < to && ((bytes[at] ?? 0) <= 0x20 || bytes[at] === COLON)) at += 1;
  return bytes[at] !== LOWER_N;
}
