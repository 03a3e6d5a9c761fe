import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Pass } from '../../core/account.js';
import type { Admission } from '../../core/admission.js';
import type { ContentReader } from '../../core/content/reader.js';
import type { RealtimeReader } from '../../core/content/realtime.js';
import { type ContentFacts, NO_CONTENT_FACTS, type Outcome, type RequestEnded } from '../../core/events.js';
import type { Clock } from '../../core/ports.js';
import type { KnownSubject, Refusal } from '../../core/refusal.js';
import { pathWithoutSecrets } from '../../core/token-in-text.js';
import type { Afterwards, Over } from './afterwards.js';
import type { AddressOf } from '../client-address.js';
import { requestIdOf } from '../credentials.js';
import type { RequestFields } from '../fields.js';
import { codeOf, statusOf } from '../problems.js';
import { pathOf } from '../shape.js';

// Never sent: what nginx, and everyone since, calls a client that left before it had an answer.
const CLIENT_CLOSED_STATUS = 499;

export interface RecordOptions {
  admission: Pick<Admission, 'finish'>;
  addressOf: AddressOf;
  clock: Clock;
  afterwards: Afterwards;
  /** `cause` is what lies behind a failure, for the log. */
  onEnded: (ended: RequestEnded, cause: unknown) => void;
}

/** What becomes of a request on /v1, noted while it lasts and told once, when it is over. */
export class RequestRecord implements Over {
  readonly #options: RecordOptions;
  readonly #req: IncomingMessage;
  readonly startedAtMs: number;
  pass: Pass | null = null;
  /** Of the answer that goes out. */
  status: number | null = null;
  /** Set as soon as it is decided how this ends. */
  outcome: Outcome | null = null;
  cause: unknown = undefined;
  upstreamRequestId: string | null = null;
  /** Answered from the cache. */
  isHit = false;
  /** Monotonic; null until it is. */
  forwardedAtMs: number | null = null;
  answeredAtMs: number | null = null;
  bytesIn = 0;
  bytesOut = 0;
  isStreamed = false;
  /** Reads what the request and its answer say, once there is something to read. */
  content: ContentReader | null = null;
  /** The same for a connection that is joined with the upstream. */
  realtime: RealtimeReader | null = null;
  #subject: KnownSubject | null = null;
  #clientIp: string | null = null;
  #code: string | null = null;
  /** Monotonic, and since the epoch. */
  #endedAtMs = 0;
  #timeMs = 0;
  #requestId: string | null = null;

  constructor(options: RecordOptions, req: IncomingMessage) {
    this.#options = options;
    this.#req = req;
    this.startedAtMs = options.clock.monotonic();
  }

