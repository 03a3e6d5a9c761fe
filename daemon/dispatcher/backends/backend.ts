/** Interface between the dispatcher and its backends. Each backend is one file in this folder. */
import type { Clock, Log } from '../../core/ports.js';
import type { EventJson } from '../../store/event-json.js';
import type { DispatcherServiceName } from '../../../config/dispatcher-services.js';

/** An event to deliver, as it was read from the stream. */
export interface Delivery {
  event: EventJson;
  /** The event as it is in the stream: one line of JSON. */
  json: string;
}

/** Result of delivering one event. */
export type DeliveryResult =
  | { kind: 'delivered' }
  /** Not delivered now; a later attempt may succeed. */
  | { kind: 'retry'; why: string; afterMs?: number }
  /** The backend refuses this event, and will always refuse it. */
  | { kind: 'rejected'; why: string };

/** The backend refuses the credential. Nothing is delivered until it accepts it, and no event is blamed. */
export class Unauthorized extends Error {
  override name = 'Unauthorized';
}

export interface Backend {
  /** Limits of a batch. `gatherMs` is how long the first event waits for more (default: 0). */
  readonly batch: { maxEvents: number; maxBytes: number; gatherMs?: number };
  /**
   * Delivers events. Resolves when there is a result for each of them, and rejects only with `Unauthorized`. Results never contain
   * text of the backend: `why` is a constant or a status.
   *
   * @param signal aborts deliveries in flight, whose result is then `retry`.
   * @returns one result for each event, in the same order.
   */
  deliver(deliveries: readonly Delivery[], signal: AbortSignal): Promise<DeliveryResult[]>;
  /** Closes and reopens its files, if it has any. */
  reopen?(): Promise<void>;
  close(): Promise<void>;
}

export interface BackendOptions {
  /** The path of a file or a URL, as config/dispatcher-services.ts defines for the service. */
  endpoint: string;
  /** Never undefined for a service that needs a key. */
  apiKey: string | undefined;
  clock: Clock;
  log: Log;
  /** The version of llmp. */
  version: string;
}

/** Type of `createBackend`, which the file of each backend exports. */
export type CreateBackend = (options: BackendOptions) => Backend;

/** Opens the backend of a service. config/dispatcher-services.ts declares the services. */

/** Loads only the file of this folder that has the name of the service. */
export async function openBackend(service: DispatcherServiceName, options: BackendOptions): Promise<Backend> {
  const { createBackend } = (await import(`./${service}.js`)) as { createBackend: CreateBackend };
  return createBackend(options);
}
