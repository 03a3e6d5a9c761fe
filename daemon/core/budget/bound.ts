/**
 * The bound of a request: the most tokens that a provider can bill for it. A hard budget reserves it before the request is forwarded.
 *
 * The bound must hold however the provider reads the request. So a request that could be read in two ways, or that has an unknown member
 * (bounded-members.ts), has no bound. docs/budgets.md says what the bound rests on.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { boundedMemo } from '../bounded-memo.js';
import {
  BATCH_EMBED_CONTENTS,
  CHAT,
  type Check,
  COMPLETIONS,
  EMBED_CONTENT,
  EMBEDDINGS,
  GENERATE_CONTENT,
  MESSAGES,
  MODERATIONS,
  RESPONSES,
} from './bounded-members.js';
import { memberCountOf } from './json-shape.js';
import { Reading } from './reading.js';
import { growthOf } from './text-growth.js';

/** Whole numbers of tokens. The provider cannot bill more, however it reads the request. */
export interface Bound {
  model: string;
  /** Input of any kind, including cache writes and audio. */
  inputTokens: number;
  /** Output of any kind, including reasoning. */
  outputTokens: number;
  /** How many answers these are for. */
  answers: number;
}

/** The request has no bound. */
export interface Boundless {
  /** Completes `the cost of this request has no bound: …`. */
  why: string;
}

/** The limits of a model, from its price entry; null: unknown. */
export interface ModelLimits {
  /** The most tokens that it can respond with. */
  maxOutput: number | null;
  /** The most tokens that one image, audio or file can have. */
  partTokens: number | null;
}

export interface BoundedRequest {
  method: string;
  /** Path and query, as the client sent them. */
  target: string;
  /** Host name of the provider: some of them ignore maxima that others honour. */
  host: string;
  /** Null: there is none. */
  contentType: string | null;
  /** The whole body, without a content coding; null: there is none. */
  body: Buffer | null;
}

type Values = Readonly<Record<string, unknown>>;

/** How the requests of an API are bounded. */
interface Api {
  check: Check;
  /** Null: it has no output. */
  output: Output | null;
  /** Other names of models than `model`. */
  models?: (body: Values) => readonly unknown[];
}

/** Where a request limits its output. */
interface Output {
  /** Members that limit the output; the largest one counts. */
  maxima: readonly string[];
  /** Members that multiply the output. */
  counts: readonly string[];
  /** The object that contains these members. */
  within: (body: Values) => Values;
  /** How many inputs get an output. */
  inputs: (body: Values) => number;
}

/**
 * Instructions that providers and templates add to each request. xAI adds about 160 tokens, the templates of open models fewer. The syntax
 * of JSON around each message is longer than what a template puts there.
 */
const ADDED_INSTRUCTIONS = 512;
/** Instructions that are added for tools. Anthropic has published up to 530 tokens. */
const ADDED_FOR_TOOLS = 1_024;

/** OpenRouter has most files read by a service with a price for each page. */
const READS_FILES_FIRST = /(?:^|\.)openrouter\.ai$/i;

const IS_JSON = /^application\/json *(?:; *charset="?utf-?8"? *)?$/i;

/** @param limitsOf null for a model without a price entry. */
export function boundOf(
  { method, target, host, contentType, body }: BoundedRequest,
  limitsOf: (model: string) => ModelLimits | null,
): Bound | Boundless {
  const route = method === 'POST' ? routeOf(target) : NO_ROUTE;
  if ('why' in route) return route;
  if (body === null || !IS_JSON.test(contentType ?? '')) return { why: 'its body is not JSON in UTF-8' };
  const document = parsed(body);
  if ('why' in document) return document;
  const { api } = route;
  const { values } = document;
  const reading = new Reading();
  api.check(values, reading);
  if (reading.why !== null) return { why: reading.why };
  if (reading.members !== document.members) return { why: 'a member is repeated' };
  if (reading.hasFiles && READS_FILES_FIRST.test(host)) return { why: 'another model reads its files first' };
  const model = modelIn(route, values);
  if (model === null) return { why: 'it does not name one model' };
  const limits = limitsOf(model);
  const partTokens = reading.parts === 0 ? 0 : (limits?.partTokens ?? null);
  if (partTokens === null) return { why: 'the price of the model has no part_tokens for its images, audios and files' };
  const bytes = body.length + (document.isPlain ? 0 : growthOf(values));
  const inputTokens = bytes + reading.added + reading.parts * partTokens;
  if (api.output === null) return whole({ model, inputTokens, outputTokens: 0, answers: 1 });
  if (RUNS_MORE.test(model)) return { why: 'models of this kind search, run tools or use other models by themselves' };
  const answers = answersIn(values, api.output);
  if (typeof answers === 'string') return { why: answers };
  const each = outputOf({ values, model, host, maxOutput: limits?.maxOutput ?? null }, api.output);
  if (typeof each === 'string') return { why: each };
  const added = ADDED_INSTRUCTIONS + (reading.hasTools ? ADDED_FOR_TOOLS : 0);
  return whole({ model, inputTokens: inputTokens + added, outputTokens: each * answers, answers });
}