  /** The client's id, or ours. Read late: a request that is refused for its shape may have no fields to read it from. */
  get requestId(): string {
    return (this.#requestId ??= requestIdOf(this.#req.headers['x-request-id']));
  }

  get clientIp(): string | null {
    return this.#clientIp;
  }

  /** While the connection is there to be asked. */
  identify({ requestId, forwardedFor }: Pick<RequestFields, 'requestId' | 'forwardedFor'>): void {
    this.#requestId = requestIdOf(requestId);
    this.#clientIp = this.#options.addressOf(this.#req.socket, forwardedFor);
  }

  refused(refusal: Refusal): void {
    this.outcome = outcomeOf(refusal);
    this.#subject = refusal.subject;
    this.status = statusOf(refusal);
    this.cause = refusal.cause;
    this.#code = codeOf(refusal);
  }

  /** The answer went out whole. */
  answered(): void {
    this.outcome ??= outcomeOfAnswer(this.status ?? 0);
  }

  /** The client left before all of it had gone out. */
  leftEarly(): void {
    if (this.outcome === 'ok' || this.outcome === 'upstream_refused') this.outcome = 'client_closed';
  }

  /** The request is over. Once. It is told of soon. */
  end(): void {
    const { pass } = this;
    const options = this.#options;
    if (pass) options.admission.finish(pass);
    this.#endedAtMs = options.clock.monotonic();
    this.#timeMs = options.clock.now();
    options.afterwards.add(this);
  }

  /** What its answer says may have to be decoded first, and is told when that is done. */
  tell(): void {
    const { pass, content, realtime } = this;
    const ended = this.#ended();
    const telling = (facts: ContentFacts) => {
      ended.model = facts.model;
      ended.usage = facts.usage;
      ended.requestBody = facts.requestBody;
      ended.responseBody = facts.responseBody;
      this.#options.onEnded(ended, this.cause);
    };
    const facts = (content ?? realtime)?.facts({
      isServed: this.forwardedAtMs !== null || this.isHit,
      requestType: () => this.#req.headers['content-type'],
      upstreamKey: pass?.upstreamKey ?? null,
    });
    if (facts instanceof Promise) content?.toldLater(facts.then(telling));
    else telling(facts ?? NO_CONTENT_FACTS);
  }

  #ended(): RequestEnded {
    const { pass, startedAtMs, forwardedAtMs, answeredAtMs } = this;
    const req = this.#req;
    const subject = pass ?? this.#subject;
    return {
      requestId: this.requestId,
      timeMs: this.#timeMs,
      projectId: subject?.projectId ?? null,
      tokenId: subject?.tokenId ?? null,
      obfuscated: subject?.obfuscated ?? null,
      clientIp: this.#clientIp,
      method: req.method ?? '',
      path: pathWithoutSecrets(pathOf(req.url ?? '')),
      status: this.status ?? CLIENT_CLOSED_STATUS,
      code: this.#code,
      outcome: this.outcome ?? 'client_closed',
      isForwarded: forwardedAtMs !== null,
      cache: this.isHit ? 'hit' : 'miss',
      durationMs: this.#endedAtMs - startedAtMs,
      upstreamMs: forwardedAtMs === null || answeredAtMs === null ? null : answeredAtMs - forwardedAtMs,
      firstByteMs: answeredAtMs === null ? null : answeredAtMs - startedAtMs,
      bytesIn: this.bytesIn,
      bytesOut: this.bytesOut,
      streamed: this.isStreamed,
      upstreamRequestId: this.upstreamRequestId,
      model: null,
      usage: null,
      requestBody: null,
      responseBody: null,
    };
  }
}

/** As much as is known of a request that the parser gave up, and of CONNECT. */
export interface Unread {
  /** Empty where it is not known. */
  method: string;
  requestId: string;
}

/** What was refused before there was a request to be carried. */
export function recordUnread(options: RecordOptions, socket: Socket, refusal: Refusal, unread: Unread): void {
  const ended: RequestEnded = {
    ...unread,
    timeMs: options.clock.now(),
    projectId: null,
    tokenId: null,
    obfuscated: null,
    clientIp: options.addressOf(socket, undefined),
    path: '',
    status: statusOf(refusal),
    code: codeOf(refusal),
    outcome: outcomeOf(refusal),
    isForwarded: false,
    cache: 'miss',
    durationMs: 0,
    upstreamMs: null,
    firstByteMs: null,
    bytesIn: 0,
    bytesOut: 0,
    streamed: false,
    upstreamRequestId: null,
    ...NO_CONTENT_FACTS,
  };
  options.onEnded(ended, refusal.cause);
}

/** The upstream's answer as it went out, also out of the cache. */
function outcomeOfAnswer(status: number): Outcome {
  if (status >= 500) return 'upstream_error';
  return status >= 400 ? 'upstream_refused' : 'ok';
}

function outcomeOf(refusal: Refusal): Outcome {
  if (refusal.kind === 'upstream_timeout' || refusal.kind === 'request_timeout') return 'timeout';
  return refusal.kind.startsWith('upstream_') || refusal.kind === 'internal' ? 'upstream_error' : 'refused';
}
