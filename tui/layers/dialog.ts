/** A question: what it is about, fields to fill in, and two buttons. */
import { aligned } from '../parts/columns.js';
import { edited } from '../parts/editing.js';
import { exact, span } from '../parts/figures.js';
import { cut, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { wrapped } from '../parts/wrapped.js';
import { staleSince } from '../state/connection.js';
import { actionAt, cancelAt, shownFields } from '../state/dialog.js';
import { warningOf } from '../state/forms.js';
import type { Dialog, DialogItem, Field, State } from '../state/state.js';
import type { Panel } from './panel.js';

/** As wide as people like to read. */
const COLUMNS = 66;
const FIELD_COLUMNS = 40;

export function dialogPanel(state: State, dialog: Dialog, columns: number): Panel {
  const room = Math.min(columns - 4, Math.max(COLUMNS, ...dialog.items.map(widthOfItem), widthOfFields(dialog)));
  const parts = [
    itemLines(dialog, room),
    noteLines([...staleNotes(state), ...dialog.notes], room),
    fieldLines(dialog, room),
    saidLines(state, dialog, room),
    [buttons(dialog, room)],
  ];
  const lines = parts.filter((part) => part.length > 0).flatMap((part, at) => (at === 0 ? part : [[], ...part]));
  return { title: strip(text(dialog.title, 'title')), lines, columns: room };
}

/** With their hints. */
function widthOfFields(dialog: Dialog): number {
  const fields = shownFields(dialog);
  const label = labelWidth(fields);
  return Math.max(0, ...fields.map(({ width = FIELD_COLUMNS, hint = '' }) => label + width + 10 + text(hint).width));
}

const labelWidth = (fields: readonly Field[]) => Math.max(0, ...fields.map((field) => text(field.label).width + 1));

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

/** What is asked about may not be as it is shown. */
function staleNotes({ connection, nowMs }: State): Dialog['notes'] {
  const { is, failure } = connection;
  const sinceMs = staleSince(connection);
  if ((is !== 'stale' && is !== 'offline') || sinceMs === null) return [];
  const why = failure === null || is === 'offline' ? 'The daemon does not answer' : 'The daemon refuses to answer';
  return [{ words: `${why}: what is shown is ${span(nowMs - sinceMs)} old.`, isWarning: true }];
}

function noteLines(notes: Dialog['notes'], room: number): Strip[] {
  return notes.flatMap(({ words, isWarning }) =>
    wrapped(words, room - 2).map((line, at) =>
      isWarning ? strip(text(at === 0 ? '! ' : '  ', 'warning'), text(line, 'warning')) : strip(line),
    ),
  );
}

function fieldLines(dialog: Dialog, room: number): Strip[] {
  const fields = shownFields(dialog);
  const label = labelWidth(fields);
  return fields.map((field, at) => fieldLine(field, at === dialog.focus, label, room));
}

function fieldLine(field: Field, hasFocus: boolean, label: number, room: number): Strip {
  const name = text(`${field.label}:`);
  const head = strip(text(hasFocus ? '>' : ' ', 'accent'), ' ', name, ' '.repeat(label - name.width + 1));
  const left = room - widthOf(head);
  const value = field.choices ? choice(field, hasFocus, left) : input(field, hasFocus, left);
  const hint = strip(text(`  ${field.hint ?? ''}`, 'faint'));
  // Half a hint is none.
  const fits = field.hint !== undefined && widthOf(value) + widthOf(hint) <= left;
  return cut(strip(head, value, fits && hint), room);
}

function choice({ choices = [], line }: Field, hasFocus: boolean, room: number): Strip {
  const chosen = choices.find(({ value }) => value === line.text)?.label ?? '';
  const label = cut(strip(text(chosen, hasFocus ? 'selected' : 'plain')), room - 4);
  const others = choices.length > 1;
  return strip(
    text(others ? '← ' : '  ', hasFocus ? 'key' : 'faint'),
    label,
    text(others ? ' →' : '', hasFocus ? 'key' : 'faint'),
  );
}

function input({ line, width = FIELD_COLUMNS, isSecret = false }: Field, hasFocus: boolean, room: number): Strip {
  const columns = Math.max(1, Math.min(width, room - 4));
  const typed = edited(line, columns, { hasFocus, isSecret });
  return strip(text('[ ', hasFocus ? 'key' : 'faint'), typed, text(' ]', hasFocus ? 'key' : 'faint'));
}

function saidLines(state: State, dialog: Dialog, room: number): Strip[] {
  const warning = warningOf(dialog);
  return [
    ...(dialog.purpose.for === 'purge' ? [preview(state)] : []),
    ...(warning === null ? [] : [strip(text(`! ${warning}`, 'warning'))]),
    ...(dialog.problem === null ? [] : wrapped(`! ${dialog.problem}`, room).map((line) => strip(text(line, 'bad')))),
  ];
}

/** How many answers the purge that is filled in would remove. */
function preview({ cache: { preview: it } }: State): Strip {
  if (!it) return strip(text('Nothing to purge is filled in yet.', 'faint'));
  if (it.failure) return strip(text(`! ${it.failure.message}`, 'bad'));
  if (it.count === null) return strip(text('counting …', 'faint'));
  return strip('It removes ', text(`${exact(it.count)} answer${it.count === 1 ? '' : 's'}`, 'strong'), '.');
}

/** At the right; the one with the focus is in brackets. */
function buttons(dialog: Dialog, room: number): Strip {
  const cancel = button('Cancel', dialog.focus === cancelAt(dialog));
  const action = button(dialog.action, dialog.focus === actionAt(dialog));
  const line = strip(cancel, '  ', action);
  return strip(' '.repeat(Math.max(0, room - widthOf(line))), line);
}

const button = (label: string, hasFocus: boolean) =>
  hasFocus ? text(`[ ${label} ]`, 'selected') : text(`  ${label}  `);
