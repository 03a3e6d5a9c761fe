/**
 * Routes: what a list of routes means, and which routes are escapes.
 *
 * A path is compared in each form that a server may take it for: as it was sent, and decoded once, twice and three times.
 */
import { ROUTE_PRESETS, type RoutePreset } from '../../api/vocabulary.js';
import { onlyStores, runsModel } from '../content/runs-model.js';
import { percentDecodedForms } from '../percent.js';
import { Pattern } from './pattern.js';

/** What is compared of a request. */
export interface AskedRoute {
  method: string;
  /** As it was sent, without the query. Each character is a byte. */
  path: string;
  /** Whether it is the handshake of a WebSocket, whose method is GET. */
  isHandshake: boolean;
  hasBody: boolean;
}

/** A path as a server may take it, and what it leads to then. */
interface Form {
  path: string;
  escape: Escape | null;
  presets: ReadonlySet<string>;
}

/** All that is said of a route by no list of a token. It is computed once for a route that is remembered. */
export class Route {
  readonly method: string;
  readonly isHandshake: boolean;
  /** The path as it was sent, and decoded. */
  readonly forms: readonly Form[];
  /** Whether its body may ask for a response in the background; one server or another might take it for such a route. */
  readonly takesBackground: boolean;
  /** Whether its request must name a model. */
  readonly mustNameModel: boolean;
  /** Whether it is not known from the request which models run. */
  readonly isUncheckable: boolean;

  /** Whether a form of the path leads to what outlives the request, or around this proxy. */
  get escapes(): boolean {
    return this.forms.some(({ escape }) => escape !== null);
  }

  constructor(asked: AskedRoute) {
    const { method, path, isHandshake } = asked;
    const forms = percentDecodedForms(path);
    this.method = method;
    this.isHandshake = isHandshake;
    this.forms = forms.map((form) => {
      const escape = escapeIn(method, form);
      return { path: form, escape, presets: presetsOf(asked, form, escape) };
    });
    this.takesBackground = forms.some((form) => isResponses(form) || isInteractions(form));
    this.mustNameModel = !isHandshake && forms.some((form) => runsModel(method, form) && !onlyStores(form));
    // On the WebSocket of the Responses API each message names its model.
    this.isUncheckable = isHandshake
      ? !forms.every(isResponses)
      : this.forms.some(({ escape }) => escape?.isUncheckable === true);
  }
}

interface RoutePattern {
  /** Null: any. */
  method: string | null;
  path: Pattern;
}

const routePattern = (text: string): RoutePattern => {
  const [method = '', path = ''] = text.split(' ');
  return { method: method === '*' ? null : method, path: new Pattern(path) };
};

const matches = ({ method, path }: RoutePattern, asked: string, form: string) =>
  (method === null || method === asked) && path.matches(form);

/** Run a model and return the result in the response. */
const INFERENCE = [
  // OpenAI, and those with the same API: also below another prefix, such as Azure's /openai/deployments/NAME.
  'POST */chat/completions',
  'POST */completions',
  'POST */v1/responses',
  'POST */openai/responses',
  'POST */responses/compact',
  'POST */responses/input_tokens',
  'POST */embeddings',
  'POST */moderations',
  'POST */images/generations',
  'POST */images/edits',
  'POST */images/variations',
  'POST */audio/speech',
  'POST */audio/transcriptions',
  'POST */audio/translations',
  'POST */v1/rerank',
  // Anthropic
  'POST */v1/messages',
  'POST */v1/messages/count_tokens',
  'POST */v1/complete',
  // Google
  'POST */models/*:generateContent',
  'POST */models/*:streamGenerateContent',
  'POST */models/*:generateAnswer',
  'POST */models/*:countTokens',
  'POST */models/*:computeTokens',
  'POST */models/*:embedContent',
  'POST */models/*:batchEmbedContents',
  'POST */models/*:predict',
  'POST */models/*:rawPredict',
  'POST */models/*:streamRawPredict',
  'POST */tunedModels/*:generateContent',
  'POST */tunedModels/*:streamGenerateContent',
].map(routePattern);

/** The handshakes of WebSockets on which models run. */
const INFERENCE_HANDSHAKES = [
  'GET */v1/responses',
  'GET */openai/responses',
  'GET */realtime',
  'GET */google.ai.generativelanguage.*.GenerativeService.BidiGenerateContent',
].map(routePattern);

const isIn = (patterns: readonly RoutePattern[], method: string, form: string) =>
  patterns.some((pattern) => matches(pattern, method, form));

/** The presets that have this form of a path. */
function presetsOf(asked: AskedRoute, form: string, escape: Escape | null): ReadonlySet<RoutePreset> {
  const { method, isHandshake, hasBody } = asked;
  const presets = new Set<RoutePreset>(['all']);
  if (isIn(isHandshake ? INFERENCE_HANDSHAKES : INFERENCE, method, form)) presets.add('inference');
  // Without a body: one could name another method, or another resource.
  if ((method === 'GET' || method === 'HEAD') && !isHandshake && !hasBody) presets.add('read');
  if (escape === null) presets.add('contained');
  return presets;
}

// ---- escapes

/** A route whose effects outlive the request, or that leads around this proxy. */
export interface Escape {
  pattern: RoutePattern;
  /** A pattern of a list names the escape if it spells this. */
  literal: string;
  /** Whether models are named where they cannot be read, such as in a file. */
  isUncheckable: boolean;
}

const escape = (pattern: string, literal: string, isUncheckable = false): Escape => ({
  pattern: routePattern(pattern),
  literal,
  isUncheckable,
});

