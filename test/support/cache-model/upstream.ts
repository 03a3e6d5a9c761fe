/** An upstream whose every response names the request that it answers, and that fails in all the ways in which upstreams fail. */
import type { Slot } from '../../../daemon/http/proxy/upstream-connection.js';
import type { Forwarder, Forwarding, Receiver, UpstreamRequest } from '../../../daemon/http/proxy/forwarder.js';
import type { Upstream as ProxyUpstream, Upstreams } from '../../../daemon/http/proxy/upstreams.js';
import { Refusal } from '../../../daemon/core/refusal.js';
import type { Chooser, Gates } from './gates.js';

/** One request that reached the upstream. */
export interface ReceivedRequest {
  requestId: string;
  instance: number;
  /** The name of the upstream key. */
  key: string;
  method: string;
  target: string;
  lang: string;
  flavour: string;
  body: string;
  ifNoneMatch: string;
  isOptedIn: boolean;
  /** The step in which it arrived. */
  tick: number;
  atMs: number;
}

/** A response of the upstream. */
export interface SentResponse {
  id: number;
  ask: ReceivedRequest;
  status: number;
  /** The version of the resource at the moment of the response's head. */
  version: number;
  etag: string;
  text: string;
  varies: boolean;
  /** How long a cache may use it, counted from its request; null: not at all. */
  lifetimeMs: number | null;
  upstreamAgeMs: number;
  headAtMs: number;
  /** Null until all of it was sent. */
  wholeAtMs: number | null;
}

export interface UpstreamContext {
  gates: Gates;
  chooser: Chooser;
  tick: () => number;
  nowMs: () => number;
  /** Called with each request before its response. */
  asked: (ask: ReceivedRequest) => void;
  /** The name of an upstream key. */
  nameOf: (secret: string) => string;
}

/** Lifetimes that responses state, in seconds. */
const STATED: readonly (readonly [string, number | null])[] = [
  ['max-age=60', 60],
  ['max-age=60', 60],
  ['max-age=60', 60],
  ['max-age=5', 5],
  ['s-maxage=60, max-age=1', 60],
  ['no-cache', 0],
  ['no-store', null],
  ['private, max-age=60', null],
];
export const DEFAULT_TTL_SECONDS = 300;
/** On this path, a response without a stated lifetime has the default one. */
export const DEFAULT_TTL_PATH = '/v1/models';

export class Upstream {
  readonly #world: UpstreamContext;
  readonly said: SentResponse[] = [];
  readonly #versions = new Map<string, number>();

  constructor(world: UpstreamContext) {
    this.#world = world;
  }

  versionOf(key: string, target: string): number {
    return this.#versions.get(`${key} ${target}`) ?? 1;
  }

  /** Replaces the forwarder to the provider. */
  upstreamsOf(instance: number): Pick<Upstreams, 'of'> {
    const slot: Pick<Slot, 'granted' | 'release'> = { granted: null, release: () => undefined };
    const forwarder: Pick<Forwarder, 'reserve' | 'forward'> = {
      reserve: () => slot as Slot,
      forward: (request, _slot, receiver) => this.#forward(instance, request, receiver),
    };
    const upstream = { forwarder: forwarder as Forwarder, pathOf: (target: string) => target } as ProxyUpstream;
    return { of: () => upstream };
  }

  #forward(instance: number, request: UpstreamRequest, receiver: Receiver): Forwarding {
    const ask = this.#askOf(instance, request);
    this.#world.asked(ask);
    const answering = new Answering(this, this.#world, ask, receiver);
    answering.begin();
    const forwarding: Pick<Forwarding, 'abort' | 'resume'> = {
      abort: () => {
        answering.abort();
      },
      resume: () => undefined,
    };
    return forwarding as Forwarding;
  }

