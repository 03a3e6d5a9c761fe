/** What keys do in a dialog: from field to field, in the line of one, and between the buttons. */
import type { Dialog, Field, Label } from './state.js';
import { concealed, edited, EMPTY_LINE, inserted, lineOf } from './line.js';

/** What is wrong with what was filled in. */
export interface Problem {
  /** Null: none of the fields alone. */
  field: Label | null;
  words: string;
}

type Draft = Omit<Dialog, 'kind' | 'more' | 'items' | 'notes' | 'fields' | 'focus' | 'scrolled' | 'problem'> &
  Partial<Pick<Dialog, 'more' | 'items' | 'notes' | 'fields'>>;

/** With the focus on its first field, or on Cancel where there are none that must be filled in. */
export function dialogOf(draft: Draft, first: 'field' | 'cancel'): Dialog {
  const fields = draft.fields ?? [];
  const focus = first === 'field' ? 0 : fields.length;
  return { kind: 'dialog', more: 0, items: [], notes: [], ...draft, fields, focus, scrolled: 0, problem: null };
}

export const textField = (label: Label, given: Partial<Field> = {}): Field => ({
  label,
  line: EMPTY_LINE,
  ...given,
});

export const choiceField = (label: Label, choices: NonNullable<Field['choices']>, chosen?: string): Field => ({
  label,
  choices,
  line: lineOf(chosen ?? choices[0]?.value ?? ''),
});

export const valueOf = ({ fields }: Dialog, label: Label): string =>
  fields.find((field) => field.label === label)?.line.text ?? '';

export const shownFields = (dialog: Dialog): readonly Field[] =>
  dialog.fields.filter(({ onlyIf }) => !onlyIf || valueOf(dialog, onlyIf.field) === onlyIf.value);

export const cancelAt = (dialog: Dialog) => shownFields(dialog).length;
export const actionAt = (dialog: Dialog) => shownFields(dialog).length + 1;
export const focused = (dialog: Dialog): Field | undefined => shownFields(dialog)[dialog.focus];

/** What is typed before much is changed. */
export const confirmationOf = (word: string) => `Type ${word} to confirm` as const;

/** Whether letters go into a line, so that they mean nothing else. */
export const takesText = (dialog: Dialog) => {
  const field = focused(dialog);
  return field !== undefined && field.choices === undefined;
};

export function focusBy(dialog: Dialog, by: number): Dialog {
  const places = shownFields(dialog).length + 2;
  // What was typed to find a choice is over with it.
  const fields = dialog.fields.map((field) => (field.sought === undefined ? field : { ...field, sought: '' }));
  return { ...dialog, fields, focus: (dialog.focus + by + places) % places, problem: null };
}

/** Where there is no room for all of its text. It may be scrolled further than there is text, so the bound is generous. */
export function scrolledBy(dialog: Dialog, by: number): Dialog {
  const most = dialog.items.length + 4 * dialog.notes.length + dialog.fields.length + 4;
  // A field that is filled in is always in sight; a button leaves the text to be read.
  const focus = dialog.focus < cancelAt(dialog) ? cancelAt(dialog) : dialog.focus;
  const scrolled = Math.max(0, Math.min(most, dialog.scrolled + by));
  return focus === dialog.focus && scrolled === dialog.scrolled ? dialog : { ...dialog, focus, scrolled };
}

/** After a field is filled in: to the next, and from the last to what they are for; but a purge is not begun by Enter alone. */
export function onward(dialog: Dialog): Dialog {
  if (dialog.focus + 1 < cancelAt(dialog)) return focusBy(dialog, 1);
  const isPurge = dialog.purpose.for === 'purge';
  return { ...dialog, focus: isPurge ? cancelAt(dialog) : actionAt(dialog), problem: null };
}

/** Says what is wrong, in the field that it is about. */
export function refused(dialog: Dialog, { field, words }: Problem): Dialog {
  const at = shownFields(dialog).findIndex(({ label }) => label === field);
  return { ...dialog, problem: words, focus: at === -1 ? dialog.focus : at };
}

/** @returns undefined for a key that means nothing there. */
export function typed(dialog: Dialog, key: string): Dialog | undefined {
  const field = focused(dialog);
  if (!field) {
    if (key === 'left' || key === 'right') return focusBy(dialog, key === 'left' ? -1 : 1);
    return undefined;
  }
  if (field.choices) {
    const next = chosen(field, key);
    return next && { ...withFocused(dialog, next.field), problem: next.problem };
  }
  const line = edited(field.line, key);
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
  const fields = dialog.fields.map((other) => (other.label === field.label ? kept : other));
  return { ...dialog, problem: null, fields };
}

type Choice = NonNullable<Field['choices']>[number];

/** The choices that hold what was typed: those that begin with it first. */
export function choicesFound({ choices = [], sought = '' }: Pick<Field, 'choices' | 'sought'>): readonly Choice[] {
  const part = sought.toLowerCase();
  const begins = choices.filter(({ label }) => label.toLowerCase().startsWith(part));
  const others = choices.filter((choice) => !begins.includes(choice) && choice.label.toLowerCase().includes(part));
  return [...begins, ...others];
}

/**
 * The next choice with an arrow; or letters, one after the other, narrow the choices to those that hold all that was typed.
 * A letter after which none would be left is not taken, so that what is chosen never jumps to something that was not typed.
 */
function chosen(field: Field, key: string): { field: Field; problem: string | null } | undefined {
  const { line, sought = '' } = field;
  if (key === 'backspace' || key === 'ctrl+u') {
    const rest = key === 'backspace' ? Array.from(sought).slice(0, -1).join('') : '';
    return { field: { ...field, sought: rest }, problem: null };
  }
  const letter = key === 'space' ? ' ' : key;
  const by = key === 'left' ? -1 : key === 'right' || (key === 'space' && sought === '') ? 1 : 0;
  if (by !== 0) {
    const found = choicesFound(field);
    const at = found.findIndex(({ value }) => value === line.text);
    const next = found[(at + by + found.length) % found.length];
    return { field: { ...field, line: lineOf(next?.value ?? line.text) }, problem: null };
  }
  if (Array.from(letter).length !== 1) return undefined;
  const typed = sought + letter;
  const found = choicesFound({ ...field, sought: typed });
  const [first] = found;
  if (!first) return { field, problem: `There is no ${field.label.toLowerCase()} with “${typed}” in its name` };
  // The one that was chosen stays while it fits as well as any.
  const begins = ({ label }: Choice) => label.toLowerCase().startsWith(typed.toLowerCase());
  const kept = found.find(({ value }) => value === line.text);
  const next = kept && begins(kept) === begins(first) ? kept : first;
  return { field: { ...field, sought: typed, line: lineOf(next.value) }, problem: null };
}
