import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Pass } from '../../core/account.js';
import type { StoredResponse } from '../../core/ports.js';
import type { Refusal } from '../../core/refusal.js';
import type { Ages } from '../../core/cache/request-directives.js';
import { type CorsFields, corsFields, type CorsSettings, preflightFields } from '../cors.js';
import type { Outcome } from '../../core/events.js';
import { type DrainListener, endWithBody, ResponseWriter, type ResponseWriterOptions } from './response-writer.js';
import { clientOf } from '../client-families.js';
import { closeAfterRequest } from '../connection-ends.js';
import { EventBoundary, terminationEvent } from './termination-notice.js';
import { clientResponseHeaders, EVENT_STREAM, recordableId } from './headers.js';
import { replayHeaders } from './stored-headers.js';
import { sendProblem, statusFor } from '../problems.js';
import type { RequestRecord } from './request-record.js';
import { wordingFor, type WordingSettings } from '../wording.js';

/** Headers of every refusal on /v1. */
export const REFUSAL_HEADERS = { 'X-PROXY-CACHE': 'miss' };

/** The head of an upstream response, and the request that it belongs to. */
interface UpstreamResponseHead {
  record: RequestRecord;
  pass: Pass;
  status: number;
  cors: CorsFields;
  /** Monotonic time. */
  nowMs: number;
}

/** Converts the upstream's headers (names and values in turn) to those for the client. Notes the upstream's request ID in the record. */
export function headersForClient(
  { record, pass, status, cors, nowMs }: UpstreamResponseHead,
  rawHeaders: readonly Buffer[],
) {
  const { startedAtMs, forwardedAtMs } = record;
  const headers = clientResponseHeaders(rawHeaders, {
    status,
    requestId: record.requestId,
    upstreamKey: pass.upstreamKey,
    expiresAt: pass.expiresAt,
    remaining: pass.remaining,
    warning: record.tokenWarning(),
    cors,
    upstreamMs: nowMs - (forwardedAtMs ?? nowMs),
    proxyMs: (forwardedAtMs ?? nowMs) - startedAtMs,
  });
  record.upstreamRequestId = recordableId(headers.upstreamRequestId, pass.upstreamKey);
  return headers;
}

interface RespondingExchange extends DrainListener {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly record: RequestRecord;
  readonly settings: CorsSettings & WordingSettings;
  readonly options: ResponseWriterOptions;
  destroy(outcome: Outcome): void;
}

/**
 * The response to one client request, whether it comes from the upstream, the cache or this proxy. Keeps the request's record up to date.
 */
export class ClientResponse {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #record: RequestRecord;
  readonly #settings: CorsSettings & WordingSettings;
  readonly #writer: ResponseWriter;
  /** Set only if an event of the proxy may be inserted into this response. */
  #eventBoundary: EventBoundary | null = null;

  constructor(exchange: RespondingExchange) {
    const { req, res, record, settings } = exchange;
    this.#req = req;
    this.#res = res;
    this.#record = record;
    this.#settings = settings;
    this.#writer = new ResponseWriter(res, exchange);
  }

  /** Whether the client does not read what was sent. */
  get isUnread(): boolean {
    return this.#writer.isUnread;
  }

  /** The connection is closed, or the response was sent. */
  close(): void {
    this.#writer.close();
  }

  /** Sends the head of an upstream response. @throws if the response cannot be forwarded. */
  head(pass: Pass, status: number, rawHeaders: readonly Buffer[], nowMs: number): void {
    const record = this.#record;
    const cors = corsFields(this.#settings, this.#req);
    const head = { record, pass, status, cors, nowMs };
    const { list, contentType, contentEncoding } = headersForClient(head, rawHeaders);
    this.#writer.head(status, list);
    record.respondedAtMs = nowMs;
    record.isStreamed = contentType !== null && EVENT_STREAM.test(contentType);
    record.content?.responseStarted(contentType, contentEncoding);
    record.status = status;
    // Only if the length is not declared, since an extra event would exceed it, and only with chunked encoding, which can be cut off
    // detectably.
    if (record.isStreamed && contentEncoding === null && this.#res.chunkedEncoding)
      this.#eventBoundary = new EventBoundary();
  }

  /** @returns false if the client's buffer is full; wait for `onDrain`. */
  data(chunk: Buffer): boolean {
    this.#record.bytesOut += chunk.length;
    this.#record.content?.piece(chunk);
    this.#eventBoundary?.read(chunk);
    return this.#writer.data(chunk);
  }

  /** Sends now what waits for the end of the turn. @returns whether that completed the response, so that nothing is left to cut. */
  flush(): boolean {
    return this.#writer.flushNow();
  }

  end(): void {
    this.#record.responseCompleted();
    if (!this.#req.complete) closeAfterRequest(this.#req);
    this.#writer.end();
  }

  /**
   * Sends a stored response. @param isHeld whether the client already has this response, so that a 304 is enough. @param nowMs monotonic
   * time.
   */
  replay(pass: Pass, stored: StoredResponse, ages: Ages, isHeld: boolean, nowMs: number): void {
    const req = this.#req;
    const res = this.#res;
    const record = this.#record;
    const status = isHeld ? 304 : stored.status;
    record.isHit = true;
    record.content?.replayedFromCache(stored);
    record.respondedAtMs = nowMs;
    record.status = status;
    record.responseCompleted();
    if (!req.complete) closeAfterRequest(req);
    const headers = replayHeaders(stored, status, ages, {
      requestId: record.requestId,
      expiresAt: pass.expiresAt,
      remaining: pass.remaining,
      warning: record.tokenWarning(),
      cors: corsFields(this.#settings, req),
    });
    res.writeHead(status, headers);
    const { body } = stored;
    if (status === 304 || req.method === 'HEAD') {
      res.end();
      return;
    }
    record.bytesOut = body.length;
    endWithBody(res, body);
  }

  /**
   * Sends the reason why the response is being cut, if the client reads an event stream and is between two events. The connection must be
   * cut immediately afterwards.
   */
  sendCutReason(refusal: Refusal): void {
    const req = this.#req;
    const res = this.#res;
    const record = this.#record;
    if (!this.#eventBoundary?.isReached || req.method === 'HEAD' || res.writableEnded || res.closed) return;
    const { format } = clientOf(this.#settings.errorShape, req.rawHeaders);
    this.#writer.writeLast(terminationEvent(refusal, format, record.requestId));
  }

  refuse(refusal: Refusal): void {
    const headers = { ...REFUSAL_HEADERS, ...corsFields(this.#settings, this.#req) };
    const wording = wordingFor(refusal, this.#req, this.#settings);
    this.#record.status = statusFor(refusal, wording);
    sendProblem(this.#res, refusal, this.#record.requestId, headers, wording);
  }

  /** Responds to OPTIONS, which is never forwarded. */
  answerOptions(): void {
    this.#record.outcome = 'ok';
    this.#record.status = 204;
    const cors = preflightFields(this.#settings, this.#req);
    this.#res.writeHead(204, { ...REFUSAL_HEADERS, ...cors, 'X-Request-ID': this.#record.requestId });
    this.#res.end();
  }
}
