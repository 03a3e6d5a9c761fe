import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Pass } from '../../core/account.js';
import type { Ending } from '../../core/budget/budgets.js';
import type { Admission } from '../../core/admission.js';
import type { ContentReader } from '../../core/content/content-reader.js';
import type { CaptureContext } from '../../core/content/body-capture.js';
import { maskedErrorCode, maskedModelName } from '../../core/content/facts.js';
import { NO_READINGS, type Readings, type UsageExtent } from '../../core/content/readings.js';
import { modelUsageOf } from '../../core/content/token-counts.js';
import type { Costs } from '../../core/cost/costs.js';
import {
  type DetailedUsage,
  type ModelUsage,
  NO_CONTENT_FACTS,
  type Outcome,
  type RequestEnded,
} from '../../core/events.js';
import type { Clock } from '../../core/ports.js';
import { type KnownSubject, type Refusal, sentenceOf } from '../../core/refusal.js';
import { withoutSecrets } from '../../core/masking.js';
import { pathWithoutSecrets } from '../../core/token-in-text.js';
import type { Completed, Scheduler } from '../scheduler.js';
import { type AddressOf, requestIdOf } from '../client-identity.js';
import { pathOf, type RequestFields } from '../request-head.js';
import { codeOf, statusOf } from '../problems.js';

// Never sent. nginx introduced this status for a client that disconnects before it gets a response; it is widely used for that.
const CLIENT_CLOSED_STATUS = 499;

export interface RecordOptions {
  admission: Pick<Admission, 'finish' | 'settleTokens' | 'budgets'>;
  addressOf: AddressOf;
  clock: Clock;
  costs: Pick<Costs, 'costOf'>;
  scheduler: Pick<Scheduler, 'atEndOfTurn' | 'publish'>;
  /** `cause` is the error that caused the failure, for the log. */
  onEnded: (ended: RequestEnded, cause: unknown) => void;
}

/** A response on a connection that carries several. Times are monotonic, in ms. */
export interface ConnectionPart {
  /** 1 for the first on its connection. */
  number: number;
  startedAtMs: number;
  /** When the response began; null if it did not. */
  begunAtMs: number | null;
  /** Why it was not asked for; otherwise there is an outcome. */
  refusal?: Refusal;
  /** The status that the client was sent for the refusal. */
  status?: number;
  outcome?: Outcome;
  /** Code of the error that the provider has reported. */
  error: string | null;
  model: string | null;
  isModelAnswered: boolean;
  usage: DetailedUsage | null;
  bytesIn: number;
  bytesOut: number;
}

// As that of a request of its own.
const PART_STATUS = 200;

const NOTHING_SPENT = { kind: 'unspent', costNano: 0, admittedAtMs: 0 } as const;

/** Record of one request on /v1. It is filled in while the request runs and published once, after the request has ended. */
export class RequestRecord implements Completed {
  readonly #options: RecordOptions;
  readonly #req: IncomingMessage;
  readonly startedAtMs: number;
  pass: Pass | null = null;
  /** Status of the response that the client gets. */
  status: number | null = null;
  /** Set as soon as it is decided how the request ends. */
  outcome: Outcome | null = null;
  cause: unknown = undefined;
  upstreamRequestId: string | null = null;
  /** Served from the cache. */
  isHit = false;
  /** When the request was forwarded, in monotonic time; null before that. */
  forwardedAtMs: number | null = null;
  respondedAtMs: number | null = null;
  bytesIn = 0;
  bytesOut = 0;
  isStreamed = false;
  /** Extracts usage and content from the request and its response. Null until there is something to read. */
  content: ContentReader | null = null;
  /** The same for a WebSocket. */
  connection: { facts(context: CaptureContext): Readings } | null = null;
  /** Whether it is a use once it is forwarded. The responses on a WebSocket are uses of their own. */
  isUse = true;
  /** Whether the provider may have received the whole request. Until then it has nothing to bill. */
  isSent = false;
  /** Whether the records of its responses say everything, so that it needs none itself. */
  isRecordedInParts = false;
  #subject: KnownSubject | null = null;
  #clientIp: string | null = null;
  #code: string | null = null;
  #problem: string | null = null;
  /** It was refused, and the provider cannot bill it. */
  #isUnbilled = false;
  /** Two clocks: `#endedAtMs` is monotonic, `#timeMs` counts from the epoch. */
  #endedAtMs = 0;
  #timeMs = 0;
  #requestId: string | null = null;

