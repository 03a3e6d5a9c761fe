import type { Live } from '../../../config/settings.js';
import type { Admission } from '../../core/admission.js';
import { budgetsNow, type Spending } from '../../core/budget/budgets.js';
import type { CaptureContext } from '../../core/content/body-capture.js';
import { maskedModelName, modelNameFrom } from '../../core/content/facts.js';
import type { ProviderMessage } from '../../core/content/provider-messages.js';
import { NO_READINGS, type Readings } from '../../core/content/readings.js';
import { addedUsage } from '../../core/content/token-counts.js';
import type { BodyModels } from '../../core/policy/policy.js';
import { mayBeResponses } from '../../core/policy/routes.js';
import type { DetailedUsage, Outcome } from '../../core/events.js';
import type { Clock } from '../../core/ports.js';
import type { RateLimits } from '../../core/rate-limit.js';
import type { Refusal } from '../../core/refusal.js';
import { asRefusal } from '../problems.js';
import { noBound } from './budgeted.js';
import { malformedResponse } from './http-proxy.js';
import { pathOf } from '../request-head.js';
import type { ConnectionPart, RequestRecord } from './request-record.js';

/** More responses are not under way at a time; the client waits. */
const MAX_OPEN = 64;
/** Responses that the provider may begin by itself while the client says nothing. */
const MAX_UNASKED = 8;

/** The Responses API on a WebSocket: only what the client asks for costs a use, and each message must have a type. */
export const isOfResponses = (target: string): boolean => mayBeResponses(pathOf(target));
/** Whether the messages are those of OpenAI's APIs, which report errors by a message. */
export const reportsErrors = (target: string): boolean => /\/(?:responses|realtime)\/?$/.test(pathOf(target));

/** What a client asks for. */
export interface Asked {
  model: string | null;
  /** Whether nothing is to be generated. */
  isRead: boolean;
  /** What policies depend on; null if it was not read. */
  read: BodyModels | null;
  /** Size of its message. */
  bytes: number;
}

export interface UsesOptions {
  admission: Pick<Admission, 'draw' | 'drawForMessage' | 'checkMessage' | 'policyOf'>;
  rateLimits: Pick<RateLimits, 'countAddress' | 'countAuthenticated'>;
  clock: Clock;
  live: Live<'countReads'>;
  /** The HTTP status that the client gets for a refusal. */
  statusFor: (refusal: Refusal) => number;
}

/** A response, from when it was asked for or has begun. */
interface OpenResponse {
  startedAtMs: number;
  begunAtMs: number | null;
  model: string | null;
  isModelAnswered: boolean;
  usage: DetailedUsage | null;
  /** Code of the error that the provider has reported. */
  error: string | null;
}

/**
 * The responses on one WebSocket. Each of them is a use, as if it were a request of its own: it passes the rate limits, draws a unit
 * before it is asked for, and has its own record.
 *
 * On `/v1/responses` the handshake draws nothing. On all others it draws the unit of the first response. A response that the provider
 * begins by itself, because the client has stopped speaking, draws a unit when it begins.
 */
export class WebSocketUses {
  readonly #options: UsesOptions;
  readonly #record: RequestRecord;
  readonly #isOfResponses: boolean;
  readonly #isOfOpenAi: boolean;
  /** Whether the unit that the handshake drew belongs to no response yet. */
  #hasSpareUnit: boolean;
  /** Responses that the client asked for, each with its unit, and that have not begun, the oldest first. */
  readonly #asked: OpenResponse[] = [];
  /** Those of them that may never begin, because the provider has reported an error since. */
  readonly #doubtful: OpenResponse[] = [];
  readonly #running: OpenResponse[] = [];
  /** Called when a response has ended. */
  #onRoom: (() => void) | null = null;
  /** The model of the connection: of its target or its session. */
  #model: string | null;
  /** What the provider reported outside of a response, such as for a transcription. */
  #usage: DetailedUsage | null = null;
  /** Number of records for responses. */
  #count = 0;
  /** Bytes of the connection that these have. */
  #bytesIn = 0;
  #bytesOut = 0;
  /** Responses that the provider has begun by itself since the client has sent something. */
  #unasked = 0;
  /** Whether the provider begins more responses than it may. */
  #isFlooded = false;
  #hasEnded = false;
  /** Whether it is the provider that ended the connection. */
  hasProviderEnded = false;

  /** @param record that of the connection. */
  constructor(options: UsesOptions, record: RequestRecord, target: string) {
    this.#options = options;
    this.#record = record;
    this.#isOfResponses = isOfResponses(target);
    this.#isOfOpenAi = reportsErrors(target);
    this.#hasSpareUnit = !this.#isOfResponses;
    const query = new URLSearchParams(target.slice(pathOf(target).length));
    this.#model = modelNameFrom(query.get('model') ?? query.get('deployment'));
  }

