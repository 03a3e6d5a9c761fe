import stringWidth from 'string-width';

// Style sequences, such as colours: the only sequences that are let through.
const STYLE = /\x1b\[[\d:;]*m/; // eslint-disable-line no-control-regex
// All other sequences, even incomplete ones, and control characters: they would move the cursor or control the terminal.
const CONTROL =
  /\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b.?|[\x00-\x1f\x7f-\x9f\u2028\u2029]/; // eslint-disable-line no-control-regex
const TOKENS = new RegExp(`(${STYLE.source})|(${CONTROL.source})`, 'gu');
const PLAIN = '\x1b[0m';

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** Converts to ASCII: a terminal without UTF-8 would read other text as single bytes, some of which are control codes. */
function asAscii(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  return [...graphemes.segment(text)]
    .map(({ segment }) => (/^[\x20-\x7e]$/.test(segment) ? segment : '?'.repeat(stringWidth(segment))))
    .join('');
}

function cut(text: string, columns: number): string {
  let width = 0;
  let end = 0;
  for (const { segment, index } of graphemes.segment(text)) {
    width += stringWidth(segment);
    if (width > columns) break;
    end = index + segment.length;
  }
  return text.slice(0, end);
}

/**
 * Makes a line of a frame safe for the terminal: no wider than `columns`, colours reset at its end, and no control characters or
 * sequences except colours, even in untrusted text.
 */
export function fitLine(line: string, columns: number, isUtf8: boolean): string {
  let room = columns;
  let fitted = '';
  let isStyled = false;
  let from = 0;
  const take = (text: string) => {
    if (text === '' || room <= 0) return;
    const shown = isUtf8 ? text : asAscii(text);
    const width = stringWidth(shown);
    fitted += width > room ? cut(shown, room) : shown;
    room -= width;
  };
  for (const match of line.matchAll(TOKENS)) {
    take(line.slice(from, match.index));
    from = match.index + match[0].length;
    const style = match[1];
    if (style === undefined) continue;
    fitted += style;
    isStyled = true;
  }
  take(line.slice(from));
  return isStyled ? fitted + PLAIN : fitted;
}
