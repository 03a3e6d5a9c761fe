/** A request on /v1 and its answer, as long as they last: what the parts of an `Exchange` have in common. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Live, Reloadable, Settings } from '../../../config/settings.js';
import type { ResponseCache } from '../../core/cache/response-cache.js';
import type { ContentReaders } from '../../core/content/reader.js';
import type { Outcome } from '../../core/events.js';
import type { Refusal } from '../../core/refusal.js';
import type { EntryOptions } from './admit.js';
import type { Answering } from './answering.js';
import type { CorsSettings } from '../cors.js';
import type { Forwarder } from './forward.js';
import type { RequestRecord } from './record.js';
import type { Turn } from './turn.js';
import type { Watches } from './watch.js';
import type { WordingSettings } from '../wording.js';

export type ExchangeSettings = CorsSettings &
  WordingSettings &
  Pick<Reloadable, 'requestTimeoutMs' | 'clientBodyTimeoutMs'>;

export interface ExchangeOptions extends EntryOptions, Pick<Settings, 'maxRequestBytes'> {
  /** Null when it is off. */
  cache: ResponseCache | null;
  contents: Pick<ContentReaders, 'begin'>;
  forwarder: Forwarder;
  /** Those in force: SIGHUP may put others in their place. A request keeps what it began with. */
  live: Live<keyof ExchangeSettings>;
}

export interface OpenExchange {
  readonly options: ExchangeOptions;
  /** What it began with. */
  readonly settings: ExchangeSettings;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** The client waits for `100 Continue` before it sends its body. */
  readonly expectsContinue: boolean;
  readonly record: RequestRecord;
  readonly turn: Turn;
  readonly answering: Answering;
  readonly watches: Watches;
  /** Refused or ended, or its client is gone: nothing is begun for it any more. */
  isOver(): boolean;
  /** Once the request is over this does nothing, and for `ClientGone` there is nobody to be told. */
  refuse(error: unknown): void;
  /** Ends an answer that has begun. @param why for the client, if it is us who end it. */
  destroy(outcome: Outcome, why?: Refusal): void;
  /** The client has sent nothing of its body for too long. */
  clientSilent(): void;
}
