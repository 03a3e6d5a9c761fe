/** What the dispatcher asks of a back end. One file each implements it. */
import type { Clock, Log } from '../../core/ports.js';
import type { EventJson } from '../../store/event-json.js';

/** An event out of the stream. */
export interface Delivery {
  event: EventJson;
  /** The event exactly as it lies in the stream: one line. */
  json: string;
}

/** What became of one event. */
export type Verdict =
  | { kind: 'delivered' }
  /** Not now; maybe later. */
  | { kind: 'retry'; why: string; afterMs?: number }
  /** The back end will not have this one, whenever it is asked. */
  | { kind: 'rejected'; why: string };

/** The back end does not accept our credential: nothing is delivered until it does, and no event is to blame. */
export class Unauthorized extends Error {
  override name = 'Unauthorized';
}

export interface Backend {
  /** How many events, and how many bytes of them, it takes at once, and how long the first waits for more; by default not at all. */
  readonly batch: { mostEvents: number; mostBytes: number; gatherMs?: number };
  /**
   * Delivers. Resolves when the back end has answered for all of them, and never rejects but with `Unauthorized`: what went
   * wrong is each event's verdict. Text of the back end is never part of a verdict: `why` is a constant or a status.
   *
   * @param signal aborts what is under way; the verdict is then `retry`.
   * @returns one verdict for each delivery, in their order.
   */
  deliver(deliveries: readonly Delivery[], signal: AbortSignal): Promise<Verdict[]>;
  /** Opens its files anew, where it has any. */
  reopen?(): Promise<void>;
  close(): Promise<void>;
}

/** What a back end is made from. */
export interface BackendOptions {
  /** The path of a file or a URL, as config/dispatcher-services.ts has it for the service. */
  endpoint: string;
  /** Never undefined for a service that needs one. */
  apiKey: string | undefined;
  clock: Clock;
  log: Log;
  /** The version of llmp. */
  version: string;
}

/** What the file of each back end exports as `createBackend`. */
export type CreateBackend = (options: BackendOptions) => Backend;
