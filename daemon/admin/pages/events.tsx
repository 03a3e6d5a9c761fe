/** Completed requests and changes, newest first, and new ones as they occur. Each opens with its details. */
import { subjectsOf } from '../../../console/columns/column.js';
import { actorShown, bytes, exact, promptCacheShown } from '../../api/formats.js';
import type { WireEvent, WireRequestEvent } from '../../api/contract.js';
import { whyFailed } from '../../api/request-outcome.js';
import { REQUEST_EVENT_KIND } from '../../api/vocabulary.js';
import { ApiError } from '../../api/client.js';
import type { PageStream } from '../page-streams.js';
import { allProjects, attempt, get, type PageRequest, parametersOf, statusOf } from '../page-request.js';
import { withTokenId } from '../token-filter.js';
import { Heading } from '../parts/document.js';
import { filterFields, FilterForm } from '../parts/fields.js';
import { Link, useFrame } from '../parts/frame.js';
import {
  capitalized,
  escapeBidi,
  isTime,
  Name,
  NameOrId,
  ProjectLink,
  StatusMark,
  TokenLink,
  utc,
} from '../parts/formats.js';
import { EmptyState, ErrorNotice, fact, Facts, type FilteredListProps, idCode, Paging } from '../parts/common.js';

interface Loaded extends Pick<FilteredListProps, 'next'> {
  /** Newest first; null if the daemon publishes no events. */
  events: readonly WireEvent[] | null;
  /** Where new events come from, relative to the base; null if this page does not change. */
  streamUrl: string | null;
}

/** What `show` in the query of the page can be: in words, and in the query of the API. */
const SHOWN: Readonly<Record<string, { words: string; filter: Record<string, string> }>> = {
  '': { words: 'all events', filter: {} },
  requests: { words: 'requests', filter: { kind: REQUEST_EVENT_KIND } },
  failures: { words: 'failures', filter: { outcome: '!ok' } },
  refused: { words: 'refused by llmp', filter: { outcome: 'refused' } },
};

const TOOK = [
  ['', 'any time'],
  ['500ms', 'over 0.5 s'],
  ['2s', 'over 2 s'],
  ['10s', 'over 10 s'],
  ['60s', 'over 1 min'],
] as const;

function EventsPage({ events, next, query, projects, streamUrl, refused }: FilteredListProps & Loaded) {
  if (events === null) {
    return (
      <>
        <Heading title="Events" />
        <EmptyState title="Events are turned off">
          <p>
            To see requests as they come, start the daemon without <code>LLM_PROXY_EVENT_BUS=off</code>.
          </p>
        </EmptyState>
      </>
    );
  }
  return (
    <>
      <Heading title="Events" />
      <ErrorNotice why={refused} />
      <EventFilter query={query} projects={projects} />
      {refused === null ? <EventList events={events} streamUrl={streamUrl} /> : null}
      <Paging to="events" query={query} next={next} />
    </>
  );
}

function EventList({ events, streamUrl }: { events: readonly WireEvent[]; streamUrl: string | null }) {
  const { base } = useFrame();
  return (
    <>
      {streamUrl === null ? null : (
        <noscript>
          <p className="hint">Without JavaScript this page does not change by itself. Reload it for newer events.</p>
        </noscript>
      )}
      <p className="notice" data-skipped="" hidden />
      <p className="faint" data-no-events="" hidden={events.length > 0}>
        No events match.
      </p>
      <p className="events-head" aria-hidden="true">
        <span>Time (UTC)</span>
        <span />
        <span>Result</span>
        <span>Token, project</span>
        <span>Model</span>
        <span className="took">Took</span>
      </p>
      <ol className="events" data-stream={streamUrl === null ? undefined : base + streamUrl} aria-label="Events">
        {eventRows(events)}
      </ol>
    </>
  );
}

