/** What a field with a list offers for the part of the list that is being typed. */
import type { Field } from './layers.js';
import { lineOf } from './line.js';

/** The offers that contain the part at the end of the line and are not in the list yet; those that begin with it come first. */
export function offersFound({ offers = [], line: { text, caret } }: Field): readonly string[] {
  if (caret < text.length) return [];
  const parts = text.split(',').map((part) => part.trim());
  const begun = (parts.at(-1) ?? '').toLowerCase();
  const open = offers.filter((offer) => !parts.includes(offer) && offer.toLowerCase().includes(begun));
  const begins = (offer: string) => offer.toLowerCase().startsWith(begun);
  return [...open.filter(begins), ...open.filter((offer) => !begins(offer))];
}

/** @returns undefined if nothing is offered. */
export function withFirstOffer(field: Field): Field | undefined {
  const [first] = offersFound(field);
  if (first === undefined) return undefined;
  const [before = ''] = /^.*,\s*/s.exec(field.line.text) ?? [];
  return { ...field, line: lineOf(before + first) };
}