function whole(bound: Bound): Bound | Boundless {
  const isSafe = Number.isSafeInteger(bound.inputTokens) && Number.isSafeInteger(bound.outputTokens);
  return isSafe ? bound : { why: 'its maximum of output is too large' };
}

// ---- the body

interface Document {
  values: Values;
  members: number;
  /** Whether no Unicode normal form of it is longer. */
  isPlain: boolean;
}

function parsed(body: Buffer): Document | Boundless {
  const hasAscii = isAscii(body);
  if (!hasAscii && !isUtf8(body)) return { why: 'its body is not JSON in UTF-8' };
  const text = body.toString(hasAscii ? 'latin1' : 'utf8');
  const members = memberCountOf(body);
  if (typeof members === 'string') return { why: members };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { why: 'its body is not JSON in UTF-8' };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { why: 'its body is not an object' };
  return { values: value as Values, members, isPlain: hasAscii && !text.includes('\\u') };
}

// ---- the model

/** Models that search, run tools or other models, choose a faster provider, or respond with more than text, at other prices. */
const RUNS_MORE =
  /search|deep-research|sonar|compound|multi-agent|:(?:online|nitro|exacto)|@preset|router|(?:^|\/)auto$|image|audio|realtime|-tts|-live/i;

const MAX_MODEL_LENGTH = 200;
const GOOGLE_PREFIX = 'models/';

/** @returns null if the path and the body name none, or different ones. */
function modelIn({ api, pathModel }: Route, body: Values): string | null {
  const named = [body.model, ...(api.models?.(body) ?? [])].filter((name) => (name ?? null) !== null);
  let model = pathModel;
  for (const name of named) {
    if (typeof name !== 'string') return null;
    const plain = name.startsWith(GOOGLE_PREFIX) ? name.slice(GOOGLE_PREFIX.length) : name;
    if (model !== null && plain !== model) return null;
    model = plain;
  }
  return model === null || model === '' || model.length > MAX_MODEL_LENGTH ? null : model;
}

// ---- the output

/** Where `max_completion_tokens` is documented. DeepSeek ignores it silently. */
const HONOURS_COMPLETION_TOKENS =
  /^(?:api\.openai\.com|.+\.api\.openai\.com|.+\.(?:openai|services\.ai|cognitiveservices)\.azure\.com|api\.groq\.com|openrouter\.ai|api\.cerebras\.ai|generativelanguage\.googleapis\.com|api\.anthropic\.com)$/i;
/** Models and hosts that count reasoning in addition to the maximum of output. */
const REASONS_BEYOND = /grok/i;
const REASONS_BEYOND_AT = /(?:^|\.)(?:x\.ai|aliyuncs\.com)$/i;

interface Asked {
  values: Values;
  model: string;
  host: string;
  maxOutput: number | null;
}

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0;

/** @returns how many answers are asked for, or why that is not known. */
function answersIn(values: Values, { counts, within, inputs }: Output): number | string {
  const settings = within(values);
  let answers = inputs(values);
  for (const name of counts) {
    const count = settings[name] ?? 1;
    if (!isWhole(count)) return `${name} is not a whole number above 0`;
    answers *= count;
  }
  return answers;
}

/** @returns the tokens of one answer, or why they have no bound. */
function outputOf({ values, model, host, maxOutput }: Asked, { maxima, within }: Output): number | string {
  const settings = within(values);
  let most = 0;
  let isHonoured = false;
  for (const name of maxima) {
    const value = settings[name] ?? null;
    if (value === null) continue;
    // Some servers take 0 and -1 for no maximum.
    if (!isWhole(value)) return `${name} is not a whole number above 0`;
    most = Math.max(most, value);
    isHonoured ||= name !== 'max_completion_tokens' || HONOURS_COMPLETION_TOKENS.test(host);
  }
  const reasonsBeyond = REASONS_BEYOND.test(model) || REASONS_BEYOND_AT.test(host);
  if (!isHonoured || reasonsBeyond) {
    const [preferred = ''] = maxima;
    if (maxOutput === null) {
      return reasonsBeyond
        ? 'reasoning is not part of its maximum of output, and the price of the model has no max_output'
        : `it has no ${preferred}, and the price of the model has no max_output`;
    }
    most = isHonoured ? most + maxOutput : Math.max(most, maxOutput);
  }
  return most + thinkingOf(values);
}

