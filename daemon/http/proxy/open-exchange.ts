/** What the parts of an `Exchange` share: one request on /v1 and its response while they last. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Live, Reloadable, Settings } from '../../../config/settings.js';
import type { CacheTransaction } from '../../core/cache-transaction.js';
import type { ResponseCache } from '../../core/cache/response-cache.js';
import type { ContentReaders } from '../../core/content/content-reader.js';
import type { Outcome } from '../../core/events.js';
import type { Refusal } from '../../core/refusal.js';
import type { RequestBody } from '../body.js';
import type { AdmitOptions, AdmitSettings } from './admit.js';
import type { ClientResponse } from './client-response.js';
import type { CorsSettings } from '../cors.js';
import type { RequestRecord } from './request-record.js';
import type { TransferTimeouts } from './timeouts/transfer-timeouts.js';
import type { IdleTimers } from './timeouts/idle-timers.js';
import type { Upstreams } from './upstreams.js';
import type { WordingSettings } from '../wording.js';

export type ExchangeSettings = AdmitSettings &
  CorsSettings &
  WordingSettings &
  Pick<Reloadable, 'requestTimeoutMs' | 'clientBodyTimeoutMs' | 'countReads'>;

export interface ExchangeOptions extends AdmitOptions, Pick<Settings, 'maxRequestBytes' | 'proxyPrefixes'> {
  /** Null if the cache is off. */
  cache: ResponseCache | null;
  contents: Pick<ContentReaders, 'begin'>;
  upstreams: Pick<Upstreams, 'of'>;
  /** The current settings: SIGHUP may replace them. A request keeps those that it began with. */
  live: Live<keyof ExchangeSettings>;
}

export interface OpenExchange {
  readonly options: ExchangeOptions;
  /** The settings that the request began with. */
  readonly settings: ExchangeSettings;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Whether the client waits for `100 Continue` before it sends its body. */
  readonly expectsContinue: boolean;
  readonly record: RequestRecord;
  readonly timeouts: TransferTimeouts;
  readonly clientResponse: ClientResponse;
  readonly idleTimers: IdleTimers;
  /** Its body has arrived, or the first chunk of a large one. */
  onBody(body: RequestBody): void;
  /** Sends it to the upstream. @param transaction the cache transaction that may use the response; null if the cache is not involved. */
  forward(transaction: CacheTransaction | null): void;
  /** Whether it was sent to the upstream. */
  readonly isForwarded: boolean;
  /** Resumes an upstream response that the client could not take for a while. */
  resume(): void;
  /** Whether it was refused or has ended, or its client has disconnected; then nothing more is started for it. */
  hasEnded(): boolean;
  /** Does nothing if the request has ended. For `ClientGone` there is no client left to respond to. */
  refuse(error: unknown): void;
  /** Cuts a response that has begun. @param why reason for the client, if this proxy ends it. */
  destroy(outcome: Outcome, why?: Refusal): void;
  /** Memory is short, and the body takes much of it. */
  dropBody(): void;
  /** The client's body did not arrive in time. */
  clientTimedOut(): void;
}
