/** A published event as it is stored: its JSON, and what lists and streams filter by. */
import { REQUEST_EVENT_KIND } from '../core/events.js';
import type { EventFacts, PublishedEvent } from '../core/ports.js';
import type { EventJson } from './event-json.js';

export class StoredEvent implements PublishedEvent {
  readonly streamId: string;
  readonly json: string;
  #facts: EventFacts | null = null;

  constructor(streamId: string, json: string) {
    this.streamId = streamId;
    this.json = json;
  }

  /** Parsed once, on first use. */
  get facts(): EventFacts {
    return (this.#facts ??= factsOf(this.json));
  }
}

const NO_REQUEST = { status: null, code: null, outcome: null, model: null, durationMs: null };
const UNKNOWN: EventFacts = { kind: '', timeMs: NaN, projectId: null, tokenId: null, ...NO_REQUEST };

function factsOf(json: string): EventFacts {
  try {
    const event = JSON.parse(json) as EventJson | null;
    return event === null ? UNKNOWN : factsOfEvent(event);
  } catch {
    return UNKNOWN; // Another program wrote this entry.
  }
}

/** Another program, or another release, may have written the event without some of the fields. */
function factsOfEvent(event: Partial<EventJson>): EventFacts {
  const { kind = '', time = '', project_id: projectId = null, token_id: tokenId = null } = event;
  const common = { kind, timeMs: Date.parse(time), projectId, tokenId };
  if (event.kind !== REQUEST_EVENT_KIND) return { ...common, ...NO_REQUEST };
  const { status = null, code = null, outcome = null, model = null, duration_ms: durationMs = null } = event;
  return { ...common, status, code, outcome, model, durationMs };
}
