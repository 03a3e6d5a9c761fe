/** The audit screen: audit records, the newest at the bottom. */
import { AUDIT_COLUMNS, changesShown, detailShown } from '../../console/columns/audit.js';
import { subjectsOf } from '../../console/columns/column.js';
import { shortId } from '../../console/columns/cell-text.js';
import type { WireAuditRecord } from '../../daemon/api/contract.js';
import { actorShown, exact } from '../../daemon/api/formats.js';
import { doerOf } from '../../daemon/api/vocabulary.js';
import { keyOf } from '../keys/press.js';
import { fact, type ListColumn } from '../parts/columns.js';
import { dateHour, dateTime, shortTime } from '../parts/figures.js';
import { key } from '../parts/list.js';
import type { Role } from '../parts/roles.js';
import { strip, type Strip, text } from '../parts/strip.js';
import type { State } from '../state/state.js';
import { shownColumns, WIDE_COLUMNS } from './chosen-columns.js';
import { FeedPane } from './feed.js';
import { loadingText } from './tokens.js';

const OUTCOMES: Partial<Record<string, Role>> = {
  success: 'plain',
  denied: 'warning',
  error: 'bad',
} satisfies Record<WireAuditRecord['outcome'], Role>;

export const AuditScreen = ({ state }: { state: State }) => (
  <FeedPane
    state={state}
    feed={state.audit}
    columns={columnsOf(state, state.size.columns)}
    linesOf={(record) => linesOf(record, state.members?.batch === record.batch ? state.members.records : [])}
    emptyLines={nothing(state)}
  />
);

/** From this width on there is room for hours and minutes of another day. */
const NARROW_COLUMNS = 64;
/** From this width on there is room for the changes beside the reason. */
const CHANGES_COLUMNS = 124;
/** From this width on there is room for the user beside the actor. */
const USER_COLUMNS = 112;

function columnsOf(state: State, columns: number): readonly ListColumn<WireAuditRecord>[] {
  const isWide = columns >= WIDE_COLUMNS;
  const isNarrow = columns < NARROW_COLUMNS;
  return shownColumns(state, 'audit', AUDIT_COLUMNS, {
    filter: state.audit.filter,
    own: {
      ...(!isWide && {
        time: {
          minWidth: isNarrow ? 8 : 11,
          show: (record) => strip(shortTime(timeOf(record), state.nowMs, isNarrow)),
        },
        outcome: { title: '', minWidth: 1, show: ({ outcome }) => outcomeMark(outcome) },
      }),
      action: { minWidth: isWide ? 17 : 16 },
      actor: {
        minWidth: columns >= USER_COLUMNS ? 22 : isWide ? 10 : 12,
        // Where there is no room for both, who it was says more than the program.
        show: (record) => strip(columns < USER_COLUMNS ? doerOf(record) : actorShown(record)),
      },
      target: { minWidth: isWide ? 18 : 12, show: subjectAndCount },
      reason: { minWidth: isWide ? 14 : 12, ...(columns < CHANGES_COLUMNS && { show: reasonOrChanges }) },
    },
  });
}

const SIGNS: Partial<Record<string, string>> = { success: '●', denied: '▲', error: '✗' };
const roleOf = (outcome: string): Role => OUTCOMES[outcome] ?? 'plain';
export const outcomeMark = (outcome: string): Strip => strip(text(SIGNS[outcome] ?? '?', roleOf(outcome)));

/** Uses are recorded by the hour: a time of day would look like that of a single request. */
const timeOf = ({ action, time }: WireAuditRecord): string =>
  action === 'token.use' ? dateHour(time) : dateTime(time);

function subjectAndCount({ count, ...record }: WireAuditRecord): Strip {
  const { token, project } = subjectsOf(record);
  const subject = token ?? project;
  const many = count !== null && count > 1 && text(` ×${count}`, 'faint');
  if (!subject) return many ? strip(`${exact(count)} changes`) : strip(record.client_ip);
  return strip(subject.name ?? text(shortId(subject.id), 'faint'), many);
}

/** A name in front of an ID. */
const named = (name: string | null) => name !== null && `${name}  `;

const NAME_COLUMNS = 10;

/** Where there is no room for both columns. */
const reasonOrChanges = (record: WireAuditRecord): Strip =>
  strip(record.reason ?? text(changesShown(record) ?? '', 'faint'));

/** @param members those of the batch that the record stands for. */
function linesOf(record: WireAuditRecord, members: readonly WireAuditRecord[]): Strip[] {
  const { time, action, outcome, client_ip: ip, reason, details, count } = record;
  // The row of a batch has its ID, and no number if it is a single change.
  const isRow = record.id === record.batch;
  const isOfBatch = isRow && count !== null;
  const facts: [string, Strip | string | null][] = [
    ['time', action === 'token.use' ? `hour from ${dateTime(time)}` : dateTime(time)],
    ['action', strip(action, isOfBatch && ` ×${exact(count)}`, '  ', text(outcome, roleOf(outcome)))],
    ['by', strip(actorShown(record), ip !== null && `  from ${ip}`)],
    [
      'token',
      record.token_id &&
        strip(named(record.token_name), record.token_id, text(`  ${record.obfuscated ?? ''}`, 'faint')),
    ],
    ['project', record.project_id && strip(named(record.project_name), record.project_id)],
    ['reason', reason],
    ['count', count === null || isOfBatch ? null : String(count)],
    ['request', record.request_id],
    ['record', isRow ? null : record.id],
    ['batch', record.batch],
    ['undoes', record.undo_of],
  ];
  return [
    ...facts.flatMap(([name, value]) => (value === null ? [] : [fact(name, value, NAME_COLUMNS)])),
    ...Object.entries(details ?? {}).map(([name, value]) => fact(name, detailShown(name, value), NAME_COLUMNS)),
    ...(isOfBatch ? members.map(memberLine) : []),
  ];
}

function memberLine(member: WireAuditRecord): Strip {
  const { token, project } = subjectsOf(member);
  const subject = token ?? project;
  const changes = changesShown(member);
  return strip(
    '  ',
    outcomeMark(member.outcome),
    ` ${member.action}  `,
    subject ? (subject.name ?? shortId(subject.id)) : '',
    changes !== null && text(`  ${changes}`, 'faint'),
  );
}

function nothing(state: State): (string | Strip)[] {
  const { isLoaded, filter, search } = state.audit;
  if (search !== null) return ['Searching …'];
  if (!isLoaded) return [loadingText(state)];
  if (filter !== '') {
    return [
      strip('No records match ', text(filter, 'accent'), '.'),
      strip(key('esc'), ' shows all, ', key(keyOf(state, 'global.filter')), ' changes the filter.'),
    ];
  }
  return ['No audit records yet.', 'Every change, refusal and first use of a token is recorded.'];
}
