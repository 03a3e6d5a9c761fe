/**
 * What a token may ask for: the routes and models that its own list and that of its project allow, and no escapes.
 *
 * A request is checked in two steps. Its head names a route, and models in its path and query; its body may name more. A verdict is final
 * only when all of the body was read, but a no is known as soon as what is forbidden has been read. So a body is read here before its bytes
 * are forwarded.
 */
import type { Policies } from '../../api/vocabulary.js';
import { boundedMemo } from '../bounded-memo.js';
import { Refusal, unavailable } from '../refusal.js';
import { boundaryOf, FormModels } from './form-models.js';
import { JsonModels, plainKey } from './json-models.js';
import { Pattern } from './pattern.js';
import { Route, RouteList, withoutParameters } from './routes.js';

/** The head of a request, as far as policies depend on it. */
export interface AskedHead {
  method: string;
  /** Path and query, as the client sent them. */
  target: string;
  isHandshake: boolean;
  hasBody: boolean;
  /** Values of `Content-Type`, of which there may be only one, and of `Content-Encoding`. */
  contentTypes: readonly string[];
  contentCodings: readonly string[];
  /** Whether a header asks for another method. */
  overridesMethod: boolean;
  /** The first header that may choose a more expensive service; null without one. */
  choosingHeader: string | null;
}

/** What a request asks for. */
export class Asked {
  readonly head: AskedHead;
  readonly facts: AskedFacts;
  /** What its type says that the body is; null if it cannot be read. */
  readonly bodyKind: 'json' | 'form' | null;
  /** The body, as far as it was read; null until then. */
  body: BodyModels | null = null;

  constructor(head: AskedHead) {
    const { method, target, isHandshake, hasBody, contentTypes } = head;
    const [type] = contentTypes;
    this.head = head;
    this.bodyKind = isJson(type) ? 'json' : boundaryOf(type ?? '') === null ? null : 'form';
    this.facts =
      method === 'POST' && hasBody && !isHandshake
        ? factsOfPost(target)
        : factsOf(`${isHandshake ? 'W' : ''}${hasBody ? 'B' : ''} ${method} ${target}`);
  }
}

/** What a method and a target say. */
interface AskedFacts {
  route: Route;
  /** Models that the path and the query name. */
  models: readonly string[];
  /** Why the path or the query is ambiguous; null if it is not. */
  problem: string | null;
}

/** Azure's paths, with their query, are the longest of those that come often. */
const MAX_REMEMBERED_TARGET = 200;

/** Most requests ask for one of a few routes. */
const factsOf = boundedMemo(newFacts, MAX_REMEMBERED_TARGET);
/** Nearly all requests are of this kind. */
const factsOfPost = boundedMemo((target) => newFacts(`B POST ${target}`), MAX_REMEMBERED_TARGET);

function newFacts(asked: string): AskedFacts {
  const [, flags = '', method = '', path = '', query] = /^(\w*) (\S*) ([^?]*)(?:\?(.*))?$/s.exec(asked) ?? [];
  const route = new Route({ method, path, isHandshake: flags.includes('W'), hasBody: flags.includes('B') });
  const forms = route.forms.map((form) => form.path);
  const named = query === undefined ? NONE : modelsInQuery(query);
  const isPlain = forms.length === 1 || forms.every(isUtf8);
  return {
    route,
    models: [...new Set([...forms.flatMap((form) => modelsInPath(form, method)), ...named.models])],
    problem: isPlain ? named.problem : 'the path is not percent-encoded UTF-8',
  };
}

/** The models that a body names, as far as it was read. */
export type BodyModels = Pick<JsonModels, 'names' | 'isInBackground' | 'problem' | 'isComplete'> & {
  readonly isUncheckable?: boolean;
  readonly namesOfTools?: readonly string[];
  add(bytes: Buffer, from?: number, to?: number): void;
  end(): void;
};

/** Why a request is refused: creates its refusal. */
export type PolicyReason = () => Refusal;

