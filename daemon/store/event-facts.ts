/** The fields of an event that lists and streams can be filtered by. */
import { CHANGES_PUBLISHED, type PublishableEvent, REQUEST_EVENT_KIND } from '../core/events.js';
import type { EventFacts } from '../core/ports.js';
import type { EventJson } from './event-json.js';

const NO_REQUEST = { status: null, code: null, outcome: null, model: null, durationMs: null };
const UNKNOWN: EventFacts = { kind: '', timeMs: NaN, projectId: null, tokenId: null, ...NO_REQUEST };

/** @param event before it is published, or its JSON. */
export function factsOf(event: PublishableEvent | string): EventFacts {
  if (typeof event === 'string') return factsOfText(event);
  if (event.kind === 'change') {
    const { action, timeMs, projectId, tokenId } = event.record;
    return { kind: CHANGES_PUBLISHED[action] ?? '', timeMs, projectId, tokenId, ...NO_REQUEST };
  }
  if (event.kind === 'budget') {
    const { kind, timeMs, projectId, tokenId } = event.event;
    return { kind, timeMs, projectId, tokenId, ...NO_REQUEST };
  }
  const { timeMs, projectId, tokenId, status, code, outcome, model, durationMs } = event.ended;
  return { kind: REQUEST_EVENT_KIND, timeMs, projectId, tokenId, status, code, outcome, model, durationMs };
}

function factsOfText(text: string): EventFacts {
  try {
    const event = JSON.parse(text) as EventJson | null;
    return event === null ? UNKNOWN : factsOfJson(event);
  } catch {
    return UNKNOWN; // Another program wrote this entry.
  }
}

/** Another program, or another release, may have written the event without some of the fields. */
function factsOfJson(event: Partial<EventJson>): EventFacts {
  const { kind = '', time = '', project_id: projectId = null, token_id: tokenId = null } = event;
  const common = { kind, timeMs: Date.parse(time), projectId, tokenId };
  if (event.kind !== REQUEST_EVENT_KIND) return { ...common, ...NO_REQUEST };
  const { status = null, code = null, outcome = null, model = null, duration_ms: durationMs = null } = event;
  return { ...common, status, code, outcome, model, durationMs };
}
