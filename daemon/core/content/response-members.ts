/** What is read from the JSON of responses, events and messages: the usage, the model, and whether the provider reports a failure. */
import { modelNameFrom, UNNAMED_ERROR } from './facts.js';
import { type JsonScanner, parsedValue } from './json-scanner.js';
import type { UsageExtent } from './readings.js';
import { wanted, type Wanted } from './wanted-members.js';
import { type ReportedUsage, reportedUsage } from './token-counts.js';

/** Values of a scanner, and which of them it found. */
type Values = Pick<JsonScanner, 'values' | 'found'>;

// Of several that are found, the first in this order counts.
const USAGES = ['usage', 'usageMetadata', 'x_groq.usage', 'choices[0].usage'];
const MODELS = ['model', 'modelVersion'];

/** Where an error is reported, if it is the member `path`. Its code may be a number, which does not name it. */
const codesOf = (path: string) => [`${path}.code`, `${path}.type`, `${path}.status`];
const textsOf = (path: string) => [path, `${path}.message`];

interface Places {
  usages: readonly string[];
  models: readonly string[];
  /** Members that are an error. */
  errors: readonly string[];
  /** Members of which only the first byte matters. */
  marks?: readonly string[];
}

/** The members that are wanted in one kind of document, and what their values mean. */
class ResponseMembers {
  readonly wanted: Wanted;
  /** The paths of `wanted` in their order, as numbers of slots. */
  readonly #models: number;
  readonly #codes: number;
  readonly #texts: number;
  readonly #code: number;
  readonly #type: number;

  constructor({ usages, models, errors, marks = [] }: Places) {
    const strings = [...models, ...errors.flatMap(codesOf), ...errors.flatMap(textsOf), 'code', 'type'];
    const paths = [
      ...usages.map((path) => [path, 'object'] as const),
      ...strings.map((path) => [path, 'string'] as const),
      ...marks.map((path) => [path, 'literal'] as const),
    ];
    this.wanted = wanted(Object.fromEntries(paths));
    this.#models = usages.length;
    this.#codes = this.#models + models.length;
    this.#texts = this.#codes + errors.flatMap(codesOf).length;
    this.#code = this.#texts + errors.flatMap(textsOf).length;
    this.#type = this.#code + 1;
  }

  /** The bits of all models, for `unwanted`. */
  get modelBits(): number {
    return bitsBelow(this.#codes) & ~bitsBelow(this.#models);
  }

  /** @returns null if there are no counts. */
  usageIn({ values, found }: Values): ReportedUsage | null {
    if ((found & bitsBelow(this.#models)) === 0) return null;
    for (let slot = 0; slot < this.#models; slot++) {
      const reported = reportedUsage(parsedValue(values[slot]));
      if (reported) return reported;
    }
    return null;
  }

  modelIn({ values }: Values): string | null {
    for (let slot = this.#models; slot < this.#codes; slot++) {
      const model = modelNameFrom(textIn(values, slot));
      if (model !== null) return model;
    }
    return null;
  }

  /** The code of the error that is reported; null if none is. It may contain a secret. */
  errorIn(read: Values): string | null {
    const { values, found } = read;
    if (found >>> this.#codes === 0) return null;
    const type = this.typeIn(read);
    let isReported = type === 'error' || type === 'response.failed';
    let code: string | null = null;
    for (let slot = this.#codes; slot < this.#code; slot++) {
      const text = textIn(values, slot);
      if (text === '') continue;
      isReported = true;
      if (slot < this.#texts && code === null && IS_CODE.test(text)) code = text.toLowerCase();
    }
    if (!isReported) return null;
    const last = textIn(values, this.#code);
    return code ?? (IS_CODE.test(last) ? last.toLowerCase() : UNNAMED_ERROR);
  }

  typeIn({ values }: Values): string {
    return textIn(values, this.#type);
  }

  /** The first byte of the mark's value; null if it is missing. @param mark its index. */
  markIn({ values }: Values, mark: number): string | null {
    return values[this.#type + 1 + mark] ?? null;
  }
}

/** Gemini streams a list of responses if the client does not ask for events. */
const IN_LISTS = '[].';
/** Objects in events: of the Responses API and the Realtime API, and of Anthropic. */
const IN_EVENTS = ['response.', 'message.'];
const within = (objects: readonly string[], path: string) => objects.map((object) => `${object}${path}`);

/** JSON bodies. */
export const BODY_MEMBERS = new ResponseMembers({
  usages: [...USAGES, `${IN_LISTS}usageMetadata`],
  models: [...MODELS, `${IN_LISTS}modelVersion`],
  errors: ['error', 'choices[0].error', `${IN_LISTS}error`],
});

/** Server-sent events. */
export const EVENT_MEMBERS = new ResponseMembers({
  usages: [...USAGES, ...within(IN_EVENTS, 'usage')],
  models: [...MODELS, ...within(IN_EVENTS, 'model')],
  errors: ['error', 'choices[0].error', 'response.error'],
  marks: ['choices[0].index', 'choices[0].finish_reason', 'candidates[0].finishReason'],
});
const [CHOICE, FINISHED, FINISHED_CANDIDATE] = [0, 1, 2];

/** What the usage of an event is of. Some providers report one with each event, for the part until then. */
export function usageExtentOf(event: Values): UsageExtent {
  const type = EVENT_MEMBERS.typeIn(event);
  if (LAST_EVENTS.test(type)) return 'whole';
  if (type === FIRST_EVENT) return 'beginning';
  const isFinished = [FINISHED, FINISHED_CANDIDATE].some((mark) => EVENT_MEMBERS.markIn(event, mark) === '"');
  if (isFinished) return 'answer';
  // OpenAI reports it in an event of its own, with an empty list of choices.
  const isOfItsOwn = type === '' && (event.found & 1) !== 0 && EVENT_MEMBERS.markIn(event, CHOICE) === null;
  return isOfItsOwn ? 'whole' : 'part';
}
const FIRST_EVENT = 'message_start';
const LAST_EVENTS = /^(?:response\.(?:completed|incomplete|failed)|message_delta)$/;

/** Messages of a WebSocket, from the provider. What they say about a session comes last. */
export const MESSAGE_MEMBERS = new ResponseMembers({
  usages: ['usage', 'usageMetadata', 'response.usage'],
  models: [
    ...['model', 'modelVersion', 'response.model', 'session.model'],
    ...['session.audio.input.transcription.model', 'session.input_audio_transcription.model'],
  ],
  errors: ['error', 'response.error', 'response.status_details.error'],
  marks: ['serverContent.modelTurn', 'serverContent.turnComplete'],
});
export const MODEL_TURN = 0;
export const TURN_COMPLETE = 1;

// As a code of the management API: daemon/api/vocabulary.ts.
const IS_CODE = /^[a-z][a-z_]{0,63}$/i;

const bitsBelow = (slot: number) => (1 << slot) - 1;

/** The text of a string; '' if there is none. */
function textIn(values: Values['values'], slot: number): string {
  const json = values[slot] ?? null;
  if (json === null) return '';
  const text = json.includes('\\') ? parsedValue(json) : json.slice(1, -1);
  return typeof text === 'string' ? text : '';
}
