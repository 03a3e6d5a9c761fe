/** `llmp usage`: reports requests and model tokens. */
import type { Kind } from '../../config/kinds.js';
import type { UsageQuery, WireUsageLine } from '../../daemon/api/contract.js';
import { USAGE_DIMENSIONS, type UsageDimension } from '../../daemon/api/vocabulary.js';
import { command } from '../command.js';
import { text, value } from '../option.js';
import { EXIT } from '../../console/failure.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { moment, timestampOf } from '../../console/span.js';
import type { TableColumn, View } from '../../console/table.js';
import { nameOr } from '../../console/views.js';

const dimensions: Kind<UsageDimension[]> = {
  accepts: `any of ${USAGE_DIMENSIONS.join(', ')}, separated by commas`,
  parse(given) {
    const named = given.split(',');
    const known = USAGE_DIMENSIONS.filter((dimension) => named.includes(dimension));
    return known.length === named.length ? known : undefined;
  },
  values: USAGE_DIMENSIONS,
  isList: true,
};

export const usageCommand = command({
  path: ['usage'],
  summary: 'report requests and model tokens',
  examples: [
    ['usage --by token,model', 'report the last 7 days by token and model'],
    ['usage --by day --since 30d --project-id web', 'report 30 days of a project by day'],
    ['usage --by project,model --since 2030-01-01 --until 2030-02-01 -o csv', 'report a month, for a spreadsheet'],
  ],
  options: {
    by: value('--by <LIST>', dimensions, `group by ${USAGE_DIMENSIONS.join(', ')}, or several of them`),
    since: value(
      '--since <TIME>',
      moment,
      'start time, rounded down to the hour, for example 24h or 2030-01-31 (default: 7d)',
    ),
    until: value('--until <TIME>', moment, 'end time, rounded up to the hour (default: now)'),
    projectId: text('--project-id <ID>', 'only this project, by name or ID', 'project'),
    tokenId: text('--token-id <ID>', 'only this token, by name or ID', 'token'),
  },
  async run({ options, shell, output, connect }) {
    const project = options.projectId === undefined ? undefined : checkedId('project', options.projectId);
    const token = options.tokenId === undefined ? undefined : checkedId('token', options.tokenId);
    const by = options.by ?? [];
    const client = await connect();
    const query: UsageQuery = {
      ...(by.length > 0 && { by: by.join(',') }),
      ...(options.since && { since: timestampOf(options.since, shell.now()) }),
      ...(options.until && { until: timestampOf(options.until, shell.now()) }),
      ...(project !== undefined && { project_id: await wholeIdOf(client, 'project', project) }),
      ...(token !== undefined && { token_id: await wholeIdOf(client, 'token', token) }),
    };
    const lines = await output.during('waiting for the report', client.usage(query));
    await output.list(lines, viewOf(by));
    if (lines.length === 0) output.note('No requests in this period.');
    return EXIT.done;
  },
});

const NONE = '-';

function viewOf(by: readonly UsageDimension[]): View<WireUsageLine> {
  const shown = (id: string | null | undefined, name: string | null | undefined) => (id ? nameOr(name, id) : NONE);
  const dimensionColumns: Record<UsageDimension, TableColumn<WireUsageLine>> = {
    token: { title: 'TOKEN', rank: 0, show: ({ token_id, token_name }) => shown(token_id, token_name), shrinks: true },
    project: {
      title: 'PROJECT',
      rank: 0,
      show: ({ project_id, project_name }) => shown(project_id, project_name),
      shrinks: true,
    },
    model: { title: 'MODEL', rank: 0, show: ({ model }) => model ?? NONE, shrinks: true },
    hour: { title: 'HOUR (UTC)', rank: 0, show: ({ hour }) => (hour ?? '').slice(0, 16).replace('T', ' ') },
    day: { title: 'DAY (UTC)', rank: 0, show: ({ day }) => (day ?? '').slice(0, 10) },
  };
  const fields: Record<UsageDimension, keyof WireUsageLine> = {
    token: 'token_id',
    project: 'project_id',
    model: 'model',
    hour: 'hour',
    day: 'day',
  };
  return {
    idOf: (line) => by.map((dimension) => line[fields[dimension]] ?? NONE).join(' '),
    fields: [
      ...by.map((dimension) => fields[dimension]),
      ...COUNTS.map(({ field }) => field),
      ...(by.includes('token') ? (['token_name'] as const) : []),
      ...(by.includes('project') ? (['project_name'] as const) : []),
    ],
    columns: [
      ...by.map((dimension) => dimensionColumns[dimension]),
      ...COUNTS.map(({ field, title, rank }) => ({
        title,
        rank,
        show: (line: WireUsageLine) => String(line[field]),
        alignRight: true,
      })),
    ],
    details: {},
  };
}

const COUNTS = [
  { field: 'requests', title: 'REQUESTS', rank: 0 },
  { field: 'hits', title: 'HITS', rank: 3 },
  { field: 'refused', title: 'REFUSED', rank: 2 },
  { field: 'errors', title: 'ERRORS', rank: 1 },
  { field: 'prompt_tokens', title: 'PROMPT', rank: 1 },
  { field: 'completion_tokens', title: 'COMPLETION', rank: 1 },
  // New fields come last, because scripts read the others by position.
  { field: 'upstream_refused', title: 'UPSTREAM 4XX', rank: 2 },
  { field: 'upstream_errors', title: 'UPSTREAM 5XX', rank: 4 },
  { field: 'cut', title: 'CUT', rank: 5 },
] as const;
