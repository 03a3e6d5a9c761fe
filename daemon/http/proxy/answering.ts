import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Pass } from '../../core/account.js';
import type { KeptAnswer } from '../../core/ports.js';
import type { Refusal } from '../../core/refusal.js';
import type { Ages } from '../../core/cache/wish.js';
import { type CorsFields, corsFields, type CorsSettings, preflightFields } from '../cors.js';
import { Delivery } from './delivery.js';
import { EventBoundary } from './boundaries.js';
import { dialectFor } from '../dialect.js';
import { closeGently } from '../endings.js';
import { farewellEvent } from './farewell.js';
import { clientResponseHeaders, EVENT_STREAM, recordedId } from './headers.js';
import { replayHeaders } from './kept.js';
import { sendProblem, statusFor } from '../problems.js';
import type { RequestRecord } from './record.js';
import { wordingFor, type WordingSettings } from '../wording.js';

/** What every refusal on /v1 carries. */
export const REFUSAL_HEADERS = { 'X-PROXY-CACHE': 'miss' };

// To copy more costs more than a second piece does.
const WRITTEN_AS_TEXT = 16 * 1024;

/** An answer of the upstream. */
interface UpstreamAnswer {
  record: RequestRecord;
  pass: Pass;
  status: number;
  cors: CorsFields;
  /** Monotonic. */
  nowMs: number;
}

/** What becomes of its header fields, names and values in turn, on their way to the client. The record notes the upstream's id for it. */
export function headersForClient({ record, pass, status, cors, nowMs }: UpstreamAnswer, rawHeaders: readonly Buffer[]) {
  const { startedAtMs, forwardedAtMs } = record;
  const headers = clientResponseHeaders(rawHeaders, {
    status,
    requestId: record.requestId,
    expiresAt: pass.expiresAt,
    remaining: pass.remaining,
    cors,
    upstreamMs: nowMs - (forwardedAtMs ?? nowMs),
    proxyMs: (forwardedAtMs ?? nowMs) - startedAtMs,
  });
  record.upstreamRequestId = recordedId(headers.upstreamRequestId, pass.upstreamKey);
  return headers;
}

/** What goes out to the client, whichever answer it is, and what the record says of it. */
export class Answering {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #record: RequestRecord;
  readonly #settings: CorsSettings & WordingSettings;
  readonly #delivery: Delivery;
  /** Of an answer into which an event of ours may go. */
  #events: EventBoundary | null = null;

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    record: RequestRecord,
    settings: CorsSettings & WordingSettings,
    onDrain: () => void,
  ) {
    this.#req = req;
    this.#res = res;
    this.#record = record;
    this.#settings = settings;
    this.#delivery = new Delivery(res, onDrain);
  }

  /** An upstream's answer begins. @throws when it cannot be passed on. */
  head(pass: Pass, status: number, rawHeaders: readonly Buffer[], nowMs: number): void {
    const record = this.#record;
    const cors = corsFields(this.#settings, this.#req);
    const answer = { record, pass, status, cors, nowMs };
    const { list, contentType, contentEncoding } = headersForClient(answer, rawHeaders);
    this.#delivery.head(status, list);
    record.answeredAtMs = nowMs;
    record.isStreamed = contentType !== null && EVENT_STREAM.test(contentType);
    record.content?.answered(contentType, contentEncoding);
    record.status = status;
    // Without a declared length, which an event more would exceed, and as Node sends what it may end early.
    if (record.isStreamed && contentEncoding === null && this.#res.chunkedEncoding) this.#events = new EventBoundary();
  }

  /** @returns false when the client takes no more for now. */
  data(piece: Buffer): boolean {
    this.#record.bytesOut += piece.length;
    this.#record.content?.piece(piece);
    this.#events?.read(piece);
    return this.#delivery.data(piece);
  }

  end(): void {
    this.#record.answered();
    if (!this.#req.complete) closeGently(this.#req);
    this.#delivery.end();
  }

  /** A whole answer out of the cache. @param isHeld whether the client holds just that: a 304 will do. @param nowMs monotonic. */
  replay(pass: Pass, answer: KeptAnswer, ages: Ages, isHeld: boolean, nowMs: number): void {
    const req = this.#req;
    const res = this.#res;
    const record = this.#record;
    const status = isHeld ? 304 : answer.status;
    record.isHit = true;
    record.content?.replayed(answer);
    record.answeredAtMs = nowMs;
    record.status = status;
    record.answered();
    if (!req.complete) closeGently(req);
    const headers = replayHeaders(answer, status, ages, {
      requestId: record.requestId,
      expiresAt: pass.expiresAt,
      remaining: pass.remaining,
      cors: corsFields(this.#settings, req),
    });
    res.writeHead(status, headers);
    const { body } = answer;
    if (status === 304 || req.method === 'HEAD') {
      res.end();
      return;
    }
    record.bytesOut = body.length;
    // As a text, byte for byte, Node puts it behind the head and writes once.
    if (body.length <= WRITTEN_AS_TEXT) res.end(body.toString('latin1'), 'latin1');
    else res.end(body);
  }

  /** Why its answer is cut, for a client that reads an event stream and has come to the end of an event. The cut must follow at once. */
  sayWhy(refusal: Refusal): void {
    const req = this.#req;
    const res = this.#res;
    const record = this.#record;
    if (!this.#events?.isReached || req.method === 'HEAD' || res.writableEnded || res.closed) return;
    const dialect = dialectFor(this.#settings.errorShape, req.rawHeaders);
    this.#delivery.last(farewellEvent(refusal, dialect, record.requestId));
  }

  refuse(refusal: Refusal): void {
    const headers = { ...REFUSAL_HEADERS, ...corsFields(this.#settings, this.#req) };
    const wording = wordingFor(refusal, this.#req, this.#settings);
    this.#record.status = statusFor(refusal, wording);
    sendProblem(this.#res, refusal, this.#record.requestId, headers, wording);
  }

  /** To OPTIONS, which is never forwarded. */
  options(): void {
    this.#record.outcome = 'ok';
    this.#record.status = 204;
    const cors = preflightFields(this.#settings, this.#req);
    this.#res.writeHead(204, { ...REFUSAL_HEADERS, ...cors, 'X-Request-ID': this.#record.requestId });
    this.#res.end();
  }
}
