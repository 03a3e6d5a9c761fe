/** Key handling in dialogs: moving between fields and buttons, and editing a field. */
import type { Dialog, Field, Label } from './state.js';
import { concealed, edited, EMPTY_LINE, inserted, lineOf } from './line.js';

/** An invalid value. */
export interface Problem {
  /** The invalid field; null if no single field is to blame. */
  field: Label | null;
  words: string;
}

type Draft = Omit<Dialog, 'kind' | 'more' | 'items' | 'notes' | 'fields' | 'focus' | 'scrolled' | 'problem'> &
  Partial<Pick<Dialog, 'more' | 'items' | 'notes' | 'fields'>>;

/** Creates a dialog. The focus is on the first field, or on Cancel if no field is required. */
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

/** Label of the field for the confirmation word. */
export const confirmationOf = (word: string) => `Type ${word} to confirm` as const;

/** Whether the focused element takes text, so that letters are not commands. */
export const takesText = (dialog: Dialog) => {
  const field = focused(dialog);
  return field !== undefined && field.choices === undefined;
};

export function focusBy(dialog: Dialog, by: number): Dialog {
  const places = shownFields(dialog).length + 2;
  // Leaving a field ends the search among its choices.
  const fields = dialog.fields.map((field) => (field.search === undefined ? field : { ...field, search: '' }));
  return { ...dialog, fields, focus: (dialog.focus + by + places) % places, problem: null };
}

/** Scrolls the text of a dialog that does not fit. The limit is an estimate, so it may scroll past the end of the text. */
export function scrolledBy(dialog: Dialog, by: number): Dialog {
  const most = dialog.items.length + 4 * dialog.notes.length + dialog.fields.length + 4;
  // A focused field is always scrolled into view, so the focus moves to a button to read the text.
  const focus = dialog.focus < cancelAt(dialog) ? cancelAt(dialog) : dialog.focus;
  const scrolled = Math.max(0, Math.min(most, dialog.scrolled + by));
  return focus === dialog.focus && scrolled === dialog.scrolled ? dialog : { ...dialog, focus, scrolled };
}

/** Moves from a field to the next one, and from the last field to the action. For a purge it moves to Cancel: Enter alone must not purge. */
export function advanced(dialog: Dialog): Dialog {
  if (dialog.focus + 1 < cancelAt(dialog)) return focusBy(dialog, 1);
  const isPurge = dialog.purpose.for === 'purge';
  return { ...dialog, focus: isPurge ? cancelAt(dialog) : actionAt(dialog), problem: null };
}

/** Shows a problem, and focuses its field. */
export function refused(dialog: Dialog, { field, words }: Problem): Dialog {
  const at = shownFields(dialog).findIndex(({ label }) => label === field);
  return { ...dialog, problem: words, focus: at === -1 ? dialog.focus : at };
}

/** @returns undefined for a key without a meaning here. */
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
  // A trailing newline of copied text is not part of the value.
  return field && !field.choices
    ? withFocused(dialog, { ...field, line: inserted(field.line, text.replace(/[\r\n]+$/, '')) })
    : dialog;
}

function withFocused(dialog: Dialog, field: Field): Dialog {
  const kept = field.isSecret ? { ...field, line: concealed(field.line) } : field;
  const fields = dialog.fields.map((other) => (other.label === field.label ? kept : other));
  return { ...dialog, problem: null, fields };
}

type FieldChoice = NonNullable<Field['choices']>[number];

/** The choices that contain the search text; those that start with it come first. */
export function choicesFound({ choices = [], search = '' }: Pick<Field, 'choices' | 'search'>): readonly FieldChoice[] {
  const part = search.toLowerCase();
  const begins = choices.filter(({ label }) => label.toLowerCase().startsWith(part));
  const others = choices.filter((choice) => !begins.includes(choice) && choice.label.toLowerCase().includes(part));
  return [...begins, ...others];
}

/**
 * An arrow selects the next choice. Letters search: they narrow the choices to those that contain all of the typed text. A letter
 * that would leave no choice is rejected, so that the selection never jumps to a choice that does not match.
 */
function chosen(field: Field, key: string): { field: Field; problem: string | null } | undefined {
  const { line, search = '' } = field;
  if (key === 'backspace' || key === 'ctrl+u') {
    const rest = key === 'backspace' ? Array.from(search).slice(0, -1).join('') : '';
    return { field: { ...field, search: rest }, problem: null };
  }
  const letter = key === 'space' ? ' ' : key;
  const by = key === 'left' ? -1 : key === 'right' || (key === 'space' && search === '') ? 1 : 0;
  if (by !== 0) {
    const found = choicesFound(field);
    const at = found.findIndex(({ value }) => value === line.text);
    const next = found[(at + by + found.length) % found.length];
    return { field: { ...field, line: lineOf(next?.value ?? line.text) }, problem: null };
  }
  if (Array.from(letter).length !== 1) return undefined;
  const typed = search + letter;
  const found = choicesFound({ ...field, search: typed });
  const [first] = found;
  if (!first) return { field, problem: `No ${field.label.toLowerCase()} has “${typed}” in its name` };
  // The selected choice stays while no other one matches better.
  const begins = ({ label }: FieldChoice) => label.toLowerCase().startsWith(typed.toLowerCase());
  const kept = found.find(({ value }) => value === line.text);
  const next = kept && begins(kept) === begins(first) ? kept : first;
  return { field: { ...field, search: typed, line: lineOf(next.value) }, problem: null };
}
