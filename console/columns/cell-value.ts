/** The values of cells in exported lists: whole IDs and times, and numbers without units. They are of the data, not of the screen. */
import type { Cell } from './column.js';

/** @param isText for CSV, where two numbers in a cell must not look like a date to a spreadsheet. */
export function cellValue(cell: Cell, isText: boolean): unknown {
  switch (cell.kind) {
    case 'text':
    case 'code':
      return cell.text;
    case 'id':
      return cell.id;
    case 'token':
    case 'project':
      return cell.of.name ?? (cell.isOwn ? null : cell.of.id);
    case 'subject': {
      const subject = cell.token ?? cell.project;
      return subject ? (subject.name ?? subject.id) : cell.text;
    }
    case 'state':
      return cell.state;
    case 'distance':
    case 'time':
    case 'clock':
      return cell.at;
    case 'count':
      return cell.count;
    case 'counts': {
      const { counts } = cell;
      if (isText) return counts.map(({ label, count }) => `${label} ${count}`).join(', ');
      return Object.fromEntries(counts.map(({ label, count }) => [label, count]));
    }
    case 'cap': {
      const cap = cell.cap === 0 ? null : cell.cap;
      return isText ? `${cell.used} of ${cap ?? 'unlimited'}` : { used: cell.used, cap };
    }
    case 'part':
      return isText ? `${cell.part} of ${cell.of}` : { part: cell.part, of: cell.of };
    case 'pair':
      return isText ? cell.counts.map((count) => count ?? '-').join(' and ') : cell.counts;
    case 'share':
      return Number.isFinite(cell.share) ? Math.floor(cell.share * 1000) / 1000 : null;
    case 'milliseconds':
      return cell.ms;
    case 'cost':
      return cell.cost.cost_usd;
    case 'bytes':
      return cell.bytes;
    case 'trend':
      return isText ? cell.history.join(' ') : cell.history;
  }
}
