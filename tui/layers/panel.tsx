/** A pane in the middle of the screen, over what is below it. */
import { Box } from 'ink';
import { Lines } from '../parts/drawing.js';
import { Pane, type PaneProps } from '../parts/pane.js';
import type { Strip } from '../parts/strip.js';

interface PanelProps extends PaneProps {
  lines: readonly Strip[];
  /** Width of the lines. */
  columns: number;
}

/** Columns of the frame, and the space between it and the lines. */
export const AROUND = 4;

export const Panel = ({ lines, columns, ...pane }: PanelProps) => (
  <Box position="absolute" width="100%" height="100%" flexDirection="column" alignItems="center">
    <Box flexGrow={1} />
    <Pane role="plain" {...pane} width={columns + AROUND} flexGrow={0}>
      <Lines of={lines} marginX={1} />
    </Pane>
    <Box flexGrow={2} />
  </Box>
);
