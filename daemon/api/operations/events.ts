/** The event stream. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';

const STREAM_DESCRIPTION = `Streams completed requests and changes as server-sent events. The \`data\` of each event is one \`event\`. With Redis,
the stream has the events of all instances; otherwise only those of this instance. It starts with the next event, or with the event after
\`Last-Event-ID\` if the events since then are still available. An event must match all given filters. \`status\` matches only requests, because
changes have no status. 404 means that event publishing is turned off (LLM_PROXY_EVENT_BUS=off).`;

export const events = {
  streamEvents: {
    ...ROUTES.streamEvents,
    tag: 'Events',
    summary: 'Stream events',
    description: STREAM_DESCRIPTION,
    query: schemas.eventQuery,
    stream: schemas.event,
    refusals: ['not_found'],
    example: { query: { status: '429,5xx' } },
  },
} as const satisfies Partial<Declared>;
