import { modelNamed } from './facts.js';
import { memberOf, type Span } from './members.js';

// A form's fields may stand behind its files; those are not searched.
const LARGEST_SEARCHED = 64 * 1024;
const OPENING_BRACE = 0x7b;
const DASH = 0x2d;

// RFC 7578: the name is quoted, whatever else the line and the following ones say.
const MODEL_FIELD =
  /(?:^|\r\n)content-disposition:[^\r\n]*;\s*name="model"[^\r\n]*(?:\r\n[^\r\n]+)*\r\n\r\n([^\r\n]{1,400})\r\n--/i;

/** The model that a request asks for: in its JSON, or in a form with files. */
export function modelAskedFor(body: Span | null): string | null {
  if (!body || body.head.length === 0) return null;
  const first = body.head[0];
  if (first === DASH && body.head[1] === DASH) {
    const text = body.head.toString('utf8', 0, Math.min(body.head.length, LARGEST_SEARCHED));
    return modelNamed(MODEL_FIELD.exec(text)?.[1]);
  }
  // Space and byte order mark in front of it are rare.
  const isJson = first === OPENING_BRACE || body.head.subarray(0, 16).includes(OPENING_BRACE);
  return isJson ? modelNamed(memberOf(body, 'model', null)) : null;
}
