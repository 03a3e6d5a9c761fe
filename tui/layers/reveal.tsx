/** The dialog with the secret of a new token or operator, which is masked until it is revealed. */
import { relativeTime } from '../../daemon/api/formats.js';
import { shortId } from '../../console/columns/cell-text.js';
import { keyShown } from '../keys/binding.js';
import { bindingsOn } from '../keys/press.js';
import { edited } from '../parts/editing.js';
import { count } from '../parts/figures.js';
import { EDGES } from '../parts/pane.js';
import { joined, strip, type Strip, text, widthOf, wrapped } from '../parts/strip.js';
import { projectName } from '../state/projects.js';
import type { Reveal } from '../state/layers.js';
import { areaOf } from '../state/rows.js';
import { daemonNow, type State } from '../state/state.js';
import { AROUND, Panel } from './panel.js';

const COLUMNS = 66;
/** What every secret begins with: its kind. */
const PREFIX_LENGTH = 'sk-wt-'.length;

export function RevealPanel({ state, reveal }: { state: State; reveal: Reveal }) {
  const area = areaOf(state);
  const room = Math.min(COLUMNS, area.columns - AROUND);
  const secret = secretLines(reveal, room - 2).map((line) => strip('  ', text(line, 'strong')));
  // Rows left beside the secret and the last key; at least one for a problem.
  const left = Math.max(1, area.rows - EDGES - secret.length - 1);
  // On a low screen the parts with the highest rank are dropped first.
  const parts = [
    { rank: 4, lines: [about(state, reveal.of)] },
    { rank: 0, lines: secret },
    ...(reveal.path === null ? keys(state, room) : writing(reveal.path, room)),
    { rank: 1, lines: noticeLines(reveal, room).slice(0, left) },
  ].filter(({ lines }) => lines.length > 0);
  const lines = fitting(parts, area.rows - EDGES);
  const title = strip(
    text(reveal.of.is === 'token' ? 'Token created · shown once' : 'Operator created · shown once', 'title'),
  );
  return <Panel title={title} lines={lines} columns={room} role="warning" />;
}

interface RevealPart {
  rank: number;
  lines: readonly Strip[];
}

/** Joins the parts with empty lines. If there is no room, first drops the empty lines and then the parts with the highest rank. */
function fitting(parts: readonly RevealPart[], rows: number): Strip[] {
  const apart = parts.flatMap(({ lines }, at) => (at === 0 ? lines : [[], ...lines]));
  if (apart.length <= rows) return [...apart];
  let left = parts;
  while (left.length > 1 && left.reduce((sum, { lines }) => sum + lines.length, 0) > rows) {
    const highest = Math.max(...left.map(({ rank }) => rank));
    if (highest === 0) break;
    left = left.filter(({ rank }) => rank !== highest);
  }
  return left.flatMap(({ lines }) => lines);
}

function about(state: State, of: Reveal['of']): Strip {
  if (of.is === 'operator') return strip(text(of.operator.name, 'strong'), `, ${of.operator.role}`);
  const { token } = of;
  const project = projectName(state, token.project_id) ?? shortId(token.project_id);
  const most = token.max_requests === 0 ? 'unlimited requests' : `${count(token.max_requests)} requests`;
  const until = relativeTime(token.expires_at, daemonNow(state));
  return strip(text(token.name ?? shortId(token.id), 'strong'), ` for ${project}, ${most}, expires ${until}`);
}

/** The whole secret, on as many lines as needed: it must never be cut. */
function secretLines({ secret, isShown }: Reveal, columns: number): string[] {
  const whole = isShown
    ? secret.reveal()
    : secret.reveal().slice(0, PREFIX_LENGTH) + '•'.repeat(Math.max(0, secret.length - PREFIX_LENGTH));
  const lines = Math.ceil(whole.length / columns);
  return Array.from({ length: lines }, (_, row) => whole.slice(row * columns, (row + 1) * columns));
}

/** The keys of the dialog. The last one closes it, so it is on a line of its own. */
function keys({ look, customKeys }: State, room: number): RevealPart[] {
  const told = bindingsOn('reveal', { customKeys }).filter(({ footer }) => footer !== undefined);
  const all = told.map((binding): Strip => {
    const [key = ''] = binding.keys;
    return strip(text(keyShown(key, look.ascii), 'key'), ` ${binding.label}`);
  });
  const last = all.at(-1) ?? [];
  return [
    { rank: 2, lines: [strip('  ', joined(all.slice(0, -1), '   '))] },
    { rank: 0, lines: [strip(' '.repeat(Math.max(0, room - widthOf(last))), last)] },
  ];
}

function writing(path: NonNullable<Reveal['path']>, room: number): RevealPart[] {
  const field = edited(path, Math.max(8, room - 18), { hasFocus: true });
  const keysOfIt = strip(text('enter', 'key'), ' writes, ', text('esc', 'key'), ' goes back');
  return [
    { rank: 0, lines: [strip('  Write to: ', text('[ ', 'key'), field, text(' ]', 'key'))] },
    { rank: 2, lines: [strip('  ', text('a new file that only you can read; ', 'faint'), keysOfIt)] },
  ];
}

function noticeLines({ notice, problem }: Reveal, room: number): Strip[] {
  if (problem !== null) return wrapped(`! ${problem}`, room - 2).map((line) => strip('  ', text(line, 'bad')));
  return notice === null ? [] : wrapped(notice, room - 2).map((line) => strip('  ', text(line, 'good')));
}
