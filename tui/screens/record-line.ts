/** A change from the audit log in one line, for the details of tokens and projects. */
import type { WireAuditRecord } from '../../daemon/api/contract.js';
import { actorShown, relativeTime } from '../../daemon/api/formats.js';
import { dateTime } from '../parts/figures.js';
import { fitted, strip, type Strip, text } from '../parts/strip.js';

const SUBJECT_COLUMNS = 20;

/** @param subject what the record is about, if the screen does not say it. */
export function recordLine(record: WireAuditRecord, now: number, subject?: string): Strip {
  const { time, action, outcome, client_ip: ip, reason } = record;
  return strip(
    dateTime(time),
    fitted([text(`  ${relativeTime(time, now)}`, 'faint')], 11),
    ' ',
    fitted(strip(action), 17),
    ' ',
    fitted([text(outcome, outcome === 'success' ? 'plain' : outcome === 'denied' ? 'warning' : 'bad')], 8),
    ' ',
    subject !== undefined && fitted(strip(subject), SUBJECT_COLUMNS),
    subject !== undefined && '  ',
    fitted(strip(actorShown(record)), record.user === null ? 10 : 24),
    ip !== null && ` ${ip}`,
    reason !== null && text(`  “${reason}”`, 'accent'),
  );
}