  constructor(options: RecordOptions, req: IncomingMessage) {
    this.#options = options;
    this.#req = req;
    this.startedAtMs = options.clock.monotonic();
  }

  /**
   * The client's request ID, or a generated one. Read as late as possible: a request that is refused for its shape may have no parsed
   * headers.
   */
  get requestId(): string {
    return (this.#requestId ??= requestIdOf(this.#req.headers['x-request-id']));
  }

  get clientIp(): string | null {
    return this.#clientIp;
  }

  /** Must be called while the connection is open: the client's address comes from its socket. */
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
    this.#problem = sentenceOf(refusal);
    this.#isUnbilled = !refusal.mayBeBilled;
  }

  /** For the client, if its token ends soon. */
  tokenWarning(): string | null {
    const { pass } = this;
    if (!pass) return null;
    const warning = pass.warning(this.#options.clock.now());
    if (pass.budgets === null) return warning;
    const ofBudget = this.#options.admission.budgets.warning(pass);
    return warning === null || ofBudget === null ? (warning ?? ofBudget) : `${warning}, ${ofBudget}`;
  }

  /** The complete response was sent. */
  responseCompleted(): void {
    this.outcome ??= outcomeOfStatus(this.status ?? 0);
  }

  /** The client disconnected before it had the complete response. */
  clientLeftEarly(): void {
    if (this.outcome === 'ok' || this.outcome === 'upstream_refused') this.outcome = 'client_closed';
  }

  /** Ends the record. Called once; the record is published soon after. */
  end(): void {
    const { pass } = this;
    const options = this.#options;
    if (pass) options.admission.finish(pass);
    this.#endedAtMs = options.clock.monotonic();
    this.#timeMs = options.clock.now();
    options.scheduler.publish(this);
  }

  publish(): void {
    const req = this.#req;
    const read = (this.content ?? this.connection)?.facts({
      isServed: this.forwardedAtMs !== null || this.isHit,
      requestType: () => req.headers['content-type'],
      method: req.method,
      target: req.url,
      upstreamKey: this.pass?.upstreamKey ?? null,
    });
    const { model, usage, usageExtent, ranModel, requestBody, responseBody, error } = read ?? NO_READINGS;
    const isInParts = this.isRecordedInParts && usage === null;
    if (error !== null) this.#providerReportedError(error);
    const isBilled = ranModel && !isInParts && this.#mayBeBilled(usage);
    const costNano = isBilled && this.pass ? this.#options.costs.costOf(this.pass, model, usage, this.#timeMs) : 0;
    this.#charge(isBilled, usage, costNano, usageExtent);
    if (isInParts) return;
    this.#settle(usage);
    const ended = this.#ended();
    ended.model = model;
    ended.usage = modelUsageOf(usage);
    ended.costNano = costNano;
    ended.isModelAnswered = this.content?.isModelAnswered ?? false;
    ended.requestBody = requestBody;
    ended.responseBody = responseBody;
    this.#options.onEnded(ended, this.cause);
  }

  /** Whether the provider may bill the request, if it ran a model. It bills what it reports. */
  #mayBeBilled(usage: DetailedUsage | null): boolean {
    const { pass, outcome, respondedAtMs } = this;
    if (pass === null || this.isHit || this.forwardedAtMs === null) return false;
    if (usage !== null) return true;
    if (respondedAtMs !== null) return (this.status ?? 0) < 400;
    const wasCut = outcome === 'revoked' || outcome === 'drained';
    return this.isUse && this.isSent && (wasCut || !this.#isUnbilled);
  }

  /** Charges the budgets, or releases the reservations. */
  #charge(isBilled: boolean, usage: DetailedUsage | null, costNano: number | null, extent: UsageExtent): void {
    const { pass, connection } = this;
    if (!pass) return;
    // On a connection, usage that was reported outside of its responses is already charged.
    if (!isBilled || (connection && usage !== null)) {
      if (pass.held) this.#options.admission.budgets.settle(pass, { ...NOTHING_SPENT, usage: null });
      return;
    }
    this.#options.admission.budgets.settle(pass, {
      kind: this.#endingBy(extent),
      usage,
      costNano,
      admittedAtMs: this.#timeMs - (this.#endedAtMs - (this.forwardedAtMs ?? this.#endedAtMs)),
    });
  }

  /** How much of what it has used its usage says. */
  #endingBy(extent: UsageExtent): Ending['kind'] {
    const { connection, outcome } = this;
    if (connection) return 'cut';
    const hasEnded = extent !== 'beginning' && (outcome === 'ok' || outcome === 'upstream_refused');
    if (extent === 'whole' || hasEnded) return 'complete';
    return extent === 'answer' ? 'answered' : 'cut';
  }

  /**
   * Charges what the provider has reported outside of a response on this connection, such as for a transcription.
   *
   * @returns why nothing more may be used; null if more may.
   */
  chargeMore(model: string | null, usage: DetailedUsage): Refusal | null {
    const { admission, clock, costs } = this.#options;
    const { pass } = this;
    if (!pass) return null;
    const nowMs = clock.now();
    const costNano = costs.costOf(pass, maskedModelName(model, pass.upstreamKey), usage, nowMs);
    return admission.budgets.chargeMore(pass, { kind: 'complete', usage, costNano, admittedAtMs: nowMs });
  }

  /** What was refused has used nothing. Of what is cut it is not known. */
  #settle(usage: ModelUsage | null): void {
    const { pass, outcome } = this;
    if (!pass?.unsettled) return;
    const isRefused = outcome === 'refused' || outcome === 'upstream_refused';
    this.#options.admission.settleTokens(pass, usage === null && isRefused ? 0 : tokensIn(usage));
  }

  /** Publishes a record for a response on this connection, soon. */
  addPart({ number, startedAtMs, begunAtMs, refusal, error, model, status, ...part }: ConnectionPart): void {
    const { admission, clock, costs, scheduler, onEnded } = this.#options;
    const { pass } = this;
    const upstreamKey = pass?.upstreamKey ?? null;
    const timeMs = clock.now();
    const shownModel = maskedModelName(model, upstreamKey);
    // Nothing is billed for what was refused, here or by the provider before the response began.
    const isUnbilled = refusal !== undefined || (error !== null && begunAtMs === null && part.usage === null);
    const begunAfterMs = begunAtMs === null ? null : begunAtMs - startedAtMs;
    if (pass?.unsettled && !refusal) admission.settleTokens(pass, tokensIn(part.usage));
    const costNano = isUnbilled || pass === null ? 0 : costs.costOf(pass, shownModel, part.usage, timeMs);
    if (pass && !refusal) {
      const { outcome, usage } = part;
      const isWhole = outcome === 'ok' || (outcome === 'provider_error' && usage !== null);
      const kind = isUnbilled ? 'unspent' : isWhole ? 'complete' : 'cut';
      const admittedAtMs = timeMs - (clock.monotonic() - startedAtMs);
      admission.budgets.settle(pass, { kind, usage, costNano, admittedAtMs });
    }
    const ended: RequestEnded = {
      ...this.#ended(),
      ...part,
      usage: modelUsageOf(part.usage),
      costNano,
      outcome: refusal ? outcomeOf(refusal) : (part.outcome ?? 'ok'),
      status: status ?? PART_STATUS,
      code: refusal ? codeOf(refusal) : maskedErrorCode(error, upstreamKey),
      problem: refusal ? sentenceOf(refusal) : null,
      requestId: `${this.requestId}-${number}`,
      timeMs,
      isForwarded: !refusal,
      durationMs: clock.monotonic() - startedAtMs,
      upstreamMs: begunAfterMs,
      firstByteMs: begunAfterMs,
      model: shownModel,
    };
    scheduler.publish({
      publish: () => {
        onEnded(ended, refusal?.cause);
      },
    });
  }

  /** In a response that had begun well. Clients often disconnect when they read of the error, and some providers do too. */
  #providerReportedError(code: string): void {
    const { outcome, status } = this;
    if (status === null || status >= 400) return;
    if (outcome !== null && outcome !== 'ok' && outcome !== 'client_closed' && outcome !== 'truncated') return;
    this.outcome = 'provider_error';
    this.#code = code;
  }

  #ended(): RequestEnded {
    const { pass, startedAtMs, forwardedAtMs, respondedAtMs } = this;
    const req = this.#req;
    const subject = pass ?? this.#subject;
    return {
      requestId: this.requestId,
      timeMs: this.#timeMs,
      projectId: subject?.projectId ?? null,
      tokenId: subject?.tokenId ?? null,
      tokenName: subject?.tokenName ?? null,
      projectName: subject?.projectName ?? null,
      obfuscated: subject?.obfuscated ?? null,
      clientIp: this.#clientIp,
      method: req.method ?? '',
      path: recordedPath(req.url ?? ''),
      status: this.status ?? CLIENT_CLOSED_STATUS,
      code: this.#code,
      problem: this.#problem,
      outcome: this.outcome ?? 'client_closed',
      isForwarded: forwardedAtMs !== null && this.isUse,
      cache: this.isHit ? 'hit' : 'miss',
      durationMs: this.#endedAtMs - startedAtMs,
      upstreamMs: forwardedAtMs === null || respondedAtMs === null ? null : respondedAtMs - forwardedAtMs,
      firstByteMs: respondedAtMs === null ? null : respondedAtMs - startedAtMs,
      bytesIn: this.bytesIn,
      bytesOut: this.bytesOut,
      streamed: this.isStreamed,
      isModelAnswered: false,
      costNano: 0,
      upstreamRequestId: this.upstreamRequestId === null ? null : withoutSecrets(this.upstreamRequestId),
      model: null,
      usage: null,
      requestBody: null,
      responseBody: null,
    };
  }
}