  /** Whether the provider owes no response, as far as it is known. */
  get isIdle(): boolean {
    return this.#asked.length === 0 && this.#running.length === 0;
  }

  /**
   * The client asks for a response. Its message must be forwarded without awaiting anything first.
   *
   * @returns a promise only if it has to wait.
   * @throws {Refusal} (or rejects with) what a request of its own would be refused with. It is recorded.
   */
  ask(asked: Asked): undefined | Promise<void> {
    const startedAtMs = this.#options.clock.monotonic();
    try {
      if (this.#isOfResponses) this.#check(asked.read, true);
      const waiting = this.#isFull ? this.#room().then(() => this.#pay(asked)) : this.#pay(asked);
      if (!waiting) {
        this.#wasAsked(asked, startedAtMs);
        return undefined;
      }
      return waiting.then(
        () => {
          this.#wasAsked(asked, startedAtMs);
        },
        (error: unknown) => {
          throw this.refuse(error, asked.model, startedAtMs);
        },
      );
    } catch (error) {
      throw this.refuse(error, asked.model, startedAtMs);
    }
  }

  /** For the next message of the client. */
  newReader(): BodyModels | null {
    const { pass } = this.#record;
    return pass && (this.#options.admission.policyOf(pass)?.readerForMessage() ?? null);
  }

  /** Checks a message that asks for nothing. @throws {Refusal} which is recorded. */
  check(read: BodyModels | null): void {
    try {
      this.#check(read, false);
    } catch (error) {
      throw this.refuse(error);
    }
  }

  #check(read: BodyModels | null, isRequest: boolean): void {
    const { pass } = this.#record;
    if (pass) this.#options.admission.checkMessage(pass, read, isRequest);
  }

  get #isFull(): boolean {
    return this.#asked.length + this.#running.length >= MAX_OPEN;
  }

  async #room(): Promise<void> {
    while (this.#isFull) await new Promise<void>((resolve) => (this.#onRoom = resolve));
  }

  #pay(asked: Asked): undefined | Promise<void> {
    // Its checks were those of the handshake, and what happened since would have ended the connection.
    if (this.#hasSpareUnit) {
      this.#hasSpareUnit = false;
      return undefined;
    }
    const { rateLimits } = this.#options;
    const counting = rateLimits.countAddress(this.#record.clientIp);
    if (counting) return counting.then(() => this.#countAll(asked));
    return this.#countAll(asked);
  }

  #countAll(asked: Asked): undefined | Promise<void> {
    const counting = this.#options.rateLimits.countAuthenticated();
    return counting ? counting.then(() => this.#drawFor(asked)) : this.#drawFor(asked);
  }

  #drawFor({ isRead, read, model, bytes }: Asked): undefined | Promise<void> {
    const { pass } = this.#record;
    const { admission, live } = this.#options;
    const spending = this.spending(bytes, model);
    if (!this.#isOfResponses || !pass) return this.#draw(isRead, spending);
    return admission.drawForMessage(pass, isRead && !live.current.countReads, read, spending);
  }

  #draw(isRead: boolean, spending: Spending | null): undefined | Promise<void> {
    const { pass } = this.#record;
    const { admission, live } = this.#options;
    return pass ? admission.draw(pass, isRead && !live.current.countReads, false, true, spending) : undefined;
  }

  /** What a response may spend; null without a budget. @param bytes size of the message that asks for it. */
  spending(bytes: number, model: string | null = null): Spending | null {
    const { pass } = this.#record;
    const isLimited = pass !== null && budgetsNow(pass) !== null;
    return isLimited ? { model: () => model ?? this.#model, bytes, bound: noBound } : null;
  }

  #wasAsked({ model }: Asked, startedAtMs: number): void {
    this.#asked.push(this.#newResponse(startedAtMs, model));
  }

