/** Events for `/manage/events` and `/manage/events/stream`. */
import type * as z from 'zod';
import type { WireEvent } from '../../api/contract.js';
import type * as schemas from '../../api/schemas.js';
import { parseStreamId } from '../../core/stream-id.js';
import type { EventBus, FollowStart, PageOf, PageRequest, Position, PublishedEvent, Scope } from '../../core/ports.js';
import { orUnavailable, Refusal } from '../../core/refusal.js';
import { eventFilter } from './event-filter.js';
import type { Feed } from './event-streams.js';
import { pastMs, periodOf } from './wire.js';

/** Limits of a page, so that neither rare matches nor captured bodies make it take long. */
const MAX_SEARCHED = 20_000;
const MAX_PAGE_CHARACTERS = 4_000_000;

/** @throws {Refusal} `not_found` if no events are published, `invalid_request` for an ID that no event can have. */
export function eventFeed(
  bus: EventBus | null,
  query: z.output<typeof schemas.eventStreamQuery>,
  lastEventId: string | null,
  nowMs: number,
  scope: Scope,
): Feed {
  const published = publishedBy(bus);
  if (lastEventId !== null && parseStreamId(lastEventId) === null) {
    throw new Refusal('invalid_request', 'Last-Event-ID must be the ID of an event of this stream');
  }
  const sinceMs = lastEventId === null ? pastMs(query.since, nowMs) : undefined;
  const isWanted = eventFilter(query, { sinceMs }, scope);
  return async function* feed(signal) {
    for await (const events of published.follow(startOf(lastEventId, sinceMs), signal)) {
      const chosen = isWanted ? events.filter(({ facts }) => isWanted(facts)) : events;
      yield chosen.map(({ streamId, json }) => ({ id: streamId, data: json }));
    }
  };
}

/** The position of a client that reconnects takes precedence. */
function startOf(lastEventId: string | null, sinceMs: number | undefined): FollowStart {
  if (lastEventId !== null) return { after: lastEventId };
  return sinceMs === undefined ? null : { sinceMs };
}

/**
 * A page of the stored events, newest first.
 *
 * @throws {Refusal} `not_found` if no events are published, `invalid_request`, or rejects with `unavailable`.
 */
export function eventPage(
  bus: EventBus | null,
  query: z.output<typeof schemas.eventQuery>,
  page: PageRequest,
  nowMs: number,
  scope: Scope,
): Promise<PageOf<WireEvent>> {
  const published = publishedBy(bus);
  if (page.after !== null && parseStreamId(page.after.id) === null) {
    throw new Refusal('invalid_request', 'cursor must be the cursor of a Link header of this list');
  }
  const period = periodOf(query, nowMs);
  const stored = published.stored(page.after?.id ?? null, period.sinceMs ?? 0);
  return orUnavailable(filledPage(stored, eventFilter(query, period, scope), page.limit));
}

async function filledPage(
  stored: AsyncIterable<readonly PublishedEvent[]>,
  isWanted: ReturnType<typeof eventFilter>,
  limit: number,
): Promise<PageOf<WireEvent>> {
  const rows: WireEvent[] = [];
  let [searched, characters] = [0, 0];
  let next: Position | null = null;
  for await (const events of stored) {
    for (const event of events) {
      if (searched === MAX_SEARCHED) return { rows, next, total: null };
      // Another program may have written an event without a kind.
      if (event.facts.kind !== '' && isWanted?.(event.facts) !== false) {
        // There is a next page only if there is another event for it.
        if (rows.length === limit || characters > MAX_PAGE_CHARACTERS) return { rows, next, total: null };
        rows.push(JSON.parse(event.json) as WireEvent);
        characters += event.json.length;
      }
      searched += 1;
      next = { value: 0, id: event.streamId };
    }
  }
  return { rows, next: null, total: null };
}

function publishedBy(bus: EventBus | null): EventBus {
  if (!bus) throw new Refusal('not_found', 'no events are published: LLM_PROXY_EVENT_BUS is off');
  return bus;
}