const LONG_QUERY = 500;

/** A slice holds the whole target in memory, and events are stored for long: without a long query it is copied. */
function recordedPath(target: string): string {
  const path = pathWithoutSecrets(pathOf(target));
  return target.length - path.length > LONG_QUERY ? Buffer.from(path, 'latin1').toString('latin1') : path;
}

/** What is known of a CONNECT request, or of a request that the parser rejected. */
export interface UnreadableRequest {
  /** Empty if unknown. */
  method: string;
  requestId: string;
}

/** Publishes a record of a refusal that happened before there was a request to process. */
export function recordUnreadable(
  options: RecordOptions,
  socket: Socket,
  refusal: Refusal,
  unread: UnreadableRequest,
): void {
  const ended: RequestEnded = {
    ...unread,
    timeMs: options.clock.now(),
    projectId: null,
    tokenId: null,
    tokenName: null,
    projectName: null,
    obfuscated: null,
    clientIp: options.addressOf(socket, undefined),
    path: '',
    status: statusOf(refusal),
    code: codeOf(refusal),
    problem: sentenceOf(refusal),
    outcome: outcomeOf(refusal),
    isForwarded: false,
    cache: 'miss',
    durationMs: 0,
    upstreamMs: null,
    firstByteMs: null,
    bytesIn: 0,
    bytesOut: 0,
    streamed: false,
    costNano: 0,
    upstreamRequestId: null,
    ...NO_CONTENT_FACTS,
  };
  options.onEnded(ended, refusal.cause);
}

/** All tokens that a request has used; null if that is not known. */
function tokensIn(usage: ModelUsage | null): number | null {
  if (usage === null) return null;
  const { promptTokens, completionTokens, totalTokens } = usage;
  if (totalTokens !== null) return totalTokens;
  return promptTokens === null && completionTokens === null ? null : (promptTokens ?? 0) + (completionTokens ?? 0);
}

/** Outcome by the status of an upstream response, forwarded or from the cache. */
function outcomeOfStatus(status: number): Outcome {
  if (status >= 500) return 'upstream_error';
  return status >= 400 ? 'upstream_refused' : 'ok';
}

function outcomeOf(refusal: Refusal): Outcome {
  if (refusal.kind === 'upstream_timeout' || refusal.kind === 'request_timeout') return 'timeout';
  return refusal.kind.startsWith('upstream_') || refusal.kind === 'internal' ? 'upstream_error' : 'refused';
}
