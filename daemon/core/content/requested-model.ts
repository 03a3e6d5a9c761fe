import type { BodyCapture, CaptureContext } from './body-capture.js';
import { BoundedBytes } from './bounded-bytes.js';
import { modelNameFrom } from './facts.js';
import { formField, isForm } from './form.js';
import { JsonScanner, parsedValue } from './json-scanner.js';
import { wanted } from './wanted-members.js';

// Fields that follow large files in a form are not found.
const MAX_FORM_BYTES = 64 * 1024;
const OPENING_BRACE = 0x7b;

// Gemini: /v1beta/models/NAME:generateContent
const IN_TARGET = /\/(?:models|tunedModels)\/([^/?:]{1,200}):/;

/** The model that a request names, in JSON, in a multipart form, or in its path. */
export class RequestedModel {
  readonly #capture: BodyCapture | null;
  #body: Buffer | null = null;
  /** The beginning of a streamed body: of a form, or of what is captured. */
  #start: BoundedBytes | null = null;
  #scanner: JsonScanner | null = null;

  constructor(capture: BodyCapture | null) {
    this.#capture = capture;
  }

  /** The complete body, which is searched only if the response names no model. */
  whole(body: Buffer): void {
    this.#body = body;
  }

  /** The next bytes of a streamed body. */
  part(bytes: Buffer): void {
    if (!this.#start) {
      const isFormLike = isForm(bytes) || bytes.length < 2;
      this.#start = new BoundedBytes(Math.max(isFormLike ? MAX_FORM_BYTES : 0, this.#capture?.heldBytes ?? 0));
      if (!isForm(bytes)) this.#scanner = newScanner();
    }
    this.#start.add(bytes);
    if (this.#scanner?.isDone === false) this.#scanner.scan(bytes);
  }

  name(target: string | undefined): string | null {
    return this.#inBody() ?? modelNameFrom(IN_TARGET.exec(target ?? '')?.[1]);
  }

  #inBody(): string | null {
    const head = this.#body ?? this.#start?.head;
    if (!head) return null;
    if (isForm(head)) return modelNameFrom(formField(head.subarray(0, MAX_FORM_BYTES), 'model'));
    if (this.#scanner) return nameIn(this.#scanner);
    return modelInJson(head);
  }

  /** The body as events show it. */
  shown(context: CaptureContext): string | null {
    const capture = this.#capture;
    if (!capture) return null;
    if (this.#body) return capture.requestBody(this.#body, this.#body.length, context);
    return this.#start && capture.requestBody(this.#start.head, this.#start.bytes, context);
  }
}

/** @param json of an object; of anything else there is no model. */
export function modelInJson(json: Buffer): string | null {
  // White space or a byte order mark may precede the brace, which is rare.
  if (json[0] !== OPENING_BRACE && !json.subarray(0, 16).includes(OPENING_BRACE)) return null;
  const scanner = newScanner();
  scanner.scan(json);
  return nameIn(scanner);
}

const MODEL = wanted({ model: 'string' });
const newScanner = () => new JsonScanner(MODEL, null, true);

const nameIn = ({ values: [json] }: JsonScanner): string | null => modelNameFrom(parsedValue(json));
