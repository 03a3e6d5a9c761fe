/** The last events, and new ones as they occur. */
import { ApiError } from '../../api/client.js';
import { REQUEST_EVENT_KIND } from '../../api/vocabulary.js';
import { eventRows, eventsPage, type EventsProps, SHOWN } from '../pages/events.js';
import type { PageStream } from '../page-streams.js';
import { allProjects, attempt, get, type PageRequest, parametersOf, statusOf } from '../page-request.js';
import { withTokenId } from '../token-filter.js';

const FILTERS = ['project_id', 'token_id', 'status', 'model', 'took_over'] as const;

/** What `show` in the query of the page means in the query of the API. */
const SELECTIONS: Readonly<Record<(typeof SHOWN)[number][0], Record<string, string>>> = {
  '': {},
  requests: { kind: REQUEST_EVENT_KIND },
  failures: { outcome: '!ok' },
  refused: { outcome: 'refused' },
};

function filterOf(query: URLSearchParams): Record<string, string> {
  const show = query.get('show') ?? '';
  const selection = Object.hasOwn(SELECTIONS, show) ? SELECTIONS[show as keyof typeof SELECTIONS] : {};
  return { ...parametersOf(query, FILTERS), ...selection };
}

/** @throws {ApiError} if the filter is invalid. */
async function load({
  client,
  query,
  nowMs,
}: PageRequest): Promise<Pick<EventsProps, 'events' | 'next' | 'streamUrl'>> {
  const filter = await withTokenId(client, filterOf(query));
  try {
    const { items, next } = await client.storedEvents({ ...filter, ...parametersOf(query, ['cursor']) });
    const streamUrl = query.has('cursor') ? null : streamUrlOf(filter, items[0]?.time ?? new Date(nowMs).toISOString());
    return { events: items, next, streamUrl };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { events: null, next: null, streamUrl: null };
    throw error;
  }
}

/** @param since time of the newest event of the page, which the script leaves out, so that there is no gap. */
const streamUrlOf = (filter: Record<string, string>, since: string) =>
  `events/stream?${new URLSearchParams({ ...filter, since }).toString()}`;

export const eventRoutes = [
  get('/events', async (request) => {
    const projects = await allProjects(request.client);
    const { value, refused } = await attempt(() => load(request), { events: [], next: null, streamUrl: null });
    const props: EventsProps = { ...value, query: request.query, projects, refused };
    return { title: 'Events', section: 'events', body: eventsPage(props), ...statusOf(refused) };
  }),
  get('/events/stream', ({ client, query }) => {
    const filter = parametersOf(query, [...FILTERS, 'kind', 'outcome', 'since']);
    const stream: PageStream = {
      open: (options) => client.events(filter, options),
      // The newest is on top.
      show: (events) => eventRows(events.toReversed()),
    };
    return Promise.resolve({ stream });
  }),
];
