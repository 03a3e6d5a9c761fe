/** Cells of lists: how the terminal UI shows each kind. */
import { type Cell, type Named, type Tint, TREND_COLUMNS } from '../../console/columns/column.js';
import { merged, sparkline } from '../../console/bars.js';
import { shortId, stateShown, stateTint } from '../../console/columns/cell-text.js';
import { bytes, relativeTime } from '../../daemon/api/formats.js';
import { costShown } from '../../daemon/api/money.js';
import { count, dateHour, dateTime, milliseconds, percent, shortTime } from './figures.js';
import { withFound } from './found.js';
import type { Role } from './roles.js';
import { joined, type Piece, strip, type Strip, text } from './strip.js';

const ROLES: Record<Tint, Role> = { green: 'good', red: 'bad', yellow: 'warning', dim: 'faint' };
export const roleOf = (tint: Tint | undefined): Role => (tint ? ROLES[tint] : 'plain');

export interface CellOptions {
  /** By the daemon's clock, in milliseconds since the epoch. */
  nowMs: number;
  /** Words of the filter, to be highlighted, in lower case. */
  words: readonly string[];
  /** Whether there is little room: what happened on another day has its date instead of its time, and IDs have no column. */
  isNarrow: boolean;
}

export function cellStrip(cell: Cell, { nowMs, words, isNarrow }: CellOptions): Strip {
  switch (cell.kind) {
    case 'text':
    case 'code':
      return withFound(cell.text ?? '', words, roleOf(cell.tint));
    case 'id':
      return strip(text(shortId(cell.id), 'faint'));
    case 'token':
    case 'project':
      // Where there is no room for IDs, because names are more useful, what has no name has its ID.
      return cell.isOwn && cell.of.name === null && !isNarrow ? [] : nameShown(cell.of, words);
    case 'subject': {
      const subject = cell.token ?? cell.project;
      return subject ? nameShown(subject, words) : strip(cell.text);
    }
    case 'state':
      return strip(stateMark(cell.state));
    case 'distance':
      return strip(text(cell.words ?? relativeTime(cell.at, nowMs), cell.at === null ? 'faint' : roleOf(cell.tint)));
    case 'time':
      return strip(cell.isHour ? dateHour(cell.at) : dateTime(cell.at));
    case 'clock':
      return strip(shortTime(dateTime(cell.at), nowMs, isNarrow));
    case 'count':
      return strip(cell.count === null ? text('–', 'faint') : text(count(cell.count), roleOf(cell.tint)));
    case 'counts':
      return joined(
        cell.counts.map(({ label, count: many }) => strip(text(`${label} `, 'faint'), count(many))),
        '  ',
      );
    case 'cap': {
      const isNear = cell.cap > 0 && cell.used >= cell.cap * 0.9;
      const cap = text(`/${cell.cap === 0 ? '∞' : count(cell.cap)}`, 'faint');
      return strip(text(count(cell.used), isNear ? 'warning' : 'plain'), cap);
    }
    case 'part':
      return strip(count(cell.part), text(`/${count(cell.of)}`, 'faint'));
    case 'pair':
      if (cell.counts.every((it) => it === null)) return strip(text('–', 'faint'));
      return strip(cell.counts.map((it) => (it === null ? '–' : count(it))).join('/'));
    case 'share':
      return strip(Number.isFinite(cell.share) ? percent(cell.share) : text('∞', 'faint'));
    case 'milliseconds':
      return strip(milliseconds(cell.ms));
    case 'cost':
      return strip(text(costShown(cell.cost), cell.cost.cost_usd === null ? 'faint' : 'plain'));
    case 'bytes':
      return strip(bytes(cell.bytes));
    case 'trend':
      return trend(cell, TREND_COLUMNS);
  }
}

const nameShown = ({ name, id }: Named, words: readonly string[]): Strip =>
  name === null ? strip(text(shortId(id), 'faint')) : withFound(name, words);

/** Requests over time. Steps with failures have their color. @param columns longer histories are summed up. */
export function trend(
  { history, errors }: { history: readonly number[]; errors: readonly number[] },
  columns: number,
): Strip {
  const failed = merged(errors, columns);
  const signs = sparkline(merged(history, columns));
  return strip(...signs.map((sign, at) => text(sign, (failed[at] ?? 0) > 0 ? 'bad' : 'accent')));
}

/** The state of a token or project: a sign and a word. @param state as sent by the server, which may send anything. */
export const stateMark = (state: string): Piece => text(stateShown(state, { ascii: false }), roleOf(stateTint(state)));
