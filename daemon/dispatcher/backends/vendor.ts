/** What the back ends of vendors share: their addresses, and batches of which the vendor will not have one event. */
import type { EventJson } from '../../store/event-json.js';
import type { Delivery, Verdict } from './backend.js';

/** The address of `path` under an endpoint, which may already name it. Keeps a query that the endpoint has. */
export function addressUnder(endpoint: string, path: string): string {
  const url = new URL(endpoint);
  const base = url.pathname.replace(/\/+$/, '');
  url.pathname = base.endsWith(path) ? base : base + path;
  return url.href;
}

type Rejected = Extract<Verdict, { kind: 'rejected' }>;

/** Sends events that differ in their ids. @returns one verdict for each, in their order. */
type Sending<E> = (events: readonly E[]) => Promise<Verdict[]>;

/**
 * Sends each event once, however often the batch has it, and says of every delivery what became of its event.
 *
 * @param wants which events the vendor has a place for; the others count as delivered.
 */
export async function deliverEach<E extends EventJson>(
  deliveries: readonly Delivery[],
  wants: (event: EventJson) => event is E,
  send: Sending<E>,
): Promise<Verdict[]> {
  const events = new Map<string, E>();
  for (const { event } of deliveries) if (wants(event)) events.set(event.id, event);
  if (events.size === 0) return deliveries.map(() => ({ kind: 'delivered' }));
  const verdicts = await send([...events.values()]);
  const byId = new Map([...events.keys()].map((id, i) => [id, verdicts[i]]));
  return deliveries.map(({ event }) => byId.get(event.id) ?? { kind: 'delivered' });
}

/**
 * Sends a batch; when the vendor will not have it as a whole, halves it until the event is found that is to blame. One among n
 * costs 2 log n posts more, where trying each alone, as is done with what is rejected, would cost n.
 *
 * @param send says what became of each event, or that the batch was rejected without a word on which of them.
 */
export async function sendInParts<E>(
  events: readonly E[],
  send: (events: readonly E[]) => Promise<Verdict[] | Rejected>,
): Promise<Verdict[]> {
  const verdicts = await send(events);
  if (Array.isArray(verdicts)) return verdicts;
  if (events.length === 1) return [verdicts];
  const middle = Math.ceil(events.length / 2);
  const first = await sendInParts(events.slice(0, middle), send);
  const rest = events.slice(middle);
  const last = first.at(-1);
  // It went away meanwhile. Asking it again and again would take as many time-outs.
  if (last?.kind === 'retry') return [...first, ...rest.map(() => last)];
  return [...first, ...(await sendInParts(rest, send))];
}
