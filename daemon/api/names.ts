/** What a name of a project or token may contain. `plainName` in vocabulary.ts is the form in which it is stored. */
import { holdsSecret, MAX_NAME_LENGTH, plainName } from './vocabulary.js';

/**
 * Control characters could forge log lines or control a terminal, and half of a surrogate pair has no encoding in UTF-8. Characters that
 * change the writing direction, or that nobody sees, make two names look alike: of those only the joiners, variation selectors and tags
 * of emoji and of several scripts are allowed.
 */
const ALLOWED =
  '(?:\\u200c|\\u200d|[\\ufe00-\\ufe0f\\u{e0020}-\\u{e007f}]|(?!\\p{Default_Ignorable_Code_Point})[^\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Bidi_Control}])';
/** The last one is the empty cell of braille. */
const VISIBLE = '(?!\\p{Default_Ignorable_Code_Point}|\\u2800)[\\p{L}\\p{N}\\p{P}\\p{S}]';
const NAME = new RegExp(`^(?=.*${VISIBLE})${ALLOWED}{1,${MAX_NAME_LENGTH}}$`, 'u');
const CHARACTER = new RegExp(`^${ALLOWED}$`, 'u');

/** @param text in its stored form. The limit counts characters, not UTF-16 units. */
export const isName = (text: string): boolean => NAME.test(text) && !holdsSecret(text);

/** A name from any text: without the characters that are not allowed. It can be empty, or longer than a name. */
export const typableName = (text: string): string =>
  plainName(Array.from(text, (character) => (CHARACTER.test(character) ? character : '')).join(''));
