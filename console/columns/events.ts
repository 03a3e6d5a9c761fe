/** The fields and columns of events. */
import type { WireBudgetEvent, WireEvent, WireRequestEvent } from '../../daemon/api/contract.js';
import { actorShown, counted, exact } from '../../daemon/api/formats.js';
import { usdShown } from '../../daemon/api/money.js';
import { causeOf, refuserOf } from '../../daemon/api/request-outcome.js';
import { REQUEST_EVENT_KIND } from '../../daemon/api/vocabulary.js';
import { type Cell, columnsOf, cost, IN_TERMINALS, ON_REQUEST, subjectsOf, text, type Tint } from './column.js';

type ChangeEvent = Exclude<WireEvent, WireRequestEvent>;

/** An event, with optional access to the fields that only one of the two kinds has. */
export type AnyEvent = WireEvent &
  Partial<Omit<WireRequestEvent, keyof ChangeEvent>> &
  Partial<Omit<ChangeEvent, keyof WireRequestEvent>>;

/** In the order of exports. New ones come last, because scripts read the others by position. */
export const EVENT_FIELDS = [
  'time',
  'kind',
  'status',
  'outcome',
  'code',
  'method',
  'path',
  'cache',
  'duration_ms',
  'model',
  'actor',
  'count',
  'project_id',
  'token_id',
  'request_id',
  'id',
  'token_name',
  'project_name',
  'error',
  'user',
  'cost_usd',
] as const satisfies readonly (keyof AnyEvent)[];

const isRequest = (event: WireEvent): event is WireRequestEvent => event.kind === REQUEST_EVENT_KIND;
const ofRequest =
  (cell: (event: WireRequestEvent) => Cell) =>
  (event: WireEvent): Cell =>
    isRequest(event) ? cell(event) : text(null);

