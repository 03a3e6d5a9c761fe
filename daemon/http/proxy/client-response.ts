import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Pass } from '../../core/account.js';
import type { Clock, StoredResponse } from '../../core/ports.js';
import type { Refusal } from '../../core/refusal.js';
import type { Ages } from '../../core/cache/request-directives.js';
import { type CorsFields, corsFields, type CorsSettings, preflightFields } from '../cors.js';
import type { Outcome } from '../../core/events.js';
import { clientOf } from '../client-families.js';
import { closeAfterRequest, type UnreadResponses } from '../connection-ends.js';
import { EventBoundary, terminationEvent } from './termination-notice.js';
import { clientResponseHeaders, EVENT_STREAM, recordableId } from './headers.js';
import { replayHeaders } from './stored-headers.js';
import { sendProblem, statusFor } from '../problems.js';
import type { RequestRecord } from './request-record.js';
import { wordingFor, type WordingSettings } from '../wording.js';
import { HeldMemory, type MemoryLimit } from '../../core/memory-limit.js';
import type { Receiver } from './forwarder.js';
import type { TransferTimeouts } from './timeouts.js';
import { Outlet } from '../outlet.js';
import type { Scheduler, TurnTask } from '../scheduler.js';

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

/** The request that is responded to. */
interface RespondingExchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly record: RequestRecord;
  readonly settings: CorsSettings & WordingSettings;
  readonly timeouts: Pick<TransferTimeouts, 'waitForUpstream' | 'touch'>;
  readonly options: {
    clock: Clock;
    memory: MemoryLimit;
    scheduler: Pick<Scheduler, 'atEndOfTurn'>;
    unreadResponses: Pick<UnreadResponses, 'watch'>;
  };
  /** The client has read what was buffered. */
  onDrain(): void;
  destroy(outcome: Outcome): void;
  /** The upstream's response is missing or incomplete. */
  fail(refusal: Refusal): void;
}

/**
 * The response to one client request, whether it comes from the upstream, the cache or this proxy. Keeps the request's record up to date.
 */
export class ClientResponse implements Receiver {
  readonly #exchange: RespondingExchange;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #record: RequestRecord;
  readonly #settings: CorsSettings & WordingSettings;
  readonly #writer: ResponseWriter;
  /** Set only if an event of the proxy may be inserted into this response. */
  #eventBoundary: EventBoundary | null = null;

  constructor(exchange: RespondingExchange) {
    const { req, res, record, settings } = exchange;
    this.#exchange = exchange;
    this.#req = req;
    this.#res = res;
    this.#record = record;
    this.#settings = settings;
    this.#writer = new ResponseWriter(exchange);
  }

  /** Whether the client does not read what was sent. */
  get isUnread(): boolean {
    return this.#writer.isUnread;
  }

  /** The connection is closed, or the response was sent. */
  close(): void {
    this.#writer.close();
  }

  // ---- from the upstream, as it arrives

  /** @throws if the response cannot be forwarded. */
  head(status: number, rawHeaders: readonly Buffer[]): void {
    const { options, timeouts } = this.#exchange;
    const record = this.#record;
    const { pass } = record;
    if (!pass) throw new Error('a response without a pass');
    const nowMs = options.clock.monotonic();
    timeouts.waitForUpstream(nowMs);
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
    this.#exchange.timeouts.touch();
    this.#record.bytesOut += chunk.length;
    this.#record.content?.piece(chunk);
    this.#eventBoundary?.read(chunk);
    return this.#writer.data(chunk);
  }

