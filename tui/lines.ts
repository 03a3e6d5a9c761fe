/** Renders a state: all lines of the screen, computed from the state alone. */
import { footer } from './chrome/footer.js';
import { header } from './chrome/header.js';
import { messageLine } from './chrome/message.js';
import { tabs } from './chrome/tabs.js';
import { withLayers } from './layers/layers.js';
import { painted } from './parts/painted.js';
import { stylesOf } from './parts/skins.js';
import { cut, strip, type Strip } from './parts/strip.js';
import { screen } from './screens/screen.js';
import { isTooSmall, MIN_SIZE } from './state/rows.js';
import type { State } from './state/state.js';

/** Header and tabs above the screen, message and footer below it. */
const CHROME_ROWS = 4;
/** Header and tabs. */
export const LINES_ABOVE_AREA = 2;

/** The lines as written to the terminal, from top to bottom. */
export function linesOf(state: State): string[] {
  const styles = stylesOf(state);
  return strips(state).map((line) => painted(line, styles, state.look.ascii));
}

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
  const words = `llmp needs ${MIN_SIZE.columns}x${MIN_SIZE.rows}, this is ${size.columns}x${size.rows}`;
  return [cut(strip(words), size.columns)];
}