/** Refusals show no more of a list. */
const MAX_SHOWN = 20;

class ModelList {
  readonly entries: readonly string[];
  readonly #patterns: readonly Pattern[];
  /** Whether it allows every model. */
  readonly isOpen: boolean;

  constructor(entries: readonly string[]) {
    this.entries = entries;
    this.#patterns = entries.map((entry) => new Pattern(entry));
    this.isOpen = entries.includes('*');
  }

  allows(model: string): boolean {
    const name = model.startsWith(GOOGLE_PREFIX) ? model.slice(GOOGLE_PREFIX.length) : model;
    return this.#patterns.some((pattern) => pattern.matches(name));
  }
}

/** A shadow budget only reports. */
const restricts = ({ allow, limits, budget }: Policies) =>
  (allow ?? limits) !== null || (budget !== null && budget.mode !== 'shadow');

/** Google's APIs name a model in this way in a body. */
const GOOGLE_PREFIX = 'models/';

export interface PolicySources {
  /** Those of the token and of its project. */
  policies: readonly Policies[];
  isCapped: boolean;
  /** Whether escapes are open to every token. */
  allowsEscapes: boolean;
}

export class Policy {
  readonly #routes: readonly RouteList[];
  readonly #models: readonly ModelList[];
  readonly #refusesEscapes: boolean;

  private constructor({ policies, isCapped, allowsEscapes }: PolicySources) {
    this.#routes = policies.flatMap(({ allow }) => (allow?.routes ? new RouteList(allow.routes) : []));
    this.#models = policies.flatMap(({ allow }) => (allow?.models ? new ModelList(allow.models) : []));
    const isRestricted = isCapped || policies.some(restricts);
    this.#refusesEscapes = isRestricted && !allowsEscapes;
  }

  /** @returns null if nothing is restricted. */
  static of(sources: PolicySources): Policy | null {
    const policy = new Policy(sources);
    return policy.#refusesEscapes || policy.#routes.length > 0 || policy.#models.length > 0 ? policy : null;
  }

  /** What must be read of a request's body before it is forwarded; null: nothing. Call it for a request whose head is allowed. */
  readerFor({ head, facts, bodyKind }: Asked): BodyModels | null {
    if (!head.hasBody || !this.#reads(facts.route)) return null;
    if (bodyKind === 'json') return new JsonModels({ models: this.#models.length > 0, isMessage: false });
    const boundary = boundaryOf(head.contentTypes[0] ?? '');
    return boundary === null ? null : new FormModels(boundary);
  }

  /** The reader for a message on a WebSocket; null: nothing has to be read. */
  readerForMessage(): BodyModels | null {
    return this.#readsMessages ? new JsonModels({ models: this.#models.length > 0, isMessage: true }) : null;
  }

  get #readsMessages(): boolean {
    return this.#models.length > 0 || this.#refusesEscapes;
  }

  #reads(route: Route): boolean {
    return this.#models.length > 0 || (this.#refusesEscapes && mayRunInBackground(route));
  }

  /** The one rule for routes and models: why a request is refused, as far as it was read; null if it is not. */
  reasonAgainst(asked: Asked): PolicyReason | null {
    return this.#againstRoute(asked) ?? this.#againstModels(asked);
  }

  #againstRoute({ head, facts }: Asked): PolicyReason | null {
    const { route, problem } = facts;
    if (problem !== null) return () => invalid(problem);
    if (head.overridesMethod) return () => invalid('a header asks for another method than that of the request');
    const escaped = this.#refusesEscapes ? this.#escapeOf(route) : null;
    if (escaped) return escaped;
    for (const list of this.#routes) {
      const isAllowed = list.allows(route);
      if (isAllowed === null) return () => invalid('the path may be read in two ways: send it decoded');
      if (!isAllowed) return () => notAllowed('route', list.entries);
    }
    return null;
  }

