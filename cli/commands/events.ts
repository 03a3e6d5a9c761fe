/** `llmp events …`: lists and streams requests and changes. */
import type { Kind } from '../../config/kinds.js';
import { oneOf } from '../../config/kinds.js';
import { EXIT, usage } from '../../console/failure.js';
import { moment } from '../../console/span.js';
import type { ManagementClient } from '../../daemon/api/client.js';
import type { EventQuery, EventStreamQuery, WireEvent } from '../../daemon/api/contract.js';
import {
  ALL_FAILURES,
  ERROR_CODE_PATTERN,
  EVENT_KINDS,
  MODEL_PART_PATTERN,
  REQUEST_OUTCOMES,
  STATUS_LIST_PATTERN,
  tookMs,
} from '../../daemon/api/vocabulary.js';
import { command } from '../command.js';
import { limit, listed, type PageFetcher, selected } from '../listing.js';
import { queryArgument, queryIn, withOptions } from '../query.js';
import { flag, value, type Values, valuesOf } from '../option.js';
import { idsIn, onlyIds, timesIn } from '../filters.js';
import { type AnyEvent, EVENT_COLUMNS, EVENT_FIELDS } from '../../console/columns/events.js';
import type { View } from '../../console/table.js';
import { tableColumns } from '../../console/views.js';

const statuses: Kind<string> = {
  accepts: 'statuses or status classes, separated by commas, such as 429 or 4xx,5xx',
  parse: (given) => (STATUS_LIST_PATTERN.test(given) ? given : undefined),
  isList: true,
};

/** In the syntax of the API: `a,b`, or `!a,b` for all others. */
const selectionOf = (one: string, accepts: string): Kind<string> => ({
  accepts: `${accepts}, or several separated by commas; a leading ! excludes them`,
  parse: (given) => (new RegExp(`^!?${one}(?:,${one}){0,19}$`).test(given) ? given : undefined),
  isList: true,
});

const took: Kind<string> = {
  accepts: 'a duration such as 500ms, 2s or 1m',
  parse: (given) => (tookMs(given) === undefined ? undefined : given),
};

const filters = {
  ...onlyIds,
  failed: flag('--failed', 'only failures: refused, failed and cut requests'),
  status: value('--status <LIST>', statuses, 'only requests with these status codes, for example 429 or 4xx,5xx'),
  code: value(
    '--code <LIST>',
    selectionOf(ERROR_CODE_PATTERN, 'an error code such as rate_limited'),
    'only requests that llmp refused with these error codes',
  ),
  outcome: valuesOf(
    '--outcome <LIST>',
    REQUEST_OUTCOMES,
    `only requests with these outcomes: ${REQUEST_OUTCOMES.join(', ')}`,
  ),
  model: value(
    '--model <LIST>',
    selectionOf(MODEL_PART_PATTERN, 'a part of the name of a model'),
    'only requests whose model contains this text',
    'model',
  ),
  tookOver: value('--took-over <DURATION>', took, 'only requests that took longer, for example 2s'),
  kind: value('--kind <KIND>', oneOf(...EVENT_KINDS), `only events of this kind: ${EVENT_KINDS.join(', ')}`),
};

/** @returns a function that asks the daemon for full IDs. @throws {Failure} for options that cannot be used. */
function filterIn({ failed, status, code, outcome, model, tookOver, kind, ...others }: Values<typeof filters>) {
  if (failed && outcome !== undefined)
    throw usage('--failed and --outcome exclude each other', {
      advice: `Use one of them; --failed is --outcome '${ALL_FAILURES}'`,
    });
  const ids = idsIn(others);
  return async (client: ManagementClient): Promise<EventStreamQuery> => ({
    ...(await ids(client)),
    ...(failed && { outcome: ALL_FAILURES }),
    ...(status !== undefined && { status }),
    ...(code !== undefined && { code }),
    ...(outcome !== undefined && { outcome }),
    ...(model !== undefined && { model }),
    ...(tookOver !== undefined && { took_over: tookOver }),
    ...(kind !== undefined && { kind }),
  });
}

const tail = command({
  path: ['manage', 'events', 'tail'],
  summary: 'stream requests and changes until interrupted; events list shows stored ones',
  examples: [
    ['events tail', 'show all events, one line per event'],
    ['events tail --failed --since 15m', 'show what failed in the last 15 minutes, and what fails from now on'],
    ['events tail --project-id web --status 4xx,5xx', 'show failed requests of a project'],
    ['events tail -o jsonl >> events.jsonl', 'write events to a file, one JSON object per line'],
    ["events tail 'outcome:failed took:>2s'", 'show events that a query selects: llmp help query'],
  ],
  argument: queryArgument('events', "'outcome:failed took:>2s'"),
  options: {
    since: value('--since <TIME>', moment, 'begin with the stored events since this time, for example 15m'),
    ...filters,
    follow: flag('-f, --follow', 'follow new events (this is the default)'),
  },
  async run(invocation) {
    const { args, output, options, shell } = invocation;
    const filter = filterIn(options);
    const { follow } = await import('../follow.js');
    const client = await invocation.connect();
    const given = await queryIn(args, 'events', client);
    const query = withOptions<EventStreamQuery>(given.query, {
      ...(await filter(client)),
      ...timesIn(options, shell.now()),
    });
    return follow(
      invocation,
      (position) => client.events(query, position),
      async (event: WireEvent) => {
        if (given.matches(event)) await output.stream(event, eventView);
      },
    );
  },
});

const list = command({
  path: ['manage', 'events', 'list'],
  summary: 'list stored requests and changes, newest first',
  examples: [
    ['events list --failed --limit 20', 'list the last 20 requests that failed'],
    ['events list --since 1h --model gpt-4o --took-over 10s', 'list slow requests of a model'],
    ["events list 'outcome:failed took:>2s'", 'list events that a query selects: llmp help query'],
  ],
  argument: queryArgument('events', "'outcome:failed took:>2s'"),
  options: {
    since: value('--since <TIME>', moment, 'start time: a timestamp, or a time before now such as 15m'),
    until: value('--until <TIME>', moment, 'end time: a timestamp, or a time before now such as 15m'),
    ...filters,
    limit,
  },
  async run(invocation) {
    const { args, output, options, shell } = invocation;
    const filter = filterIn(options);
    const client = await invocation.connect();
    const given = await queryIn(args, 'events', client);
    const query = withOptions<EventQuery>(given.query, {
      ...(await filter(client)),
      ...timesIn(options, shell.now()),
    });
    const fetch: PageFetcher<WireEvent> = (page) => client.storedEvents({ ...query, ...page });
    const events =
      args.length === 0
        ? await listed(fetch, options.limit, output)
        : await selected(fetch, given.matches, options.limit, output);
    await output.list(events, eventView);
    if (events.length === 0) output.note('No matching events.');
    return EXIT.done;
  },
});

const isLast = ({ id }: { id: string }) => id === 'request';

const eventView: View<AnyEvent> = {
  idOf: ({ id }) => id,
  fields: EVENT_FIELDS,
  columns: [
    ...tableColumns(EVENT_COLUMNS.filter((column) => !isLast(column))),
    // It takes the rest of the line.
    ...tableColumns(EVENT_COLUMNS.filter(isLast)).map((column) => ({
      ...column,
      rank: 0,
      shrinks: false,
      fills: true,
    })),
  ],
};

export const eventCommands = [list, tail];