  #askOf(instance: number, { method, target, headers, body }: UpstreamRequest): ReceivedRequest {
    const field = (name: string) => {
      const at = headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name);
      return at === -1 ? '' : (headers[at + 1] ?? '');
    };
    return {
      requestId: field('x-request-id'),
      instance,
      key: this.#world.nameOf(field('authorization').replace('Bearer ', '')),
      method,
      target,
      lang: field('accept-language'),
      flavour: field('x-flavour'),
      body: Buffer.isBuffer(body) ? body.toString() : '',
      ifNoneMatch: field('if-none-match'),
      isOptedIn: field('cache-control').includes('public'),
      tick: this.#world.tick(),
      atMs: this.#world.nowMs(),
    };
  }

  /** The response to this request. A write happens here. */
  answer(ask: ReceivedRequest): { said: SentResponse; headers: string[] } {
    const { chooser, nowMs } = this.#world;
    const { method, key, target, lang, flavour } = ask;
    const isWrite = method === 'PUT' || method === 'DELETE';
    const status = isWrite && chooser.chance(0.2) ? 409 : 200;
    if (isWrite && status === 200) this.#versions.set(`${key} ${target}`, this.versionOf(key, target) + 1);
    const version = this.versionOf(key, target);
    const id = this.said.length;
    const etag = `"${key}|${target}|${lang}|${flavour}|v${version}"`;
    const said: SentResponse = {
      id,
      ask,
      status,
      version,
      etag,
      text: JSON.stringify({ id, key, target, lang, flavour, body: ask.body, version, fill: 'x'.repeat(40) }),
      varies: target.includes('vary') && chooser.chance(0.8),
      lifetimeMs: null,
      upstreamAgeMs: 0,
      headAtMs: nowMs(),
      wholeAtMs: null,
    };
    this.said.push(said);
    return { said, headers: this.#headersOf(said) };
  }

  #headersOf(said: SentResponse): string[] {
    const { chooser } = this.#world;
    const { ask } = said;
    const hasEtag = ask.method === 'GET' && chooser.chance(0.6);
    const headers = ['Content-Location', `/said/${said.id}`, ...(hasEtag ? ['ETag', said.etag] : [])];
    if (said.varies) headers.push('Vary', 'X-Flavour');
    const isConfirmed = ask.method === 'GET' && ask.ifNoneMatch === said.etag;
    if (isConfirmed) said.status = 304;
    if (isConfirmed && !hasEtag) headers.push('ETag', said.etag);
    const isKeepable = ask.method === 'GET' || (ask.method === 'POST' && ask.isOptedIn);
    const hasDefault = isKeepable && (ask.isOptedIn || ask.target.split('?')[0] === DEFAULT_TTL_PATH);
    if (!isConfirmed && chooser.chance(0.15)) {
      if (hasDefault) said.lifetimeMs = DEFAULT_TTL_SECONDS * 1000;
    } else {
      const [stated, seconds] = chooser.one(STATED);
      headers.push('Cache-Control', stated);
      said.lifetimeMs = isKeepable && seconds !== null ? seconds * 1000 : null;
    }
    if (isConfirmed) return headers;
    if (chooser.chance(0.1)) {
      headers.push('Age', '4');
      said.upstreamAgeMs = 4_000;
      if (said.lifetimeMs !== null) said.lifetimeMs = Math.max(0, said.lifetimeMs - 4_000);
    }
    if (chooser.chance(0.05)) {
      headers.push('Set-Cookie', 'session=1');
      said.lifetimeMs = null;
    }
    headers.push('Content-Type', chooser.chance(0.05) ? 'text/event-stream' : 'application/json');
    if (chooser.chance(0.6)) headers.push('Content-Length', String(said.text.length));
    else if (chooser.chance(0.9)) headers.push('Transfer-Encoding', 'chunked');
    else said.lifetimeMs = null; // It ends with its connection, so it cannot be known whether it is complete.
    return headers;
  }
}

/** One response in progress, with a gate before each of its parts. */
class Answering {
  readonly #upstream: Upstream;
  readonly #world: UpstreamContext;
  readonly #ask: ReceivedRequest;
  readonly #receiver: Receiver;
  #isOver = false;
  #takeGateAway: () => void = () => undefined;

  constructor(upstream: Upstream, world: UpstreamContext, ask: ReceivedRequest, receiver: Receiver) {
    this.#upstream = upstream;
    this.#world = world;
    this.#ask = ask;
    this.#receiver = receiver;
  }

  begin(): void {
    this.#next('head', () => {
      if (this.#world.chooser.chance(0.05)) this.#fail();
      else this.#head();
    });
  }

  abort(): void {
    this.#isOver = true;
    this.#takeGateAway();
  }

  #next(label: string, action: () => void): void {
    if (this.#isOver) return;
    this.#takeGateAway = this.#world.gates.add(`${this.#ask.requestId}: ${label}`, action);
  }

  #head(): void {
    const { said, headers } = this.#upstream.answer(this.#ask);
    if (said.status === 304) said.wholeAtMs = said.headAtMs; // It has only a head.
    this.#receiver.head(
      said.status,
      headers.map((text) => Buffer.from(text)),
    );
    if (said.status === 304) this.#end(said);
    else this.#piece(said, Buffer.from(said.text));
  }

  #piece(said: SentResponse, rest: Buffer): void {
    this.#next(rest.length === 0 ? 'end' : 'piece', () => {
      if (this.#world.chooser.chance(0.05)) {
        this.#fail();
      } else if (rest.length === 0) {
        this.#end(said);
      } else {
        const length = this.#world.chooser.chance(0.6) ? rest.length : Math.ceil(rest.length / 2);
        this.#receiver.data(rest.subarray(0, length));
        this.#piece(said, rest.subarray(length));
      }
    });
  }

  #end(said: SentResponse): void {
    if (this.#isOver) return;
    this.#isOver = true;
    said.wholeAtMs = this.#world.nowMs();
    this.#receiver.end();
  }

  #fail(): void {
    this.#isOver = true;
    this.#receiver.fail(new Refusal('upstream_unreachable', 'upstream unreachable'));
  }
}
