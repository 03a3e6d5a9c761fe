/**
 * Routes: what a list of routes means, and which routes are escapes.
 *
 * A path is compared in each form that a server may take it for: as it was sent, and decoded once, twice and three times.
 */
import type { RoutePreset } from '../../api/vocabulary.js';
import { boundedMemo } from '../bounded-memo.js';
import { Pattern } from './pattern.js';

/** What is compared of a request. */
export interface Route {
  method: string;
  /** The path as it was sent, and decoded. Each character is a byte. */
  forms: readonly string[];
  /** Whether it is the handshake of a WebSocket, whose method is GET. */
  isHandshake: boolean;
  hasBody: boolean;
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

const isIn = (patterns: readonly RoutePattern[], { method }: Route, form: string) =>
  patterns.some((pattern) => matches(pattern, method, form));

/** What each preset has, by a form of the path. */
const PRESETS: Readonly<Record<RoutePreset, (route: Route, form: string) => boolean>> = {
  inference: (route, form) => isIn(route.isHandshake ? INFERENCE_HANDSHAKES : INFERENCE, route, form),
  // Without a body: one could name another method, or another resource.
  read: ({ method, isHandshake, hasBody }) => (method === 'GET' || method === 'HEAD') && !isHandshake && !hasBody,
  contained: (route, form) => escapeIn(route.method, form) === null,
  all: () => true,
};

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
  escape('POST */realtime/transcription_sessions', 'realtime/transcription_sessions', true),
  escape('POST */realtime/calls*', 'realtime/calls', true),
  escape('POST */realtime/*/calls*', '/calls', true),
  escape('* */chatkit/sessions*', 'chatkit/sessions', true),
  escape('* */messages/batches*', 'messages/batches', true),
  escape('POST */batches', 'batches', true),
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
export const escapeIn = (method: string, form: string): Escape | null => escapeOf(`${method} ${form}`);

const escapeOf = boundedMemo((asked): Escape | null => {
  const [method = '', ...form] = asked.split(' ');
  const plain = plainPath(form.join(' '));
  return ESCAPES.find(({ pattern }) => matches(pattern, method, plain)) ?? null;
});

const plainPath = (form: string) => form.toLowerCase().replace(PARAMETERS, '').replace(TRAILING_SLASHES, '');

// Some servers strip them.
const PARAMETERS = /;[^/]*/g;
const TRAILING_SLASHES = /\/+$/;

/** The Responses API, which can run a model in the background, and on a WebSocket. */
export const isResponses = boundedMemo((form): boolean => plainPath(form).endsWith('/responses'));

// ---- lists

/** A list of routes. */
export class RouteList {
  readonly entries: readonly string[];
  readonly #presets: RoutePreset[] = [];
  readonly #patterns: RoutePattern[] = [];

  constructor(entries: readonly string[]) {
    this.entries = entries;
    for (const entry of entries) {
      if (Object.hasOwn(PRESETS, entry)) this.#presets.push(entry as RoutePreset);
      else this.#patterns.push(routePattern(entry));
    }
  }

  /** @returns null if a server could read the path in two ways, of which one is allowed and the other is not. */
  allows(route: Route): boolean | null {
    const verdicts = new Set(route.forms.map((form) => this.#allows(route, form)));
    return verdicts.size > 1 ? null : verdicts.has(true);
  }

  #allows(route: Route, form: string): boolean {
    return isIn(this.#patterns, route, form) || this.#presets.some((preset) => PRESETS[preset](route, form));
  }

  /** Whether a pattern of the list names this escape: its literal part, not a wildcard, leads there. */
  names({ literal }: Escape, { method, forms }: Route): boolean {
    return this.#patterns.some(
      (pattern) => pattern.path.spells(literal) && forms.every((form) => matches(pattern, method, form)),
    );
  }
}
