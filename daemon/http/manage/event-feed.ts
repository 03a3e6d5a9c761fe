/** Feed of `/manage/events/stream`. */
import type * as z from 'zod';
import type * as schemas from '../../api/schemas.js';
import { parseStreamId } from '../../core/stream-id.js';
import type { EventBus, EventFacts } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import type { Feed } from './event-streams.js';

type Filter = z.output<typeof schemas.eventQuery>;

/** @throws {Refusal} `not_found` if no events are published, `invalid_request` for an ID that no event can have. */
export function eventFeed(bus: EventBus | null, filter: Filter, lastEventId: string | null): Feed {
  if (!bus) throw new Refusal('not_found', 'no events are published: LLM_PROXY_EVENT_BUS is off');
  if (lastEventId !== null && parseStreamId(lastEventId) === null) {
    throw new Refusal('invalid_request', 'Last-Event-ID must be the ID of an event of this stream');
  }
  const isWanted = wanted(filter);
  return async function* feed(signal) {
    for await (const events of bus.follow(lastEventId, signal)) {
      const chosen = isWanted ? events.filter(({ facts }) => isWanted(facts)) : events;
      yield chosen.map(({ streamId, json }) => ({ id: streamId, data: json }));
    }
  };
}

/** @returns a filter; null if all events are wanted. */
function wanted({
  project_id: projectId,
  token_id: tokenId,
  kind,
  status,
}: Filter): ((of: EventFacts) => boolean) | null {
  if ((projectId ?? tokenId ?? kind ?? status) === undefined) return null;
  const statuses = status === undefined ? null : statusesIn(status);
  return (of) =>
    (projectId === undefined || of.projectId === projectId) &&
    (tokenId === undefined || of.tokenId === tokenId) &&
    (kind === undefined || of.kind === kind) &&
    (statuses === null || (of.status !== null && statuses.test(String(of.status))));
}

/** @param written such as `429` or `4xx,5xx`, already validated. */
const statusesIn = (written: string) => new RegExp(`^(?:${written.replaceAll('x', '\\d').replaceAll(',', '|')})$`);