/** Anthropic's budget for thinking is a part of the maximum, unless it is larger. */
function thinkingOf({ thinking, max_tokens: most }: Values): number {
  const budget = objectIn(thinking).budget_tokens ?? 0;
  return typeof budget === 'number' && budget > (typeof most === 'number' ? most : 0) ? budget : 0;
}

const objectIn = (value: unknown): Values => (typeof value === 'object' && value !== null ? (value as Values) : {});

/** A prompt may be a text, tokens, or a list of either. */
function promptsIn({ prompt }: Values): number {
  return Array.isArray(prompt) && typeof prompt[0] !== 'number' ? Math.max(1, prompt.length) : 1;
}

// ---- the route

interface Route {
  api: Api;
  /** The model that the path names. */
  pathModel: string | null;
}

const itself = (body: Values) => body;
const one = () => 1;
const api = (check: Check, output: Partial<Output> | null = null, models?: Api['models']): Api => ({
  check,
  output: output && { maxima: [], counts: [], within: itself, inputs: one, ...output },
  ...(models && { models }),
});

const COMPLETION: Partial<Output> = { maxima: ['max_tokens'], counts: ['n', 'best_of'], inputs: promptsIn };
const GENERATION: Partial<Output> = {
  maxima: ['maxOutputTokens', 'max_output_tokens'],
  counts: ['candidateCount', 'candidate_count'],
  within: (body) => objectIn(body.generationConfig ?? body.generation_config),
};
const modelsOfRequests = ({ requests }: Values) =>
  (Array.isArray(requests) ? requests : [requests]).map((request) => objectIn(request).model);

const [VERSION, DEPLOYMENT] = [String.raw`\/v\d+\w*`, String.raw`\/openai\/deployments\/(?<model>[^/:]+)`];
const below = (path: string, ...prefixes: string[]) => new RegExp(`(?:^|${prefixes.join('|')})${path}$`);

/** The paths of these APIs. A path that continues in another way may be another API. */
const ROUTES: readonly (readonly [RegExp, Api])[] = [
  [
    below(String.raw`\/chat\/completions`, DEPLOYMENT, String.raw`\/[^/]+`),
    api(CHAT, { maxima: ['max_tokens', 'max_completion_tokens'], counts: ['n'] }),
  ],
  [below(String.raw`\/responses`, VERSION, String.raw`\/openai`), api(RESPONSES, { maxima: ['max_output_tokens'] })],
  [below(String.raw`\/messages`, VERSION, String.raw`\/anthropic`), api(MESSAGES, { maxima: ['max_tokens'] })],
  [below(String.raw`\/completions`, VERSION, DEPLOYMENT), api(COMPLETIONS, COMPLETION)],
  [below(String.raw`\/embeddings`, VERSION, DEPLOYMENT), api(EMBEDDINGS)],
  [below(String.raw`\/moderations`, VERSION), api(MODERATIONS)],
  [/\/models\/(?<model>[^/:]+):(?:generateContent|streamGenerateContent)$/, api(GENERATE_CONTENT, GENERATION)],
  [/\/models\/(?<model>[^/:]+):embedContent$/, api(EMBED_CONTENT)],
  [/\/models\/(?<model>[^/:]+):batchEmbedContents$/, api(BATCH_EMBED_CONTENTS, null, modelsOfRequests)],
];

/** A provider may decode other paths, or take them for another path. */
const PLAIN_PATH = /^(?:\/[\w-][\w.:@-]*)+$/;
const NAMES_MODEL = /\/(?:models|tunedModels|deployments|engines|model)\//gi;
const PLAIN_PARAMETER = /^(?:api-version=[\w.-]*|alt=(?:sse|json)|beta=true)$/;

const NO_ROUTE: Boundless = { why: 'it is not known what this route costs' };
const MAX_REMEMBERED_TARGET = 200;

const routeOf = boundedMemo((target: string): Route | Boundless => {
  const [path = '', ...queries] = target.split('?');
  if (!PLAIN_PATH.test(path)) return { why: 'its path may be read in two ways' };
  if (queries.length > 1 || !(queries[0] ?? 'beta=true').split('&').every((it) => PLAIN_PARAMETER.test(it)))
    return { why: 'a parameter of its query is not known' };
  for (const [pattern, found] of ROUTES) {
    const match = pattern.exec(path);
    if (match === null) continue;
    const pathModel = match.groups?.model ?? null;
    const named = path.match(NAMES_MODEL)?.length ?? 0;
    return named === (pathModel === null ? 0 : 1) ? { api: found, pathModel } : NO_ROUTE;
  }
  return NO_ROUTE;
}, MAX_REMEMBERED_TARGET);
