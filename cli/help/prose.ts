/** Documentation text as data. Help renders it for a terminal, and the manual as roff and Markdown. */

import { wrapped } from '../../config/wrapped.js';

/** A paragraph; `words in backquotes` are set in bold or as code. */
export type Block =
  | string
  | { entries: readonly (readonly [term: string, text: string])[] }
  /** Preformatted lines, such as commands to copy. */
  | { lines: readonly string[] };

export const terms = (texts: Readonly<Record<string, string>>): Block => ({ entries: Object.entries(texts) });

const LONGEST_LINE = 100;
const WIDEST_TERM = 32;
const NARROWEST_TEXT = 24;
const INDENT = '  ';

/** The terminal's width, limited to a comfortable line length. */
export const readableWidth = (columns: number | undefined) => Math.min(columns || LONGEST_LINE, LONGEST_LINE);

export const textOf = (blocks: readonly Block[], width: number) =>
  blocks.map((block) => linesOf(block, width).join('\n')).join('\n\n');

function linesOf(block: Block, width: number): string[] {
  if (typeof block === 'string') return wrapped(block, width);
  return 'lines' in block ? block.lines.map((line) => INDENT + line) : columnsOf(block.entries, width);
}

/** Two columns: terms and their explanations. */
export function columnsOf(entries: readonly (readonly [term: string, text: string])[], width: number): string[] {
  const widest = Math.min(WIDEST_TERM, Math.max(...entries.map(([term]) => term.length)));
  const indent = INDENT.length + widest + INDENT.length;
  return entries.flatMap(([term, text]) => {
    const [first = '', ...others] = wrapped(text, Math.max(NARROWEST_TEXT, width - indent));
    const beside = others.map((line) => `${' '.repeat(indent)}${line}`);
    // A term that is too long for its column gets its own line.
    if (term.length > widest) return [INDENT + term, `${' '.repeat(indent)}${first}`, ...beside];
    return [`${INDENT}${term.padEnd(widest)}${INDENT}${first}`.trimEnd(), ...beside];
  });
}
