import { modelNameFrom } from './facts.js';
import { formField, isForm } from './form.js';
import { memberOf, type Span } from './members.js';

// Fields that follow large files in a form are not found.
const MAX_SEARCHED_BYTES = 64 * 1024;
const OPENING_BRACE = 0x7b;

/** The model that a request names, in JSON or in a multipart form. */
export function requestedModel(body: Span | null): string | null {
  if (!body || body.head.length === 0) return null;
  if (isForm(body.head)) return modelNameFrom(formField(body.head.subarray(0, MAX_SEARCHED_BYTES), 'model'));
  // White space or a byte order mark may precede the brace, which is rare.
  const isJson = body.head[0] === OPENING_BRACE || body.head.subarray(0, 16).includes(OPENING_BRACE);
  return isJson ? modelNameFrom(memberOf(body, 'model', null)) : null;
}
