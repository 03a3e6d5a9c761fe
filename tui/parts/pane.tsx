/** A pane: a frame with a title at the top, a note at the bottom and a scroll bar at the right edge, around what is in it. */
import { Box, type BoxProps } from 'ink';
import type { ReactNode } from 'react';
import { Drawing, Lines } from './drawing.js';
import type { Role } from './roles.js';
import { blank, cut, strip, type Strip, text, widthOf } from './strip.js';

export interface PaneProps extends BoxProps {
  title?: Strip;
  /** Note in the lower edge, at the right. */
  foot?: Strip;
  /** The visible part, for the scroll bar. */
  scroll?: Scroll;
  /** Role of the frame itself. */
  role?: Role;
  children?: ReactNode;
}

export interface Scroll {
  top: number;
  shown: number;
  of: number;
  /** Number of fixed lines above the scrolling ones, such as column titles. */
  fixed?: number;
  /** Number of lines that scroll, if other lines follow them. */
  rows?: number;
}

/** Lines of the frame: its upper and its lower edge. */
export const EDGES = 2;

export function Pane({ title = [], foot = [], scroll, role = 'faint', children, ...box }: PaneProps) {
  const frame = (columns: number, rows: number): Strip[] => [
    upperEdge(columns, title, role),
    ...Array.from({ length: rows - EDGES }, (_, row) => {
      const bar = scroll && isThumb(row, rows - EDGES, scroll) ? text('█') : text('│', role);
      return [text('│', role), blank(columns - 2), bar];
    }),
    lowerEdge(columns, foot, role),
  ];
  return (
    <Box flexGrow={1} {...box}>
      <Drawing position="absolute" width="100%" height="100%" draw={frame} />
      <Box flexGrow={1} flexDirection="column" padding={1}>
        {children}
      </Box>
    </Box>
  );
}

/** A pane of lines, of which those from `top` on are visible. @param rows of the pane, with its edges. */
export function ScrolledPane({
  lines,
  top,
  rows,
  ...pane
}: PaneProps & { lines: readonly Strip[]; top: number; rows: number }) {
  const shown = Math.max(1, rows - EDGES);
  const first = Math.max(0, Math.min(top, lines.length - shown));
  return (
    <Pane {...pane} scroll={{ top: first, shown, of: lines.length }}>
      <Lines of={lines.slice(first, first + shown)} marginLeft={1} />
    </Pane>
  );
}

/** What is shown in place of a screen that has no data. */
export const EmptyPane = ({ says }: { says: string }) => (
  <Pane>
    <Lines of={[[], strip(`   ${says}`)]} />
  </Pane>
);

function upperEdge(columns: number, title: Strip, role: Role): Strip {
  const words = title.length === 0 ? [] : strip(' ', cut(title, columns - 6), ' ');
  return strip(text('┌', role), words, rule(columns - 2 - widthOf(words), role), text('┐', role));
}

function lowerEdge(columns: number, foot: Strip, role: Role): Strip {
  const words = foot.length === 0 ? [] : strip(' ', cut(foot, columns - 8), ' ');
  const after = words.length === 0 ? 0 : 1;
  const before = columns - 2 - after - widthOf(words);
  return strip(text('└', role), rule(before, role), words, rule(after, role), text('┘', role));
}

export const rule = (columns: number, role: Role = 'faint') => text('─'.repeat(Math.max(0, columns)), role);

/** Whether a row of the right edge belongs to the part of the scroll bar that stands for the visible lines. */
function isThumb(
  row: number,
  rows: number,
  { top, shown, of, fixed = 0, rows: scrolling = rows - fixed }: Scroll,
): boolean {
  if (of <= shown) return false;
  const size = Math.max(1, Math.round((scrolling * shown) / of));
  const most = Math.max(1, of - shown);
  const start = Math.round(((scrolling - size) * Math.min(top, most)) / most);
  return row - fixed >= start && row - fixed < start + size;
}
