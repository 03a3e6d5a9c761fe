/**
 * Counts the members of a JSON document before it is parsed, in one pass that allocates nothing.
 *
 * A parser that keeps the last of two members with the same name yields fewer than stand in the document. So the number tells whether names
 * are repeated, without a set for each object. Names with escapes are refused: no serializer needs them for the members of an API, and the
 * JSON.parse of V8 13.6 may take such a name for another one.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** A search in native code is faster for the rest of a string, but its call costs as much as looking at this many bytes here. */
const SHORT_RUN = 48;

/** Deeper documents are refused: what reads them recurses. */
const MAX_DEPTH = 100;
/** More would take too long, and more memory than their bytes. */
const MAX_MEMBERS = 50_000;
const MAX_ELEMENTS = 1_000_000;

/** @returns the number of members if the document is JSON, or why it is refused. */
export function memberCountOf(json: Buffer): number | string {
  let members = 0;
  let commas = 0;
  let depth = 0;
  /** The last string, which is a name if a colon follows. */
  let [from, to] = [0, 0];
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case QUOTE:
        from = at + 1;
        to = endOfString(json, from);
        at = to;
        break;
      case 0x3a: // :
        if (++members > MAX_MEMBERS) return TOO_MUCH;
        for (; from < to; from++) if (json[from] === BACKSLASH) return 'a name in its body is written with escapes';
        break;
      case 0x2c: // ,
        if (++commas > MAX_ELEMENTS) return TOO_MUCH;
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > MAX_DEPTH) return TOO_MUCH;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth -= 1;
        break;
      default:
    }
  }
  return members;
}

const TOO_MUCH = 'its body has too many members, or is nested too deeply';

/** @returns the index of the closing quote; that of the end if there is none. */
function endOfString(json: Buffer, from: number): number {
  let at = from;
  for (;;) {
    for (const end = Math.min(json.length, at + SHORT_RUN); at < end; at++) {
      const byte = json[at];
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH) at += 1;
    }
    const quote = at < json.length ? json.indexOf(QUOTE, at) : -1;
    if (quote === -1) return json.length;
    let slash = quote;
    while (slash > at && json[slash - 1] === BACKSLASH) slash -= 1;
    // After an odd number of backslashes the quote is escaped.
    if ((quote - slash) % 2 === 0) return quote;
    at = quote + 1;
  }
}