  end(): void {
    this.#record.responseCompleted();
    if (!this.#req.complete) closeAfterRequest(this.#req);
    this.#writer.end();
  }

  fail(refusal: Refusal): void {
    this.#exchange.fail(refusal);
  }

  // ---- from the cache and from this proxy

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

  /** Sends now what waits for the end of the turn. @returns whether that completed the response, so that nothing is left to cut. */
  flush(): boolean {
    return this.#writer.flushNow();
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

/** Writer of a response to the client, as it arrives and no faster than the client reads. */
class ResponseWriter implements TurnTask {
  readonly #res: ServerResponse;
  readonly #owner: RespondingExchange;
  /** Null for a response that arrived in one piece. */
  #outlet: Outlet | null = null;
  #memory: HeldMemory | null = null;
  #isHeadPending = false;
  #firstChunk: Buffer | null = null;
  #isEndPending = false;

  constructor(owner: RespondingExchange) {
    this.#res = owner.res;
    this.#owner = owner;
  }

  #newOutlet(): Outlet {
    const owner = this.#owner;
    const res = this.#res;
    const memory = new HeldMemory(owner.options.memory, () => {
      owner.destroy('client_closed');
    });
    this.#memory = memory;
    return new Outlet({
      write: (bytes, written) => res.write(bytes, written),
      onReady: () => {
        owner.onDrain();
      },
      memory,
    });
  }

  /** @param headers names and values in turn. */
  head(status: number, headers: string[]): void {
    // Node's own reason phrase: the upstream's could break the status line.
    this.#res.writeHead(status, headers);
    // The head is sent together with what arrives of the body in the same turn, but does not wait for more.
    this.#isHeadPending = true;
    this.#owner.options.scheduler.atEndOfTurn(this);
  }

  /** @returns false if the client does not take more for now; wait for `onDrain`. */
  data(chunk: Buffer): boolean {
    if (this.#isHeadPending && this.#firstChunk === null) {
      this.#firstChunk = chunk;
      return true;
    }
    this.flushPending();
    return (this.#outlet ??= this.#newOutlet()).send(chunk);
  }

  get isUnread(): boolean {
    return this.#outlet?.isBusy === true || this.#res.writableNeedDrain;
  }

  close(): void {
    this.#memory?.release();
  }

  /**
   * Writes a last chunk before the connection is cut. When this returns, the kernel has the chunk, if the client has read everything
   * before it.
   */
  writeLast(chunk: Buffer): void {
    this.flushPending();
    this.#outlet?.flush();
    this.#res.write(chunk);
    this.#uncork();
  }

  /**
   * Sends what is pending before the connection is cut, as `writeLast` does. @returns whether that ended the response.
   */
  flushNow(): boolean {
    if (!this.#isHeadPending) return false;
    const isComplete = this.flushPending();
    this.#uncork();
    return isComplete;
  }

  /** Node buffers writes until the end of the turn, and cutting the connection would discard them. */
  #uncork(): void {
    const res = this.#res;
    while (res.writableCorked > 0) res.uncork(); // Node 26 buffers chunks here, earlier releases buffer them in the socket.
    while (res.socket && res.socket.writableCorked > 0) res.socket.uncork();
  }

  end(): void {
    if (this.#isHeadPending) {
      this.#isEndPending = true;
      return;
    }
    this.#outlet?.flush();
    this.#res.end();
    this.#owner.options.unreadResponses.watch(this.#res);
  }

  atEndOfTurn(): void {
    this.flushPending();
  }

  /** Sends the head, and what arrived with it, if they have not been sent yet. @returns whether that ended the response. */
  flushPending(): boolean {
    const res = this.#res;
    if (!this.#isHeadPending || res.closed) return false;
    const chunk = this.#firstChunk;
    this.#isHeadPending = false;
    this.#firstChunk = null;
    if (this.#isEndPending) {
      if (chunk === null) res.end();
      else endWithBody(res, chunk);
      this.#owner.options.unreadResponses.watch(res);
    } else if (chunk === null) res.flushHeaders();
    else (this.#outlet ??= this.#newOutlet()).send(chunk); // If this fills the client's buffer, the next chunk notices it.
    return this.#isEndPending;
  }
}

// Above this size, copying the body costs more than a second buffer does.
const MAX_TEXT_BYTES = 16 * 1024;

/** A response of Node, with its head as text once `writeHead` was called. */
type HeadedResponse = ServerResponse & { _header: unknown; _hasBody: unknown };

/**
 * Ends a response of which only the head was given to `writeHead`, with its complete body.
 *
 * Node passes head and body to the kernel as a list of chunks. As one text they take one plain write, which is much cheaper. latin1 maps
 * each byte to one character.
 */
function endWithBody(res: ServerResponse, body: Buffer): void {
  const headed = res as HeadedResponse;
  const { _header: head } = headed;
  if (typeof head !== 'string' || headed._hasBody !== true || body.length === 0 || body.length > MAX_TEXT_BYTES) {
    res.end(body);
    return;
  }
  const text = body.toString('latin1');
  // Node appends the last chunk.
  headed._header = head + (res.chunkedEncoding ? `${body.length.toString(16)}\r\n${text}\r\n` : text);
  res.end();
}
