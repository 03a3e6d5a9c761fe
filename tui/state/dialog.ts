/** Key handling in dialogs: moving between fields and buttons, and editing a field. */
import type { Dialog, Field, Label } from './layers.js';
import * as chooser from './chooser.js';
import { withFirstOffer } from './offers.js';
import { concealed, edited, EMPTY_LINE, inserted, isTextKey, lineOf } from './line.js';

/** An invalid value. */
export interface Problem {
  /** The invalid field; null if no single field is to blame. */
  field: Label | null;
  words: string;
}

type Draft = Omit<Dialog, 'kind' | 'more' | 'items' | 'notes' | 'fields' | 'focus' | 'scrolled' | 'problem'> &
  Partial<Pick<Dialog, 'more' | 'items' | 'notes' | 'fields'>>;

/** Creates a dialog. The focus is on the first field that leaves a choice, or on a button if no field is required. */
export function dialogOf(draft: Draft, first: 'field' | 'cancel' | 'action' = 'field'): Dialog {
  const fields = draft.fields ?? [];
  const button = first === 'cancel' ? fields.length : fields.length + 1;
  const focus = first === 'field' ? Math.max(0, fields.findIndex(isEditable)) : button;
  return { kind: 'dialog', more: 0, items: [], notes: [], ...draft, fields, focus, scrolled: 0, problem: null };
}

export const note = (words: string) => ({ words, isWarning: false });
export const warning = (words: string) => ({ words, isWarning: true });

const isText = ({ choices }: Field) => choices === undefined;
const isEditable = ({ choices }: Field) => choices === undefined || choices.length > 1;

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

/** On or off. */
export const toggleField = (label: Label, isSet: boolean, hint: string): Field => ({
  ...choiceField(
    label,
    [
      { value: 'yes', label: 'yes' },
      { value: 'no', label: 'no' },
    ],
    isSet ? 'yes' : 'no',
  ),
  isToggle: true,
  hint,
  width: 3,
});

export const isOn = (dialog: Dialog, label: Label) => valueOf(dialog, label) === 'yes';

export const reasonField = (text = '') =>
  textField('Reason', { line: lineOf(text), hint: 'for the audit record', width: 40 });

export const valueOf = ({ fields }: Dialog, label: Label): string =>
  fields.find((field) => field.label === label)?.line.text ?? '';

export const shownFields = (dialog: Dialog): readonly Field[] =>
  dialog.fields.filter((field) => isShown(dialog, field));

/** A field that depends on one that is not shown is not shown either. */
function isShown(dialog: Dialog, { onlyIf }: Field): boolean {
  if (!onlyIf) return true;
  const other = dialog.fields.find(({ label }) => label === onlyIf.field);
  return other !== undefined && onlyIf.among.includes(other.line.text) && isShown(dialog, other);
}

export const cancelAt = (dialog: Dialog) => shownFields(dialog).length;
export const actionAt = (dialog: Dialog) => shownFields(dialog).length + 1;
export const focused = (dialog: Dialog): Field | undefined => shownFields(dialog)[dialog.focus];

/** Label of the field for the confirmation word. */
export const confirmationOf = (word: string) => `Type ${word} to confirm` as const;

/** Whether the list of choices of the focused field is open. */
export const hasOpenList = (dialog: Dialog) => {
  const field = focused(dialog);
  return field !== undefined && chooser.isOpen(field);
};

/** Whether the focused element takes text, so that letters are not commands. */
export const takesText = (dialog: Dialog) => {
  const field = focused(dialog);
  return field !== undefined && (isText(field) || chooser.isOpen(field));
};

export function focusBy(dialog: Dialog, by: number): Dialog {
  const places = shownFields(dialog).length + 2;
  const fields = dialog.fields.map(chooser.closed);
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

/**
 * Moves from a field to the next one, and from the last field to the action. For a purge it moves to Cancel: Enter alone must not purge.
 * What can be on or off is skipped, because Enter there could be meant to change it.
 */
export function advanced(dialog: Dialog): Dialog {
  const next = shownFields(dialog).findIndex(({ isToggle }, at) => at > dialog.focus && !isToggle);
  if (next !== -1) return focusBy(dialog, next - dialog.focus);
  const isPurge = dialog.purpose.for === 'purge';
  const fields = dialog.fields.map(chooser.closed);
  return { ...dialog, fields, focus: isPurge ? cancelAt(dialog) : actionAt(dialog), problem: null };
}

/** Shows a problem, and focuses its field. */
export function refused(dialog: Dialog, { field, words }: Problem): Dialog {
  const at = shownFields(dialog).findIndex(({ label }) => label === field);
  return { ...dialog, problem: words, meantField: null, focus: at === -1 ? dialog.focus : at };
}

/** @returns undefined for a key without a meaning here. */
export function typed(dialog: Dialog, key: string): Dialog | undefined {
  const field = focused(dialog);
  if (!field) {
    if (key === 'left' || key === 'right') return focusBy(dialog, key === 'left' ? -1 : 1);
    const inText = isTextKey(key) ? onFirstText(dialog) : undefined;
    return inText && typed(inText, key);
  }
  if (field.choices) {
    const next = chooser.keyed(field, key);
    return next && withChosen(dialog, next);
  }
  const offered = key === 'right' ? withFirstOffer(field) : undefined;
  if (offered) return withFocused(dialog, offered);
  const line = edited(field.line, key);
  return line && withFocused(dialog, { ...field, line });
}

export function pasted(dialog: Dialog, text: string): Dialog {
  const field = focused(dialog);
  if (!field) {
    const inText = onFirstText(dialog);
    return inText ? pasted(inText, text) : dialog;
  }
  // A trailing newline of copied text is not part of the value.
  const clean = text.replace(/[\r\n]+$/, '');
  if (field.choices) return withChosen(dialog, chooser.pastedInto(field, clean));
  return withFocused(dialog, { ...field, line: inserted(field.line, clean) });
}

/** Moves the focus from a button to the first field that takes text, because what is typed there must not be lost. */
function onFirstText(dialog: Dialog): Dialog | undefined {
  const focus = shownFields(dialog).findIndex(isText);
  return focus === -1 ? undefined : { ...dialog, focus, problem: null };
}

/** Selects another choice in the open list. */
export function selectedBy(dialog: Dialog, by: number): Dialog {
  const field = focused(dialog);
  return field ? withFocused(dialog, chooser.movedBy(field, by)) : dialog;
}

/** Closes the open list, and restores the choice from before. */
export function listAbandoned(dialog: Dialog): Dialog {
  const field = focused(dialog);
  return field ? withFocused(dialog, chooser.abandoned(field)) : dialog;
}

/** If the list did not open because nothing matches, the text may be meant for the next field. */
function withChosen(dialog: Dialog, { field, problem }: chooser.Chosen): Dialog {
  const next = shownFields(dialog)[dialog.focus + 1];
  const meantField = next && !chooser.isOpen(field) ? next.label : null;
  return { ...withFocused(dialog, field), problem, meantField };
}

function withFocused(dialog: Dialog, field: Field): Dialog {
  const kept = field.isSecret ? { ...field, line: concealed(field.line) } : field;
  const fields = dialog.fields.map((other) => (other.label === field.label ? kept : other));
  return { ...dialog, problem: null, fields };
}
