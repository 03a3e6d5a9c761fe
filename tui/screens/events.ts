/** Requests as they end, and changes as they are made. */
import { shortId } from '../../console/views.js';
import type { WireEvent, WireRequestEvent } from '../../daemon/api/contract.js';
import type { Column } from '../parts/columns.js';
import { fact } from '../parts/facts.js';
import { bytes, clockTime, count, dateTime, exact, milliseconds } from '../parts/figures.js';
import { withFound } from '../parts/found.js';
import { type Area, key } from '../parts/list.js';
import type { Role } from '../parts/roles.js';
import { strip, type Strip, text } from '../parts/strip.js';
import { parsed } from '../state/filtering.js';
import { projectName } from '../state/projects.js';
import type { State } from '../state/state.js';
import { tokenName } from '../state/tokens.js';
import { fed } from './feed.js';

export const eventsScreen = (state: State, area: Area): Strip[] =>
  fed(
    state,
    {
      feed: state.events,
      columns: columnsOf(state),
      linesOf: (event) => linesOf(state, event),
      nothing: nothing(state),
    },
    area,
  );

const isRequest = (event: WireEvent): event is WireRequestEvent => event.kind === 'request.completed';
const ofRequest =
  (show: (event: WireRequestEvent) => Strip) =>
  (event: WireEvent): Strip =>
    isRequest(event) ? show(event) : [];

function columnsOf(state: State): Column<WireEvent>[] {
  const words = parsed(state, state.events.filter)?.words ?? [];
  return [
    { title: 'TIME', rank: 0, least: 8, show: ({ time }) => strip(clockTime(Date.parse(time))) },
    { title: 'STATUS', rank: 0, least: 6, show: status },
    {
      title: 'REQUEST',
      rank: 1,
      least: 18,
      most: 60,
      show: (event) =>
        isRequest(event) ? withFound(`${event.method} ${event.path}`, words) : strip(text(event.kind, 'accent')),
    },
    { title: 'TOKEN', rank: 2, least: 10, most: 24, show: (event) => whose(state, event) },
    { title: 'MODEL', rank: 4, least: 12, most: 24, show: ofRequest(({ model }) => withFound(model ?? '', words)) },
    { title: 'IN/OUT', rank: 5, least: 11, alignRight: true, show: ofRequest(tokens) },
    {
      title: 'TOOK',
      rank: 3,
      least: 8,
      alignRight: true,
      show: ofRequest((it) => strip(milliseconds(it.duration_ms))),
    },
    {
      title: 'CACHE',
      rank: 6,
      least: 5,
      show: ofRequest(({ cache }) => strip(text(cache, cache === 'hit' ? 'good' : 'faint'))),
    },
  ];
}

/** The class of a status stands beside it, for those who see no colours. */
function status(event: WireEvent): Strip {
  if (!isRequest(event)) return strip(text('·', 'faint'));
  const { status: code, outcome } = event;
  const sign = code >= 500 || outcome === 'upstream_error' || outcome === 'timeout' ? '✗' : code >= 400 ? '▲' : '●';
  return strip(text(`${sign} ${code}`, statusRole(code)));
}

const statusRole = (code: number): Role => (code >= 500 ? 'bad' : code >= 400 ? 'warning' : 'good');

function whose(state: State, { token_id: id, project_id: projectId }: WireEvent): Strip {
  if (id !== null) return strip(tokenName(state, id) ?? text(shortId(id), 'faint'));
  return projectId === null ? [] : strip(projectName(state, projectId) ?? text(shortId(projectId), 'faint'));
}

function tokens({ usage }: WireRequestEvent): Strip {
  const { prompt_tokens: given, completion_tokens: made } = usage;
  if (given === null && made === null) return strip(text('–', 'faint'));
  return strip(`${given === null ? '–' : count(given)}/${made === null ? '–' : count(made)}`);
}

const NAME_COLUMNS = 10;

function linesOf(state: State, event: WireEvent): Strip[] {
  const { token_id: tokenId, project_id: projectId } = event;
  const common: [string, Strip | string | null][] = [
    ['token', tokenId && strip(tokenId, `  ${tokenName(state, tokenId) ?? ''}`)],
    ['project', projectId && strip(projectId, `  ${projectName(state, projectId) ?? ''}`)],
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
      'took',
      `${milliseconds(event.duration_ms)}, upstream ${milliseconds(event.upstream_ms)}, first byte ${milliseconds(event.first_byte_ms)}`,
    ],
    ['bytes', `${bytes(event.bytes_in)} in, ${bytes(event.bytes_out)} out${event.streamed ? ', streamed' : ''}`],
    ['model', event.model],
    [
      'tokens',
      usage.source === 'missing'
        ? null
        : `${exact(usage.prompt_tokens ?? 0)} in, ${exact(usage.completion_tokens ?? 0)} out, ${exact(usage.total_tokens ?? 0)} in all`,
    ],
    ['cache', cache],
    ['ids', strip(event.request_id, event.upstream_request_id !== null && `  upstream ${event.upstream_request_id}`)],
  ];
}

const changeFacts = (event: Exclude<WireEvent, WireRequestEvent>): [string, Strip | string | null][] => [
  ['kind', event.kind],
  ['by', event.actor],
  ['time', dateTime(event.time)],
  ['count', event.count === null ? null : exact(event.count)],
  ['request', event.request_id],
];

function nothing({ events, connection: { is }, isPaused }: State): (string | Strip)[] {
  if (is === 'offline' || is === 'denied') return ['Not receiving events: the daemon is not responding.'];
  if (isPaused) return [strip('Paused: ', key('p'), ' goes on.')];
  if (events.filter === '') return ['Nothing has happened since you are looking.', 'Requests are shown as they end.'];
  return [
    strip('Nothing has come that fits ', text(events.filter, 'accent'), '.'),
    strip(key('esc'), ' shows all again, ', key('/'), ' changes the filter.'),
  ];
}
