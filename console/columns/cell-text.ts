/** Cells as plain text, as the command line shows them, and the signs of states. */
import { bytes, exact, relativeTime } from '../../daemon/api/formats.js';
import { costShown } from '../../daemon/api/money.js';
import type { WireTokenState } from '../../daemon/api/contract.js';
import { merged, sparkline } from '../bars.js';
import { type Cell, type Tint, TREND_COLUMNS } from './column.js';

interface StateMark {
  glyph: string;
  ascii: string;
  word: string;
  tint: Tint;
}

// A state is always shown with its word, never by color or glyph alone.
const STATES: Record<WireTokenState | 'inactive', StateMark> = {
  active: { glyph: '●', ascii: '*', word: 'active', tint: 'green' },
  expired: { glyph: '○', ascii: '-', word: 'expired', tint: 'dim' },
  revoked: { glyph: '✗', ascii: 'x', word: 'revoked', tint: 'red' },
  rate_limited: { glyph: '▲', ascii: '!', word: 'limited', tint: 'yellow' },
  project_inactive: { glyph: '◌', ascii: '=', word: 'project off', tint: 'dim' },
  // Of a project.
  inactive: { glyph: '◌', ascii: '=', word: 'inactive', tint: 'dim' },
};

/** @param state as sent by the server, which may send anything: undefined for another one. */
export const stateMark = (state: string): StateMark | undefined =>
  Object.hasOwn(STATES, state) ? STATES[state as keyof typeof STATES] : undefined;

export function stateShown(state: string, { ascii }: { ascii: boolean }): string {
  const mark = stateMark(state);
  return mark ? `${ascii ? mark.ascii : mark.glyph} ${mark.word}` : state;
}

export const stateTint = (state: string): Tint | undefined => stateMark(state)?.tint;

const SHORT_ID_LENGTH = 8;
export const shortId = (id: string) => id.slice(0, SHORT_ID_LENGTH);

/** The name, or the beginning of the ID of something without a name. */
const nameOr = (name: string | null | undefined, id: string): string => name ?? shortId(id);

const NONE = '-';
const countShown = (count: number | null) => (count === null ? NONE : exact(count));

/** @param now of the daemon, in milliseconds since the epoch. */
export function cellText(cell: Cell, { ascii, now }: { ascii: boolean; now: number }): string {
  switch (cell.kind) {
    case 'text':
      return cell.text ?? '';
    case 'code':
      return (ascii ? cell.text?.replaceAll('…', '...') : cell.text) ?? '';
    case 'id':
      return shortId(cell.id);
    case 'token':
    case 'project':
      return cell.isOwn ? (cell.of.name ?? '') : nameOr(cell.of.name, cell.of.id);
    case 'subject': {
      const subject = cell.token ?? cell.project;
      return subject ? nameOr(subject.name, subject.id) : (cell.text ?? '');
    }
    case 'state':
      return stateShown(cell.state, { ascii });
    case 'distance':
      return cell.words ?? relativeTime(cell.at, now);
    case 'time':
      return cell.isHour ? cell.at.replace(/:\d\d:\d\d.*$/, 'h') : cell.at.replace(/\.\d+Z$/, 'Z');
    case 'clock':
      return cell.at.slice(11, 19);
    case 'count':
      return countShown(cell.count);
    case 'counts':
      return cell.counts.map(({ label, count }) => `${label} ${exact(count)}`).join(', ');
    case 'cap':
      return `${exact(cell.used)}/${cell.cap === 0 ? (ascii ? NONE : '∞') : exact(cell.cap)}`;
    case 'part':
      return `${exact(cell.part)}/${exact(cell.of)}`;
    case 'pair':
      return cell.counts.map(countShown).join('/');
    case 'share':
      return Number.isFinite(cell.share) ? `${Math.floor(cell.share * 100)}%` : NONE;
    case 'milliseconds':
      return cell.ms === null ? NONE : `${exact(Math.round(cell.ms))} ms`;
    case 'cost':
      return costShown(cell.cost);
    case 'bytes':
      return bytes(cell.bytes);
    case 'trend':
      return sparkline(merged(cell.history, TREND_COLUMNS), ascii).join('');
  }
}

const TINTS: Partial<Record<Cell['kind'], Tint>> = { trend: 'green', counts: 'dim' };

export function cellTint(cell: Cell): Tint | undefined {
  if (cell.kind === 'state') return stateTint(cell.state);
  return 'tint' in cell ? cell.tint : TINTS[cell.kind];
}
