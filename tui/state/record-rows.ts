/**
 * How a change from the audit log is laid out in the details of tokens and projects. On a narrow screen the time is left out before who made
 * the change, and why, is cut.
 */
import type { WireAuditRecord } from '../../daemon/api/contract.js';
import { actorShown } from '../../daemon/api/formats.js';

/** Columns of the parts of a line, with a gap of two columns between them. */
const PARTS = { time: 19, age: 8, outcome: 1, action: 17, who: 26 };
const GAP = 2;
const SUBJECT = { short: 14, long: 20, longest: 32 };

export interface RecordLayout {
  /** Columns of the date and time; null: there is only room for the age, which says when it was. */
  time: number | null;
  age: number;
  action: number;
  /** Columns for what the record is about; null: the screen says it. */
  subject: number | null;
  who: number;
  /** Columns before the action. */
  indent: number;
  /** Columns before the reason. */
  used: number;
}

/** @param columns the width of the line. */
export function recordLayout(columns: number, hasSubject: boolean): RecordLayout {
  const { time, age, outcome, action, who } = PARTS;
  const sum = (...parts: number[]) => parts.reduce((all, part) => all + part + GAP, 0);
  const least = sum(time, age, outcome, action, hasSubject ? SUBJECT.long : -GAP) + who;
  const hasTime = least <= columns;
  const indent = sum(...(hasTime ? [time] : []), age, outcome);
  const long = Math.min(SUBJECT.longest, SUBJECT.long + columns - least);
  const subject = hasSubject ? (hasTime ? long : SUBJECT.short) : null;
  const used = indent + sum(action, subject ?? -GAP, who);
  return { time: hasTime ? time : null, age, action, subject, who, indent, used };
}

/** Who made the change. The address says more than the front end alone. */
export const whoOf = (record: WireAuditRecord): string =>
  record.user === null && record.client_ip !== null ? `${actorShown(record)} ${record.client_ip}` : actorShown(record);

/** Whether the reason does not fit, and has a line of its own. A wide character counts as one column: such a reason is cut a little sooner. */
export function isReasonBelow(record: WireAuditRecord, { used, who }: RecordLayout, columns: number): boolean {
  const longer = Math.max(0, whoOf(record).length - who);
  return record.reason !== null && used + longer + record.reason.length + 2 > columns;
}

/** The number of lines of a record. */
export const recordRows = (record: WireAuditRecord, columns: number, hasSubject: boolean): number =>
  isReasonBelow(record, recordLayout(columns, hasSubject), columns) ? 2 : 1;

/** Columns inside the frame of a detail. */
export const detailColumns = ({ size }: { size: { columns: number } }): number => size.columns - 4;
