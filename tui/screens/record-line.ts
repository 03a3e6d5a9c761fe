/** A change from the audit log, for the details of tokens and projects: one line, or two if the reason does not fit. */
import type { WireAuditRecord } from '../../daemon/api/contract.js';
import { relativeTime } from '../../daemon/api/formats.js';
import { dateHour, dateTime } from '../parts/figures.js';
import { blank, fitted, joined, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { isReasonBelow, type RecordLayout, recordLayout, whoOf } from '../state/record-rows.js';
import { outcomeMark } from './audit.js';

const GAP = '  ';

/** @param subject what the record is about, if the screen does not say it. */
export function recordLines(record: WireAuditRecord, now: number, columns: number, subject?: string): Strip[] {
  const layout = recordLayout(columns, subject !== undefined);
  const reason = record.reason === null ? [] : strip(text(`“${record.reason}”`, 'accent'));
  const isBelow = isReasonBelow(record, layout, columns);
  const who = strip(whoOf(record));
  const parts = [
    ...head(dateTime(record.time), relativeTime(record.time, now), record, layout),
    ...(subject === undefined ? [] : [fitted(strip(subject), layout.subject ?? 0)]),
    ...(isBelow || reason.length === 0 ? [who] : [whole(who, layout.who), reason]),
  ];
  return [joined(parts, GAP), ...(isBelow ? [strip(' '.repeat(layout.indent), reason)] : [])];
}

/** All use of a token, in one line. @param lastUsedAt the record only has the hour. @param words how much it was. */
export function useLine(
  record: WireAuditRecord,
  lastUsedAt: string,
  now: number,
  columns: number,
  words: Strip,
): Strip {
  const age = relativeTime(lastUsedAt, now);
  return joined([...head(dateHour(record.time), age, record, recordLayout(columns, false)), words], GAP);
}

function head(time: string, age: string, record: WireAuditRecord, layout: RecordLayout): Strip[] {
  return [
    ...(layout.time === null ? [] : [fitted(strip(time), layout.time)]),
    fitted([text(age, layout.time === null ? 'plain' : 'faint')], layout.age),
    // A record of uses sums up requests with all outcomes.
    record.action === 'token.use' ? [blank(1)] : outcomeMark(record.outcome),
    fitted(strip(record.action), layout.action),
  ];
}

/** Pads, and does not cut. */
const whole = (line: Strip, columns: number): Strip => fitted(line, Math.max(columns, widthOf(line)));
