/** What keys do in a dialog: from field to field, in the line of one, and between the buttons. */
import type { Dialog, Field } from './state.js';
import { concealed, edited, EMPTY_LINE, inserted, lineOf } from './line.js';

/** What is wrong with what was filled in. */
export interface Problem {
  /** Null: none of the fields alone. */
  field: string | null;
  words: string;
}

type Draft = Omit<Dialog, 'kind' | 'more' | 'items' | 'notes' | 'fields' | 'focus' | 'problem'> &
  Partial<Pick<Dialog, 'more' | 'items' | 'notes' | 'fields'>>;

/** With the focus on its first field, or on Cancel where there are none that must be filled in. */
export function dialogOf(draft: Draft, first: 'field' | 'cancel'): Dialog {
  const fields = draft.fields ?? [];
  const focus = first === 'field' ? 0 : fields.length;
  return { kind: 'dialog', more: 0, items: [], notes: [], ...draft, fields, focus, problem: null };
}

export const textField = (name: string, label: string, given: Partial<Field> = {}): Field => ({
  name,
  label,
  line: EMPTY_LINE,
  ...given,
});

export const choiceField = (
  name: string,
  label: string,
  choices: NonNullable<Field['choices']>,
  chosen?: string,
): Field => ({
  name,
  label,
  choices,
  line: lineOf(chosen ?? choices[0]?.value ?? ''),
});

export const valueOf = ({ fields }: Dialog, name: string): string =>
  fields.find((field) => field.name === name)?.line.text ?? '';

export const shownFields = (dialog: Dialog): readonly Field[] =>
  dialog.fields.filter(({ onlyIf }) => !onlyIf || valueOf(dialog, onlyIf.field) === onlyIf.value);

export const cancelAt = (dialog: Dialog) => shownFields(dialog).length;
export const actionAt = (dialog: Dialog) => shownFields(dialog).length + 1;
export const focused = (dialog: Dialog): Field | undefined => shownFields(dialog)[dialog.focus];

/** Whether letters go into a line, so that they mean nothing else. */
export const takesText = (dialog: Dialog) => {
  const field = focused(dialog);
  return field !== undefined && field.choices === undefined;
};

export function focusBy(dialog: Dialog, by: number): Dialog {
  const places = shownFields(dialog).length + 2;
  return { ...dialog, focus: (dialog.focus + by + places) % places, problem: null };
}

/** After a field is filled in: to the next, and from the last to what they are for; but a purge is not begun by Enter alone. */
export function onward(dialog: Dialog): Dialog {
  if (dialog.focus + 1 < cancelAt(dialog)) return focusBy(dialog, 1);
  const isPurge = dialog.purpose.for === 'purge';
  return { ...dialog, focus: isPurge ? cancelAt(dialog) : actionAt(dialog), problem: null };
}

/** Says what is wrong, in the field that it is about. */
export function refused(dialog: Dialog, { field, words }: Problem): Dialog {
  const at = shownFields(dialog).findIndex(({ name }) => name === field);
  return { ...dialog, problem: words, focus: at === -1 ? dialog.focus : at };
}

/** @returns undefined for a key that means nothing there. */
export function typed(dialog: Dialog, key: string): Dialog | undefined {
  const field = focused(dialog);
  if (!field) {
    if (key === 'left' || key === 'right') return focusBy(dialog, key === 'left' ? -1 : 1);
    return undefined;
  }
  const line = field.choices ? chosen(field, key) : edited(field.line, key);
  return line && withFocused(dialog, { ...field, line });
}

export function pasted(dialog: Dialog, text: string): Dialog {
  const field = focused(dialog);
  // The end of a file that was copied is no part of the one line.
  return field && !field.choices
    ? withFocused(dialog, { ...field, line: inserted(field.line, text.replace(/[\r\n]+$/, '')) })
    : dialog;
}

function withFocused(dialog: Dialog, field: Field): Dialog {
  const kept = field.isSecret ? { ...field, line: concealed(field.line) } : field;
  const fields = dialog.fields.map((other) => (other.name === field.name ? kept : other));
  return { ...dialog, problem: null, fields };
}

/** The next choice with an arrow, or the next that begins with the letter. */
function chosen({ choices = [], line }: Field, key: string) {
  const at = choices.findIndex(({ value }) => value === line.text);
  const by = key === 'left' ? -1 : key === 'right' || key === 'space' ? 1 : 0;
  if (by !== 0) return lineOf(choices[(at + by + choices.length) % choices.length]?.value ?? line.text);
  if (key.length !== 1) return undefined;
  const turned = [...choices.slice(at + 1), ...choices.slice(0, at + 1)];
  const found = turned.find(({ label }) => label.toLowerCase().startsWith(key.toLowerCase()));
  return found && lineOf(found.value);
}
