/** Renders manual pages as plain text. It supports only the part of roff that the pages of llmp use. */
import { wrapped } from '../../config/wrapped.js';

const WIDTH = 80;
const INDENT = 7;
const BODY_OF_TERM = 14;

const SIGNS: Readonly<Record<string, string>> = { aq: "'", ga: '`', ha: '^', ti: '~' };

/** @param columns the width of the terminal, if there is one. */
export function plainPage(source: string, columns: number | undefined): string {
  const width = Math.min(columns || WIDTH, WIDTH);
  const lines: string[] = [];
  let indent = INDENT;
  let offset = 0;
  let isAsIs = false;
  let isTerm = false;
  let isBelowTitle = false;

  const put = (text: string, at: number) => {
    const words = isAsIs ? [text] : wrapped(text, Math.max(20, width - at));
    lines.push(...words.map((line) => ' '.repeat(at) + line));
  };
  for (const line of source.trimEnd().split('\n')) {
    const [, request, rest = ''] = /^\.([A-Za-z]+|\\")\s*(.*)$/.exec(line) ?? [];
    const text = unescaped(request === undefined ? line : rest);
    switch (request) {
      case 'TH':
        lines.push(rest.split(' ').slice(0, 2).join('(') + ')');
        break;
      case 'SH':
      case 'SS':
        if (!isBelowTitle) lines.push('');
        lines.push(request === 'SH' ? text : `   ${text}`);
        indent = INDENT;
        break;
      case 'PP':
      case 'TP':
        if (!isBelowTitle) lines.push('');
        indent = INDENT;
        isTerm = request === 'TP';
        break;
      case 'RS':
        offset = Number(rest);
        break;
      case 'RE':
        offset = 0;
        break;
      case 'nf':
      case 'fi':
        isAsIs = request === 'nf';
        break;
      case 'BR':
        put(text.replace(' (', '('), indent + offset);
        break;
      case undefined:
      case 'B':
      case 'I':
        put(text, indent + offset);
        break;
      default: // Layout requests.
        continue;
    }
    isBelowTitle = request === 'SH' || request === 'SS' || (isBelowTitle && (request === 'PP' || request === 'TP'));
    // The lines after a term are its explanation.
    if (isTerm && request !== 'TP') [indent, isTerm] = [BODY_OF_TERM, false];
  }
  return `${lines.join('\n')}\n`;
}

function unescaped(text: string): string {
  return text
    .replace(/\\f[BIR]|\\&/g, '')
    .replace(/\\\[u([0-9A-F]+)\]/g, (_, code: string) => String.fromCodePoint(parseInt(code, 16)))
    .replace(/\\\((..)/g, (sign, name: string) => SIGNS[name] ?? sign)
    .replaceAll('\\-', '-')
    .replaceAll('\\e', '\\');
}