function EventFilter({ query, projects }: Pick<FilteredListProps, 'query' | 'projects'>) {
  const { input, select, project, token } = filterFields(query);
  const text = { type: 'text', spellCheck: false } as const;
  const shown = Object.entries(SHOWN).map(([value, { words }]) => [value, words] as const);
  return (
    <FilterForm to="events" label="Filter events" query={query}>
      {select('show', 'Show', shown)}
      {project(projects)}
      {token()}
      {input('status', 'Status', { ...text, maxLength: 80, placeholder: '429,5xx' })}
      {input('model', 'Model', { ...text, maxLength: 100 })}
      {select('took_over', 'Took', TOOK)}
    </FilterForm>
  );
}

const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** The rows of the list. New ones are sent to the open page. */
const eventRows = (events: readonly WireEvent[]) => (
  <>
    {events.map((event) => (
      <li key={event.id} id={`event-${event.id}`}>
        {/* An ID, because the script keeps open details open by it. */}
        <details id={`details-${event.id}`}>
          <summary>
            <time dateTime={event.time} title={utc(event.time)}>
              {isTime(event.time) ? `${DAY.format(Date.parse(event.time))} ${event.time.slice(11, 19)}` : event.time}
            </time>
            {event.kind === REQUEST_EVENT_KIND ? <RequestSummary event={event} /> : <ChangeSummary event={event} />}
          </summary>
          {event.kind === REQUEST_EVENT_KIND ? <RequestDetails event={event} /> : <ChangeDetails event={event} />}
        </details>
      </li>
    ))}
  </>
);

/** Who refused a request, or why it failed. */
const OUTCOMES: Readonly<Record<string, { look: string; glyph: string; words: string }>> = {
  ok: { look: 'active', glyph: '✓', words: 'ok' },
  refused: { look: 'rate_limited', glyph: '▲', words: 'refused by llmp' },
  upstream_refused: { look: 'rate_limited', glyph: '△', words: 'refused by the provider' },
  upstream_error: { look: 'revoked', glyph: '✗', words: 'provider error' },
  provider_error: { look: 'revoked', glyph: '✗', words: 'provider error' },
  timeout: { look: 'revoked', glyph: '✗', words: 'timed out' },
  truncated: { look: 'revoked', glyph: '✗', words: 'response incomplete' },
  revoked: { look: 'revoked', glyph: '✗', words: 'ended by a revocation' },
  drained: { look: 'revoked', glyph: '✗', words: 'daemon stopped' },
  client_closed: { look: 'expired', glyph: '○', words: 'client disconnected' },
};

function RequestOutcome({ event: { outcome, cache } }: { event: WireRequestEvent }) {
  const { look, glyph, words } = OUTCOMES[outcome] ?? { look: 'expired', glyph: '·', words: outcome };
  return <StatusMark look={look} glyph={glyph} word={outcome === 'ok' && cache === 'hit' ? 'cache hit' : words} />;
}

