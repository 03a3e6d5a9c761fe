/**
 * Reads whether a message of a client on a WebSocket asks for a response: `response.create` of the Responses and the Realtime API, or the
 * end of a turn in Gemini's Live API.
 *
 * The client may be hostile: it may escape keys and values, repeat them, or add other documents. A message of which it is not clear
 * whether the provider will take it for such a request counts as one.
 */
import type { BodyModels } from '../policy/policy.js';
import { modelNameFrom } from './facts.js';
import { JsonScanner, parsedValue } from './json-scanner.js';
import { wanted } from './wanted-members.js';

const PATHS = {
  type: 'string',
  model: 'string',
  'response.model': 'string',
  generate: 'literal',
  // Both spellings of Google's JSON.
  'clientContent.turnComplete': 'literal',
  'clientContent.turn_complete': 'literal',
  'client_content.turnComplete': 'literal',
  'client_content.turn_complete': 'literal',
} as const;
const WANTED = wanted(PATHS);
const [TYPE, MODEL, MODEL_IN_RESPONSE, GENERATE, FIRST_TURN] = [0, 1, 2, 3, 4];

const OPENING_BRACE = 0x7b;
const SPACE = 0x20;
// The bytes of a byte order mark are above all of ASCII.
const FIRST_NON_ASCII = 0x80;

export class ClientMessages {
  readonly #scanner = new JsonScanner(
    WANTED,
    () => {
      this.#read();
    },
    false,
    true,
  );
  /** Whether the current message may be a request, as far as it has arrived. */
  wantsPayload = true;
  #isObject = false;
  /** How many requests for a response the current message has. */
  requests = 0;
  /** Whether the model is not to generate anything: `"generate": false`. */
  isWarmUp = false;
  /** Whether it has a type, as all messages of OpenAI's APIs have. */
  hasType = false;
  /** The model that is requested. */
  model: string | null = null;
  /** What policies depend on; null if they need not be known. */
  read: BodyModels | null = null;
  readonly #newReader: () => BodyModels | null;

  /** @param newReader called for each message. */
  constructor(newReader: () => BodyModels | null = () => null) {
    this.#newReader = newReader;
  }

  /** @see MessageReceiver. Binary messages are read like text, because some providers do so. */
  begin(): void {
    this.wantsPayload = true;
    this.#isObject = false;
    this.requests = 0;
    this.isWarmUp = false;
    this.hasType = false;
    this.model = null;
    this.read = this.#newReader();
  }

  payload(bytes: Buffer, from: number, to: number): void {
    this.read?.add(bytes, from, to);
    let at = from;
    if (!this.#isObject) {
      while (at < to && isBlank(bytes[at] ?? 0)) at += 1;
      if (at === to) return;
      // What is not an object, such as audio, asks for nothing.
      this.#isObject = this.wantsPayload = bytes[at] === OPENING_BRACE;
    }
    if (this.wantsPayload) this.#scanner.scan(bytes, at, to);
  }

  end(): void {
    this.read?.end();
    if (this.#isObject) this.#scanner.finish();
  }

  #read(): void {
    const { values, repeated } = this.#scanner;
    const type = parsedValue(values[TYPE]);
    this.hasType ||= type !== null;
    const endsTurn = values.includes('t', FIRST_TURN);
    if (type !== 'response.create' && !endsTurn && (repeated & (1 << TYPE)) === 0) return;
    this.requests += 1;
    this.isWarmUp = values[GENERATE] === 'f' && repeated === 0;
    this.model = modelNameFrom(parsedValue(values[MODEL]) ?? parsedValue(values[MODEL_IN_RESPONSE]));
  }
}

const isBlank = (byte: number) => byte <= SPACE || byte >= FIRST_NON_ASCII;
