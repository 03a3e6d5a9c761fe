/** The events screen: completed requests and changes. */
import { shortId } from '../../console/views.js';
import type { WireEvent, WireRequestEvent } from '../../daemon/api/contract.js';
import { keyOf } from '../keys/press.js';
import type { ListColumn } from '../parts/columns.js';
import { fact } from '../parts/facts.js';
import { actorShown, bytes, exact } from '../../daemon/api/formats.js';
import { clockTime, count, dateTime, milliseconds } from '../parts/figures.js';
import { withFound } from '../parts/found.js';
import { type Area, key } from '../parts/list.js';
import type { Role } from '../parts/roles.js';
import { strip, type Strip, text } from '../parts/strip.js';
import { parsed } from '../state/filtering.js';
import type { State } from '../state/state.js';
import { feedFrame } from './feed.js';

export const eventsScreen = (state: State, area: Area): Strip[] =>
  feedFrame(
    state,
    {
      feed: state.events,
      columns: columnsOf(state),
      linesOf,
      emptyLines: nothing(state),
    },
    area,
  );

const isRequest = (event: WireEvent): event is WireRequestEvent => event.kind === 'request.completed';
const ofRequest =
  (show: (event: WireRequestEvent) => Strip) =>
  (event: WireEvent): Strip =>
    isRequest(event) ? show(event) : [];

function columnsOf(state: State): ListColumn<WireEvent>[] {
  const words = parsed(state, state.events.filter)?.words ?? [];
  return [
    { title: 'TIME', rank: 0, minWidth: 8, show: ({ time }) => strip(clockTime(Date.parse(time))) },
    { title: 'STATUS', rank: 0, minWidth: 6, show: status },
    {
      title: 'REQUEST',
      rank: 1,
      minWidth: 18,
      maxWidth: 60,
      show: (event) =>
        isRequest(event) ? withFound(`${event.method} ${event.path}`, words) : strip(text(event.kind, 'accent')),
    },
    { title: 'TOKEN', rank: 2, minWidth: 10, maxWidth: 24, show: whose },
    {
      title: 'MODEL',
      rank: 4,
      minWidth: 12,
      maxWidth: 24,
      show: ofRequest(({ model }) => withFound(model ?? '', words)),
    },
    { title: 'IN/OUT', rank: 5, minWidth: 11, alignRight: true, show: ofRequest(tokens) },
    {
      title: 'DURATION',
      rank: 3,
      minWidth: 8,
      alignRight: true,
      show: ofRequest((it) => strip(milliseconds(it.duration_ms))),
    },
    {
      title: 'CACHE',
      rank: 6,
      minWidth: 5,
      show: ofRequest(({ cache }) => strip(text(cache, cache === 'hit' ? 'good' : 'faint'))),
    },
  ];
}

/** The status, with a sign for its class for readers without colours. */
function status(event: WireEvent): Strip {
  if (!isRequest(event)) return strip(text('·', 'faint'));
  const { status: code, outcome } = event;
  const sign = code >= 500 || outcome === 'upstream_error' || outcome === 'timeout' ? '✗' : code >= 400 ? '▲' : '●';
  return strip(text(`${sign} ${code}`, statusRole(code)));
}

const statusRole = (code: number): Role => (code >= 500 ? 'bad' : code >= 400 ? 'warning' : 'good');

function whose({ token_id, token_name, project_id, project_name }: WireEvent): Strip {
  if (token_id !== null) return strip(token_name ?? text(shortId(token_id), 'faint'));
  return project_id === null ? [] : strip(project_name ?? text(shortId(project_id), 'faint'));
}

function tokens({ usage }: WireRequestEvent): Strip {
  const { prompt_tokens: given, completion_tokens: made } = usage;
  if (given === null && made === null) return strip(text('–', 'faint'));
  return strip(`${given === null ? '–' : count(given)}/${made === null ? '–' : count(made)}`);
}

const NAME_COLUMNS = 10;

function linesOf(event: WireEvent): Strip[] {
  const { token_id: tokenId, project_id: projectId } = event;
  const common: [string, Strip | string | null][] = [
    ['token', tokenId && strip(tokenId, `  ${event.token_name ?? ''}`)],
    ['project', projectId && strip(projectId, `  ${event.project_name ?? ''}`)],
  ];
  const facts = isRequest(event) ? [...requestFacts(event), ...common] : [...changeFacts(event), ...common];
  return [...facts, ['event', `${event.id}  ${event.instance}`] as const].flatMap(([name, value]) =>
    value === null ? [] : [fact(name, value, NAME_COLUMNS)],
  );
}

function requestFacts(event: WireRequestEvent): [string, Strip | string | null][] {
  const { usage, cache } = event;
  return [
    ['request', strip(text(`${event.status}`, statusRole(event.status)), ` ${event.method} ${event.path}`)],
    ['outcome', strip(event.outcome, event.code !== null && `  ${event.code}`)],
    ['time', dateTime(event.time)],
    [
      'duration',
      `${milliseconds(event.duration_ms)}, upstream ${milliseconds(event.upstream_ms)}, first byte ${milliseconds(event.first_byte_ms)}`,
    ],
    ['bytes', `${bytes(event.bytes_in)} in, ${bytes(event.bytes_out)} out${event.streamed ? ', streamed' : ''}`],
    ['model', event.model],
    [
      'tokens',
      usage.source === 'missing'
        ? null
        : `${exact(usage.prompt_tokens ?? 0)} in, ${exact(usage.completion_tokens ?? 0)} out, ${exact(usage.total_tokens ?? 0)} in total`,
    ],
    ['cache', cache],
    ['ids', strip(event.request_id, event.upstream_request_id !== null && `  upstream ${event.upstream_request_id}`)],
  ];
}

const changeFacts = (event: Exclude<WireEvent, WireRequestEvent>): [string, Strip | string | null][] => [
  ['kind', event.kind],
  ['by', actorShown(event)],
  ['time', dateTime(event.time)],
  ['count', event.count === null ? null : exact(event.count)],
  ['request', event.request_id],
];

function nothing(state: State): (string | Strip)[] {
  const {
    events,
    connection: { is },
    isPaused,
  } = state;
  if (is === 'offline' || is === 'denied') return ['Not receiving events: the daemon is not responding.'];
  if (isPaused) return [strip('Paused: ', key(keyOf(state, 'global.pause')), ' resumes.')];
  if (events.filter === '') return ['No events since you opened this screen.', 'Requests appear when they complete.'];
  return [
    strip('No events match ', text(events.filter, 'accent'), '.'),
    strip(key('esc'), ' shows all, ', key(keyOf(state, 'global.filter')), ' changes the filter.'),
  ];
}
