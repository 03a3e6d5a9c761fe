/**
 * The leaves of the screen: boxes that Ink lays out, and what is drawn in them. `paint.ts` paints them.
 *
 * They are used in place of Ink's `Text`, which is not painted: Ink paints cell by cell, which takes 8 ms of CPU time for 120x40 and
 * 21 ms for 200x60, and it remembers every text that it ever measured.
 */
import { Box, type BoxProps, type DOMElement } from 'ink';
import { createContext, useContext } from 'react';
import { inRole, type Strip, widthOf } from './strip.js';

/** Draws into a box of this size. Lines that are too long are cut, and lines that are too many are left out. */
export type Draw = (columns: number, rows: number) => readonly Strip[];

const drawings = new WeakMap<DOMElement, Draw>();
export const drawingOf = (box: DOMElement): Draw | undefined => drawings.get(box);

/** Whether what is drawn is dimmed, because a layer above it receives the keys. */
export const Dimmed = createContext(false);

/** A box whose content depends on the size that the layout gives it, such as a chart. */
export function Drawing({ draw, ...box }: BoxProps & { draw: Draw }) {
  const isDimmed = useContext(Dimmed);
  const drawn: Draw = isDimmed ? (columns, rows) => draw(columns, rows).map((line) => inRole(line, 'faint')) : draw;
  return (
    <Box
      {...box}
      ref={(node) => {
        if (node) drawings.set(node, drawn);
      }}
    />
  );
}

/** Lines one below the other, as wide as the box around them. */
export const Lines = ({ of: lines, ...box }: BoxProps & { of: readonly Strip[] }) => (
  <Drawing height={lines.length} {...box} draw={() => lines} />
);

/** One line, as wide as its text if there is room for it. */
export const Line = ({ of: line, ...box }: BoxProps & { of: Strip }) => (
  <Drawing height={1} width={widthOf(line)} {...box} draw={() => [line]} />
);

/** Columns between the two parts of a line. */
export const GAP = 2;

/** A line with something at each end. If there is no room for both, the left one is cut. */
export const Ends = ({ left, right }: { left: Strip; right: Strip }) => (
  <Box height={1} justifyContent="space-between" columnGap={GAP}>
    <Line of={left} />
    {right.length > 0 && <Line of={right} flexShrink={0} />}
  </Box>
);
