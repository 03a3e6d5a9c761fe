/** `llmp events …`: streams requests and changes. */
import type { Kind } from '../../config/kinds.js';
import { oneOf } from '../../config/kinds.js';
import type { EventStreamQuery, WireEvent } from '../../daemon/api/contract.js';
import { actorShown } from '../../daemon/api/formats.js';
import { EVENT_KINDS, REQUEST_EVENT_KIND, STATUS_LIST_PATTERN } from '../../daemon/api/vocabulary.js';
import { command } from '../command.js';
import { flag, text, value } from '../option.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { type TableColumn, type Tint, type View } from '../../console/table.js';
import { nameOr } from '../../console/views.js';

const statuses: Kind<string> = {
  accepts: 'statuses or status classes, separated by commas, such as 429 or 4xx,5xx',
  parse: (given) => (STATUS_LIST_PATTERN.test(given) ? given : undefined),
  isList: true,
};

const tail = command({
  path: ['manage', 'events', 'tail'],
  summary: 'stream requests and changes until interrupted',
  examples: [
    ['events tail', 'show all events, one line per event'],
    ['events tail --project-id web --status 4xx,5xx', 'show failed requests of a project'],
    ['events tail -o jsonl >> events.jsonl', 'write events to a file, one JSON object per line'],
  ],
  options: {
    projectId: text('--project-id <ID>', 'only this project, by name or ID', 'project'),
    tokenId: text('--token-id <ID>', 'only this token', 'token'),
    status: value('--status <LIST>', statuses, 'only requests with these status codes, for example 429 or 4xx,5xx'),
    kind: value('--kind <KIND>', oneOf(...EVENT_KINDS), `only events of this kind: ${EVENT_KINDS.join(', ')}`),
    follow: flag('-f, --follow', 'follow new events (this is the default)'),
  },
  async run(invocation) {
    const { output, options } = invocation;
    const project = options.projectId === undefined ? undefined : checkedId('project', options.projectId);
    const token = options.tokenId === undefined ? undefined : checkedId('token', options.tokenId);
    const { follow } = await import('../follow.js');
    const client = await invocation.connect();
    const query: EventStreamQuery = {
      ...(project !== undefined && { project_id: await wholeIdOf(client, 'project', project) }),
      ...(token !== undefined && { token_id: await wholeIdOf(client, 'token', token) }),
      ...(options.status !== undefined && { status: options.status }),
      ...(options.kind !== undefined && { kind: options.kind }),
    };
    return follow(
      invocation,
      (position) => client.events(query, position),
      (event: WireEvent) => output.stream(event, eventView),
    );
  },
});

type RequestEvent = Extract<WireEvent, { kind: typeof REQUEST_EVENT_KIND }>;
type ChangeEvent = Exclude<WireEvent, RequestEvent>;
/** An event, with optional access to the fields that only one of the two kinds has. */
type Shown = WireEvent &
  Partial<Omit<RequestEvent, keyof ChangeEvent>> &
  Partial<Omit<ChangeEvent, keyof RequestEvent>>;

const isRequest = (event: WireEvent): event is RequestEvent => event.kind === REQUEST_EVENT_KIND;
const ofRequest = (show: (event: RequestEvent) => string) => (event: WireEvent) =>
  isRequest(event) ? show(event) : '';

function statusTint(event: WireEvent): Tint | undefined {
  if (!isRequest(event)) return undefined;
  if (event.status >= 500) return 'red';
  return event.status >= 400 ? 'yellow' : 'green';
}

function whatHappened(event: WireEvent): string {
  if (isRequest(event)) return `${event.method} ${event.path}`;
  const of = event.count === null ? '' : `, ${event.count}`;
  return `${event.kind} by ${actorShown(event)}${of}`;
}

const columns: readonly TableColumn<Shown>[] = [
  { title: 'TIME', rank: 2, width: 8, show: ({ time }) => time.slice(11, 19) },
  { title: 'STATUS', rank: 0, width: 6, show: ofRequest(({ status }) => String(status)), tint: statusTint },
  { title: 'OUTCOME', rank: 3, width: 14, show: ofRequest(({ code, outcome }) => code ?? outcome), shrinks: true },
  { title: 'MS', rank: 1, width: 7, show: ofRequest((it) => it.duration_ms.toFixed(0)), alignRight: true },
  { title: 'CACHE', rank: 4, width: 5, show: ofRequest(({ cache }) => cache) },
  {
    title: 'TOKEN',
    rank: 2,
    width: 16,
    show: ({ token_id, token_name }) => nameOr(token_name, token_id ?? ''),
    shrinks: true,
  },
  {
    title: 'PROJECT',
    rank: 5,
    width: 12,
    show: ({ project_id, project_name }) => nameOr(project_name, project_id ?? ''),
    shrinks: true,
  },
  { title: 'MODEL', rank: 6, width: 20, show: ofRequest(({ model }) => model ?? ''), shrinks: true },
  { title: 'WHAT', rank: 0, show: whatHappened, fills: true },
];

const eventView: View<Shown> = {
  idOf: ({ id }) => id,
  fields: [
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
    // New fields come last, because scripts read the others by position.
    'user',
    'token_name',
    'project_name',
  ],
  columns,
  details: {},
};

export const eventCommands = [tail];
