/** Completed requests and changes, newest first, and new ones as they occur. Each opens with its details. */
import type { ReactNode } from 'react';
import { subjectsOf } from '../../../console/columns/column.js';
import { budgetShown } from '../../../console/columns/events.js';
import { actorShown, bytes, counted, exact, promptCacheShown } from '../../api/formats.js';
import type { WireEvent, WireRequestEvent } from '../../api/contract.js';
import { type Cause, causeOf, whyFailed } from '../../api/request-outcome.js';
import { ALL_FAILURES, REQUEST_EVENT_KIND } from '../../api/vocabulary.js';
import { ApiError, type StreamItem } from '../../api/client.js';
import type { PageStream } from '../page-streams.js';
import {
  allProjects,
  attempt,
  get,
  invalidRequest,
  type PageRequest,
  parametersOf,
  periodOf,
  statusOf,
} from '../page-request.js';
import { type Box, boxOf, boxRoute, unknownSecret } from '../query-box.js';
import { withTokenId } from '../token-filter.js';
import { Heading } from '../parts/document.js';
import { filterFields, FilterForm } from '../parts/fields.js';
import { Link, useFrame } from '../parts/frame.js';
import { QueryBox, QueryHelp, QueryProblem } from '../parts/query-box.js';
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
  /** How many events were looked at, and the time of the last one, if the query selects fewer; else null. */
  searched: { count: number; backTo: string } | null;
}

interface EventsProps extends FilteredListProps, Loaded {
  box: Box<'events'>;
}

/** What `show` in the query of the page can be: in words, and in the query of the API. */
const SHOWN: Readonly<Record<string, { words: string; filter: Record<string, string> }>> = {
  '': { words: 'all events', filter: {} },
  requests: { words: 'requests', filter: { kind: REQUEST_EVENT_KIND } },
  failures: { words: 'failures', filter: { outcome: ALL_FAILURES } },
  refused: { words: 'refused by llmp', filter: { outcome: 'refused' } },
};

const TOOK = [
  ['', 'any time'],
  ['500ms', 'over 0.5 s'],
  ['2s', 'over 2 s'],
  ['10s', 'over 10 s'],
  ['60s', 'over 1 min'],
] as const;

