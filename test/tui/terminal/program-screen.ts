import stringWidth from 'string-width';
import type { Capabilities } from '../../../tui/terminal/capabilities.js';
import type { Size } from '../../../console/terminal-io.js';

export interface ScreenProps {
  size: Size;
  heard: readonly string[];
  resizes: number;
  ticks: number;
  capabilities: Capabilities;
}

/** Fills the terminal, with a mark in each corner to make scrolling and cut lines visible. */
export function screen({ size: { columns, rows }, heard, resizes, ticks, capabilities }: ScreenProps): string[] {
  const { colours, hasSymbols, isUtf8, hasMotion } = capabilities;
  const [corners, edge, side] = hasSymbols ? ['╭╮╰╯', '─', '│'] : ['++++', '-', '|'];
  const [topLeft, topRight, bottomLeft, bottomRight] = Array.from(corners);
  const rule = edge.repeat(Math.max(0, columns - 2));
  const inside = [
    `size ${columns}x${rows} resizes ${resizes} ticks ${ticks}`,
    `colours ${colours} symbols ${hasSymbols} utf8 ${isUtf8} motion ${hasMotion} ż日本語`,
    `inputs ${heard.length}`,
    ...heard.flatMap((text) => `heard ${text}`.split('\n')).slice(-Math.max(1, rows - 6)),
  ];
  const body = Array.from({ length: Math.max(0, rows - 3) }, (_, row) => inside[row] ?? '');
  return [
    `${topLeft}${rule}${topRight}`,
    ...[...body, 'last line'].map((line, row) => side + red(fitted(line, columns - 2), row === 0) + side),
    `${bottomLeft}${rule}${bottomRight}`,
  ];

  function red(line: string, isBold: boolean): string {
    if (colours === 'none') return line;
    return `\x1b[${isBold ? '1;31' : '31'}m${line}\x1b[0m`;
  }
}

function fitted(line: string, columns: number): string {
  const space = columns - stringWidth(line);
  return space >= 0 ? line + ' '.repeat(space) : line.slice(0, Math.max(0, columns));
}
