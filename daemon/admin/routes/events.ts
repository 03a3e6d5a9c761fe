/** The last events, and new ones as they occur. */
import { ApiError, type ManagementClient, type Page } from '../../api/client.js';
import type { WireEvent } from '../../api/contract.js';
import { REQUEST_EVENT_KIND } from '../../api/vocabulary.js';
import { eventRows, eventsPage, type EventsProps, SHOWN } from '../pages/events.js';
import type { PageStream } from '../page-streams.js';
import { allProjects, get, type PageRequest, parametersOf, refusalOf, statusOf } from '../page-request.js';

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

type EventList = Pick<Page<WireEvent>, 'items' | 'next'>;

/** @returns null if the daemon publishes no events. */
async function listOf(client: ManagementClient, request: PageRequest): Promise<EventList | null> {
  try {
    return await client.storedEvents({ ...filterOf(request.query), ...parametersOf(request.query, ['cursor']) });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

const NOTHING: EventList = { items: [], next: null };

async function listOrRefusal(client: ManagementClient, request: PageRequest) {
  const found: { list: EventList | null } = { list: NOTHING };
  const refused = await refusalOf(async () => {
    found.list = await listOf(client, request);
  });
  return { ...found, refused };
}

/** Begins with the events of the page, which the script leaves out, so that there is no gap. */
function streamUrlOf(events: readonly WireEvent[], { query, nowMs }: PageRequest): string {
  const since = events[0]?.time ?? new Date(nowMs).toISOString();
  const filter = parametersOf(query, ['show', ...FILTERS]);
  return `events/stream?${new URLSearchParams({ ...filter, since }).toString()}`;
}

export const eventRoutes = [
  get('/events', async (request) => {
    const client = request.client();
    const projects = await allProjects(client);
    const { list, refused } = await listOrRefusal(client, request);
    const { items, next } = list ?? NOTHING;
    const isLive = refused === null && list !== null && !request.query.has('cursor');
    const props: EventsProps = {
      events: list === null ? null : items,
      next,
      query: request.query,
      projects,
      streamUrl: isLive ? streamUrlOf(items, request) : null,
      refused,
    };
    return { title: 'Events', section: 'events', body: eventsPage(props), ...statusOf(refused) };
  }),
  get('/events/stream', (request) => {
    const client = request.client();
    const filter = { ...filterOf(request.query), ...parametersOf(request.query, ['since']) };
    const stream: PageStream = {
      open: (options) => client.events(filter, options),
      // The newest is on top.
      show: (events) => eventRows(events.toReversed()),
    };
    return Promise.resolve({ stream });
  }),
];
