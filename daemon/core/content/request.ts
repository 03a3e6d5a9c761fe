import { modelNamed } from './facts.js';
import { formField, isForm } from './form.js';
import { memberOf, type Span } from './members.js';

// A form's fields may stand behind its files; those are not searched.
const LARGEST_SEARCHED = 64 * 1024;
const OPENING_BRACE = 0x7b;

/** The model that a request asks for: in its JSON, or in a form with files. */
export function modelAskedFor(body: Span | null): string | null {
  if (!body || body.head.length === 0) return null;
  if (isForm(body.head)) return modelNamed(formField(body.head.subarray(0, LARGEST_SEARCHED), 'model'));
  // Space and byte order mark in front of it are rare.
  const isJson = body.head[0] === OPENING_BRACE || body.head.subarray(0, 16).includes(OPENING_BRACE);
  return isJson ? modelNamed(memberOf(body, 'model', null)) : null;
}