function EventsPage({ events, next, query, projects, streamUrl, searched, box, refused }: EventsProps) {
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
      <ErrorNotice why={box.problem ? null : refused} />
      <EventFilter query={query} projects={projects} box={box} />
      {refused === null || events.length > 0 ? <EventList events={events} streamUrl={streamUrl} /> : null}
      {searched === null ? null : (
        <p className="hint">
          {`Looked at ${counted(searched.count, 'event')}, back to ${utc(searched.backTo)}.`}
          {next === null ? '' : ' The next page looks further back.'}
        </p>
      )}
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
        <span>Why</span>
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

const MORE_FILTERS = ['token_id', 'status', 'model', 'took_over'];

function EventFilter({ query, projects, box }: Pick<EventsProps, 'query' | 'projects' | 'box'>) {
  const { given, input, select, project, token, since, until, times } = filterFields(query);
  const text = { type: 'text', spellCheck: false } as const;
  const shown = Object.entries(SHOWN).map(([value, { words }]) => [value, words] as const);
  const more = (
    <>
      <QueryProblem box={box} />
      <details className="more" id="more-filters" open={MORE_FILTERS.some((name) => given(name) !== '')}>
        <summary>More filters</summary>
        <div className="fields">
          {token()}
          {input('status', 'Status', { ...text, maxLength: 80, placeholder: '429,5xx' })}
          {input('model', 'Model', { ...text, maxLength: 100 })}
          {select('took_over', 'Took', TOOK)}
        </div>
      </details>
      <QueryHelp screen="events" />
    </>
  );
  return (
    <FilterForm to="events" label="Filter events" query={query} more={more} hasBox>
      <QueryBox box={box} placeholder="words, why:revoked status:429" />
      {select('show', 'Show', shown)}
      {project(projects)}
      {since()}
      {until()}
      {times()}
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

/** Why a request failed, in the words of all front ends; of a success, where it came from. */
export function Why({ event }: { event: WireRequestEvent }) {
  const cause = causeOf(event);
  if (cause === null) return <RequestOutcome event={event} />;
  const { look, glyph } = OUTCOMES[event.outcome] ?? { look: 'expired', glyph: '·' };
  return <StatusMark look={look} glyph={glyph} word={escapeBidi(cause.why)} />;
}

/** What the operator can do about a failure. */
export const remedyOf = ({ remedy }: Cause): ReactNode =>
  remedy === undefined ? null : withCode(`${escapeBidi(capitalized(remedy))}.`);

/** Shows what is between backticks as code. */
const withCode = (text: string): ReactNode =>
  text.split('`').map((part, at) => (at % 2 === 0 ? part : <code key={part}>{part}</code>));

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
  const { status, model, duration_ms: durationMs } = event;
  return (
    <>
      <span className="status">{exact(status)}</span>
      <span className="what">
        <Why event={event} />
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
        {'budget' in event ? `${kind}: ${budgetShown(event)}` : kind}
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
  const cause = causeOf(event);
  const remedy = cause && remedyOf(cause);
  const { prompt_tokens: prompt, completion_tokens: completion } = event.usage;
  return (
    <div className="details">
      {why === null ? null : (
        <p className="notice">
          {`${escapeBidi(capitalized(why))}.`}
          {remedy === null ? null : (
            <>
              {' '}
              <strong>What to do:</strong> {remedy}
            </>
          )}
        </p>
      )}
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
          fact('Budget', 'budget' in event ? event : null, (it) => `of the ${it.budget.owner}: ${budgetShown(it)}`),
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

type EventFilter = Record<string, string>;

/** The query of the API, as far as it can express the filter of the page. The query box tests all of its line. */
async function filterOf(
  { client, query }: Pick<PageRequest, 'client' | 'query'>,
  box: Box<'events'>,
): Promise<EventFilter> {
  if (box.problem !== null) throw invalidRequest(box.problem.message);
  const show = query.get('show') ?? '';
  const fields = await withTokenId(client, parametersOf(query, FILTERS));
  return { ...box.query, ...fields, ...(Object.hasOwn(SHOWN, show) && SHOWN[show]?.filter) };
}

const PAGE_LENGTH = 100;
// Of a query that only few events match, a page shows fewer rows rather than that it takes long.
const MAX_SEARCHED = 20 * PAGE_LENGTH;

/** @throws {ApiError} if the filter is invalid. */
async function load(request: PageRequest, box: Box<'events'>): Promise<Loaded> {
  const { client, query, nowMs } = request;
  const filter = await filterOf(request, box);
  const { since, until } = periodOf(query);
  const asked = { ...filter, ...(since && { since }), ...(until && { until }), limit: String(PAGE_LENGTH) };
  const events: WireEvent[] = [];
  let [count, cursor, newest, backTo] = [0, query.get('cursor'), '', ''];
  try {
    do {
      const page = await client.storedEvents({ ...asked, ...(cursor && { cursor }) });
      events.push(...page.items.filter(box.matches));
      count += page.items.length;
      newest ||= page.items[0]?.time ?? '';
      backTo = page.items.at(-1)?.time ?? backTo;
      cursor = page.next;
    } while (cursor !== null && events.length < PAGE_LENGTH / 2 && count < MAX_SEARCHED);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return NO_EVENTS;
    throw error;
  }
  const isLive = !query.has('cursor') && until === undefined;
  return {
    events,
    next: cursor,
    streamUrl: isLive ? streamUrlOf(query, newest || new Date(nowMs).toISOString()) : null,
    searched: count > events.length ? { count, backTo } : null,
  };
}

const NO_EVENTS: Loaded = { events: null, next: null, streamUrl: null, searched: null };

/** @param since time of the newest event of the page, which the script leaves out, so that there is no gap. */
function streamUrlOf(query: URLSearchParams, since: string): string {
  const filter = parametersOf(query, ['q', 'show', ...FILTERS]);
  return `events/stream?${new URLSearchParams({ ...filter, since }).toString()}`;
}

/** The events of a stream that the query box selects. */
async function* matching(items: AsyncIterable<StreamItem<WireEvent>>, { matches }: Box<'events'>) {
  for await (const it of items) if (matches(it.item)) yield it;
}

export const eventRoutes = [
  get('/events', 'read events', async (request) => {
    const { client, query } = request;
    const projects = await allProjects(client);
    const box = await boxOf(client, query, 'events', projects);
    const { value, refused } = await attempt(() => load(request, box), { ...NO_EVENTS, events: [] });
    const why = unknownSecret(query) ?? refused;
    const body = <EventsPage {...value} query={query} projects={projects} box={box} refused={why} />;
    return { title: 'Events', section: 'events', body, ...statusOf(refused) };
  }),
  boxRoute('events', 'read events', ({ id }) => `events?token_id=${id}`),
  get('/events/stream', 'read events', async (request) => {
    const { client, query } = request;
    const box = await boxOf(client, query, 'events', await allProjects(client));
    const filter = { ...(await filterOf(request, box)), ...parametersOf(query, ['since']) };
    const stream: PageStream = {
      open: (options) => matching(client.events(filter, options), box),
      // The newest is on top.
      show: (events) => eventRows(events.toReversed()),
    };
    return { stream };
  }),
];