  #escapeOf(route: Route): PolicyReason | null {
    const lists = this.#routes;
    for (const { escape } of route.forms) {
      const isNamed = lists.length > 0 && lists.every((list) => escape && list.names(escape, route));
      if (escape && !isNamed) return () => routeEscapes();
    }
    return null;
  }

  #againstModels(asked: Asked): PolicyReason | null {
    const { head, facts, body } = asked;
    const { route } = facts;
    if (this.#reads(route) && head.hasBody) {
      const unread = this.#whyUnreadable(asked);
      if (unread) return unread;
    }
    if (body) {
      const { problem } = body;
      if (problem !== null) return () => invalid(problem);
      if (body.isInBackground && this.#refusesEscapes && mayRunInBackground(route)) return () => routeEscapes(true);
    }
    if (this.#models.length === 0) return null;
    const uncheckable = route.isUncheckable ? this.#againstUncheckable() : null;
    return uncheckable ?? this.#againstNames(facts.models) ?? this.#againstBody(body) ?? this.#againstUnnamed(asked);
  }

  #againstBody(body: BodyModels | null): PolicyReason | null {
    if (body === null) return null;
    const uncheckable = body.isUncheckable === true ? this.#againstUncheckable() : null;
    return uncheckable ?? this.#againstNames(body.names) ?? this.#againstNames(body.namesOfTools ?? NONE.models);
  }

  #againstUncheckable(): PolicyReason | null {
    const closed = this.#models.find(({ isOpen }) => !isOpen);
    return closed ? () => notCheckable(closed.entries) : null;
  }

  #againstNames(names: readonly string[]): PolicyReason | null {
    for (const list of this.#models) {
      if (!names.every((name) => list.allows(name))) return () => notAllowed('model', list.entries);
    }
    return null;
  }

  /** Known for a body when it is complete. */
  #againstUnnamed({ head, facts, body }: Asked): PolicyReason | null {
    const [list] = this.#models;
    const { route, models } = facts;
    const isKnown = !head.hasBody || body?.isComplete === true;
    const isNamed = models.length > 0 || (body !== null && (body.names.length > 0 || body.isUncheckable === true));
    if (!list || !isKnown || isNamed || !route.mustNameModel) return null;
    return () => notNamed(list.entries);
  }

  #whyUnreadable({ head, facts: { route }, bodyKind }: Asked): PolicyReason | null {
    if (head.contentCodings.some((coding) => !/^ *(?:identity)? *$/i.test(coding)))
      return () =>
        new Refusal('unsupported_media_type', 'the body must not be compressed, because the token is restricted');
    if (head.contentTypes.length > 1) return () => invalid('the request has more than one Content-Type header');
    if (bodyKind !== null) return null;
    const isRead = route.mustNameModel || mayRunInBackground(route);
    return isRead
      ? () => new Refusal('unsupported_media_type', 'the body must be JSON in UTF-8, or a multipart form')
      : null;
  }

  /**
   * Why a message on a WebSocket is refused.
   *
   * @param message it was read completely; null if it was not read, because nothing was restricted when it began.
   * @param isRequest whether it asks for a response.
   */
  reasonAgainstMessage(message: BodyModels | null, isRequest: boolean): PolicyReason | null {
    if (!this.#readsMessages) return null;
    if (message === null) return () => unavailable();
    const { problem, names } = message;
    if (problem !== null) return () => invalid(problem);
    if (message.isInBackground && this.#refusesEscapes) return () => routeEscapes(true);
    const reason = this.#againstBody(message);
    const [list] = this.#models;
    if (reason || !list || !isRequest || names.length > 0) return reason;
    return () => notNamed(list.entries);
  }
}

/** Without a type it is read as JSON: then it must be. */
const isJson = (contentType = '') => JSON_TYPE.test(contentType);
const JSON_TYPE = /^(?:application\/(?:[\w.-]+\+)?json *(?:; *charset="?utf-?8"? *)?|)$/i;

/** Whether a body may ask for a response in the background. */
const mayRunInBackground = ({ method, takesBackground, isHandshake }: Route) =>
  method === 'POST' && !isHandshake && takesBackground;

const NONE = { models: [] as readonly string[], problem: null as string | null };

/** Parameters of a query that name a model. */
const IN_QUERY: ReadonlySet<string> = new Set(['model', 'deployment']);
/** Those that Google and some frameworks read in place of the method and the headers. */
const METHOD_IN_QUERY: ReadonlySet<string> = new Set(['$httpmethod', '$httpheaders', '_method']);

function modelsInQuery(query: string): typeof NONE {
  const models: string[] = [];
  const invalid = { models, problem: 'the query is not percent-encoded UTF-8' };
  for (const part of query.split(/[&;]/)) {
    const equals = part.indexOf('=');
    const name = equals === -1 ? part : part.slice(0, equals);
    const key = decoded(name);
    if (key === null) return invalid;
    const plain = plainKey(key);
    if (METHOD_IN_QUERY.has(plain)) return { models, problem: 'the query asks for another method or other headers' };
    if (!IN_QUERY.has(plain)) continue;
    const model = decoded(equals === -1 ? '' : part.slice(equals + 1));
    if (model === null) return invalid;
    if (name !== plain) return { models, problem: `the parameter ${plain} must be written in its own letters` };
    models.push(model);
  }
  return { models, problem: null };
}

function decoded(text: string): string | null {
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}

/** Models that a form of a path names: `/models/NAME:method`, `/deployments/NAME/…`. Some servers do not tell the cases of a path apart. */
function modelsInPath(form: string, method: string): string[] {
  const isRead = method === 'GET' || method === 'HEAD';
  const models: string[] = [];
  for (const [, kind = '', name = ''] of form.matchAll(IN_PATH)) {
    if (isRead && !/^deployments$/i.test(kind)) continue;
    const colon = BEFORE_COLON.test(kind) ? name.lastIndexOf(':') : -1;
    if (colon === -1 && ONLY_BEFORE_COLON.test(kind)) continue;
    models.push(colon === -1 ? name : name.slice(0, colon));
    const stripped = withoutParameters(name);
    if (stripped !== name) models.push(stripped);
  }
  return models;
}

/** With the parameters of a segment, which some servers drop, as they merge slashes. */
const IN_PATH = /\/(models|tunedModels|dynamic|endpoints|deployments|engines|model)(?:;[^/]*)?\/+([^/]+)/gi;
/** Google's, which a method follows. */
const BEFORE_COLON = /^(?:models|tunedModels|dynamic|endpoints)$/i;
const ONLY_BEFORE_COLON = /^(?:dynamic|endpoints)$/i;

function isUtf8(form: string): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(form, 'latin1'));
    return true;
  } catch {
    return false;
  }
}

const invalid = (message: string) => new Refusal('invalid_request', message);

function notAllowed(what: 'route' | 'model', entries: readonly string[]): Refusal {
  return new Refusal(`${what}_not_allowed`, `the token may not use this ${what}`, shown(entries));
}

const notNamed = (entries: readonly string[]) =>
  new Refusal('model_not_named', 'the request must name a model, because the token may not use all', shown(entries));

const notCheckable = (entries: readonly string[]) =>
  new Refusal(
    'model_not_checkable',
    'the models of this request cannot be checked, and the token may not use all',
    shown(entries),
  );

const routeEscapes = (isInBackground = false) =>
  new Refusal(
    'route_escapes',
    isInBackground
      ? 'the token is restricted, and a response in the background would outlive the request'
      : 'the token is restricted, and this route leads around its restrictions',
    { hint: 'ask the issuer of the token to allow this route by its name' },
  );

function shown(entries: readonly string[]): { allowed: string[]; hint: string } {
  const allowed = entries.slice(0, MAX_SHOWN);
  return { allowed, hint: `it may use ${allowed.join(', ')}${entries.length > MAX_SHOWN ? ', …' : ''}` };
}
