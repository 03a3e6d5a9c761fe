/** The list and the stream of events. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { ALL_FAILURES } from '../vocabulary.js';

const STORED = `With Redis, there are the events of all instances, as many as \`REDIS_STREAM_MAX_LEN\` says; otherwise only the last 10,000
events of this instance.`;
const FILTERED = `An event must match all given filters. \`status\`, \`code\`, \`outcome\`, \`model\` and \`took_over\` match only requests.
404 means that event publishing is turned off (LLM_PROXY_EVENT_BUS=off).`;

const LIST_DESCRIPTION = `Lists stored events, newest first. ${STORED} A page ends after \`limit\` events, after 4 MB, or when 20,000 events
were searched: it may have fewer events than \`limit\`, even none, although its \`Link\` header names a next page. The response has no total count. \`since\` is
inclusive, \`until\` is exclusive; a duration such as \`15m\` means that long before now. ${FILTERED}`;

const STREAM_DESCRIPTION = `Streams completed requests and changes as server-sent events. The \`data\` of each event is one \`event\`. ${STORED}
It starts with the next event, with the stored events since \`since\`, or with the event after \`Last-Event-ID\`, as far as those are still
stored. ${FILTERED}`;

export const events = {
  listEvents: {
    ...ROUTES.listEvents,
    permission: 'read events',
    tag: 'Events',
    summary: 'List events',
    description: LIST_DESCRIPTION,
    query: schemas.eventQuery,
    list: schemas.event,
    isUncounted: true,
    refusals: ['not_found'],
    example: { query: { outcome: ALL_FAILURES, since: '15m' }, response: [schemas.eventExample] },
  },
  streamEvents: {
    ...ROUTES.streamEvents,
    permission: 'read events',
    tag: 'Events',
    summary: 'Stream events',
    description: STREAM_DESCRIPTION,
    query: schemas.eventStreamQuery,
    stream: schemas.event,
    refusals: ['not_found'],
    example: { query: { status: '429,5xx', since: '15m' } },
  },
} as const satisfies Partial<Declared>;