/** A duration with up to three digits: `0.4 ms`, `320 ms`, `12.5 s`. */
function took(ms: number): string {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${ms < 10 ? ms.toFixed(1) : exact(Math.round(ms))} ms`;
}

function Who({ event }: { event: WireEvent }) {
  const { token, project } = subjectsOf(event);
  return (
    <span className="who">
      {token && <NameOrId {...token} />}
      {project && (
        <span className="faint">
          <NameOrId {...project} />
        </span>
      )}
      {event.kind === REQUEST_EVENT_KIND && token === null ? <span className="faint">unknown token</span> : null}
    </span>
  );
}

function RequestSummary({ event }: { event: WireRequestEvent }) {
  const { status, model, duration_ms: durationMs, code } = event;
  return (
    <>
      <span className="status">{exact(status)}</span>
      <span className="what">
        <RequestOutcome event={event} />
        {code === null ? null : <code>{code}</code>}
      </span>
      <Who event={event} />
      <span className="model">{model === null ? '' : <Name>{model}</Name>}</span>
      <span className="took">{took(durationMs)}</span>
    </>
  );
}

type Change = Exclude<WireEvent, WireRequestEvent>;

function ChangeSummary({ event }: { event: Change }) {
  const { kind, count } = event;
  return (
    <>
      <span className="status" />
      <span className="what">
        {kind}
        {count === null ? '' : ` × ${exact(count)}`}
      </span>
      <Who event={event} />
      <span className="model">{escapeBidi(actorShown(event))}</span>
      <span className="took" />
    </>
  );
}

/** The facts that both kinds of events have. */
const commonFacts = (event: WireEvent) => ({
  time: fact('Time', event.time, utc),
  token: fact('Token', subjectsOf(event).token, (token) => (
    <>
      <TokenLink token={token} /> <Link to={`events?token_id=${token.id}`}>its events</Link>
    </>
  )),
  project: fact('Project', subjectsOf(event).project, (project) => (
    <>
      <ProjectLink project={project} /> <Link to={`events?project_id=${project.id}`}>its events</Link>
    </>
  )),
  ids: [
    fact('Instance', event.instance, escapeBidi),
    fact('Request', event.request_id, idCode),
    fact('Event', event.id, idCode),
  ],
});

function RequestDetails({ event }: { event: WireRequestEvent }) {
  const { time, token, project, ids } = commonFacts(event);
  const why = whyFailed(event);
  const { prompt_tokens: prompt, completion_tokens: completion } = event.usage;
  return (
    <div className="details">
      {why === null ? null : <p className="notice">{`${escapeBidi(capitalized(why))}.`}</p>}
      <Facts
        id={`facts-${event.id}`}
        facts={[
          time,
          fact('Request line', event.path, (path) => idCode(`${event.method} ${path}`)),
          fact('Status', event.status, exact),
          fact('Outcome', event.outcome, () => <RequestOutcome event={event} />),
          fact('Code', event.code, idCode),
          token,
          project,
          fact('Model', event.model, (model) => <Name>{model}</Name>),
          fact(
            'Model tokens',
            prompt ?? completion,
            () => `${exact(prompt ?? 0)} prompt, ${exact(completion ?? 0)} completion`,
          ),
          fact('Prompt cache', promptCacheShown(event.usage), (tokens) => tokens),
          fact('Duration', event.duration_ms, took),
          fact('First byte', event.first_byte_ms, took),
          fact('Provider', event.upstream_ms, took),
          fact('Body', event.bytes_in, (sent) => `${bytes(sent)} in, ${bytes(event.bytes_out)} out`),
          fact('Streamed', event.streamed ? 'yes' : null, String),
          fact('Provider’s ID', event.upstream_request_id, idCode),
          ...ids,
        ]}
      />
      <Body title="Request body" text={event.request_body} />
      <Body title="Response body" text={event.response_body} />
    </div>
  );
}

function ChangeDetails({ event }: { event: Change }) {
  const { time, token, project, ids } = commonFacts(event);
  return (
    <div className="details">
      <Facts
        id={`facts-${event.id}`}
        facts={[
          time,
          fact('Change', event.kind, String),
          fact('Actor', actorShown(event), escapeBidi),
          fact('Count', event.count, exact),
          token,
          project,
          ...ids,
        ]}
      />
    </div>
  );
}

/** The API gives the start of a body, if bodies are captured at all. A page shows less of it. */
const MAX_BODY_CHARACTERS = 4_000;

function Body({ title, text }: { title: string; text: string | null }) {
  if (text === null) return null;
  return (
    <>
      <h3>{title}</h3>
      <pre tabIndex={0} role="region" aria-label={title}>
        {escapeBidi(text.slice(0, MAX_BODY_CHARACTERS))}
        {text.length > MAX_BODY_CHARACTERS ? '…' : ''}
      </pre>
    </>
  );
}

// ---- routes

const FILTERS = ['project_id', 'token_id', 'status', 'model', 'took_over'] as const;

function filterOf(query: URLSearchParams): Record<string, string> {
  const show = query.get('show') ?? '';
  return { ...parametersOf(query, FILTERS), ...(Object.hasOwn(SHOWN, show) && SHOWN[show]?.filter) };
}

/** @throws {ApiError} if the filter is invalid. */
async function load({ client, query, nowMs }: PageRequest): Promise<Loaded> {
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
    const nothing = { events: [], next: null, streamUrl: null };
    const { value, refused } = await attempt(() => load(request), nothing);
    const body = <EventsPage {...value} query={request.query} projects={projects} refused={refused} />;
    return { title: 'Events', section: 'events', body, ...statusOf(refused) };
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