export const EVENT_COLUMNS = columnsOf<WireEvent>()({
  time: {
    title: 'Time',
    what: 'time of completion',
    shownBy: IN_TERMINALS,
    rank: 0,
    width: 8,
    cell: ({ time: at }) => ({ kind: 'clock', at }),
  },
  status: {
    title: 'Status',
    what: 'status of the response',
    shownBy: IN_TERMINALS,
    rank: 0,
    width: 6,
    key: 'status',
    cell: ofRequest((event) => text(String(event.status), requestTint(event))),
  },
  why: {
    title: 'Why',
    what: 'why the request failed: a cause, or the code of the provider',
    shownBy: IN_TERMINALS,
    rank: 1,
    width: [20, 24],
    keepsWidth: true,
    key: 'why',
    isSearched: true,
    cell: ofRequest((event) => text(causeOf(event)?.why ?? null, requestTint(event))),
  },
  token: {
    title: 'Token',
    what: 'name of the token',
    shownBy: IN_TERMINALS,
    rank: 2,
    width: [14, 24],
    keepsWidth: true,
    key: 'token',
    isSearched: true,
    // A change of all tokens of a project has no token.
    cell: (event) => ({ kind: 'subject', ...subjectsOf(event), text: null }),
  },
  project: {
    title: 'Project',
    what: 'name of the project',
    shownBy: IN_TERMINALS,
    rank: 7,
    width: [10, 20],
    key: 'project',
    isSearched: true,
    cell: (event) => ({ kind: 'subject', token: null, project: subjectsOf(event).project, text: null }),
  },
  model: {
    title: 'Model',
    what: 'model',
    shownBy: IN_TERMINALS,
    rank: 6,
    width: [12, 24],
    key: 'model',
    isSearched: true,
    cell: ofRequest(({ model }) => text(model)),
  },
  request: {
    title: 'Request',
    what: 'method and path, or what was changed and by whom',
    shownBy: IN_TERMINALS,
    rank: 2,
    width: [12, 36],
    key: 'kind',
    isSearched: true,
    cell: (event) => text(isRequest(event) ? `${event.method} ${event.path}` : changeShown(event)),
  },
  model_tokens: {
    title: 'Model tokens, in and out',
    shortTitle: 'IN/OUT',
    what: 'model tokens in the prompt and in the response',
    shownBy: ['tui'],
    rank: 8,
    width: 11,
    alignRight: true,
    cell: ofRequest(({ usage: { prompt_tokens: prompt, completion_tokens: completion } }) => ({
      kind: 'pair',
      counts: [prompt, completion],
    })),
  },
  cost: {
    title: 'Cost',
    what: 'what the request cost',
    shownBy: IN_TERMINALS,
    rank: 8.5,
    width: 9,
    alignRight: true,
    cell: ofRequest(({ cost_usd }) => cost({ cost_usd, unpriced_requests: 0 })),
  },
  duration: {
    title: 'Duration',
    what: 'duration',
    shownBy: IN_TERMINALS,
    rank: 5,
    width: 8,
    alignRight: true,
    key: 'took',
    cell: ofRequest(({ duration_ms: ms }) => ({ kind: 'milliseconds', ms })),
  },
  cache: {
    title: 'Cache',
    what: 'whether the response came from the cache',
    shownBy: IN_TERMINALS,
    rank: 9,
    width: 5,
    cell: ofRequest(({ cache }) => text(cache, cache === 'hit' ? 'green' : 'dim')),
  },
  refuser: {
    title: 'Who refused',
    what: 'who refused the request: llmp or the provider',
    shownBy: ON_REQUEST,
    rank: 10,
    width: 11,
    cell: ofRequest((event) => text(refuserOf(event), requestTint(event))),
  },
  code: {
    title: 'Code',
    what: 'code of a refusal',
    shownBy: ON_REQUEST,
    rank: 10,
    width: [12, 32],
    key: 'code',
    isSearched: true,
    cell: ofRequest(({ code }) => ({ kind: 'code', text: code })),
  },
  outcome: {
    title: 'Outcome',
    what: 'how the request ended',
    shownBy: ON_REQUEST,
    rank: 10,
    width: 16,
    key: 'outcome',
    isSearched: true,
    cell: ofRequest(({ outcome }) => text(outcome)),
  },
  first_byte: {
    title: 'First byte',
    shortTitle: '1ST BYTE',
    what: 'time to the first byte of the response',
    shownBy: ON_REQUEST,
    rank: 10,
    width: 8,
    alignRight: true,
    cell: ofRequest(({ first_byte_ms: ms }) => ({ kind: 'milliseconds', ms })),
  },
  upstream: {
    title: 'Upstream',
    what: 'time that the provider took',
    shownBy: ON_REQUEST,
    rank: 10,
    width: 8,
    alignRight: true,
    cell: ofRequest(({ upstream_ms: ms }) => ({ kind: 'milliseconds', ms })),
  },
  bytes: {
    title: 'Bytes',
    what: 'size of the response',
    shownBy: ON_REQUEST,
    rank: 10,
    width: 8,
    alignRight: true,
    cell: ofRequest(({ bytes_out: bytes }) => ({ kind: 'bytes', bytes })),
  },
  instance: {
    title: 'Instance',
    what: 'the instance that forwarded it',
    shownBy: ON_REQUEST,
    rank: 10,
    width: [8, 20],
    cell: ({ instance }) => text(instance),
  },
  request_id: {
    title: 'Request ID',
    what: 'ID of the request',
    shownBy: ON_REQUEST,
    rank: 10,
    width: [10, 36],
    isSearched: true,
    cell: ({ request_id: id }) => ({ kind: 'code', text: id }),
  },
});

/** A response that was cut is a failure, whatever its status. */
export function requestTint({ outcome, status }: WireRequestEvent): Tint {
  if (status >= 500 || !['ok', 'refused', 'upstream_refused', 'client_closed'].includes(outcome)) return 'red';
  return outcome === 'ok' ? 'green' : 'yellow';
}

function changeShown(event: ChangeEvent): string {
  if ('budget' in event) return budgetShown(event);
  const of = event.count === null ? '' : `, ${exact(event.count)}`;
  return `${event.kind} by ${actorShown(event)}${of}`;
}

/** An event of a budget, such as `80 % of $25.00 a month used`. */
export function budgetShown({ budget, count }: WireBudgetEvent): string {
  const { limit, period, percent, mode } = budget;
  const amount = typeof limit === 'string' ? usdShown(limit) : counted(limit, 'model token');
  const whole = period === 'none' ? amount : `${amount} a ${period}`;
  if (percent !== null) return `${percent} % of ${whole} used`;
  return `${mode} budget of ${whole} would have refused ${counted(count ?? 1, 'request')}`;
}
