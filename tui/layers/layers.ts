/** Draws the top layer over the screen. */
import type { Area } from '../parts/list.js';
import type { Strip } from '../parts/strip.js';
import { layer, type State } from '../state/state.js';
import { withCompletions } from './completions.js';
import { contextsPanel } from './contexts.js';
import { dialogPanel } from './dialog.js';
import { columnsPanel } from './columns.js';
import { withCandidates } from './command-line.js';
import { helpPanel } from './keys.js';
import { noticePanel } from './notice.js';
import { above } from './panel.js';
import { revealPanel } from './reveal.js';

export function withLayers(state: State, below: Strip[], area: Area): Strip[] {
  const top = layer(state);
  switch (top?.kind) {
    case undefined:
      return below;
    case 'prompt':
      return withCompletions(state, top, below, area);
    case 'dialog':
      return above(below, dialogPanel(state, top, area), area);
    case 'reveal':
      return above(below, revealPanel(state, top, area), area);
    case 'command':
      return withCandidates(state, top, below, area);
    case 'help':
      return above(below, helpPanel(state, top, area), area);
    case 'columns':
      return above(below, columnsPanel(top, area), area);
    case 'notice':
      return above(below, noticePanel(top, area), area);
    case 'contexts':
      return above(below, contextsPanel(top, area), area);
  }
}
