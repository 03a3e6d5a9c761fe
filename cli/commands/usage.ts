/** `llmp usage`: reports requests, model tokens and cost. */
import { integer, type Kind, oneOf } from '../../config/kinds.js';
import type { UsageQuery } from '../../daemon/api/contract.js';
import { USAGE_DIMENSIONS, type UsageDimension } from '../../daemon/api/vocabulary.js';
import { command } from '../command.js';
import { flag, value } from '../option.js';
import { EXIT } from '../../console/failure.js';
import { idsIn, onlyIds, timesIn } from '../filters.js';
import { moment } from '../../console/span.js';
import { DEFAULT_SORT, grouped, SORT_FIELDS, sorted, usageView } from './usage-view.js';

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

const MAX_TOP = 10_000;

export const usageCommand = command({
  path: ['usage'],
  summary: 'report requests, model tokens and cost',
  examples: [
    ['usage --by token,model', 'report the last 7 days by token and model'],
    ['usage --by token --sort errors --top 10', 'report the 10 tokens with the most failures'],
    [
      'usage --by project,model --sort cost --group',
      'report which projects cost most this week, and which models in them',
    ],
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
    sort: value(
      '--sort <FIELD>',
      oneOf(...SORT_FIELDS),
      `sort by ${SORT_FIELDS.join(', ')}, the largest first; tokens are prompt and completion tokens, and an unknown cost is 0`,
    ),
    group: flag(
      '--group',
      `group the lines by the first field of --by, the group with the largest sum first, by the field of --sort (default: ${DEFAULT_SORT})`,
    ),
    top: value(
      '--top <COUNT>',
      integer(1, MAX_TOP),
      `only this many lines, or groups with --group, sorted by ${DEFAULT_SORT} by default; on a terminal, one line has the sum of the others`,
    ),
    ...onlyIds,
  },
  async run({ options, shell, output, connect }) {
    const ids = idsIn(options);
    const by = options.by ?? [];
    const client = await connect();
    const query: UsageQuery = {
      ...(by.length > 0 && { by: by.join(',') }),
      ...timesIn(options, shell.now()),
      ...(await ids(client)),
    };
    const lines = await output.during('waiting for the report', client.usage(query));
    const isSorted = options.top !== undefined || options.group;
    const sort = options.sort ?? (isSorted ? DEFAULT_SORT : undefined);
    const all = sort === undefined ? lines : sorted(lines, sort);
    const groups = options.group ? grouped(all, by, sort ?? DEFAULT_SORT) : all.map((line) => [line]);
    const shown = groups.slice(0, options.top).flat();
    const others = groups.flat().slice(shown.length);
    await output.list(shown, usageView({ by, lines: shown, others, measured: sort ?? DEFAULT_SORT }));
    if (lines.length === 0) output.note('No requests in this period.');
    return EXIT.done;
  },
});
