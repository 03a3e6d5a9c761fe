/** A state as it is seen: the whole of the screen as lines, from the state alone. */
import { footer } from './chrome/footer.js';
import { header } from './chrome/header.js';
import { messageLine } from './chrome/message.js';
import { tabs } from './chrome/tabs.js';
import { withLayers } from './layers/layers.js';
import { painted } from './parts/painted.js';
import { cut, strip, type Strip } from './parts/strip.js';
import { screen } from './screens/screen.js';
import { isTooSmall, LEAST } from './state/rows.js';
import type { State } from './state/state.js';

/** Header and tabs above, message and footer below. */
const CHROME_ROWS = 4;

/** As the terminal is to have them, top to bottom. */
export const linesOf = (state: State): string[] => strips(state).map((line) => painted(line, state.look));

function strips(state: State): readonly Strip[] {
  const { size } = state;
  if (isTooSmall(state)) return tooSmall(state);
  const area = { columns: size.columns, rows: size.rows - CHROME_ROWS };
  return [
    header(state),
    tabs(state),
    ...withLayers(state, screen(state, area), area),
    messageLine(state),
    footer(state),
  ];
}

function tooSmall({ size }: State): Strip[] {
  const words = `llmp needs ${LEAST.columns}x${LEAST.rows}, this is ${size.columns}x${size.rows}`;
  return [cut(strip(words), size.columns)];
}
