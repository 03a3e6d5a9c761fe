/** The events screen: completed requests and changes. */
import { budgetShown, EVENT_COLUMNS, requestTint } from '../../console/columns/events.js';
import { shortId } from '../../console/columns/cell-text.js';
import type { WireEvent, WireRequestEvent } from '../../daemon/api/contract.js';
import { actorShown, bytes, exact, promptCacheShown } from '../../daemon/api/formats.js';
import { causeOf, whyFailed } from '../../daemon/api/request-outcome.js';
import { keyOf } from '../keys/press.js';
import { roleOf } from '../parts/cells.js';
import { fact } from '../parts/columns.js';
import { dateTime, milliseconds } from '../parts/figures.js';
import { key } from '../parts/list.js';
import type { Role } from '../parts/roles.js';
import { strip, type Strip, text, wrapped } from '../parts/strip.js';
import { whyDenied } from '../state/connection.js';
import type { State } from '../state/state.js';
import { shownColumns, WIDE_COLUMNS } from './chosen-columns.js';
import { FeedPane } from './feed.js';

export const EventsScreen = ({ state }: { state: State }) => (
  <FeedPane
    state={state}
    feed={state.events}
    columns={shownColumns(state, 'events', EVENT_COLUMNS, {
      filter: state.events.filter,
      own: {
        time: { minWidth: 8, maxWidth: state.size.columns < WIDE_COLUMNS ? 8 : 11, isWhole: true },
        why: { minWidth: 9 },
        status: { show: status },
      },
    })}
    linesOf={linesOf}
    emptyLines={nothing(state)}
  />
);

const isRequest = (event: WireEvent): event is WireRequestEvent => event.kind === 'request.completed';
/** The status, with a sign for readers without colours. */
function status(event: WireEvent): Strip {
  if (!isRequest(event)) return strip(text('·', 'faint'));
  return strip(text(`${SIGNS[outcomeRole(event)] ?? ''} ${event.status}`, outcomeRole(event)));
}

const SIGNS: Partial<Record<Role, string>> = { bad: '✗', warning: '▲', good: '●' };

const outcomeRole = (event: WireRequestEvent): Role => roleOf(requestTint(event));

const NAME_COLUMNS = 8;

function cachedPart(usage: WireRequestEvent['usage']): string {
  const shown = promptCacheShown(usage);
  return shown === null ? '' : ` (prompt cache: ${shown})`;
}

type Fact = readonly [name: string, value: Strip | string | null];

/** The most important lines first: a small screen shows no more. */
function linesOf(event: WireEvent, columns: number): Strip[] {
  const facts = isRequest(event) ? requestFacts(event, columns) : changeFacts(event);
  return facts.flatMap(([name, value]) => (value === null ? [] : [fact(name, value, NAME_COLUMNS)]));
}

function requestFacts(event: WireRequestEvent, columns: number): Fact[] {
  const { usage, outcome, code, cache, request_id: id, upstream_request_id: upstreamId } = event;
  const lines = (sentence: string | undefined | null) => wrapped(sentence ?? '', columns - NAME_COLUMNS - 1);
  const why = lines(whyFailed(event));
  const remedy = lines(causeOf(event)?.remedy);
  return [
    ['request', strip(text(`${event.status}`, outcomeRole(event)), ` ${event.method} ${event.path}`)],
    ...(why[0] === ''
      ? []
      : why.map((line, at): Fact => [at === 0 ? 'why' : '', strip(text(line, outcomeRole(event)))])),
    ['outcome', strip(outcome, code !== null && `  ${code}`, cache === 'hit' && '  from the cache')],
    ...(remedy[0] === '' ? [] : remedy.map((line, at): Fact => [at === 0 ? 'remedy' : '', line])),
    ['of', subject(event)],
    ['model', event.model],
    [
      'tokens',
      usage.source === 'missing'
        ? null
        : `${exact(usage.prompt_tokens ?? 0)} in${cachedPart(usage)}, ${exact(usage.completion_tokens ?? 0)} out, ${exact(usage.total_tokens ?? 0)} in total`,
    ],
    ['time', `${dateTime(event.time)}, took ${milliseconds(event.duration_ms)}`],
    [
      '',
      event.first_byte_ms === null
        ? null
        : `first byte after ${milliseconds(event.first_byte_ms)}${event.upstream_ms === null ? '' : `, provider ${milliseconds(event.upstream_ms)}`}`,
    ],
    ['bytes', `${bytes(event.bytes_in)} in, ${bytes(event.bytes_out)} out${event.streamed ? ', streamed' : ''}`],
    ['ids', strip(id, upstreamId !== null && `  upstream ${upstreamId}`)],
    ...idFacts(event),
  ];
}

const changeFacts = (event: Exclude<WireEvent, WireRequestEvent>): Fact[] => [
  ['kind', event.kind],
  ['budget', 'budget' in event ? `of the ${event.budget.owner}: ${budgetShown(event)}` : null],
  ['by', actorShown(event)],
  ['of', subject(event)],
  ['time', dateTime(event.time)],
  ['count', event.count === null ? null : exact(event.count)],
  ['request', event.request_id],
  ...idFacts(event),
];

/** The token and the project by name. */
function subject({ token_id: id, token_name: token, project_id: projectId, project_name: project }: WireEvent) {
  if (id === null && projectId === null) return null;
  return strip(
    id !== null && (token ?? text(`token ${shortId(id)}`, 'faint')),
    id !== null && projectId !== null && text('  in ', 'faint'),
    projectId !== null && (project ?? text(`project ${shortId(projectId)}`, 'faint')),
  );
}

const idFacts = ({ token_id: tokenId, project_id: projectId, id, instance }: WireEvent): Fact[] => [
  ['token', tokenId],
  ['project', projectId],
  ['event', `${id}  ${instance}`],
];

function nothing(state: State): (string | Strip)[] {
  const {
    events,
    connection: { is },
    isPaused,
  } = state;
  if (is === 'offline') return ['Not receiving events: the daemon is not responding.'];
  if (is === 'denied') return [`Not receiving events: ${whyDenied(state)}.`];
  if (isPaused) return [strip('Paused: ', key(keyOf(state, 'global.pause')), ' resumes.')];
  if (events.search !== null) return ['Searching …'];
  if (events.filter === '') return ['No events yet.', 'Requests appear when they complete.'];
  return [
    strip('No events match ', text(events.filter, 'accent'), '.'),
    ...(events.older === null ? [] : [strip(key(keyOf(state, 'lists.first')), ' searches older ones.')]),
    strip(key('esc'), ' shows all, ', key(keyOf(state, 'global.filter')), ' changes the filter.'),
  ];
}
