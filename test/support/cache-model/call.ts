/** One client and its single request. */
import type { Duplex } from 'node:stream';
import { head, type RawResponse, parse } from '../raw.js';
import type { Instance } from './instance.js';
import type { ModelToken } from './tables.js';
import { connectTo } from './wire.js';

export interface Asking {
  method: string;
  target: string;
  lang: string;
  flavour: string;
  body: string;
  /** Its Cache-Control. */
  cacheControl: string;
  ifNoneMatch: string;
  hasRange: boolean;
}

/** What the model knew when it began. */
export interface Known {
  tick: number;
  nowMs: number;
  /** The client must not get an older version of its target than this. */
  version: number;
  /** No response that was requested from the upstream before this step may be a hit. */
  purgedTick: number;
  tokenChanges: number;
  projectChanges: number;
  wasFine: boolean;
}

export class Call {
  readonly id: string;
  readonly instance: Instance;
  readonly token: ModelToken;
  readonly asking: Asking;
  readonly known: Known;
  readonly #onNews: (call: Call) => void;
  /** All upstream keys that its project had during the request. */
  readonly keys: Set<string>;
  readonly #client: Duplex;
  #bytes = Buffer.alloc(0);
  answer: RawResponse | null = null;
  /** The status, once the head has arrived. */
  status: number | null = null;
  /** The client disconnected, the connection closed, or the response is complete. */
  isOver = false;
  /** Whether it was sent upstream. */
  isAsked = false;

  constructor(
    id: string,
    instance: Instance,
    token: ModelToken,
    asking: Asking,
    known: Known,
    onNews: (call: Call) => void,
  ) {
    this.id = id;
    this.instance = instance;
    this.token = token;
    this.asking = asking;
    this.known = known;
    this.#onNews = onNews;
    this.keys = new Set([token.project.key]);
    this.#client = connectTo(instance.server);
    this.#client.on('data', (piece: Buffer) => {
      this.#received(piece);
    });
    this.#client.on('close', () => (this.isOver = true));
    this.#client.on('end', () => this.#client.end());
    this.#client.write(this.#request());
  }

  leave(): void {
    this.isOver = true;
    this.#client.destroy();
  }

  #request(): string {
    const { method, target, lang, flavour, body, cacheControl, ifNoneMatch, hasRange } = this.asking;
    const fields = {
      'X-Request-ID': this.id,
      'Accept-Language': lang,
      'X-Flavour': flavour,
      ...(cacheControl !== '' && { 'Cache-Control': cacheControl }),
      ...(ifNoneMatch !== '' && { 'If-None-Match': ifNoneMatch }),
      ...(hasRange && { Range: 'bytes=0-3' }),
      ...(body !== '' && { 'Content-Length': String(body.length) }),
    };
    return head(`${method} ${target}`, this.token.secret, fields) + body;
  }

  #received(piece: Buffer): void {
    if (this.isOver) return;
    this.#bytes = Buffer.concat([this.#bytes, piece]);
    this.status ??=
      Number(/^HTTP\/1\.1 (\d{3}) [^]*?\r\n\r\n/.exec(this.#bytes.toString('latin1'))?.[1] ?? NaN) || null;
    this.answer = parse(this.#bytes, this.asking.method, false)?.answer ?? null;
    this.#onNews(this);
    if (this.answer) this.leave();
  }
}
