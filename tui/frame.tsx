/** A state as it is seen: the whole of the screen, from the state alone. */
import { Box } from 'ink';
import type { ReactNode } from 'react';
import { footer } from './chrome/footer.js';
import { header } from './chrome/header.js';
import { messageLine } from './chrome/message.js';
import { tabs } from './chrome/tabs.js';
import { withLayers } from './layers/layers.js';
import { Lines } from './parts/lines.js';
import { cut, strip, type Strip } from './parts/strip.js';
import { screen } from './screens/screen.js';
import { isTooSmall, LEAST } from './state/rows.js';
import type { State } from './state/state.js';

export const frameOf = (state: State): ReactNode => <Frame state={state} />;

/** Header and tabs above, message and footer below. */
const CHROME_ROWS = 4;

function Frame({ state }: { state: State }) {
  const { size, look } = state;
  if (isTooSmall(state)) return <Lines of={tooSmall(state)} look={look} />;
  const area = { columns: size.columns, rows: size.rows - CHROME_ROWS };
  return (
    <Box flexDirection="column" width={size.columns} height={size.rows}>
      <Lines of={[header(state), tabs(state)]} look={look} />
      <Lines of={withLayers(state, screen(state, area), area)} look={look} />
      <Lines of={[messageLine(state), footer(state)]} look={look} />
    </Box>
  );
}

function tooSmall({ size }: State): Strip[] {
  const words = `llmp needs ${LEAST.columns}x${LEAST.rows}, this is ${size.columns}x${size.rows}`;
  return [cut(strip(words), size.columns)];
}
