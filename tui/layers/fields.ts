/** Rendering of the fields of a dialog. */
import { choiceLines, topOf } from '../parts/choice.js';
import { edited } from '../parts/editing.js';
import { withFound } from '../parts/found.js';
import { exact } from '../../daemon/api/formats.js';
import { cut, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { chosenAt, choicesFound, isOpen } from '../state/chooser.js';
import { shownFields } from '../state/dialog.js';
import { lineOf } from '../state/line.js';
import { offersFound } from '../state/offers.js';
import type { Dialog, Field } from '../state/layers.js';

const FIELD_COLUMNS = 40;
/** Rows of the list of choices. More choices scroll. */
const LIST_ROWS = 6;
const LIST_COLUMNS = 44;

/** The lines of the fields. */
export interface FieldLines {
  lines: readonly Strip[];
  /** Index of the line with the focus; null: no field has it. */
  focus: number | null;
}

/** @param rows the most rows that a list of choices can have. */
export function fieldLines(dialog: Dialog, room: number, rows: number): FieldLines {
  const fields = shownFields(dialog);
  const label = labelWidth(fields);
  const lines: Strip[] = [];
  let focus: number | null = null;
  for (const [at, field] of fields.entries()) {
    const hasFocus = at === dialog.focus;
    if (hasFocus) focus = lines.length;
    lines.push(fieldLine(field, hasFocus, label, room));
    if (hasFocus && !isOpen(field)) lines.push(...offerLines(field, label + INDENT, room));
    if (!hasFocus || !isOpen(field)) continue;
    const list = choiceList(field, room - label - INDENT, Math.min(rows, LIST_ROWS));
    focus = lines.length + list.selected;
    lines.push(...list.lines.map((line) => strip(' '.repeat(label + INDENT), line)));
  }
  return { lines, focus };
}

/** Before the label of a field. */
const INDENT = 2;

/** Width of the widest field with its hint. */
export function widthOfFields(dialog: Dialog): number {
  const fields = shownFields(dialog);
  const label = labelWidth(fields);
  return Math.max(0, ...fields.map(({ width = FIELD_COLUMNS, hint = '' }) => label + width + 10 + text(hint).width));
}

const labelWidth = (fields: readonly Field[]) => Math.max(0, ...fields.map((field) => text(field.label).width + 1));

function fieldLine(field: Field, hasFocus: boolean, label: number, room: number): Strip {
  const name = text(`${field.label}:`);
  const head = strip(text(hasFocus ? '>' : ' ', 'accent'), ' ', name, ' '.repeat(label - name.width + 1));
  const left = room - widthOf(head);
  const value = field.choices ? choice(field, hasFocus, left) : input(field, hasFocus, left);
  const hint = strip(text(`  ${hintOf(field, hasFocus)}`, 'faint'));
  // A hint is shown only if it fits completely.
  const fits = widthOf(value) + widthOf(hint) <= left;
  return cut(strip(head, value, fits && hint), room);
}

function hintOf(field: Field, hasFocus: boolean): string {
  if (field.isToggle && hasFocus) return 'space changes it';
  const isSearchable = hasFocus && (field.choices?.length ?? 0) > 1 && !isOpen(field);
  return isSearchable ? 'type to search' : (field.hint ?? '');
}

/** What right takes, and what else is offered, as far as it fits. */
function offerLines(field: Field, indent: number, room: number): Strip[] {
  const [first, ...others] = offersFound(field);
  if (first === undefined) return [];
  const more = others.length === 0 ? '' : `  ${others.join(', ')}`;
  return [cut(strip(' '.repeat(indent), text('→ ', 'key'), first, text(more, 'faint')), room)];
}

/** The selected choice, or what is typed to narrow the open list. */
function choice(field: Field, hasFocus: boolean, room: number): Strip {
  const { choices = [], line, search } = field;
  if (search) {
    const place = `  ${exact(chosenAt(field) + 1)} of ${exact(choicesFound(field).length)}`;
    const columns = Math.max(1, Math.min(FIELD_COLUMNS, room - 4 - place.length));
    return strip(bracketed(edited(lineOf(search.typed), columns, { hasFocus }), hasFocus), text(place, 'faint'));
  }
  if (field.isToggle) {
    const edge = hasFocus ? 'key' : 'faint';
    return strip(
      text('[', edge),
      text(line.text === 'yes' ? 'x' : ' ', hasFocus ? 'selected' : 'plain'),
      text(']', edge),
    );
  }
  const chosen = choices.find(({ value }) => value === line.text)?.label ?? '';
  const hasOthers = choices.length > 1;
  return strip(
    text(hasOthers ? '← ' : '  ', hasFocus ? 'key' : 'faint'),
    cut(strip(text(chosen, hasFocus ? 'selected' : 'plain')), Math.max(8, room - 4)),
    text(hasOthers ? ' →' : '', hasFocus ? 'key' : 'faint'),
  );
}

/** The choices that contain the typed text. The list has the same height for any text, so that the dialog does not jump. */
function choiceList(field: Field, room: number, rows: number): { lines: Strip[]; selected: number } {
  const found = choicesFound(field);
  const words = [(field.search?.typed ?? '').toLowerCase()];
  const shown = Math.min(rows, field.choices?.length ?? 0);
  const at = chosenAt(field);
  const lines = choiceLines(
    found.map(({ label }) => withFound(label, words)),
    at,
    Math.min(LIST_COLUMNS, room),
    shown,
  );
  const blank = Array.from({ length: Math.max(0, shown - lines.length) }, (): Strip => []);
  return { lines: [...lines, ...blank], selected: at - topOf(found.length, at, shown) };
}

function input({ line, width = FIELD_COLUMNS, isSecret = false }: Field, hasFocus: boolean, room: number): Strip {
  const columns = Math.max(1, Math.min(width, room - 4));
  return bracketed(edited(line, columns, { hasFocus, isSecret }), hasFocus);
}

const bracketed = (typed: Strip, hasFocus: boolean): Strip =>
  strip(text('[ ', hasFocus ? 'key' : 'faint'), typed, text(' ]', hasFocus ? 'key' : 'faint'));
