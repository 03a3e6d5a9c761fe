/** Functions that the vendors' backends share: addresses, duplicate events, and batches with a refused event. */
import type { EventJson, RequestEventJson } from '../../store/event-json.js';
import type { Delivery, DeliveryResult } from './backend.js';

/** Appends `path` to an endpoint, unless the endpoint already ends with it. The query of the endpoint is preserved. */
export function addressUnder(endpoint: string, path: string): string {
  const url = new URL(endpoint);
  const base = url.pathname.replace(/\/+$/, '');
  url.pathname = base.endsWith(path) ? base : base + path;
  return url.href;
}

type Rejected = Extract<DeliveryResult, { kind: 'rejected' }>;

/**
 * Sends each event once, even if the batch contains it several times. @returns the result of its event for each delivery.
 *
 * @param wants selects the events that the vendor supports; the others count as delivered.
 * @param send returns one result for each event, in the same order.
 */
export async function deliverEach<E extends EventJson>(
  deliveries: readonly Delivery[],
  wants: (event: EventJson) => event is E,
  send: (events: readonly E[]) => Promise<DeliveryResult[]>,
): Promise<DeliveryResult[]> {
  const events = new Map<string, E>();
  for (const { event } of deliveries) if (wants(event)) events.set(event.id, event);
  if (events.size === 0) return deliveries.map(() => ({ kind: 'delivered' }));
  const results = await send([...events.values()]);
  const byId = new Map([...events.keys()].map((id, i) => [id, results[i]]));
  return deliveries.map(({ event }) => byId.get(event.id) ?? { kind: 'delivered' });
}

/** For a vendor that supports only requests. @param send see `sendInParts`. */
export const deliverRequests = (
  deliveries: readonly Delivery[],
  send: (events: readonly RequestEventJson[]) => Promise<DeliveryResult[] | Rejected>,
): Promise<DeliveryResult[]> => deliverEach(deliveries, isRequest, (events) => sendInParts(events, send));

const isRequest = (event: EventJson): event is RequestEventJson => event.kind === 'request.completed';

/**
 * Sends a batch. If the vendor refuses the whole batch, halves it until the refused event is found. For one such event among n this takes 2 log n
 * more posts; sending each event alone, as the deliverer does with rejected events, would take n.
 *
 * @param send returns the result of each event, or one rejection that does not say which event caused it.
 */
async function sendInParts<E>(
  events: readonly E[],
  send: (events: readonly E[]) => Promise<DeliveryResult[] | Rejected>,
): Promise<DeliveryResult[]> {
  const results = await send(events);
  if (Array.isArray(results)) return results;
  if (events.length === 1) return [results];
  const middle = Math.ceil(events.length / 2);
  const first = await sendInParts(events.slice(0, middle), send);
  const rest = events.slice(middle);
  const last = first.at(-1);
  // The vendor became unavailable. Each further post would take another timeout.
  if (last?.kind === 'retry') return [...first, ...rest.map(() => last)];
  return [...first, ...(await sendInParts(rest, send))];
}
