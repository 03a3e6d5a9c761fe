/** Rendering of an input line in a field of fixed width. */
import type { Line } from '../state/line.js';
import { fitted, slice, strip, type Strip, text } from './strip.js';

/** Shows the caret with `hasFocus`, and bullets instead of the text with `isSecret`. */
export function edited(
  { text: given, caret }: Line,
  columns: number,
  { hasFocus, isSecret = false }: { hasFocus: boolean; isSecret?: boolean },
): Strip {
  const whole = withoutSecret(given);
  const shown = (part: string) => (isSecret ? '•'.repeat(Array.from(part).length) : part);
  const before = text(shown(whole.slice(0, caret)));
  if (!hasFocus) return fitted([text(shown(whole))], columns);
  const [under = '', ...rest] = [...new Intl.Segmenter().segment(whole.slice(caret))].map(({ segment }) => segment);
  // At the end of the text the caret is a block, visible even without inverse video.
  const at = under === '' ? text('█', 'accent') : text(shown(under), 'caret');
  const line = strip(before, at, text(shown(rest.join(''))));
  const from = Math.max(0, before.width + at.width - columns);
  return fitted(slice(line, from, from + columns), columns);
}

/** Masks the secret of a token, an operator or a session that was typed or pasted, but not what is shown of one, such as `sk-wt-4esc…Jgwc`. The length stays the same, so that the caret is right. */
const withoutSecret = (line: string) =>
  line.replace(/sk-(?:wt|op|ss)-[\w-]{5,}/gi, (secret) => secret.slice(0, 6) + '•'.repeat(secret.length - 6));