/** In lower case: some servers do not tell cases apart. */
const ESCAPES: readonly Escape[] = [
  escape('POST */realtime/client_secrets', 'realtime/client_secrets', true),
  escape('POST */realtime/*/client_secrets', '/client_secrets', true),
  escape('POST */realtime/sessions', 'realtime/sessions', true),
  escape('POST */realtimeapi/sessions', 'realtimeapi/sessions', true),
  escape('POST */auth_tokens', 'auth_tokens', true),
  escape('POST */realtime/transcription_sessions', 'realtime/transcription_sessions', true),
  escape('POST */realtime/calls*', 'realtime/calls', true),
  escape('POST */realtime/*/calls*', '/calls', true),
  escape('* */chatkit/sessions*', 'chatkit/sessions', true),
  escape('* */messages/batches*', 'messages/batches', true),
  escape('POST */batches', 'batches', true),
  escape('POST */batch/jobs', 'batch/jobs', true),
  escape('POST */batchpredictionjobs', 'batchPredictionJobs', true),
  escape('* */fine_tuning/*', 'fine_tuning'),
  escape('* */fine_tuning', 'fine_tuning'),
  escape('* */evals*', 'evals', true),
  escape('* */containers*', 'containers'),
  escape('* */organization/*', 'organization'),
  escape('* */organizations/*', 'organizations'),
  escape('* *:batchgeneratecontent', ':batchGenerateContent', true),
  escape('* *:asyncbatch*', ':asyncBatch', true),
  escape('* */cachedcontents*', 'cachedContents'),
];

/** @returns the escape that a form of a path leads to; null if none. */
function escapeIn(method: string, form: string): Escape | null {
  const plain = plainPath(form);
  return ESCAPES.find(({ pattern }) => matches(pattern, method, plain)) ?? null;
}

/** In lower case, without what some servers strip: a query, parameters of segments, and slashes at the end. */
function plainPath(form: string): string {
  const plain = withoutParameters(form.toLowerCase().replace(QUERY, ''));
  // Not by a pattern: it would take time that grows with the square of the number of slashes.
  let end = plain.length;
  while (plain[end - 1] === '/') end -= 1;
  return plain.slice(0, end);
}

/** One that was encoded, and is there when a server decodes the path. */
const QUERY = /[?#].*/s;
/** What some servers strip from a segment. */
const PARAMETERS = /[\0-\x20;?#][^/]*/g;

export const withoutParameters = (form: string) => form.replace(PARAMETERS, '');

/** The Responses API, which can run a model in the background, and on a WebSocket. */
const isResponses = (form: string): boolean => plainPath(form).endsWith('/responses');
/** Google's API that can do so. */
const isInteractions = (form: string): boolean => plainPath(form).endsWith('/interactions');

/** Whether one server or another might take a path, as it was sent, for the Responses API. */
export const mayBeResponses = (path: string): boolean => percentDecodedForms(path).some(isResponses);

// ---- lists

const PRESETS: ReadonlySet<string> = new Set(ROUTE_PRESETS);

/** A list of routes. */
export class RouteList {
  readonly entries: readonly string[];
  readonly #presets: string[] = [];
  readonly #patterns: RoutePattern[] = [];

  constructor(entries: readonly string[]) {
    this.entries = entries;
    for (const entry of entries) {
      if (PRESETS.has(entry)) this.#presets.push(entry);
      else this.#patterns.push(routePattern(entry));
    }
  }

  /** @returns null if a server could read the path in two ways, of which one is allowed and the other is not. */
  allows({ method, forms }: Route): boolean | null {
    const verdicts = forms.map(
      ({ path, presets }) => this.#presets.some((preset) => presets.has(preset)) || isIn(this.#patterns, method, path),
    );
    const [isAllowed = false] = verdicts;
    return verdicts.every((verdict) => verdict === isAllowed) ? isAllowed : null;
  }

  /** Whether a pattern of the list names this escape: its literal part, not a wildcard, leads there. */
  names({ literal }: Escape, { method, forms }: Route): boolean {
    return this.#patterns.some(
      (pattern) => pattern.path.spells(literal) && forms.every(({ path }) => matches(pattern, method, path)),
    );
  }
}

/**
 * Whether a list allows all that an entry of another list allows, because of one of its own entries. An entry that names an escape opens it,
 * so the other one must name it, too.
 */
export function coversRoute(list: readonly string[], entry: string): boolean {
  if (list.includes(entry)) return true;
  if (PRESETS.has(entry)) return list.includes('all');
  const inner = routePattern(entry);
  const opened = ESCAPES.filter(({ literal }) => inner.path.spells(literal));
  const patterns = list.filter((it) => !PRESETS.has(it)).map(routePattern);
  const isCovered = patterns.some(
    (outer) =>
      (outer.method === null || outer.method === inner.method) &&
      outer.path.covers(inner.path) &&
      opened.every(({ literal }) => outer.path.spells(literal)),
  );
  return isCovered || (opened.length === 0 && (list.includes('all') || isInPresets(list, inner)));
}

/** Whether presets of a list allow all requests for one route. */
function isInPresets(list: readonly string[], { method, path }: RoutePattern): boolean {
  if (method === null || !path.isPlain) return false;
  const presets = new RouteList(list.filter((entry) => PRESETS.has(entry)));
  const handshakes = method === 'GET' ? [false, true] : [false];
  return handshakes.every((isHandshake) =>
    [false, true].every((hasBody) => presets.allows(new Route({ method, path: path.text, isHandshake, hasBody }))),
  );
}
