/** A field with choices: the arrows select the next one; typing opens a list of the choices and narrows it. */
import { inserted, EMPTY_LINE, lineOf } from './line.js';
import type { Field } from './layers.js';

export type FieldChoice = NonNullable<Field['choices']>[number];

/** A field after a key, and why the key had no effect. */
export interface Chosen {
  field: Field;
  problem: string | null;
}

/** Whether the list of choices is open. */
export const isOpen = ({ search }: Field) => search !== undefined;

/** The choices that contain the typed text; those that start with it come first. */
export function choicesFound({ choices = [], search }: Pick<Field, 'choices' | 'search'>): readonly FieldChoice[] {
  const part = (search?.typed ?? '').toLowerCase();
  const begins = choices.filter(({ label }) => label.toLowerCase().startsWith(part));
  const others = choices.filter((choice) => !begins.includes(choice) && choice.label.toLowerCase().includes(part));
  return [...begins, ...others];
}

/** Position of the selected choice among those found. */
export const chosenAt = (field: Field) =>
  Math.max(
    0,
    choicesFound(field).findIndex(({ value }) => value === field.line.text),
  );

const choose = (field: Field, choice: FieldChoice | undefined): Field =>
  choice ? { ...field, line: lineOf(choice.value) } : field;

/** Selects another choice in the open list. It stops at the ends. */
export function movedBy(field: Field, by: number): Field {
  const found = choicesFound(field);
  return choose(field, found[Math.max(0, Math.min(found.length - 1, chosenAt(field) + by))]);
}

/** Closes the list. The selected choice stays. */
export function closed({ search: _, ...field }: Field): Field {
  return field;
}

/** Closes the list, and restores the choice from before. */
export const abandoned = (field: Field): Field =>
  field.search ? closed({ ...field, line: lineOf(field.search.before) }) : field;

/** @returns undefined for a key without a meaning here. */
export function keyed(field: Field, key: string): Chosen | undefined {
  const { line, search } = field;
  if (field.isToggle) return toggled(field, key);
  if (key === 'left' || key === 'right') return { field: turned(field, key === 'left' ? -1 : 1), problem: null };
  if (search && key === 'backspace') return narrowed(field, Array.from(search.typed).slice(0, -1).join(''));
  if (search && key === 'ctrl+u') return narrowed(field, '');
  if (key === 'space' && !search)
    return { field: { ...field, search: { typed: '', before: line.text } }, problem: null };
  const letter = key === 'space' ? ' ' : key;
  return Array.from(letter).length === 1 ? narrowed(field, (search?.typed ?? '') + letter) : undefined;
}

/** Yes and no have no list. */
function toggled(field: Field, key: string): Chosen | undefined {
  if (key === 'left' || key === 'right' || key === 'space') return { field: turned(field, 1), problem: null };
  if (Array.from(key).length !== 1) return undefined;
  const choice = field.choices?.find(({ label }) => label.startsWith(key.toLowerCase()));
  return { field: choose(field, choice), problem: choice ? null : `Press space to change “${field.label}”` };
}

/** Pasted text narrows the list as if it were typed. */
export function pastedInto(field: Field, text: string): Chosen {
  if (field.isToggle) return { field, problem: `Press space to change “${field.label}”` };
  const { text: given } = inserted(EMPTY_LINE, text);
  return narrowed(field, (field.search?.typed ?? '') + given);
}

/** Selects the next or the previous choice. After the last one follows the first. */
function turned(field: Field, by: number): Field {
  const found = choicesFound(field);
  return choose(field, found[(chosenAt(field) + by + found.length) % found.length]);
}

/** Opens the list, and narrows it to the choices that contain the text. A text that would leave no choice is rejected. */
function narrowed(field: Field, typed: string): Chosen {
  const search = { typed, before: field.search?.before ?? field.line.text };
  const found = choicesFound({ ...field, search });
  const [first] = found;
  if (!first) return { field, problem: `No match for “${typed}” in ${field.label}` };
  // The selected choice stays while no other one matches better.
  const begins = ({ label }: FieldChoice) => label.toLowerCase().startsWith(typed.toLowerCase());
  const selected = found.find(({ value }) => value === field.line.text);
  const next = selected && begins(selected) === begins(first) ? selected : first;
  return { field: choose({ ...field, search }, next), problem: null };
}
