/** Draws what has the keys over the screen. */
import type { Area } from '../parts/list.js';
import type { Strip } from '../parts/strip.js';
import { layer, type State } from '../state/state.js';
import { dialogPanel } from './dialog.js';
import { above } from './panel.js';

export function withLayers(state: State, below: Strip[], area: Area): Strip[] {
  const top = layer(state);
  switch (top?.kind) {
    case 'dialog':
      return above(below, dialogPanel(state, top, area.columns), area);
    default:
      return below;
  }
}
