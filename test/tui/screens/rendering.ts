/** Renders frames with Ink. */
import { stripVTControlCharacters } from 'node:util';
import { Renderer } from '../../../tui/renderer.js';
import type { State } from '../../../tui/state/state.js';

const renderer = new Renderer();

/** The lines of a state, with their colours. */
export const frameLines = (state: State): string[] => renderer.linesOf(state);

/** The lines of a state as plain text. */
export const plainLines = (state: State): string[] => frameLines(state).map(stripVTControlCharacters);

/** The screen as plain text. */
export const screenText = (state: State): string => plainLines(state).join('\n');
