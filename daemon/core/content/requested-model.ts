import { modelNameFrom } from './facts.js';
import { formField, isForm } from './form.js';
import { IN_RESPONSES, memberOf, MODEL_NAMES, type Span } from './members.js';

// Fields that follow large files in a form are not found.
const MAX_SEARCHED_BYTES = 64 * 1024;
const OPENING_BRACE = 0x7b;

// Gemini: /v1beta/models/NAME:generateContent
const IN_TARGET = /\/(?:models|tunedModels)\/([^/?:]{1,200}):/;

/** The model that a request names, in JSON, in a multipart form, or in its path. */
export function requestedModel(body: Span | null, target: string | undefined): string | null {
  return modelInBody(body) ?? modelNameFrom(IN_TARGET.exec(target ?? '')?.[1]);
}

function modelInBody(body: Span | null): string | null {
  if (!body || body.head.length === 0) return null;
  if (isForm(body.head)) return modelNameFrom(formField(body.head.subarray(0, MAX_SEARCHED_BYTES), 'model'));
  // White space or a byte order mark may precede the brace, which is rare.
  const isJson = body.head[0] === OPENING_BRACE || body.head.subarray(0, 16).includes(OPENING_BRACE);
  return isJson ? modelNameFrom(memberOf(body, MODEL_NAMES, IN_RESPONSES)) : null;
}
