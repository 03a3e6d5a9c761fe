/** Events, as they happen. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';

const FOLLOWING_EVENTS = `Sends requests that are over, and changes that were made, as they happen. The \`data\` of each
server-sent event is one \`event\`. With Redis the events of all instances are sent, otherwise those of this one. The stream begins with
the next event, or with the one after \`Last-Event-ID\` if the events since then are still kept. The filters narrow together; \`status\` lets requests
through only, because nothing else has one. 404 means that nothing is published (LLM_PROXY_EVENT_BUS=off).`;

export const events = {
  streamEvents: {
    ...ROUTES.streamEvents,
    tag: 'Events',
    summary: 'Follow events',
    description: FOLLOWING_EVENTS,
    query: schemas.eventQuery,
    stream: schemas.event,
    refusals: ['not_found'],
    example: { query: { status: '429,5xx' } },
  },
} as const satisfies Partial<Declared>;
