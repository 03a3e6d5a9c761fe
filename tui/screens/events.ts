/** The events screen: completed requests and changes. */
import { refuserOf, whyFailed } from '../../daemon/api/request-outcome.js';
import { shortId } from '../../console/views.js';
import type { WireEvent, WireRequestEvent } from '../../daemon/api/contract.js';
import { keyOf } from '../keys/press.js';
import type { ListColumn } from '../parts/columns.js';
import { fact } from '../parts/facts.js';
import { actorShown, bytes, exact, promptCacheShown } from '../../daemon/api/formats.js';
import { count, dateTime, milliseconds, shortTime } from '../parts/figures.js';
import { withFound } from '../parts/found.js';
import { type Area, key } from '../parts/list.js';
import { strip, type Strip, text } from '../parts/strip.js';
import { wrapped } from '../parts/wrapped.js';
import { parsed } from '../state/filtering.js';
import type { State } from '../state/state.js';
import { type ChoosableColumn, chosenOf } from './chosen-columns.js';
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

/** Below this width an event of another day has its date instead of its time. */
const WIDE_COLUMNS = 100;

function columnsOf(state: State): readonly ListColumn<WireEvent>[] {
  const words = parsed(state, state.events.filter)?.words ?? [];
  const isNarrow = state.size.columns < WIDE_COLUMNS;
  const all: ChoosableColumn<WireEvent, 'events'>[] = [
    {
      id: 'time',
      title: 'TIME',
      rank: 0,
      minWidth: isNarrow ? 8 : 11,
      show: ({ time }) => strip(shortTime(dateTime(time), state.nowMs, isNarrow)),
    },
    { id: 'status', title: 'STATUS', rank: 0, minWidth: 6, show: status },
    {
      id: 'refuser',
      title: 'WHO REFUSED',
      rank: 4,
      minWidth: 11,
      show: ofRequest((it) => strip(text(refuserOf(it), outcomeRole(it)))),
    },
    {
      id: 'code',
      title: 'CODE',
      rank: 3,
      minWidth: 12,
      maxWidth: 21,
      show: ofRequest(({ code }) => withFound(code ?? '', words)),
    },
    {
      id: 'request',
      title: 'REQUEST',
      rank: 1,
      minWidth: 14,
      maxWidth: 36,
      show: (event) =>
        isRequest(event) ? withFound(`${event.method} ${event.path}`, words) : strip(text(event.kind, 'accent')),
    },
    { id: 'token', title: 'TOKEN', rank: 2, minWidth: 14, maxWidth: 24, show: (event) => whose(event, words) },
    {
      id: 'project',
      title: 'PROJECT',
      rank: 7,
      minWidth: 10,
      maxWidth: 20,
      show: ({ project_name }) => withFound(project_name ?? '', words),
    },
    {
      id: 'model',
      title: 'MODEL',
      rank: 6,
      minWidth: 12,
      maxWidth: 24,
      show: ofRequest(({ model }) => withFound(model ?? '', words)),
    },
    { id: 'model_tokens', title: 'IN/OUT', rank: 8, minWidth: 11, alignRight: true, show: ofRequest(tokens) },
    {
      id: 'duration',
      title: 'DURATION',
      rank: 5,
      minWidth: 8,
      alignRight: true,
      show: ofRequest((it) => strip(milliseconds(it.duration_ms))),
    },
    {
      id: 'cache',
      title: 'CACHE',
      rank: 9,
      minWidth: 5,
      show: ofRequest(({ cache }) => strip(text(cache, cache === 'hit' ? 'good' : 'faint'))),
    },
    {
      id: 'outcome',
      title: 'OUTCOME',
      rank: 10,
      minWidth: 16,
      show: ofRequest(({ outcome }) => withFound(outcome, words)),
    },
    {
      id: 'first_byte',
      title: '1ST BYTE',
      rank: 10,
      minWidth: 8,
      alignRight: true,
      show: ofRequest((it) => strip(milliseconds(it.first_byte_ms))),
    },
    {
      id: 'upstream',
      title: 'UPSTREAM',
      rank: 10,
      minWidth: 8,
      alignRight: true,
      show: ofRequest((it) => strip(milliseconds(it.upstream_ms))),
    },
    {
      id: 'bytes',
      title: 'BYTES',
      rank: 10,
      minWidth: 8,
      alignRight: true,
      show: ofRequest((it) => strip(bytes(it.bytes_out))),
    },
    { id: 'instance', title: 'INSTANCE', rank: 10, minWidth: 8, maxWidth: 20, show: ({ instance }) => strip(instance) },
    {
      id: 'request_id',
      title: 'REQUEST ID',
      rank: 10,
      minWidth: 10,
      maxWidth: 36,
      show: (event) => withFound(event.request_id ?? '', words),
    },
  ];
  return chosenOf(state, 'events', all);
}

/** The status, with a sign for readers without colours. */
function status(event: WireEvent): Strip {
  if (!isRequest(event)) return strip(text('·', 'faint'));
  return strip(text(`${SIGNS[outcomeRole(event)]} ${event.status}`, outcomeRole(event)));
}

const SIGNS = { bad: '✗', warning: '▲', good: '●' } as const;

/** A response that was cut is a failure, whatever its status. */
function outcomeRole({ outcome, status: code }: WireRequestEvent): keyof typeof SIGNS {
  if (code >= 500 || !['ok', 'refused', 'upstream_refused', 'client_closed'].includes(outcome)) return 'bad';
  return outcome === 'ok' ? 'good' : 'warning';
}

/** A change of all tokens of a project has no token. */
function whose(event: WireEvent, words: readonly string[]): Strip {
  const { token_id: id, token_name: name, project_id: projectId, project_name: project } = event;
  if (id !== null) return name === null ? strip(text(shortId(id), 'faint')) : withFound(name, words);
  if (projectId === null) return [];
  return project === null ? strip(text(shortId(projectId), 'faint')) : withFound(project, words);
}

function tokens({ usage }: WireRequestEvent): Strip {
  const { prompt_tokens: given, completion_tokens: made } = usage;
  if (given === null && made === null) return strip(text('–', 'faint'));
  return strip(`${given === null ? '–' : count(given)}/${made === null ? '–' : count(made)}`);
}

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
  const why = wrapped(whyFailed(event) ?? '', columns - NAME_COLUMNS - 1);
  return [
    ['request', strip(text(`${event.status}`, outcomeRole(event)), ` ${event.method} ${event.path}`)],
    ...(why[0] === ''
      ? []
      : why.map((line, at): Fact => [at === 0 ? 'why' : '', strip(text(line, outcomeRole(event)))])),
    ['outcome', strip(outcome, code !== null && `  ${code}`, cache === 'hit' && '  from the cache')],
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
  if (is === 'offline' || is === 'denied') return ['Not receiving events: the daemon is not responding.'];
  if (isPaused) return [strip('Paused: ', key(keyOf(state, 'global.pause')), ' resumes.')];
  if (events.search !== null) return ['Searching …'];
  if (events.filter === '') return ['No events yet.', 'Requests appear when they complete.'];
  return [
    strip('No events match ', text(events.filter, 'accent'), '.'),
    ...(events.older === null ? [] : [strip(key(keyOf(state, 'lists.first')), ' searches older ones.')]),
    strip(key('esc'), ' shows all, ', key(keyOf(state, 'global.filter')), ' changes the filter.'),
  ];
}
