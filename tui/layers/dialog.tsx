/** Rendering of a dialog: affected items, notes, fields, and two buttons. */
import { aligned } from '../parts/columns.js';
import { duration, exact } from '../../daemon/api/formats.js';
import { keyOf } from '../keys/press.js';
import { EDGES } from '../parts/pane.js';
import { cut, strip, type Strip, text, widthOf, wrapped } from '../parts/strip.js';
import { staleSince } from '../state/connection.js';
import { actionAt, cancelAt } from '../state/dialog.js';
import { warningOf } from '../state/forms.js';
import { atLimit } from '../state/policy-forms.js';
import type { Dialog, DialogItem } from '../state/layers.js';
import { areaOf } from '../state/rows.js';
import type { State } from '../state/state.js';
import { fieldLines, widthOfFields } from './fields.js';
import { AROUND, Panel } from './panel.js';

/** A comfortable width for reading. */
const COLUMNS = 66;

export function DialogPanel({ state, dialog }: { state: State; dialog: Dialog }) {
  const { columns, rows } = areaOf(state);
  const room = Math.min(columns - AROUND, Math.max(COLUMNS, ...dialog.items.map(widthOfItem), widthOfFields(dialog)));
  const title = strip(text(dialog.title, 'title'));
  const inside = rows - EDGES;
  const fields = fieldLines(dialog, room, Math.max(1, inside - 2));
  const above = [itemLines(dialog, room), noteLines([...staleNotes(state), ...dialog.notes], room)];
  const [problem, last] = [waitingOrProblem(state, dialog, room), buttons(dialog, room)];
  const below = [...warningLines(state, dialog, room), ...problem];
  const whole = apart([...above, fields.lines, below, [last]]);
  if (whole.length <= inside) return <Panel title={title} lines={whole} columns={room} />;
  // On a low screen the problem and the buttons stay visible, and the rest scrolls to the focused field.
  const fixed = [...problem.slice(0, Math.max(0, inside - 2)), last];
  const before = above.flat();
  const body = [...before, ...fields.lines, ...warningLines(state, dialog, room)];
  const shown = Math.max(1, inside - fixed.length);
  const wanted = fields.focus === null ? dialog.scrolled : before.length + fields.focus - shown + 1;
  const top = Math.max(0, Math.min(body.length - shown, wanted));
  const scroll = { top, shown, of: body.length, rows: shown };
  return <Panel title={title} lines={[...body.slice(top, top + shown), ...fixed]} columns={room} scroll={scroll} />;
}

/** Joins the parts with an empty line between them. */
const apart = (parts: readonly (readonly Strip[])[]): Strip[] =>
  parts.filter((part) => part.length > 0).flatMap((part, at) => (at === 0 ? part : [[], ...part]));

const widthOfItem = ({ cells }: DialogItem) => cells.reduce((sum, cell) => sum + text(cell).width + 2, 4);

function itemLines({ items, more }: Dialog, room: number): Strip[] {
  const widths = (items[0]?.cells ?? []).map((_, at) =>
    Math.min(28, Math.max(0, ...items.map(({ cells }) => text(cells[at] ?? '').width))),
  );
  const rows = aligned(
    items.map(({ cells }) =>
      cells.map((cell, at) => cut(strip(text(cell, at === 0 ? 'faint' : 'plain')), widths[at] ?? 0)),
    ),
    widths,
  );
  const lines = rows.map((row, at) => cut(strip(row, items[at]?.isWarning && text('  !', 'warning')), room));
  return more > 0 ? [...lines, strip(text(`… and ${exact(more)} more`, 'faint'))] : lines;
}

/** A warning that the data in the dialog may be outdated. */
function staleNotes({ connection, nowMs }: State): Dialog['notes'] {
  const { is, failure } = connection;
  const sinceMs = staleSince(connection);
  if ((is !== 'stale' && is !== 'offline') || sinceMs === null) return [];
  const why = failure === null || is === 'offline' ? 'The daemon is not responding' : 'The daemon returns errors';
  return [{ words: `${why}: this data is ${duration(nowMs - sinceMs)} old.`, isWarning: true }];
}

function noteLines(notes: Dialog['notes'], room: number): Strip[] {
  return notes.flatMap(({ words, isWarning }) =>
    wrapped(words, room - 2).map((line, at) =>
      isWarning ? strip(text(at === 0 ? '! ' : '  ', 'warning'), text(line, 'warning')) : strip(line),
    ),
  );
}

function warningLines(state: State, dialog: Dialog, room: number): Strip[] {
  const warning = warningOf(dialog);
  const limit = atLimit(dialog);
  return [
    ...(dialog.purpose.for === 'purge' ? [preview(state)] : []),
    ...(limit === null ? [] : wrapped(`At the limit, ${limit}.`, room).map((line) => strip(text(line, 'faint')))),
    ...(warning === null ? [] : [strip(text(`! ${warning}`, 'warning'))]),
  ];
}

function waitingOrProblem(state: State, dialog: Dialog, room: number): Strip[] {
  const sent = state.pendingChanges.find(({ change }) => change === dialog.awaited);
  if (!sent) return problemLines(state, dialog, room);
  const age = duration(state.nowMs - sent.sentMs);
  return [
    strip(
      text('Checking the key with the provider… ', 'accent'),
      text(`${age}  `, 'faint'),
      text('esc', 'key'),
      ' cancels',
    ),
  ];
}

function problemLines(state: State, { problem, meantField = null }: Dialog, room: number): Strip[] {
  if (problem === null) return [];
  const hint = meantField === null ? '' : `; ${keyOf(state, 'dialog.next')} goes to ${meantField}`;
  return wrapped(`! ${problem}${hint}`, room).map((line) => strip(text(line, 'bad')));
}

/** The result of the dry run of a purge. */
function preview({ cache: { preview: it } }: State): Strip {
  if (!it) return strip(text('Fill in what to purge.', 'faint'));
  if (it.failure) return strip(text(`! ${it.failure.message}`, 'bad'));
  if (it.count === null) return strip(text('counting …', 'faint'));
  return strip('This removes ', text(`${exact(it.count)} cached response${it.count === 1 ? '' : 's'}`, 'strong'), '.');
}

/** The buttons, right-aligned. The focused one is in brackets. */
function buttons(dialog: Dialog, room: number): Strip {
  const isWaiting = Boolean(dialog.awaited);
  const cancel = button('Cancel', isWaiting || dialog.focus === cancelAt(dialog));
  const action = button(dialog.action, !isWaiting && dialog.focus === actionAt(dialog));
  const line = strip(cancel, '  ', action);
  return strip(' '.repeat(Math.max(0, room - widthOf(line))), line);
}

const button = (label: string, hasFocus: boolean) =>
  hasFocus ? text(`[ ${label} ]`, 'selected') : text(`  ${label}  `);
