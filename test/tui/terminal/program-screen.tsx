import { Text } from 'ink';
import stringWidth from 'string-width';
import type { Capabilities } from '../../../tui/terminal/capabilities.js';
import type { Size } from '../../../console/terminal-io.js';
import { SECRET } from './program-secret.js';

export interface ScreenProps {
  size: Size;
  heard: readonly string[];
  resizes: number;
  ticks: number;
  capabilities: Capabilities;
}

/** Fills the terminal, with a mark in each corner to make scrolling and cut lines visible. */
function Screen({ size: { columns, rows }, heard, resizes, ticks, capabilities }: ScreenProps) {
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
  return (
    <>
      <Text>{`${topLeft}${rule}${topRight}`}</Text>
      {[...body, 'last line'].map((line, row) => (
        <Text key={row}>
          {side}
          <Text color="red" bold={row === 0}>
            {fitted(line, columns - 2)}
          </Text>
          {side}
        </Text>
      ))}
      <Text>{`${bottomLeft}${rule}${bottomRight}`}</Text>
    </>
  );
}

function fitted(line: string, columns: number): string {
  const space = columns - stringWidth(line);
  return space >= 0 ? line + ' '.repeat(space) : line.slice(0, Math.max(0, columns));
}

function Broken(): never {
  throw new Error(`cannot be laid out with ${SECRET}`);
}

export const screen = (props: ScreenProps) => <Screen {...props} />;
export const broken = () => <Broken />;
