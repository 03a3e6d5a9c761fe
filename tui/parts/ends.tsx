/** A line with something at each end. If there is no room for both, the left one is cut. */
import { Box } from 'ink';
import { Line } from './drawing.js';
import type { Strip } from './strip.js';

/** Columns between the two. */
export const GAP = 2;

export const Ends = ({ left, right }: { left: Strip; right: Strip }) => (
  <Box height={1} justifyContent="space-between" columnGap={GAP}>
    <Line of={left} />
    {right.length > 0 && <Line of={right} flexShrink={0} />}
  </Box>
);
