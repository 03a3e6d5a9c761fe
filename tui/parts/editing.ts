/** A line of text that is being edited, in a field of some width. */
import type { Line } from '../state/line.js';
import { fitted, slice, strip, type Strip, text } from './strip.js';

/** @param hasFocus shows the caret. With `isSecret` bullets stand for what was typed. */
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
  // Without inverse there must be something to see at the end.
  const at = under === '' ? text('█', 'accent') : text(shown(under), 'caret');
  const line = strip(before, at, text(shown(rest.join(''))));
  const from = Math.max(0, before.width + at.width - columns);
  return fitted(slice(line, from, from + columns), columns);
}

/** A token's secret that got into a line where it does not belong is not shown; as long as before, so that the caret is right. */
const withoutSecret = (line: string) =>
  line.replace(/sk-wt-[\w-]*/gi, (secret) => secret.slice(0, 6) + '•'.repeat(secret.length - 6));