  #newResponse(startedAtMs: number, model: string | null): OpenResponse {
    return { startedAtMs, begunAtMs: null, model, isModelAnswered: false, usage: null, error: null };
  }

  /** Records what the client has sent as refused, unless the connection has ended meanwhile. */
  refuse(error: unknown, model: string | null = null, startedAtMs = this.#options.clock.monotonic()): Refusal {
    const refusal = asRefusal(error);
    if (this.#hasEnded) return refusal;
    this.#add({ ...this.#newResponse(startedAtMs, model), refusal, status: this.#options.statusFor(refusal) });
    return refusal;
  }

  /** The client has sent something. */
  clientSpoke(): void {
    this.#unasked = 0;
  }

  /**
   * A message of the provider.
   *
   * @returns a promise if a response has begun that nobody asked for. It rejects with a refusal if there is no unit for it, or if the
   *   provider floods the client with responses.
   */
  message({ begins, isOfTurn, ends, isError, model, usage, error }: ProviderMessage): undefined | Promise<void> {
    if (this.#isFlooded) return undefined;
    const drawing = begins || (isOfTurn && this.#running.length === 0) ? this.#begin() : undefined;
    if (isError && !this.#isOfResponses) {
      this.#doubt(error);
      return drawing;
    }
    // Those that run at the same time end in the order in which they began; which of them goes on is not known.
    const response = (ends ? undefined : this.#running.at(-1)) ?? this.#running[0] ?? this.#asked[0];
    if (model !== null && response) {
      response.isModelAnswered = true;
      response.model = model;
    } else this.#model ??= model;
    if (response && (ends || response.begunAtMs !== null)) response.usage = addedUsage(response.usage, usage);
    else if (usage !== null) {
      this.#usage = addedUsage(this.#usage, usage);
      const refusal = this.#record.chargeMore(this.#model, usage);
      if (refusal) return Promise.reject(refusal);
    }
    if (response && error !== null) response.error ??= error;
    // In the Responses API an error ends what it is about.
    if (ends || isError) this.#finish(this.#running.shift() ?? this.#asked.shift() ?? this.#doubtful.shift());
    return drawing;
  }

  #begin(): undefined | Promise<void> {
    const nowMs = this.#options.clock.monotonic();
    const asked = this.#asked.shift() ?? this.#doubtful.shift();
    const isPaid = asked !== undefined || this.#hasSpareUnit;
    if (!asked) this.#hasSpareUnit = false;
    const response = asked ?? this.#newResponse(nowMs, null);
    response.error = null;
    response.begunAtMs = nowMs;
    this.#running.push(response);
    return isPaid ? undefined : this.#drawUnasked();
  }

  #drawUnasked(): undefined | Promise<void> {
    this.#unasked += 1;
    this.#isFlooded = this.#unasked > MAX_UNASKED || this.#running.length > MAX_OPEN;
    if (this.#isFlooded) return Promise.reject(malformedResponse(new Error('responses that nobody asked for')));
    try {
      return this.#draw(false, this.spending(0));
    } catch (error) {
      return Promise.reject(asRefusal(error));
    }
  }

  /**
   * In the Realtime API an error may be about anything that the client has sent, such as a `response.create` while another response is
   * running. A client that waited for a response that never begins would wait forever.
   */
  #doubt(error: string | null): void {
    const response = this.#asked.shift();
    if (!response) return;
    this.#doubtful.push({ ...response, error });
    if (this.#doubtful.length > MAX_OPEN) this.#finish(this.#doubtful.shift());
    this.#onRoom?.();
  }

  #finish(response: OpenResponse | undefined): void {
    if (!response) return;
    this.#add({ ...response, outcome: response.error === null ? 'ok' : 'provider_error' });
    this.#onRoom?.();
  }

  /** Call when the connection has ended. @param outcome its outcome, which is also that of the responses that were under way. */
  end(outcome: Outcome): void {
    this.#hasEnded = true;
    const open = [...this.#running.splice(0), ...this.#asked.splice(0), ...this.#doubtful.splice(0)];
    const cut = outcome === 'ok' ? (this.hasProviderEnded ? 'truncated' : 'client_closed') : outcome;
    for (const response of open) this.#add({ ...response, outcome: response.error === null ? cut : 'provider_error' });
    const record = this.#record;
    record.isUse &&= this.#hasSpareUnit;
    record.isRecordedInParts = this.#count > 0 && !record.isUse && (outcome === 'ok' || open.length > 0);
    record.bytesIn -= this.#bytesIn;
    record.bytesOut -= this.#bytesOut;
  }

  #add(part: Omit<ConnectionPart, 'number' | 'bytesIn' | 'bytesOut'>): void {
    const record = this.#record;
    this.#count += 1;
    const bytesIn = record.bytesIn - this.#bytesIn;
    const bytesOut = record.bytesOut - this.#bytesOut;
    this.#bytesIn += bytesIn;
    this.#bytesOut += bytesOut;
    record.addPart({ ...part, model: part.model ?? this.#model, number: this.#count, bytesIn, bytesOut });
  }

  /** What the record of the connection itself contains. */
  facts({ isServed, upstreamKey }: CaptureContext): Readings {
    return {
      ...NO_READINGS,
      model: isServed ? maskedModelName(this.#model, upstreamKey) : null,
      usage: this.#usage,
      // Of protocols that are not known it cannot be said what a connection without a response has cost.
      ranModel: this.#usage !== null || (this.#hasSpareUnit && !this.#isOfOpenAi),
    };
  }
}
